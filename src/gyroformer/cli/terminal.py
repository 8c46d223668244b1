r"""The one place that writes to the terminal, so that foreign text is shown as it is.

Ids, labels, names of files and messages come from files that anybody may have made. None of it is read as markup of
rich, and what is not printable (escape sequences, line ends, marks that turn the direction of writing, halves of
characters) is shown as Python would write it: ``\x1b``, ``\n``.
"""

import json
import logging
import os
import sys
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import typer

from gyroformer.processes.launch import speaks

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


#: columns of a table that is printed into a file
UNBOUNDED = 10_000
#: letters of a word that a narrow terminal does not break
ORDINARY_WORD = 16


def visible(text: object) -> str:
    """Return ``text`` on one line, with every character that is not printable written out."""
    words = str(text)
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def say(text: object = "", *, err: bool = False) -> None:
    """Write one line to stdout, or to stderr."""
    typer.echo(visible(text), err=err)


def print_json(result: dict[str, Any]) -> None:
    """Write ``result`` as one JSON object on stdout; non-finite numbers are refused."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False))  # JSON writes out what is not ASCII by itself


def styled(text: object, style: str = "bold") -> "Text":
    """Return ``text`` for a table or a :func:`terminal`, in a style."""
    from rich.text import Text

    return Text(visible(text), style=style)


def terminal(**options: Any) -> "Console":
    """Return a console that shows text, also in tables, as it is; ``options`` are rich's."""
    return _console_class()(**{"markup": False, "emoji": False, "highlight": False, **options})


def print_table(head: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: Container[int] = ()) -> None:
    """Print a table on stdout; the columns at the places ``numbers`` are aligned at the right. No cell is cut short."""
    from rich.table import Table

    lines = [*lines]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, name in enumerate(head):
        justify: Literal["left", "right"] = "right" if place in numbers else "left"
        table.add_column(name, justify=justify, overflow="fold", min_width=_longest_word(lines, place))
    for line in lines:
        table.add_row(*line)
    show(table)


def show(table: "Table") -> None:
    """Print a table on stdout: on a narrow terminal with cells of several lines; a file has no width to keep to."""
    terminal(width=None if sys.stdout.isatty() else UNBOUNDED).print(table)


def _longest_word(lines: Sequence[Sequence[str]], place: int) -> int:
    """Return the width that a column must have for no word to be broken, as far as words are of ordinary length."""
    return min(max((len(word) for line in lines for word in line[place].split()), default=1), ORDINARY_WORD)


@cache
def _console_class() -> "type[Console]":
    from rich.console import Console

    class Terminal(Console):
        """A console that writes out what is not printable."""

        def render_str(self, text: str, **options: Any) -> "Text":
            """Return ``text``, which every string that is printed or put into a table goes through."""
            return super().render_str(visible(text), **options)

    return Terminal


def give_up_stdout() -> None:
    """Let go what cannot be written: Python would try again at its end, and fail with a traceback."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


class _Lines(logging.StreamHandler[Any]):
    """Writes each record as one line to what is stderr at that time."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


@cache
def show_log() -> None:
    """Show on stderr what this package says of its work: what was read, where a run goes on, what went wrong."""
    handler = _Lines()
    handler.setLevel(logging.INFO if speaks() else logging.ERROR)
    logger = logging.getLogger("gyroformer")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
