"""A small real model and a small task, for tests of the training loop."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

import gyroformer as gf
from gyroformer.options.training import TrainOptions
from gyroformer.runs.folder import RunFolder
from gyroformer.tasks import Task
from gyroformer.tokens import prepare_graph
from gyroformer.train import fit

NODES = 30
SETTINGS = {"epochs": 12, "lr": 1e-2, "curvature_lr": 1e-2, "eval_every": 3, "checkpoint_seconds": 0.0}


def toy_graph():
    generator = torch.Generator().manual_seed(0)
    pairs = torch.combinations(torch.arange(NODES))
    pairs = pairs[torch.rand(len(pairs), generator=generator) < 0.15].mT
    edge_index = torch.cat((pairs, pairs.flip(0)), 1)
    return prepare_graph(Data(edge_index=edge_index, num_nodes=NODES), identifiers=4)


def toy_model(**options):
    return gf.FPST(0, num_nodes=NODES, dim=8, heads=2, identifiers=4, dropout=0.3, classes=3, **options)


class ToyTask(Task):
    """Classes by residue, with dropout in the model: every epoch draws random numbers."""

    name = "toy"

    def __init__(self, *, slow=0.0):
        self.data, self.slow = toy_graph(), slow
        self.target = torch.arange(NODES) % 3

    def loss(self, model):
        if self.slow:
            time.sleep(self.slow)
        return F.cross_entropy(model(self.data), self.target)

    def evaluate(self, model):
        scores = model(self.data)
        return {
            "accuracy": float((scores.argmax(1) == self.target).double().mean()),
            "likelihood": -float(F.cross_entropy(scores, self.target)),
        }

    def rank(self, metrics):
        return (metrics["accuracy"], metrics["likelihood"])

    @classmethod
    def from_graph(cls, graph, objective, ready, *, seed, **given):
        return cls()

    def results(self, model, metrics):
        return dict(metrics)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.curvature = nn.Parameter(torch.tensor(0.5))

    def forward(self, scores):
        return (self.scale + self.curvature) * scores


class DecodingTask(ToyTask):
    """A task with parameters of its own."""

    name = "decoding"

    def __init__(self):
        super().__init__()
        self.module = Decoder()

    def loss(self, model):
        return F.cross_entropy(self.module(model(self.data)), self.target)

    def rank(self, metrics):
        return ()


def train(folder, *, epochs=12, resume=True, slow=0.0, **changes):
    """Train the toy from seed 0 in ``folder``, as a command would; return the model and the outcome."""
    torch.manual_seed(0)
    model = toy_model()
    task = ToyTask(slow=slow)
    settings = TrainOptions(**SETTINGS | {"epochs": epochs} | changes)
    with RunFolder(folder) as run:
        run.begin({"task": "toy", "seed": 0, "epochs": epochs}, resume=resume)
        if run.finished:
            return None, None
        outcome = fit(model, task, settings, run=run)
        points = model.tangent(task.data).detach().numpy()
        run.finish(model, dict(outcome.metrics), {"embedding": points}, range(NODES), seconds=outcome.seconds)
    return model, outcome
