"""``python -m gyroformer``, the form that ``torchrun -m`` needs, and the command ``gyroformer``."""

import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
#: objects after which Python looks for unused ones that hold each other, and how many looks before a wider one; the
#: usual (700, 10, 10) look through all of torch again and again while it is imported: a fifth of that time
COLLECT_AFTER = (20_000, 20, 20)
#: how often a thread of a kernel that waits for the others asks before it gives its core away; with the usual 300,000
#: it keeps the core from the very thread that it waits for, where another program wants it too
SPINS = "10000"
#: lets torch ask for pages of 2 MB: large results of every step are fresh memory, and a system hands it out in small
#: pages at half a millisecond a megabyte
LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"


def main() -> None:
    """Run the command line; Ctrl-C or SIGTERM while it is still being imported ends it without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell wants it ignored
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    gc.set_threshold(*COLLECT_AFTER)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # read when torch is imported
    os.environ.setdefault(LARGE_PAGES, "1")
    try:
        from gyroformer.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or end at once in the middle of an import.

    Libraries try imports and go on without them: one that is interrupted would be taken for one that is not there, and
    fail later in its own way. Nothing is lost: whatever is written survives even ``kill -9``.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"interrupted\n")
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
