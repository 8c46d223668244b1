"""Many graphs as one kind of input: the same columns for the nodes of all of them."""

import dataclasses as dc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from gyroformer.errors import DataError, GyroformerError, UsageError
from gyroformer.graphs.reading.convert import to_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dc.dataclass(frozen=True, kw_only=True)
class NodeColumns:
    """What the nodes of every graph are described by, learned from the training graphs.

    Attributes:
        names: attributes of the nodes of NetworkX or igraph graphs; None for what a ``Data`` has as ``x``.
        words: for each of ``names`` the words that it takes, a column for each, or None for numbers.
        walks: so many columns of probabilities that a random walk is back after 2, 3, … steps, and one of degrees;
            0 for none of these.
        width: columns of ``x`` and words.
        edge_width: columns of ``edge_attr``.
        mean: of each column over all training nodes, ``(columns,)``.
        deviation: likewise; 1 for a column that never changes, and for words.
    """

    names: tuple[str, ...] | None
    words: tuple[tuple[str, ...] | None, ...]
    walks: int
    width: int
    edge_width: int
    mean: Tensor
    deviation: Tensor

    @classmethod
    def learn(
        cls,
        graphs: Sequence[object],
        names: Sequence[str] | None,
        *,
        walks: int,
        numbers: Sequence[int] | None = None,
    ) -> Self:
        """Return the columns of these graphs; ``numbers`` are what errors call them."""
        if isinstance(names, str):
            raise UsageError(f"features must be a list of names of attributes, e.g. [{names!r}]")
        words = tuple(_words_of(graphs, name) for name in names or ())
        blank = torch.zeros(0)
        listed = None if names is None else tuple(names)
        first = cls(
            names=listed, words=words, walks=walks, width=-1, edge_width=-1, mean=blank, deviation=blank
        )
        numbers = range(len(graphs)) if numbers is None else numbers
        made = [first._raw(graph, number) for number, graph in zip(numbers, graphs, strict=True)]
        width, edge_width = (made[0].x.size(1), _edge_width(made[0]))
        for number, data in zip(numbers, made, strict=True):
            _same_width(data, width, edge_width, number)
        x = torch.cat([data.x for data in made]).double()
        mean, deviation = x.mean(0), x.std(0, correction=0)
        plain = _are_words(words, x.size(1))
        mean = mean.where(~plain, 0.0)
        deviation = deviation.where((deviation > 1e-12 * (1 + mean.abs())) & ~plain, 1.0)
        return dc.replace(
            first,
            width=width - structural(walks),
            edge_width=edge_width,
            mean=mean.float(),
            deviation=deviation.float(),
        )

    def read(
        self, graphs: Sequence[object], dtype: torch.dtype, numbers: Sequence[int] | None = None
    ) -> list["Data"]:
        """Return the graphs with their columns scaled; ``numbers`` are what errors call them."""
        read = []
        for number, graph in zip(range(len(graphs)) if numbers is None else numbers, graphs, strict=True):
            data = self._raw(graph, number)
            _same_width(data, self.width + structural(self.walks), self.edge_width, number)
            data.x = ((data.x - self.mean) / self.deviation).to(dtype) if data.x.size(1) else None
            if self.edge_width:
                data.edge_attr = data.edge_attr.to(dtype)
            read.append(data)
        return read

    @property
    def in_features(self) -> int:
        """Columns of a node."""
        return self.width + structural(self.walks)

    def _raw(self, graph: object, number: int) -> "Data":
        """Return a graph with the columns as they are."""
        from gyroformer.graphs.pyg import Data

        try:
            clean = self._clean(graph)
        except GyroformerError as error:
            raise type(error)(f"graph {number}: {error}") from None
        nodes = int(clean.num_nodes or 0)
        if not nodes:
            raise DataError(f"graph {number} has no node: leave it out")
        columns = [] if clean.x is None else [clean.x.float()]
        columns += [
            _indicators(_attribute(graph, name), words)
            for name, words in zip(self.names or (), self.words, strict=True)
            if words is not None
        ]
        if self.walks:
            columns.append(walk_columns(clean.edge_index, nodes, self.walks))
        data = Data(edge_index=clean.edge_index, num_nodes=nodes)
        data.x = torch.cat(columns, 1) if columns else torch.zeros(nodes, 0)
        if "edge_weight" in clean:
            data.edge_weight = clean.edge_weight
        if "edge_attr" in clean and clean.edge_attr is not None:
            data.edge_attr = clean.edge_attr.reshape(clean.edge_index.size(1), -1)
        return data

    def _clean(self, graph: object) -> "Data":
        from gyroformer.graphs.pyg import Data

        if isinstance(graph, Data):
            if self.names is not None:
                raise UsageError("features names attributes of NetworkX or igraph graphs; a Data has its x")
            # not its y, which is the graph's and not of its nodes
            kept = {k: graph[k] for k in ("x", "edge_attr", "edge_weight") if graph.get(k) is not None}
            return to_graph(Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, **kept))
        numbers = [n for n, words in zip(self.names or (), self.words, strict=True) if words is None]
        return to_graph(graph, features=numbers or None)

    def plain(self) -> dict[str, Any]:
        """Return all but the tensors as plain values."""
        return {
            "names": None if self.names is None else list(self.names),
            "words": [None if words is None else list(words) for words in self.words],
            "walks": self.walks,
            "width": self.width,
            "edge_width": self.edge_width,
        }

    @classmethod
    def from_plain(cls, values: dict[str, Any], mean: Tensor, deviation: Tensor) -> Self:
        """Return what ``plain`` made into values."""
        words = tuple(None if words is None else tuple(words) for words in values["words"])
        names = None if values["names"] is None else tuple(values["names"])
        return cls(**{**values, "names": names, "words": words, "mean": mean, "deviation": deviation})


def structural(walks: int) -> int:
    """Return the number of columns that tell a node's surroundings."""
    return walks + 1 if walks else 0


def walk_columns(edge_index: Tensor, nodes: int, walks: int) -> Tensor:
    """Return for each node log(1 + degree) and the probabilities that a random walk is back after 2, 3, … steps.

    They tell nodes apart by what surrounds them, whatever the numbering of the nodes (Dwivedi et al., 2022).
    """
    from scipy.sparse import coo_array

    source, target = edge_index.numpy()
    degree = torch.bincount(edge_index[0], minlength=nodes).double()
    step = coo_array((1 / degree.numpy()[source], (source, target)), shape=(nodes, nodes)).tocsr()
    columns, power = [degree.log1p()], step
    for _ in range(walks):
        power = power @ step
        columns.append(torch.from_numpy(power.diagonal()))
    return torch.stack(columns, 1).float()


def _same_width(data: "Data", width: int, edge_width: int, number: int) -> None:
    for what, found, wanted in (
        ("feature columns", data.x.size(1), width),
        ("columns of edge_attr", _edge_width(data), edge_width),
    ):
        if found != wanted:
            raise DataError(
                f"graph {number} has {found} {what}, those learned from have {wanted}: give all the same"
            )


def _edge_width(data: "Data") -> int:
    return 0 if "edge_attr" not in data else int(data.edge_attr.size(1))


def _attribute(graph: Any, name: str) -> list[Any]:
    """Return an attribute of the nodes of a NetworkX or igraph graph, in their order."""
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(graph, networkx.Graph):
        return [graph.nodes[node].get(name) for node in graph.nodes()]
    if hasattr(graph, "vs"):
        return list(graph.vs[name]) if name in graph.vs.attributes() else [None] * graph.vcount()
    raise UsageError(
        f"features names attributes of NetworkX or igraph graphs, and a {type(graph).__name__} has none"
    )


def _words_of(graphs: Sequence[object], name: str) -> tuple[str, ...] | None:
    """Return the words that an attribute takes, sorted; None for one of numbers."""
    values = {value for graph in graphs for value in _attribute(graph, name)}
    if not any(isinstance(value, str) for value in values):
        return None
    return tuple(sorted({str(value) for value in values if value is not None}))


def _indicators(values: list[Any], words: tuple[str, ...]) -> Tensor:
    """Return a column for each word; a word that was not learned, and none at all, is 0 everywhere."""
    index = {word: i for i, word in enumerate(words)}
    found = torch.zeros(len(values), len(words))
    for row, value in enumerate(values):
        if value is not None and str(value) in index:
            found[row, index[str(value)]] = 1.0
    return found


def _are_words(words: tuple[tuple[str, ...] | None, ...], columns: int) -> Tensor:
    """Return which columns stand for words: those after the numbers, before the structure."""
    start = sum(one is None for one in words)
    count = sum(len(one) for one in words if one is not None)
    place = torch.arange(columns)
    return (place >= start) & (place < start + count) if count else torch.zeros(columns, dtype=torch.bool)
