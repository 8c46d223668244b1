"""Several processes that compute as one, started as torchrun starts them, but cheaply.

A server that has loaded everything forks the processes, and these connect over gloo. What is missing is torchrun's
supervision: nobody ends the others when one has gone.
"""

import multiprocessing
import os
import socket
import sys
from pathlib import Path

#: what takes long to load
LOADED = [
    *("gyroformer.cli.app", "gyroformer.jobs.run", "gyroformer.jobs.several", "gyroformer.models.fpst"),
    *("sklearn.metrics", "torch_geometric.data", "gyroformer.graphs.spectral.laplacian"),
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(LOADED)


class Member:
    """One of several processes that call a function each."""

    def __init__(self, function, args, rank, count, port, folder):
        self.out, self.err = (Path(folder) / f"{name}-{port}-{rank}.txt" for name in ("out", "err"))
        place = (rank, count, port, str(folder), str(self.out), str(self.err))
        self.process = _context.Process(target=_member, args=(function, args, *place))
        self.process.start()

    def end(self, seconds=240):
        """Wait for its end; return the exit code, stdout and stderr."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"still running after {seconds} s\n{self.err.read_text()}")
        return self.process.exitcode, self.out.read_text(), self.err.read_text()


def begin(calls, folder):
    """Start a process for each of ``calls``, pairs of a function of a module and its arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [Member(*call, rank, len(calls), port, folder) for rank, call in enumerate(calls)]


def begin_commands(commands, folder):
    """Start a command in each process; ``commands`` are lists of words."""
    return begin([(command, ([str(word) for word in words],)) for words in commands], folder)


def ended(members):
    """Wait for all; return the exit codes, and stdout and stderr of each."""
    codes, outs, errs = zip(*(member.end() for member in members), strict=True)
    return list(codes), list(outs), list(errs)


def run_in(count, function, *args, folder):
    """Call a function in ``count`` processes, which all must end well."""
    codes, _, errs = ended(begin([(function, args)] * count, folder))
    assert codes == [0] * count, "\n".join(errs)


def command(words):
    """Run a command of gyroformer and exit."""
    from gyroformer.cli.app import main

    sys.argv = ["gyroformer", *words]
    main()


def _member(function, args, rank, count, port, folder, out, err):
    import torch

    torch.set_num_threads(1)
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    os.chdir(folder)
    if count > 1:
        place = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in (place | address).items()}
    function(*args)
