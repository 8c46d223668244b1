"""Graphs in XML, streamed; document type declarations are refused, so no entity can ever expand."""

from pathlib import Path
from typing import ClassVar
from xml.parsers import expat

from gyroformer.errors import DataError
from gyroformer.graphs.reading.lines import located, quoted, raw_pieces
from gyroformer.graphs.reading.marked import MarkedGraph

#: elements in elements that are followed
MAX_DEPTH = 100


class GraphXml:
    """Handlers of the XML parser; a subclass keeps what a graph needs.

    Args:
        path: the file.
        max_nodes: refuse more nodes than this.
    """

    #: the name of the outermost element
    root: ClassVar[str]

    def __init__(self, path: Path, max_nodes: int) -> None:
        self.graph = MarkedGraph(path, max_nodes)
        self._path = path
        self._begun = False
        self._depth = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.characters

    def read(self) -> None:
        """Read the whole file.

        Raises:
            DataError: if it is not well-formed, or the subclass refuses it.
        """
        try:
            for piece in raw_pieces(self._path):
                self.parser.Parse(piece, False)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            problem = f"not well-formed XML ({expat.ErrorString(error.code)}): save the file again"
            raise located(self._path, error.lineno, problem) from None
        except (LookupError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise self.error(f"cannot be decoded ({error}): save it as UTF-8") from None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element that begins, below the outermost."""
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """Take the end of an element."""

    def characters(self, text: str) -> None:
        """Take text between elements."""

    def error(self, problem: str) -> DataError:
        """Return the error for a problem where the parser is."""
        return located(self._path, self.parser.CurrentLineNumber, problem)

    def attribute(self, tag: str, attributes: dict[str, str], name: str) -> str:
        """Return an attribute that an element must have."""
        if name not in attributes:
            raise self.error(f"<{tag}> without the attribute {name!r}: add it")
        return attributes[name]

    def _doctype(self, *_: object) -> None:
        raise self.error(
            "a document type declaration (DTD), which can expand without end: remove the <!DOCTYPE> part"
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"elements nested deeper than {MAX_DEPTH}: a graph needs four")
        if self._begun:
            self.start(tag, attributes)
            return
        self._begun = True
        if tag != self.root:
            raise self.error(
                f"the root element is {quoted(tag)}, not {self.root!r}: this is another kind of XML"
            )

    def _end(self, name: str) -> None:
        self._depth -= 1
        self.end(name.rpartition(" ")[2])
