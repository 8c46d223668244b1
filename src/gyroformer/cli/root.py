"""The root command: from what a command leaves behind to one line on stderr and an exit code."""

import os
import re
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
            code = _parse_failed(error, words)
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


WORDS = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}
#: what the parser of the command line says, and how this program says such things
FORMS = (
    (r"Missing argument '(.+)'", r"{0} is missing: give it"),
    (
        r"No such option: (\S+) \(Possible options: ([^,)]+).*\)",
        r"no option is called '{0}'; did you mean '{1}'?",
    ),
    (r"No such option: (\S+)", r"no option is called '{0}'"),
    (r"No such command '(.+)'\. Did you mean '(.+)'\?", r"no command is called '{0}'; did you mean '{1}'?"),
    (r"No such command '(.+)'", r"no command is called '{0}'"),
    (r"Option '(.+)' requires an argument", r"{0} needs a value: give one"),
    (r"Option '(.+)' does not take a value", r"{0} takes no value: leave it out"),
    (r"Got unexpected extra argument\(s\) \((.+)\)", r"one argument too many: '{0}'"),
    (r"Invalid value for '(.+?)': Input should be (a [\w ]*number).*", r"{0} must be {1}; got {value}"),
    (r"Invalid value for '(.+?)': Input should be (.+)", r"{0} must be {1}; got {value}"),
    (
        r"Invalid value for '(.+?)': Value error, '.*' is not one of (.+)",
        r"{0} must be one of {1}; got {value}",
    ),
)


def in_our_form(message: str, words: Sequence[str]) -> str:
    """Return a message of the parser as this program says such things: what is wrong, and what came instead."""
    said = message.rstrip(".")
    for theirs, ours in WORDS.items():
        said = said.replace(theirs, ours)
    for pattern, form in FORMS:
        found = re.fullmatch(pattern, said)
        if found:
            name = found[1].upper() if pattern.startswith("Missing") else found[1]
            return form.format(name, *found.groups()[1:], value=repr(_typed(found[1], words)))
    return said[:1].lower() + said[1:]


def _typed(flag: str, words: Sequence[str]) -> str:
    """Return what was typed for a flag, last."""
    typed = ""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, separator, value = word.partition("=")
        if name == flag:
            typed = value if separator else following
    return typed


def _parse_failed(error: Any, words: Sequence[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help has been printed
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f" (see {context.command_path} --help)"
    return _fail(f"{in_our_form(error.format_message(), words)}{hint}", error.exit_code)


def _fail(what: object, code: int) -> int:
    say(f"error: {what}", err=True)
    return code
