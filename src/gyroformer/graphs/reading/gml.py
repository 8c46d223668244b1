"""GML files: nested lists of keys and values, of which nodes and edges are kept."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import name2codepoint
from pathlib import Path

from gyroformer.errors import DataError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.lines import located, quoted, whole_text
from gyroformer.graphs.reading.marked import MarkedGraph
from gyroformer.graphs.reading.names import MAX_NODES

_TOKEN = re.compile(
    r'(?P<skip>\s+|\#[^\n]*)|(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"|(?P<word>[^\s\[\]"]+)'
)
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]*));")
#: lists in lists that are followed
MAX_DEPTH = 100


@dataclass(slots=True)
class _List:
    """An open list: its key, its line and its plain values so far."""

    key: str
    line: int
    values: dict[str, str] = field(default_factory=dict)


def read_gml(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read nodes and edges; an edge's weight is its ``weight``, else its ``value``.

    A node is named by its ``label`` if every node has one and all differ, else by its ``id``.

    Raises:
        DataError: if brackets or quotation marks do not match, or a node or edge lacks its ids.
    """
    graph = MarkedGraph(path, max_nodes)
    labels: list[str | None] = []
    for item in _lists(path):
        if item.key == "node":
            graph.add_node(_required(path, item, "id"), item.line)
            labels.append(item.values.get("label"))
        else:
            graph.add_edge(_required(path, item, "source"), _required(path, item, "target"), item.line)
            weight = item.values.get("weight", item.values.get("value"))
            if weight is not None:
                graph.set_weight(graph.number(weight, item.line))
    names = [label for label in labels if label is not None]
    distinct = len(names) == len(labels) == len(set(names))
    return graph.listing(names if distinct else None)


def _required(path: Path, item: _List, key: str) -> str:
    if key not in item.values:
        raise located(path, item.line, f"{item.key} [ without {key!r}: add it")
    return item.values[key]


def _lists(path: Path) -> Iterator[_List]:
    """Yield the nodes and edges directly inside ``graph [ … ]`` as their lists close."""
    stack: list[_List] = []
    graphs, key = 0, None
    for kind, value, line in _tokens(path):
        if kind == "open":
            if key is None:
                raise located(path, line, "'[' without a key before it: write e.g. node [")
            if len(stack) == MAX_DEPTH:
                raise located(path, line, f"lists nested deeper than {MAX_DEPTH}: a graph needs two")
            stack.append(_List(key, line))
            key = None
            graphs += len(stack) == 1 and stack[0].key == "graph"
            if graphs > 1:
                raise located(path, line, "a second graph: keep one graph per file")
        elif kind == "close":
            if not stack or key is not None:
                raise located(
                    path, line, "']' without its '[', or after a key without a value: match the brackets"
                )
            closed = stack.pop()
            if len(stack) == 1 and stack[0].key == "graph" and closed.key in {"node", "edge"}:
                yield closed
        elif key is None:
            if kind == "text":
                raise located(path, line, f"text {quoted(value)} where a key was expected: remove it")
            key = value
        else:
            if stack:
                stack[-1].values[key] = value
            key = None
    if stack or key is not None:
        raise DataError(f"{path}: ends in the middle of a list: the file is truncated or a ']' is missing")
    if not graphs:
        raise DataError(f"{path}: no 'graph [' in it: this is not a GML file")


def _tokens(path: Path) -> Iterator[tuple[str, str, int]]:
    text = whole_text(path)
    end, line = 0, 1
    for match in _TOKEN.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        kind = match.lastgroup or ""
        value = match.group(kind)
        if kind == "skip":
            line += value.count("\n")
        elif kind == "text":
            yield kind, _ENTITY.sub(_character, value) if "&" in value else value, line
            line += value.count("\n")
        else:
            yield kind, value, line
    if end != len(text):  # only a quotation mark without its partner fits no token
        raise located(path, line, "a quotation mark that is never closed: close it")


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else name2codepoint.get(name, -1)
    valid = 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if valid else match.group()
