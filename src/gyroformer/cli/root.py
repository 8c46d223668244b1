"""The root command: from what a command leaves behind to one line on stderr and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from gyroformer.cli.terminal import give_up_stdout, say
from gyroformer.errors import DataError, UsageError

#: the base of what the parser of the command line raises; Typer names only a class derived from it
PARSE_ERROR: Any = typer.BadParameter.__mro__[2]

#: exit code when whoever read stdout has gone: what a shell gives for a command that SIGPIPE ended
READER_GONE = 128 + 13


class Root(TyperGroup):
    """The group of all commands."""

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        """Run the command that ``args`` name, and exit."""
        if not options.pop("standalone_mode", True):
            return super().main(args, standalone_mode=False, **options)
        words = sys.argv[1:] if args is None else args
        try:
            _refuse_empty(words)
            code = super().main(words, standalone_mode=False, **options)
            sys.stdout.flush()
        except UsageError as error:
            code = _fail(error, error.exit_code)
        except PARSE_ERROR as error:
            code = _parse_failed(error)
        except BrokenPipeError:  # whoever read has had enough
            give_up_stdout()
            code = READER_GONE
        except OSError as error:
            if os.environ.get("GYROFORMER_TRACEBACK"):
                raise
            if error.filename is None:
                give_up_stdout()
            code = _fail(f"{error.filename or 'stdout'}: {error.strerror or error}", DataError.exit_code)
        sys.exit(code or 0)


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an empty word: no file, name or number is empty, so it is a variable that was not set."""
    for before, word in zip(["", *words], words, strict=False):
        if not word:
            raise UsageError(f"{before if before.startswith('--') else 'an argument'} is empty: give a value")
        if word.startswith("--") and word.endswith("=") and "=" not in word[:-1]:
            raise UsageError(f"{word[:-1]} is empty: give a value")


def _parse_failed(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help has been printed
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f" (see {context.command_path} --help)"
    return _fail(f"{error.format_message().rstrip('.')}{hint}", error.exit_code)


def _fail(what: object, code: int) -> int:
    say(f"error: {what}", err=True)
    return code
