"""What tests let several processes do (``several.run_in``): functions that a forked process can import."""

import json
from pathlib import Path

import torch

WAIT = 60.0

#: name of the job -> task, settings; GRAPH, FEATURES, LABELS and TREE stand for files
JOBS = {
    "embed-float64": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"options": {"layers": 2, "heads": 2, "edge_tokens": "undirected", "identifiers": 8}},
            "training": {"epochs": 40, "eval_every": 20},
            "dtype": "float64",
        },
    ),
    "embed-float32": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            # not from 0: a flat space has directions without a gradient, where rounding decides Adam's first steps; nor
            # along a tree, where the network begins as nothing and the same is true of its last maps
            "objective": {"start": "random"},
            "model": {
                "options": {
                    **{"layers": 2, "heads": 2, "edge_tokens": "undirected", "identifiers": 8},
                    "curvature": -1.0,
                }
            },
            "training": {"epochs": 40, "eval_every": 20, "lr": 0.003},
        },
    ),
    "embed-sampled-float32": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"options": {"curvature": -1.0, "edge_tokens": "directed"}},
            "objective": {"negatives": 20, "map_nodes": 20, "squared": False, "start": "random"},
            "training": {"epochs": 6},
        },
    ),
    "embed-softmax": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"name": "tokengt", "options": {"attention": "softmax", "dropout": 0.2}},
            "training": {"epochs": 6},
            "dtype": "float64",
        },
    ),
    "hierarchy": (
        "embed",
        {
            "graph": {"source": "TREE", "directed": True},
            "objective": {"hierarchy": True, "closure": True},
            "training": {"epochs": 6},
            "dtype": "float64",
        },
    ),
    "near-float64": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "objective": {"negatives": "near", "near": 6, "far": 8},
            "training": {"epochs": 12},
            "dtype": "float64",
        },
    ),
    "near-float32": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"options": {"curvature": -1.0}},
            "objective": {"negatives": "near", "near": 6, "far": 8, "start": "random"},
            "training": {"epochs": 12},
        },
    ),
    "hierarchy-near-float32": (
        "embed",
        {
            "graph": {"source": "TREE", "directed": True},
            "objective": {"hierarchy": True, "closure": True, "negatives": "near", "near": 6, "far": 8},
            "model": {"options": {"curvature": -1.0}},
            "training": {"epochs": 6},
        },
    ),
    "hierarchy-float32": (
        "embed",
        {
            "graph": {"source": "TREE", "directed": True},
            "objective": {"hierarchy": True, "closure": True},
            "model": {"options": {"curvature": -1.0}},
            "training": {"epochs": 6},
        },
    ),
    "classify": (
        "classify",
        {
            "graph": {"source": "GRAPH", "features": "FEATURES", "labels": "LABELS"},
            "model": {"options": {"dropout": 0.3, "feature_dropout": 0.3}},
            "objective": {"split": "random", "final": True},
            "training": {"epochs": 6},
            "dtype": "float64",
        },
    ),
    "link": (
        "link",
        {
            "graph": {"source": "GRAPH", "features": "FEATURES"},
            "training": {"epochs": 6},
            "dtype": "float64",
        },
    ),
    "link-directed": (
        "link",
        {
            "graph": {"source": "GRAPH", "directed": True},
            "training": {"epochs": 4},
            "dtype": "float64",
        },
    ),
    "network": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"name": "kappa-gcn"},
            "training": {"epochs": 6},
            "dtype": "float64",
        },
    ),
    "pseudo": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "model": {"name": "q-gcn"},
            "training": {"epochs": 3},
            "dtype": "float64",
        },
    ),
}

#: jobs on data sets, which need the files
REAL_JOBS = {
    "texas": (
        "embed",
        {
            "dataset": "texas",
            "graph": {"source": "texas"},
            "training": {"epochs": 40, "eval_every": 40},
            "dtype": "float64",
        },
    ),
}
#: from curvature 0, in float32
FLAT_JOB = {
    "embed-flat": (
        "embed",
        {
            "graph": {"source": "GRAPH"},
            "objective": {"start": "random"},
            "model": {"options": {"heads": 2, "edge_tokens": "undirected", "identifiers": 8}},
            "training": {"epochs": 40, "eval_every": 40},
        },
    )
}


def train_all(names, files, out):
    """Run jobs into folders of ``out``; the first process writes."""
    from gyroformer.jobs.run import run_job
    from gyroformer.processes.group import is_first
    from gyroformer.processes.launch import connected
    from gyroformer.settings import make_job

    with connected("cpu", WAIT):
        for name in names:
            task, values = (JOBS | REAL_JOBS | FLAT_JOB)[name]
            graph = {key: files.get(value, value) for key, value in values["graph"].items()}
            job = make_job(task, **{**values, "graph": graph, "seed": 3})
            done = run_job(job, out=Path(out) / name, report=False)
            if is_first():
                (Path(out) / f"{name}.json").write_text(json.dumps(done.results))


def train_flat(files, out):
    """Train from curvature 0 with a first step that leaves out what is 0 up to rounding.

    In a flat space a vector added to all points changes no distance. The last bias of a block adds one, and so does
    that of a hidden unit that is positive at every node: their gradients are rounding, of which Adam makes whole steps.
    """
    from gyroformer.train.adam import Adam

    plain = Adam.step

    def step(optimizer, *args, **kwargs):
        if not optimizer.state:
            gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
            largest = max(float(gradient.abs().max()) for gradient in gradients)
            for gradient in gradients:
                gradient[gradient.abs() < 1e-5 * largest] = 0
        return plain(optimizer, *args, **kwargs)

    Adam.step = step
    train_all(list(FLAT_JOB), files, out)


def sums_and_gradients(total, out):
    """Write what functions of ``total`` shared rows and their gradients are, in this process."""
    from gyroformer.processes.group import together
    from gyroformer.processes.launch import connected
    from gyroformer.processes.tensors import LARGE, all_sum, gathered, share, sum_gradients, sum_numbers

    with connected("cpu", WAIT), together():
        weight = torch.linspace(-1, 2, total, dtype=torch.float64, requires_grad=True)
        large = torch.nn.Parameter(torch.zeros(LARGE, dtype=torch.float64))
        mine = share(total)
        rows = weight[mine].exp()
        asked, known = (gathered(rows[:, None], some)[:, 0] for some in (None, total))
        assert torch.equal(asked, known)
        everyone = 0.25 * asked + 0.75 * known
        square = all_sum(rows.square().sum())
        # of this process; the parts add up to the same whatever the number of processes
        part = (everyone.roll(1)[mine] * square.sin()).sum() + large.sum() * rows.detach().sum()
        (slope,) = torch.autograd.grad(part, weight, create_graph=True)
        part.backward()
        sum_gradients([weight, large])
        whole = sum_numbers([part.item(), 1.0])
        assert slope.requires_grad
    found = {"loss": whole[0], "count": whole[1], "grad": weight.grad, "rows": everyone}
    torch.save(found | {"large": large.grad}, out)


def attention_steps(given, read, out):
    """Write the attention part of blocks over tokens that processes share, and its gradients summed."""
    from gyroformer.ops.attention import Part, TokenLayout
    from gyroformer.ops.blockwise import attention_step
    from gyroformer.ops.native.fused_block import Weights
    from gyroformer.processes.group import joined, together
    from gyroformer.processes.launch import connected
    from gyroformer.processes.tensors import gathered, share, sum_gradients

    found = []
    with connected("cpu", WAIT), together():
        for tensors in given:
            u, k, *weights = leaves = [tensor.clone().requires_grad_() for tensor in tensors]
            tokens = u.shape[1]
            first, rest = share(read), share(tokens - read)
            rest = slice(read + rest.start, read + rest.stop)
            part = None if joined() is None else Part((first, rest), tokens, read)
            mine = torch.cat((u[:, first], u[:, rest]), dim=1)
            layout = TokenLayout(read=first.stop - first.start, part=part)
            value = attention_step(mine, k, Weights(*weights), eps=1e-5, layout=layout)
            (value * torch.linspace(0, 1, read)[first, None]).sum().backward()
            sum_gradients(leaves)
            found.append([gathered(value[0].detach()), *(leaf.grad for leaf in leaves)])
    torch.save(found, out)


def train_with_nan(times, out):
    """Train with a loss that is not a number in process 1 alone, ``times`` times; write what became of it."""
    from small_graphs import blocks_graph

    import gyroformer as gf
    from gyroformer.errors import DivergedError
    from gyroformer.processes.group import joined, together
    from gyroformer.processes.launch import connected
    from gyroformer.tasks.embed import Reconstruction
    from gyroformer.train import TrainOptions, fit

    class Poisoned(Reconstruction):
        calls = 0

        def loss(self, model):
            self.calls += model.training
            mine = joined().rank == 1 and 6 <= self.calls < 6 + times
            return super().loss(model) * (torch.nan if mine else 1.0)

    torch.manual_seed(0)
    data = blocks_graph()
    model = gf.FPST(0, num_nodes=int(data.num_nodes), dim=8, heads=2, identifiers=0)
    with connected("cpu", WAIT), together():
        options = TrainOptions(epochs=12, eval_every=4, lr=1e-2)
        try:
            outcome = fit(model, Poisoned(data), options)
            found = {"lowered": outcome.lowered, "losses": [row["loss"] for row in outcome.history]}
        except DivergedError as error:
            found = {"error": str(error)}
        (Path(out) / f"{joined().rank}.json").write_text(json.dumps(found))
