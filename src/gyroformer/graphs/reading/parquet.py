"""Parquet files as tables of pyarrow, an optional part."""

from pathlib import Path
from typing import Any

from gyroformer.errors import DataError, MissingPartError


def read_parquet(path: Path) -> Any:
    """Return the table in a parquet file, all of it checked.

    Raises:
        DataError: if the file is damaged.
        MissingPartError: if pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError("pyarrow", "parquet", f"reading {path}") from None
    try:
        table = parquet.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: not a valid parquet file ({reason}): write it again") from None
    return table
