"""Small pieces of HTML; every text that comes from outside is escaped here."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def text(value: object) -> str:
    """Return a value as text that cannot be markup."""
    return html.escape(str(value))


def data_script(content: object) -> str:
    """Return ``content`` as JSON in a script element that is not run and cannot be closed from inside."""
    plain = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    safe = plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f'<script type="application/json">{safe}</script>'


def figure(spec: Mapping[str, Any], title: str, below: str = "") -> str:
    """Return a chart with its title and a sentence below; the page's script draws it."""
    said = f"<figcaption>{text(below)}</figcaption>" if below else ""
    return f"<figure data-chart><h3>{text(title)}</h3>{data_script(spec)}{said}</figure>"


def comparison(columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return a table with a column for each run (name, class of its colour) and a row for each thing compared."""
    head = "".join(
        f'<th scope="col"><i class="dot {colour}"></i>{text(name)}</th>' for name, colour in columns
    )
    body = "".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, cells in rows
    )
    table = f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="compare">{table}</table></div>'


def nested_table(values: Mapping[str, Any]) -> str:
    """Return settings as a table: what stands alone first, then each group under its heading."""
    rows = [_row(key, value) for key, value in values.items() if not _is_group(value)]
    for key, value in values.items():
        if _is_group(value):
            rows.append(f'<tr class="group"><th colspan="2">{text(key)}</th></tr>')
            rows += [_row(inner, shown) for inner, shown in _flat(value)]
    return f'<table class="settings"><tbody>{"".join(rows)}</tbody></table>'


def _is_group(value: object) -> bool:
    return isinstance(value, dict) and bool(value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        if _is_group(value):
            yield from _flat(value, f"{prefix}{key} › ")
        else:
            yield f"{prefix}{key}", value


def _row(key: str, value: object) -> str:
    return f'<tr><th scope="row">{text(key)}</th><td>{plain_value(value)}</td></tr>'


def plain_value(value: object) -> str:
    """Return a setting's value as it is written in a recipe; absent values are pale."""
    if value is None or value in ({}, []):
        return '<span class="none">none</span>'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(text(item) for item in value)
    if isinstance(value, float):
        return text(f"{value:.6g}")
    return text(value)
