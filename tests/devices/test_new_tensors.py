"""No tensor is made without a device: read from the source, so that lines that no test runs count as well."""

import ast
import importlib
from pathlib import Path

import pytest
from torch import nn

import gyroformer

SOURCE = Path(gyroformer.__file__).parent
LAYERS = ("geometry", "graphs", "ops", "nn", "tokens", "models", "tasks", "train")

#: what of torch makes a tensor, or draws, on the CPU unless it is told where
MAKERS = {
    *("tensor", "as_tensor", "asarray", "from_numpy", "scalar_tensor", "Tensor", "FloatTensor", "LongTensor"),
    *("zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace", "empty_strided"),
    *("rand", "randn", "randint", "randperm", "normal", "Generator", "tril_indices", "triu_indices"),
    *("sparse_coo_tensor", "sparse_csr_tensor", "sparse_compressed_tensor", "complex", "hann_window"),
}

#: where a tensor is made on the CPU on purpose: (file, function, maker) and why
ALLOWED = {
    (
        "geometry/space.py",
        "Stereographic.__init__",
        "tensor",
    ): "the curvature follows the points at each call",
    ("geometry/space.py", "ProductSpace.__init__", "tensor"): "the curvatures follow the points at each call",
    ("graphs/build.py", "graph_from_edges", "from_numpy"): "a graph is read on the CPU and moved as a whole",
    ("graphs/check.py", "checked_features", "from_numpy"): "a graph is read on the CPU and moved as a whole",
    ("graphs/check.py", "checked_labels", "from_numpy"): "a graph is read on the CPU and moved as a whole",
    ("graphs/listing.py", "Listing.graph", "from_numpy"): "a graph is read on the CPU and moved as a whole",
    ("graphs/hops.py", "normalised_adjacency", "from_numpy"): "sparse_coo_tensor around it says the device",
    ("graphs/non_edges.py", "undirected_edges", "from_numpy"): "made by scipy; NonEdges.of moves it",
    (
        "graphs/spectral/laplacian.py",
        "laplacian_identifiers",
        "from_numpy",
    ): "made by scipy; tokens move them",
    ("ops/neighbours.py", "Neighbours.of", "from_numpy"): "made by scipy, checked, and moved at the end",
    ("graphs/non_edges.py", "directed_edges", "from_numpy"): "checked as an array; the split moves it",
    ("geometry/rows.py", "_constant", "tensor"): "a number for kernels, which are on the CPU",
    ("ops/positions.py", "StereographicPositions.renewed_lists", "randint"): "a seed",
    ("tasks/negatives.py", "NearNegatives.log_partition", "tensor"): "copied into a buffer",
    **{
        ("graphs/analysis/slopes.py", "Slopes.__init__", maker): "a graph is analysed on the CPU"
        for maker in ("Generator", "from_numpy", "zeros")
    },
    ("graphs/analysis/stress.py", "_step", "arange"): "a graph is analysed on the CPU",
    ("graphs/analysis/stress.py", "start", "randn"): "a graph is analysed on the CPU",
    **{
        ("ops/nearest_index.py", function, maker): "the index is used for points on the CPU only"
        for function, makers in {
            "NearestIndex.__init__": ("Generator", "randperm"),
            "NearestIndex._cell": ("from_numpy",),
            "NearestIndex._exact": ("from_numpy",),
            "NearestIndex._first_bound": ("from_numpy",),
            "NearestIndex._merge": ("from_numpy",),
            "NearestIndex._query": ("from_numpy",),
            "_Found.bound": ("from_numpy",),
            "_Found.empty": ("full",),
            "_image": ("tensor",),
        }.items()
        for maker in makers
    },
    ("ops/flatten.py", "flat_vectors", "Generator"): "drawn on the CPU: the same landmarks everywhere",
    ("ops/flatten.py", "flat_vectors", "randperm"): "drawn on the CPU: the same landmarks everywhere",
    **{
        (file, function, maker): "drawn on the CPU, so that a seed means the same draw everywhere"
        for file, function in (
            ("tasks/embed.py", "drawn_nodes"),
            ("tasks/hierarchy.py", "_held_out"),
            ("tasks/hierarchy.py", "_no_ancestors"),
        )
        for maker in ("Generator", "randperm")
        if (function, maker) != ("_no_ancestors", "randperm")
    },
    ("tasks/hierarchy.py", "order_of", "from_numpy"): "made by scipy; the task moves it",
    ("tasks/hierarchy.py", "_held_out", "from_numpy"): "made by scipy; the task moves it",
    ("tasks/hierarchy.py", "_held_out", "zeros"): "made by scipy; the task moves it",
    ("ops/neighbours.py", "Neighbours.directed", "as_tensor"): "a tensor stays where it is",
    ("ops/placing.py", "place_nodes", "Generator"): "drawn on the CPU: the same starts everywhere",
    ("tasks/whole_graphs.py", "WholeGraphs.loss", "randperm"): "an order of graphs, for a list of them",
}


class Makers(ast.NodeVisitor):
    """Collects the calls in a file that make a tensor and neither say where nor move it in the same breath."""

    def __init__(self, module, tree):
        self.module, self.inside, self.found = module, [], []
        self.moved = {id(made) for node in ast.walk(tree) for made in _moved(node)}
        self.visit(tree)

    def visit_ClassDef(self, node):
        self._enter(node)

    def visit_FunctionDef(self, node):
        self._enter(node)

    def _enter(self, node):
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()

    def visit_Call(self, node):
        name = _maker(node)
        told = any(keyword.arg in ("device", None) for keyword in node.keywords)
        if name and not told and id(node) not in self.moved and not self._moved_with_its_module():
            self.found.append((node.lineno, ".".join(self.inside), name))
        self.generic_visit(node)

    def _moved_with_its_module(self):
        """Return whether the code is in the constructor of a module, whose tensors go where the module goes."""
        if self.inside[-1:] != ["__init__"] or len(self.inside) != 2:
            return False
        made = getattr(importlib.import_module(self.module), self.inside[0])
        return issubclass(made, nn.Module)


def _maker(node):
    """Return the name of the maker that a call calls, if it does."""
    called = node.func
    if (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "torch"
    ):
        return called.attr if called.attr in MAKERS else None
    return None


def _moved(node):
    """Yield the calls that ``made(...).….to(device)`` begins with."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"):
        return
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not any("device" in ast.unparse(one) for one in given):
        return
    inner = node.func.value
    while isinstance(inner, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(inner, ast.Call) and _maker(inner):
            yield inner
            return
        inner = inner.func if isinstance(inner, ast.Call) else inner.value


def found_in(text, module="gyroformer"):
    return [(function, maker) for _, function, maker in Makers(module, ast.parse(text)).found]


def files():
    return sorted(path for layer in LAYERS for path in (SOURCE / layer).rglob("*.py"))


def made_without_a_device():
    """Return every such call of the library: where it is, and its key in ``ALLOWED``."""
    made = []
    for path in files():
        name = path.relative_to(SOURCE).as_posix()
        module = ".".join(("gyroformer", *path.relative_to(SOURCE).with_suffix("").parts))
        for line, function, maker in Makers(module, ast.parse(path.read_text(encoding="utf-8"))).found:
            made.append((f"{name}:{line}", (name, function, maker)))
    return made


def test_every_new_tensor_says_where_it_is():
    unknown = [f"{where} torch.{key[2]}" for where, key in made_without_a_device() if key not in ALLOWED]
    assert not unknown, "give a device, or say in ALLOWED why not: " + ", ".join(unknown)


def test_what_is_allowed_is_still_there():
    left = ALLOWED.keys() - {key for _, key in made_without_a_device()}
    assert not left, f"remove from ALLOWED: {left}"


def test_no_array_is_made_of_a_tensor_that_may_be_elsewhere():
    wrong = []
    read = SOURCE / "graphs" / "reading"  # what comes from a file is on the CPU
    for path in (path for path in files() if read not in path.parents):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "numpy"
            ):
                before = node.func.value
                if not (isinstance(before, ast.Call) and ast.unparse(before.func).endswith(".cpu")):
                    wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not wrong, "write .cpu().numpy(): " + ", ".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.arange(3)",
        "y = torch.zeros(3, dtype=x.dtype)",
        "y = x[torch.randperm(3)]",
        "y = torch.from_numpy(a).to(torch.int64)",
        "y = (x + torch.ones(3)).to(x.device)",
        "y = torch.tensor([1.0]).sum()",
    ],
)
def test_the_check_sees(line):
    assert found_in(f"def f(x, a):\n    {line}\n") != []


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.arange(3, device=x.device)",
        "y = torch.zeros(3, **like)",
        "y = torch.zeros_like(x)",
        "y = x.new_zeros(3)",
        "y = torch.randperm(9)[:3].sort().values.to(x.device)",
        "y = torch.from_numpy(a).to(device=device, dtype=torch.int64)",
    ],
)
def test_the_check_passes(line):
    assert found_in(f"def f(x, a):\n    {line}\n") == []


def test_the_check_passes_modules_and_no_other_class():
    text = "class {}:\n    def __init__(self):\n        self.k = torch.zeros(3)\n"
    assert found_in(text.format("HeadCurvature"), "gyroformer.nn.curvature") == []
    assert found_in(text.format("Reconstruction"), "gyroformer.tasks.embed") != []
