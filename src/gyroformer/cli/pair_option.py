"""An option that takes two words and may be repeated, which Typer's lists and tuples cannot be at once."""

from typing import Any

from typer.core import TyperCommand

from gyroformer.errors import UsageError

OPTION = "--distance"
#: stands between the two words on their way through the parser, which sees one; no shell passes it in an argument
JOINT = "\0"


class PairCommand(TyperCommand):
    """A command whose ``--distance A B`` reaches it as a list of joined pairs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse ``args`` with the two words of each pair joined."""
        return super().parse_args(ctx, joined(args))


def joined(args: list[str]) -> list[str]:
    """Return ``args`` with the two words after each ``--distance`` joined to one."""
    result: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*result, word, *rest]
        result.append(word)
        if word == OPTION and len(rest) >= 2:
            result.append(f"{rest.pop(0)}{JOINT}{rest.pop(0)}")
    return result


def as_pairs(values: list[str] | None) -> list[tuple[str, str]]:
    """Return the pairs that ``joined`` made."""
    pairs = []
    for value in values or []:
        one, mark, other = value.partition(JOINT)
        if not mark:
            raise UsageError(f"{OPTION} takes two ids, A B; got {value!r} alone")
        pairs.append((one, other))
    return pairs
