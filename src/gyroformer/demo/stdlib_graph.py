"""The import graph of the running Python's standard library: a real graph that every machine has.

Nodes are modules: the source files of the library, tests left out, and the compiled modules that they import.
An edge joins a module and one that it imports, anywhere in its source. Nothing is imported or run: the
sources are parsed with :mod:`ast`.
"""

import ast
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from gyroformer.errors import DataError

#: folders that hold tests or their data, at any depth
TEST_FOLDERS = frozenset({"test", "tests", "idle_test", "__pycache__"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportGraph:
    """The largest component of an import graph: modules in alphabetical order, each edge once, a < b."""

    names: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    python: str


def stdlib_graph(folder: Path | None = None, *, top_level: Iterable[str] | None = None) -> ImportGraph:
    """Return the import graph of the standard library.

    Args:
        folder: where the library's sources lie; the running Python's when absent.
        top_level: the library's top-level module names, which decides what belongs to it.
    """
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    known = frozenset(sys.stdlib_module_names if top_level is None else top_level)
    sources = dict(_sources(folder, known))
    if not sources:
        raise DataError(f"{folder} holds no source of the standard library: is this Python frozen or zipped?")
    links = set()
    modules = set(sources) | known
    for name, path in sources.items():
        for other in imported_modules(_parse(path), name, is_package=path.stem == "__init__"):
            target = _longest_known(other, modules)
            if target is not None and target != name:
                links.add((min(name, target), max(name, target)))
    names = tuple(sorted(_largest_component(links)))
    index = {name: i for i, name in enumerate(names)}
    edges = sorted((index[a], index[b]) for a, b in links if a in index)
    return ImportGraph(names=names, edges=tuple(edges), python=platform.python_version())


def _sources(folder: Path, known: Set[str]) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the file of every source module, in alphabetical order."""
    for name in sorted(known):
        if (folder / f"{name}.py").is_file():
            yield name, folder / f"{name}.py"
        # not a walk of the whole folder: installed packages lie in it as well
        for path in sorted((folder / name).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if not TEST_FOLDERS.intersection(parts):
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about old escapes in the library's own sources
        try:
            # bytes, so that the file's own coding line decides
            return ast.parse(path.read_bytes())
        except SyntaxError as error:
            raise DataError(f"{path}:{error.lineno}: not Python of this version: {error.msg}") from error


def imported_modules(tree: ast.AST, name: str, *, is_package: bool) -> Iterator[str]:
    """Yield the dotted names that the module ``name`` imports; ``from a import b`` yields ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name, is_package=is_package)
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _absolute(node: ast.ImportFrom, name: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    # one dot is the module's own package: itself for a package, its parent for a plain module
    climb = node.level - is_package
    package = name.split(".")[: len(name.split(".")) - climb]
    return ".".join([*package, *([node.module] if node.module else [])])


def _longest_known(dotted: str, modules: Set[str]) -> str | None:
    """Return the longest leading part of ``dotted`` that is a module, so an imported function's module."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        if (candidate := ".".join(parts[:size])) in modules:
            return candidate
    return None


def _largest_component(links: Set[tuple[str, str]]) -> set[str]:
    """Return the largest set of linked names; of equally large ones that with the first name."""
    neighbours: dict[str, list[str]] = {}
    for a, b in sorted(links):
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    largest: set[str] = set()
    left = set(neighbours)
    for start in sorted(neighbours):
        if start not in left:
            continue
        component, queue = {start}, [start]
        while queue:
            fresh = set(neighbours[queue.pop()]) - component
            component |= fresh
            queue += fresh
        left -= component
        if len(component) > len(largest):
            largest = component
    return largest
