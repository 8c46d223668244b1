"""One direction of imports: a module imports only from layers to the left of its own."""

import ast
from pathlib import Path

import pytest

import gyroformer

ROOT = Path(gyroformer.__file__).parent
LAYERS = [
    *(
        "errors",
        "durable",
        "arrays",
        "cache",
        "config",
        "geometry",
        "graphs",
        "ops",
        "nn",
        "tokens",
        "testing",
        "models",
        "data",
    ),
    *("tasks", "train", "bench", "report", "recipes", "jobs", "estimators", "demo", "cli"),
]
ENTRY_POINTS = {"__init__.py", "__main__.py"}  # the package's own doors may name anything


def imported_layers(tree: ast.AST) -> set[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("gyroformer.")} - {"__version__"}


def forbidden(layer: str, source: str) -> list[str]:
    return sorted(
        other for other in imported_layers(ast.parse(source)) if LAYERS.index(other) > LAYERS.index(layer)
    )


def modules() -> list[tuple[str, Path]]:
    paths = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).as_posix() not in ENTRY_POINTS]
    return [(path.relative_to(ROOT).parts[0].removesuffix(".py"), path) for path in paths]


@pytest.mark.parametrize("layer, path", modules(), ids=lambda value: str(value)[-40:])
def test_imports_point_left(layer, path):
    assert layer in LAYERS, f"{layer} has no place in LAYERS"
    assert not forbidden(layer, path.read_text()), f"{path} imports {forbidden(layer, path.read_text())}"


def test_a_wrong_import_is_seen():
    assert forbidden("geometry", "def f():\n    from gyroformer.nn.transformer import Block") == ["nn"]
    assert forbidden("cli", "import gyroformer.geometry.trig") == []


def test_no_module_is_too_long():
    lengths = {path.name: len(path.read_text().splitlines()) for _, path in modules()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}
