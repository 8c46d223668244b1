"""Text files in blocks of whole lines: unpacked, decoded, with Unix line ends and a line number.

A block is UTF-8 bytes and not text, because bytes are what numpy can split without a loop.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from gyroformer.errors import DataError
from gyroformer.untrusted import check_regular

BLOCK = 1 << 22
LONGEST_LINE = 1 << 25
#: a gzip file of edges unpacks to some ten times its size; from LARGE bytes on, one of more than RATIO is a trap
LARGE, RATIO = 1 << 26, 200
GZIP_MARK = b"\x1f\x8b"

# Longest marks first: that of UTF-16 is the beginning of that of UTF-32.
_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]


_WANTED = "give a text file, saved as UTF-8, or as UTF-16 with a byte-order mark"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each ended by one newline; ``first`` is the number of the first one, from 1."""

    text: bytes
    first: int


def located(path: Path, line: int, problem: str) -> DataError:
    """Return the error for a problem at a line."""
    return DataError(f"{path}:{line}: {problem}")


def quoted(text: bytes | str) -> str:
    """Return a short printable form of a piece of a file."""
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    words = words.strip()
    return repr(words if len(words) <= 60 else words[:57] + "...")


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[Block]:
    """Yield the file's lines in blocks of about ``size`` bytes.

    Raises:
        DataError: if the file cannot be opened, unpacked or decoded, or is not made of lines of text.
    """
    rest, line = b"", 1
    for piece in _utf8_pieces(path, size):
        text = rest + piece
        if b"\r" in text:
            held = b"\r" if text.endswith(b"\r") else b""  # its newline may be in the next piece
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        cut = text.rfind(b"\n") + 1
        if cut:
            yield _checked(path, text[:cut], line)
            line += text.count(b"\n", 0, cut)
        rest = text[cut:]
        if len(rest) > LONGEST_LINE:
            raise located(
                path, line, f"no line break within {LONGEST_LINE} bytes: this is not a text file of lines"
            )
    if rest:
        yield _checked(path, rest.removesuffix(b"\r") + b"\n", line)


def whole_text(path: Path) -> str:
    """Return the whole file as text, decoded and checked as in :func:`line_blocks`."""
    return b"".join(block.text for block in line_blocks(path)).decode("utf-8")


def raw_pieces(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """Yield the file's bytes, unpacked if the file is packed with gzip (told by its first two bytes)."""
    done, held = 0, check_regular(path)
    try:
        with path.open("rb") as raw:
            stream: BinaryIO = raw
            packed = raw.peek(2)[:2] == GZIP_MARK
            if packed:
                stream = gzip.GzipFile(fileobj=raw)  # type: ignore[assignment]
            elif path.suffix.lower() == ".gz":
                raise DataError(
                    f"{path}: not compressed with gzip despite its name: rename it or download it again"
                )
            while piece := stream.read(size):
                done += len(piece)
                if packed and done > max(LARGE, RATIO * held):
                    raise DataError(
                        f"{path}: its {held} bytes unpack to more than {done}, over {RATIO} times as much: this is no "
                        "list of edges; unpack it yourself if you trust it"
                    )
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}: damaged or truncated after {done} unpacked bytes ({error}): download or compress it again"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}): check the path and its permissions"
        ) from None


def _utf8_pieces(path: Path, size: int) -> Iterator[bytes]:
    pieces = raw_pieces(path, size)
    first = b""
    while len(first) < len(codecs.BOM_UTF32_LE) and (piece := next(pieces, b"")):
        first += piece
    mark, encoding = next((pair for pair in _MARKS if first.startswith(pair[0])), (b"", "utf-8"))
    first = first[len(mark) :]
    if encoding == "utf-8":
        yield first
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for piece in chain([first], pieces, [b""]):
            text = decoder.decode(piece, final=not piece).encode("utf-8")
            line += text.count(b"\n")
            yield text
    except UnicodeError as error:
        raise located(
            path, line, f"not {encoding} despite its byte-order mark ({error}): save it as UTF-8"
        ) from None


def _checked(path: Path, text: bytes, line: int) -> Block:
    zero = text.find(b"\0")
    if zero >= 0:
        line += text.count(b"\n", 0, zero)
        raise located(path, line, f"a zero byte: {_WANTED}")
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            wrong = f"byte 0x{text[error.start]:02x} is not UTF-8"
            raise located(path, line, f"{wrong}: {_WANTED}") from None
    return Block(text, line)
