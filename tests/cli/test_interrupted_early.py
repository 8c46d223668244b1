"""Ctrl-C at any moment of the start ends with 130 and without a traceback."""

import contextlib
import signal
import subprocess
import sys
import time

import pytest

INTERRUPTED_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
sys.argv = ["gyroformer", "curvature", {graph!r}]
from gyroformer.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module", ["gyroformer.cli", "gyroformer.cli.app", "typer", "numpy", "torch", "scipy"]
)
def test_while_a_module_is_imported(module, tmp_path):
    (tmp_path / "g.csv").write_text("a,b\nb,c\n")
    code = INTERRUPTED_IMPORT.format(module=module, graph=str(tmp_path / "g.csv"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1


def interrupted(process):
    """Press Ctrl-C as people do, again if nothing happens: Python drops one that meets a destructor."""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=15)
    process.kill()
    return process.communicate()


@pytest.mark.parametrize("seconds", [0.3, 0.6, 1.0, 2.0])
def test_a_real_signal(seconds, tmp_path):
    (tmp_path / "g.csv").write_text("".join(f"{i},{i // 2}\n" for i in range(1, 200)))
    # a process that Python has begun: before its own first line nothing of ours runs
    code = (
        # a job in the background of a shell would ignore the signal
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); print('ready', flush=True); "
        "sys.argv = ['gyroformer', 'embed', 'g.csv', '--epochs', '100000']; "
        "from gyroformer.__main__ import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        _, err = interrupted(process)
    # Python may end by the signal itself where an import was interrupted: a shell says 130 of both
    assert process.returncode in (130, -signal.SIGINT), err
    assert b"Traceback" not in err
