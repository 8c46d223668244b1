"""What the estimators of whole graphs share: graphs to batches, the course of training, saving and loading."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from gyroformer.durable import make_folder
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.estimators.inputs import array_of, node_indices, own_random_state, plain, seed_of
from gyroformer.estimators.many_graphs import NodeColumns
from gyroformer.estimators.parameters import Parameter, constructor
from gyroformer.jobs.plan import usable_device
from gyroformer.models import get_model
from gyroformer.models.pretrained import TASK, read_config, read_weights, write_model
from gyroformer.options import Options, option, options_of
from gyroformer.options.training import TrainOptions
from gyroformer.tasks.whole_graphs import WholeGraphs, batches
from gyroformer.train.loop import fit
from gyroformer.train.outcome import Progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: tokens of the largest graph up to which attention is exact by default: beyond, all pairs of tokens take too long
SOFTMAX_TOKENS = 1024
#: with ``verbose``, lines printed over a whole fit
LINES = 10


class GraphLevelOptions(Options):
    """The parameters of the estimators of whole graphs."""

    model: str = option("fpst, or tokengt, its flat twin", default="fpst")
    features: Any = option(
        "attributes of the nodes of NetworkX or igraph graphs that are features: numbers, or words, each of which is a "
        "column; none for no attribute, and for a Data its x",
        default=None,
    )
    walks: int = option(
        "structure as features: the degree, and how likely a random walk is back after 2, 3, … steps, so many of "
        "these; 0 for none",
        default=8,
        at_least=0,
        at_most=64,
    )
    dim: int = option("width, all heads together", default=32)
    heads: int = option("number of heads", default=4)
    layers: int = option("number of layers", default=2)
    dropout: float = option("fraction of values dropped in training", default=0.1)
    epochs: int = option("passes over the training graphs, at most", default=40)
    batch_size: int = option("graphs in a step", default=32)
    lr: float = option("learning rate of Adam", default=5e-3)
    curvature_lr: float = option("learning rate of the curvatures", default=5e-3)
    weight_decay: float = option("the L2 term, not on curvatures", default=0.0)
    patience: int | None = option("passes without improvement after which training stops", default=15)
    validation_fraction: float = option(
        "fraction of the graphs held out to choose the best pass by, of each class as many", default=0.2
    )
    model_options: dict[str, Any] | None = option("further options of the model", default=None)
    random_state: Any = option(
        "an integer, a RandomState, or none for a seed that is drawn and kept as seed_", default=None
    )
    device: str = option("where to compute; auto takes the fastest", default="cpu")
    dtype: Literal["float32", "float64"] = option("precision of the numbers", default="float32")
    verbose: bool = option("whether to print some lines over the fit", default=False)


class GraphLevelEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both: graphs become batches of tokens, each graph with a token of its own, whose result counts."""

    #: what ``config.json`` calls it
    _kind: ClassVar[str]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        made = {one.name: Parameter(one, one.default) for one in options_of(GraphLevelOptions)}
        cls.__init__ = constructor(made)  # type: ignore[method-assign]

    def fit(self, graphs: Sequence[object], y: object = None, val: object = None) -> Self:
        """Train.

        Args:
            graphs: a list of graphs: ``torch_geometric`` ``Data`` (with ``x`` and ``edge_attr``), NetworkX or igraph
                graphs, or whatever else ``gyroformer.to_graph`` takes.
            y: a target for each graph; None: the ``y`` of each ``Data``.
            val: a mask or the indices of the graphs that the best pass is chosen on; by default drawn.
        """
        options = GraphLevelOptions(**plain(self.get_params()))
        graphs = _listed(graphs)
        targets = self._targets(_own_targets(graphs) if y is None else array_of(y), len(graphs))
        seed, device = seed_of(self.random_state), usable_device(options.device)
        train, held = self._split(targets, val, options.validation_fraction, seed)
        columns = NodeColumns.learn(
            [graphs[i] for i in train], options.features, walks=options.walks, numbers=train
        )
        dtype, order = getattr(torch, options.dtype), [*train, *held]
        read = columns.read([graphs[i] for i in order], dtype, order)
        with own_random_state(device):
            torch.manual_seed(seed)
            model = _model(options, columns, read, self._classes()).to(device, dtype)
            ready = _ready(model, read)
            y_ready = self._target_tensor(targets[order], len(train), dtype).to(device)
            task = self._task(ready[: len(train)], ready[len(train) :], y_ready, options)
            if task.module is not None:
                task.module.to(device, dtype)
            training = TrainOptions(
                epochs=options.epochs * task.steps,
                eval_every=task.steps,
                patience=options.patience,
                lr=options.lr,
                curvature_lr=options.curvature_lr,
                weight_decay=options.weight_decay,
                schedule="cosine",
            )
            listen = _teller(task.steps, options.epochs) if self.verbose else None
            outcome = fit(model, task, training, listen=listen)
        self.model_, self.columns_, self._module, self.seed_ = model, columns, task.module, seed
        self._batch_size = options.batch_size
        self.validation_ = np.array(held)
        self.curvatures_ = model.curvatures.detach().cpu().numpy().copy()
        self.results_ = {
            **outcome.metrics,
            "graphs": len(graphs),
            "parameters": sum(p.numel() for p in model.parameters()),
            "epochs": -(-outcome.epochs // task.steps),
            "best_epoch": -(-outcome.best_epoch // task.steps),
            "stopped": outcome.stopped,
            "seconds": round(outcome.seconds, 3),
        }
        self.history_ = [row for row in outcome.history if "metrics" in row]
        return self

    def transform(self, graphs: Sequence[object]) -> NDArray[Any]:
        """Return a vector for each graph, ``(n, dim)``: tangent vectors at the origin, the heads side by side."""
        return self._asked(graphs, lambda model, batch: model.positions(batch).coordinates().flatten(1))

    def _asked(self, graphs: Sequence[object], question: Any) -> NDArray[Any]:
        check_is_fitted(self, "model_")
        read = self.columns_.read(_listed(graphs), self.model_.dtype)
        with torch.no_grad():
            ready = _ready(self.model_, read)
            answers = [question(self.model_, batch) for batch in batches(ready, self._batch_size)]
            found: NDArray[Any] = torch.cat(answers).cpu().numpy()
        return found

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a folder: its model as ``save_pretrained`` does, and how graphs are read."""
        check_is_fitted(self, "model_")
        about = {
            "kind": self._kind,
            "parameters": plain({**self.get_params(), "random_state": self.seed_}),
            "columns": self.columns_.plain(),
            "results": self.results_,
            **self._saved(),
        }
        tensors = {"mean": self.columns_.mean, "deviation": self.columns_.deviation}
        if self._module is not None:
            tensors |= {f"module.{name}": tensor for name, tensor in self._module.state_dict().items()}
        path = Path(folder)
        make_folder(path)
        write_model(self.model_, path, more={"estimator": about}, task=tensors)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return the estimator that ``save`` wrote."""
        path = Path(folder)
        config = read_config(path)
        about = config.get("estimator")
        if not isinstance(about, dict) or about.get("kind") != cls._kind:
            raise DataError(f"{path}: holds no {cls.__name__}")
        try:
            made = cls(**about["parameters"])
            stored = read_weights(path, config["sha256"])
            tensors = {n.removeprefix(TASK): t for n, t in stored.items() if n.startswith(TASK)}
            with own_random_state("cpu"):
                made.model_ = get_model(config["model"]).build.from_pretrained(path)
                made.columns_ = NodeColumns.from_plain(
                    about["columns"], tensors.pop("mean"), tensors.pop("deviation")
                )
                made._restore(about, {n.removeprefix("module."): t for n, t in tensors.items()})
            made.results_ = about["results"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CorruptFileError(f"{path}: is not a whole {cls.__name__} ({error})") from None
        made.seed_, made._batch_size = made.random_state, made.batch_size
        made.curvatures_ = made.model_.curvatures.detach().cpu().numpy().copy()
        return made

    def _split(
        self, targets: NDArray[Any], val: object, share: float, seed: int
    ) -> tuple[list[int], list[int]]:
        """Return the graphs to learn from and those held out."""
        from sklearn.model_selection import train_test_split

        count = len(targets)
        if val is not None:
            held = node_indices(val, count, "val")
            train = np.setdiff1d(np.arange(count), held)
            if not len(held) or not len(train):
                raise UsageError("val must leave graphs to learn from, and hold out at least one")
        elif not 0 < share < 1:
            raise UsageError(f"validation_fraction must be above 0 and below 1, got {share}")
        else:
            try:
                train, held = train_test_split(
                    np.arange(count), test_size=share, random_state=seed, stratify=self._strata(targets)
                )
            except ValueError as error:
                raise DataError(f"no graphs can be held out to choose on ({error}); give val") from None
        return train.tolist(), held.tolist()

    # what the two kinds differ in

    def _classes(self) -> int | None:
        return None

    def _strata(self, targets: NDArray[Any]) -> NDArray[Any] | None:
        return None

    def _targets(self, y: NDArray[Any], count: int) -> NDArray[Any]:
        """Return checked targets, and keep what must be known of them."""
        raise NotImplementedError

    def _target_tensor(self, targets: NDArray[Any], train: int, dtype: torch.dtype) -> Tensor:
        raise NotImplementedError

    def _task(
        self, train: "list[Data]", val: "list[Data]", y: Tensor, options: GraphLevelOptions
    ) -> WholeGraphs:
        raise NotImplementedError

    def _saved(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        raise NotImplementedError


def _model(
    options: GraphLevelOptions, columns: NodeColumns, graphs: "list[Data]", classes: int | None
) -> Any:
    """Return the model of these options."""
    spec = get_model(options.model)
    if not spec.tokens:
        raise UsageError(
            f"the model {options.model!r} has no token for a whole graph: choose 'fpst' or 'tokengt'"
        )
    # what is next to what is in the walks; tokens of edges, which need to tell their ends apart, cost more than they
    # gave on all that was tried, and are there for the features of edges
    edges = bool(columns.edge_width)
    largest = max(int(data.num_nodes or 0) + edges * data.edge_index.size(1) // 2 for data in graphs)
    usual = {
        "attention": "softmax" if largest <= SOFTMAX_TOKENS else "linear",
        "edge_tokens": "undirected" if edges else "none",
        "edge_features": columns.edge_width,
        "identifiers": 16 if edges else 0,
        "identifier_norm": "entry",  # graphs of all sizes have eigenvectors of one scale
        "flip_signs": True,  # of an eigenvector either sign is right
    }
    named = {name: getattr(options, name) for name in ("dim", "heads", "layers", "dropout")}
    given = options.model_options or {}
    for name in given.keys() & {*named, "graph_token", "classes", "in_features", "num_nodes"}:
        raise UsageError(
            f"{name} cannot be one of model_options here: it is a parameter, or follows from the graphs"
        )
    return spec.make(columns.in_features, classes=classes, graph_token=True, **{**usual, **named, **given})


def _ready(model: Any, graphs: "list[Data]") -> "list[Data]":
    """Return graphs prepared for a model, on its device; weights of edges, by then in the eigenvectors, left out."""
    device = next(model.parameters()).device
    ready = []
    for data in graphs:
        one = model.prepare(data)
        if "edge_weight" in one:
            del one.edge_weight
        ready.append(one.to(device))
    return ready


def _listed(graphs: Any) -> list[object]:
    """Return graphs as a list."""
    if not isinstance(graphs, (list, tuple, np.ndarray)) and not hasattr(graphs, "__getitem__"):
        raise UsageError(f"graphs must be a list of graphs, got {type(graphs).__name__}")
    if hasattr(graphs, "edge_index") or hasattr(graphs, "nodes"):
        raise UsageError("graphs must be a list of graphs, got one: put it into a list")
    listed = [graphs[i] for i in range(len(graphs))]
    if not listed:
        raise UsageError("there is no graph in the list")
    return listed


def _own_targets(graphs: list[object]) -> NDArray[Any]:
    """Return the ``y`` of each graph."""
    found = [getattr(graph, "y", None) for graph in graphs]
    lacking = [place for place, one in enumerate(found) if not isinstance(one, Tensor)]
    if lacking:
        raise DataError(f"graph {lacking[0]} has no y of its own: give y, a target for each graph")
    rows = [array_of(one).reshape(-1) for one in found]
    if len({row.size for row in rows}) > 1:
        raise DataError(
            "the graphs' y are not of one size: a graph has one target, or as many as each other one"
        )
    return np.stack(rows) if rows[0].size > 1 else np.concatenate(rows)


def _teller(steps: int, passes: int) -> Any:
    """Return a listener that prints a line at every tenth of the passes."""
    every = max(1, passes // LINES)

    def tell(progress: Progress) -> None:
        done, rest = divmod(progress.epoch, steps)
        if not rest and (done % every == 0 or done == passes):
            metrics = "".join(f"  {name} {value:.4g}" for name, value in progress.metrics.items())
            print(f"pass {done}/{passes}  loss {progress.loss:.6g}{metrics}")

    return tell
