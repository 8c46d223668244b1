"""Commands in several processes that compute as one, as torchrun would start them, cheaply.

A server that has loaded everything forks the processes, and these connect over gloo: what differs from torchrun is only
that nobody supervises them.
"""

import multiprocessing
import os
import socket
import sys
from pathlib import Path

#: what every command needs and what takes long to load
LOADED = ["gyroformer.cli.app", "gyroformer.jobs.run", "gyroformer.jobs.several", "gyroformer.models.fpst"]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([*LOADED, "several"])


class Command:
    """A command in one process."""

    def __init__(self, words, rank, count, port, folder):
        self.out, self.err = (Path(folder) / f"{name}-{port}-{rank}.txt" for name in ("out", "err"))
        place = (rank, count, port, str(folder), str(self.out), str(self.err))
        self.process = _context.Process(target=_child, args=([str(word) for word in words], *place))
        self.process.start()

    def end(self, seconds=120):
        """Wait for its end; return the exit code, stdout and stderr."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"still running after {seconds} s\n{self.err.read_text()}")
        return self.process.exitcode, self.out.read_text(), self.err.read_text()


def begin(commands, folder):
    """Start a command for each process; ``commands`` are lists of words."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [Command(words, rank, len(commands), port, folder) for rank, words in enumerate(commands)]


def run(count, words, folder):
    """Run a command in ``count`` processes and return the stdout and stderr of the first."""
    ended = [one.end() for one in begin([words] * count, folder)]
    assert [code for code, *_ in ended] == [0] * count, "\n".join(err for *_, err in ended)
    assert not any(out for _, out, _ in ended[1:])
    return ended[0][1:]


def _child(words, rank, count, port, folder, out, err):
    import torch

    torch.set_num_threads(1)
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    sys.argv = ["gyroformer", *words]
    os.chdir(folder)
    if count > 1:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank)}
        os.environ |= {"LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    from gyroformer.cli.app import main

    main()
