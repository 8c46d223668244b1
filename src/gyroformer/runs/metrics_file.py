"""``metrics.jsonl``: one row an epoch, without times, so that a resumed run's file has the same bytes."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from gyroformer.errors import CorruptFileError
from gyroformer.untrusted import check_regular

Row = dict[str, Any]


class MetricsFile:
    """The rows of a run, in memory and on the disk.

    Only the first ``length`` bytes of the file count. A row that could not be written is kept and written with the
    next one.

    Args:
        path: the file; None keeps the rows in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: list[Row] = []
        self._ends: list[int] = []
        self._content = bytearray()
        self._written = 0

    @property
    def length(self) -> int:
        """Bytes of all rows."""
        return len(self._content)

    def checksum_at(self, epoch: int) -> tuple[int, str]:
        """Return length and SHA-256 of the rows up to ``epoch``."""
        length = self._ends[epoch - 1] if epoch else 0
        return length, hashlib.sha256(self._content[:length]).hexdigest()

    def load(self, length: int, sha256: str) -> None:
        """Take the first ``length`` bytes of the file, if they have the checksum given; else raise ValueError."""
        assert self.path is not None
        if length:
            check_regular(self.path, error=CorruptFileError)
        content = self.path.read_bytes()[:length] if length else b""
        if len(content) != length or hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(f"{self.path.name} is not the one that the checkpoint was written with")
        self._content = bytearray(content)
        self.rows, self._ends = [], []
        for line in content.splitlines(keepends=True):
            self.rows.append(json.loads(line))
            self._ends.append((self._ends[-1] if self._ends else 0) + len(line))
        self._written = length

    def append(self, row: Row) -> None:
        """Add a row; it is on the disk only after ``flush``."""
        self._content += json.dumps(row, allow_nan=False).encode() + b"\n"
        self.rows.append(row)
        self._ends.append(len(self._content))

    def rewind(self, epoch: int) -> None:
        """Forget the rows after ``epoch``."""
        del self._content[self.checksum_at(epoch)[0] :]
        del self.rows[epoch:], self._ends[epoch:]
        self._written = min(self._written, self.length)

    def flush(self, *, durable: bool = False) -> None:
        """Write the rows that are not yet in the file and drop what lies behind them; OSError if that fails."""
        if self.path is None:
            return
        # what was written stays where it is; a torn write is overwritten the next time
        self.path.touch()
        with self.path.open("r+b", buffering=0) as file:
            file.seek(self._written)
            while self._written < self.length:
                self._written += file.write(memoryview(bytes(self._content[self._written :])))
            if file.seek(0, os.SEEK_END) > self.length:
                file.truncate(self.length)
            if durable:
                os.fsync(file.fileno())
