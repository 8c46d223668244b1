"""How much memory a job will take, told before its model is built, and a refusal if there is not so much."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.errors import UsageError
from gyroformer.jobs.plan import build_model
from gyroformer.models import get_model
from gyroformer.ops.native.build import library
from gyroformer.ops.native.fused_block import MOST_WIDTH
from gyroformer.processes.group import count as processes
from gyroformer.processes.launch import beside
from gyroformer.settings import JobSettings
from gyroformer.tasks import Task

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: bytes of torch, torch_geometric and scipy in memory before any graph, measured
INTERPRETER = 450e6
#: values kept for the backward pass in multiples of the width, measured as peaks of whole runs: for each token in
#: each layer (attention keeps queries, keys, values and sums, the rest its inputs), the same where a layer is one C++
#: operator that keeps its inputs alone, and for each node in the loss
KEPT_PER_TOKEN, KEPT_BY_OPERATOR, KEPT_PER_NODE = 16, 3, 12
#: numbers of 8 bytes for each eigenvector and node while they are sought: the room of Lanczos, what it found, checks
EIGENVECTOR_COPIES = 8
#: bytes of a node's name: an object and its place in a list, and its share of a table of names
NAME = 100
#: copies of the features while they are mixed: as read, as rescaled, two steps of mixing, the result
FEATURE_COPIES = 5
#: copies of every parameter: weights, gradient, two moments of Adam, the best state, a good state with its moments
COPIES = 8
#: copies of the lists of near nodes: as they are, as they are renewed, turned, in a good state and in a checkpoint
LIST_COPIES = 5
#: tokens from which a step takes seconds
MANY_TOKENS = 1_000_000
#: width below which a smaller one is no advice
SMALL_DIM = 4


def estimate(job: JobSettings, task: Task) -> dict[str, float]:
    """Return the job's estimated bytes by what takes them, with their ``total``."""
    data, options = task.data, job.model.options
    size = 4 if job.dtype == "float32" else 8
    nodes, edges = int(data.num_nodes or 0), data.edge_index.size(1)
    tokens = math.ceil(tokens_of(job, data) / processes())  # which have some each
    layers, width = options.get("layers", 0), options["dim"]
    passes = layers + 1 if layers else 0  # free points have no layers and no tokens
    kept = KEPT_BY_OPERATOR if _is_operator(job) else KEPT_PER_TOKEN
    # a model on no device has shapes and no values
    parameters = sum(p.numel() for p in build_model(job, task, device="meta").parameters())
    parts = {
        "libraries": INTERPRETER,
        "graph": 16.0 * edges * 2 + NAME * nodes,
        "eigenvectors": 8.0 * EIGENVECTOR_COPIES * nodes * options.get("identifiers", 0),
        "features": float(FEATURE_COPIES) * size * (data.x.numel() if data.x is not None else 0),
        "lists": float(LIST_COPIES * sum(t.nbytes for t in task.kept.buffers())) if task.kept else 0.0,
        "parameters": float(COPIES * size * parameters),
        "layers": float(size * width * (kept * tokens * passes + KEPT_PER_NODE * nodes)),
    }
    return parts | {"total": sum(parts.values())}


def tokens_of(job: JobSettings, data: "Data") -> int:
    """Return the number of tokens that the job's model makes of a graph: the nodes, and edges if it takes them."""
    nodes, edges, options = int(data.num_nodes or 0), data.edge_index.size(1), job.model.options
    if not get_model(job.model.name).tokens or options["edge_tokens"] == "none":
        return nodes
    return nodes + edges // (2 if options["edge_tokens"] == "undirected" else 1)


def note_on_tokens(job: JobSettings, data: "Data") -> tuple[str, ...]:
    """Return what the user should know of tokens: where edges are very many, they take much of the time."""
    nodes, tokens = int(data.num_nodes or 0), tokens_of(job, data)
    if tokens < MANY_TOKENS or tokens < 2 * nodes:
        return ()
    said = f"{tokens - nodes:,} edges are tokens beside {nodes:,} nodes, which takes much of an epoch's time"
    return (f"{said}; --edge-tokens none leaves them out",)


def _is_operator(job: JobSettings) -> bool:
    """Return whether a layer of the job's model is computed by C++ operators that keep its inputs alone."""
    options = job.model.options
    if job.model.name != "fpst" or job.dtype != "float32" or job.device != "cpu" or library() is None:
        return False
    plain = options["attention"] == "linear" and options["activation"] == "relu" and options["norm"]
    narrow = max(options["dim"], options["ffn_dim"] or 0) <= MOST_WIDTH
    return bool(plain and narrow and not options["dropout"])


def memory_in_use() -> float:
    """Return the bytes that this process has."""
    import psutil

    return float(psutil.Process().memory_info().rss)


def available_memory() -> float:
    """Return the bytes that this process may still take, by the machine and by its container's limit.

    Processes of one run that are on one machine have equal parts of it.
    """
    import psutil

    found = [float(psutil.virtual_memory().available)]
    limit = Path("/sys/fs/cgroup/memory.max")
    used = Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text(encoding="ascii").strip() != "max":
        found.append(float(limit.read_text(encoding="ascii")) - float(used.read_text(encoding="ascii")))
    return min(found) / beside()


def check_memory(job: JobSettings, task: Task, *, available: float | None = None) -> dict[str, float]:
    """Return the estimate, or refuse the job with the number and what would make it smaller."""
    parts = estimate(job, task)
    room = available_memory() if available is None else available
    if parts["total"] <= room:
        return parts
    largest = max((name for name in parts if name != "total"), key=lambda name: parts[name])
    remedies = [*_remedies(job, task, largest), "--ignore-memory to start all the same"]
    raise UsageError(
        f"this job needs about {parts['total'] / 1e9:.1f} GB and {room / 1e9:.1f} GB are free; most of it is for "
        f"{largest} ({parts[largest] / 1e9:.1f} GB): try {', or '.join(remedies)}"
    )


def _remedies(job: JobSettings, task: Task, largest: str) -> list[str]:
    """Return what would make the largest part smaller and is not so already."""
    options = job.model.options
    smaller = [f"a --dim below {options['dim']}"] if options["dim"] > SMALL_DIM else []
    found = {
        "layers": [
            *(["--edge-tokens none"] if options.get("edge_tokens", "none") != "none" else []),
            *smaller,
            *([f"fewer --layers than {options['layers']}"] if options.get("layers", 1) > 1 else []),
        ],
        "lists": ["a smaller --near"],
        "eigenvectors": ["--identifiers 0"],
        "features": ["fewer feature columns", *(["--mixing none"] if job.features.mixing != "none" else [])],
        "parameters": [
            *smaller,
            *(["node features instead of a vector for each node"] if task.data.x is None else []),
        ],
    }.get(largest, [])
    return found or ["a machine with more memory"]
