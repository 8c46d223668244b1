"""``python -m gyroformer``, the form that ``torchrun -m`` needs, and the command ``gyroformer``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it without a traceback."""
    try:
        from gyroformer.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
