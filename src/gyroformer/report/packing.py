"""Arrays and text as one compressed block that a page holds and unpacks (``assets/unpack.js`` is the other end).

Deflate sees bytes, and the bytes of a number differ in how much they vary: each array is laid out as all its highest
bytes, then all the next ones. Real numbers become multiples of a step that is far below what the page shows.
"""

import base64
import dataclasses as dc
import json
import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: a real number is kept as one of so many steps from zero to the largest: an error of at most 2⁻²¹ of that
STEPS = 1 << 20
#: four bytes as five characters (base64 makes it a third more, this a quarter); none of them means anything in HTML
_PLAIN = str.maketrans({"<": ",", "&": "."})


@dc.dataclass
class Packer:
    """Collects arrays; :meth:`pack` gives the block."""

    _parts: list[bytes] = dc.field(default_factory=list)
    _size: int = 0

    def integers(self, values: Array, *, delta: bool = False) -> dict[str, Any]:
        """Keep integers, with ``delta`` their differences; returns what stands for them in the description."""
        flat = np.asarray(values, dtype=np.int64).ravel()
        if delta:
            flat = np.diff(flat, prepend=np.int64(0))
        signed = bool((flat < 0).any())
        # zigzag: 0, -1, 1, -2, 2 … become 0, 1, 2, 3, 4: small sizes stay small numbers
        coded = (flat << 1) ^ (flat >> 63) if signed else flat
        width = max(1, (int(coded.max(initial=0)).bit_length() + 7) // 8)
        planes = [((coded >> (8 * place)) & 0xFF).astype(np.uint8) for place in reversed(range(width))]
        about: dict[str, Any] = {"at": self._add(b"".join(plane.tobytes() for plane in planes))}
        about |= {"length": flat.size, "width": width}
        return about | ({"signed": 1} if signed else {}) | ({"delta": 1} if delta else {})

    def reals(self, values: Array, *, step: float | None = None) -> dict[str, Any]:
        """Keep finite real numbers, to half a ``step``; by default to 2⁻²¹ of the largest."""
        flat = np.asarray(values, dtype=np.float64).ravel()
        step = step_for(flat) if step is None else step
        return self.integers(np.round(flat / step)) | {"step": step}

    def _add(self, content: bytes) -> int:
        at = self._size
        self._parts.append(content)
        self._size += len(content)
        return at

    def pack(self, about: object) -> str:
        """Return everything as text: the length of the description, the description, the arrays; deflated."""
        plain = json.dumps(about, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        # an id that is no text, as a file may hold one, becomes its JSON escape
        head = plain.encode(errors="backslashreplace")
        whole = len(head).to_bytes(4, "little") + head + b"".join(self._parts)
        return base64.b85encode(zlib.compress(whole, 9)).decode("ascii").translate(_PLAIN)


def step_for(*parts: Array) -> float:
    """Return the step in which real numbers are kept, so that the largest is ``STEPS`` of them."""
    return max(float(np.abs(part).max(initial=0.0)) for part in parts) / STEPS or 1.0
