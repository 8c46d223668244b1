"""One direction of imports: a module imports only from layers to the left of its own."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gyroformer

ROOT = Path(gyroformer.__file__).parent
LAYERS = [
    *(
        "errors",
        "untrusted",
        "durable",
        "arrays",
        "cache",
        "options",
        "operators",
        "compiled",
        "processes",
        "geometry",
        "graphs",
        "ops",
        "nn",
        "tokens",
        "testing",
    ),
    *("models", "data", "tasks", "recipes", "settings", "runs", "train", "bench", "report", "jobs"),
    *("search", "paper", "estimators", "demo", "cli"),
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


def too_long(lengths):
    return {name: length for name, length in lengths.items() if length > 400}


def test_no_module_is_too_long():
    # by path: two files of one name must not hide each other
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for _, path in modules()}
    assert len(lengths) == len(modules())
    assert too_long(lengths) == {}
    assert too_long({"a/x.py": 401, "b/x.py": 3}) == {"a/x.py": 401}


LIGHT = [
    "gyroformer.options",
    "gyroformer.settings",
    "gyroformer.tasks",
    "gyroformer.models",
    "gyroformer.cli",
]


@pytest.mark.parametrize("module", LIGHT)
def test_what_help_needs_does_not_import_torch(module):
    code = f"import {module}, sys; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
