"""GraphML files, streamed; document type declarations are refused, so no entity can ever expand."""

from pathlib import Path
from xml.parsers import expat

from gyroformer.errors import DataError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.lines import located, quoted, raw_pieces
from gyroformer.graphs.reading.marked import MarkedGraph
from gyroformer.graphs.reading.names import MAX_NODES

#: elements in elements that are followed
MAX_DEPTH = 100


def read_graphml(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read nodes, edges and the edge attribute called ``weight`` of a GraphML file with one graph.

    Raises:
        DataError: if it is not well-formed, has a document type, hyperedges or several graphs, or an edge
            ends at a node that is not declared.
    """
    reader = _Reader(path, max_nodes)
    parser = reader.parser
    try:
        for piece in raw_pieces(path):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        problem = f"not well-formed XML ({expat.ErrorString(error.code)}): save the file again"
        raise located(path, error.lineno, problem) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise located(
            path, parser.CurrentLineNumber, f"cannot be decoded ({error}): save it as UTF-8"
        ) from None
    return reader.graph.listing()


class _Reader:
    """Handlers of the XML parser; only what a graph needs is kept."""

    def __init__(self, path: Path, max_nodes: int) -> None:
        self.graph = MarkedGraph(path, max_nodes)
        self._path = path
        self._depth = 0
        self._graphs_open = 0
        self._graphs = 0
        self._root: str | None = None
        self._weight_key: str | None = None
        self._key_open: str | None = None
        self._in_edge = False
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def _error(self, problem: str) -> DataError:
        return located(self._path, self.parser.CurrentLineNumber, problem)

    def _doctype(self, *_: object) -> None:
        raise self._error(
            "a document type declaration (DTD), which can expand without end: remove the <!DOCTYPE> part"
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"elements nested deeper than {MAX_DEPTH}: a graph needs four")
        if self._root is None:
            self._root = tag
            if tag != "graphml":
                raise self._error(
                    f"the root element is {quoted(tag)}, not 'graphml': this is another kind of XML"
                )
        elif tag == "graph":
            self._graphs += self._graphs_open == 0
            self._graphs_open += 1
            if self._graphs > 1:
                raise self._error("a second graph: keep one graph per file")
        elif (
            tag == "key"
            and attributes.get("attr.name") == "weight"
            and attributes.get("for") in {"edge", "all"}
        ):
            self._weight_key = self._key_open = attributes.get("id")
        elif tag == "node":
            self.graph.add_node(self._attribute(tag, attributes, "id"), self.parser.CurrentLineNumber)
        elif tag == "edge":
            source, target = (self._attribute(tag, attributes, end) for end in ("source", "target"))
            self.graph.add_edge(source, target, self.parser.CurrentLineNumber)
            self._in_edge = True
        elif tag == "hyperedge":
            raise self._error("a hyperedge: only edges between two nodes can be read")
        elif (tag == "data" and self._in_edge and attributes.get("key") == self._weight_key) or (
            tag == "default" and self._key_open is not None
        ):
            self._text = []

    def _attribute(self, tag: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._error(f"<{tag}> without the attribute {name!r}: add it")
        return attributes[name]

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._depth -= 1
        if tag == "graph":
            self._graphs_open -= 1
        elif tag == "edge":
            self._in_edge = False
        elif tag == "key":
            self._key_open = None
        elif tag in {"data", "default"} and self._text is not None:
            value = self.graph.number("".join(self._text), self.parser.CurrentLineNumber)
            if tag == "data":
                self.graph.set_weight(value)
            else:
                self.graph.default_weight = value
            self._text = None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)
