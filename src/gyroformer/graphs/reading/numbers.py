"""Columns of text as finite numbers, or the line of the first field that is none."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.reading.grid import Rows
from gyroformer.graphs.reading.lines import located, quoted


def is_number(field: bytes) -> bool:
    """Return whether a field is written as a number, finite or not."""
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # Python reads 1_000, nobody else does


def finite_floats(path: Path, rows: Rows, fields: list[bytes]) -> NDArray[np.float64]:
    """Return weights as numbers.

    Raises:
        DataError: with the line of the first field that is not a finite number.
    """
    try:
        values = np.fromiter(map(float, fields), dtype=np.float64, count=len(fields))
        if np.isfinite(values).all() and not any(b"_" in field for field in fields):
            return values
    except ValueError:
        pass  # found again, with its line, just below
    wrong = next(i for i, field in enumerate(fields) if not is_number(field) or not np.isfinite(float(field)))
    raise located(
        path,
        int(rows.numbers[wrong]),
        f"weight {quoted(fields[wrong])} is not a finite number: write e.g. 0.5, or leave the column out",
    )
