"""``--node-data``: a table of more columns for the nodes, whatever they are."""

from pathlib import Path

from gyroformer.errors import DataError
from gyroformer.graphs.reading.table import table_chunks


def read_node_data(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Return the columns of a table: name and text by node id. The file is CSV, TSV, text or parquet.

    Raises:
        DataError: the file cannot be read, or an id comes twice.
    """
    if not path.is_file():
        raise DataError(f"--node-data {path}: there is no such file")
    columns: dict[str, dict[str, str]] = {}
    seen: set[str] = set()
    for chunk in table_chunks(path):
        for row, name in enumerate(chunk.ids):
            if name in seen:
                raise DataError(
                    f"{chunk.location(row)}: the node {name!r} comes twice: keep one row for each"
                )
            seen.add(name)
        for column in chunk.columns:
            texts = [_text(value) for value in column.values]
            columns.setdefault(column.name, {}).update(zip(chunk.ids, texts, strict=True))
    return list(columns.items())


def _text(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else f"{value:.17g}"
    return text.strip()
