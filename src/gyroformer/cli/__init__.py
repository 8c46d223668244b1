"""The command line. Results go to stdout, progress and messages to stderr."""

from gyroformer.cli.app import main

__all__ = ["main"]
