"""The page's own scripts and style sheet, as one text each; in the package they are small files in ``assets``.

A script says at its top what it takes from the others (``import { name } from "./file.js";``). Here the files are put
one after the other, each after those it needs, without these lines: in one scope a name means the same in all.
"""

import base64
import functools
import hashlib
import re
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', flags=re.M)
_EXPORT = re.compile(r"^export ", flags=re.M)


@functools.cache
def script(first: str = "main.js") -> str:
    """Return ``first`` and all that it needs as one script."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for needed in _IMPORT.findall(_text(name)):
                if needed not in order:
                    visit(needed)
            order.append(name)

    visit(first)
    parts = [_EXPORT.sub("", _IMPORT.sub("", _text(name))) for name in order]
    return "\n".join(f"// {name}\n{part}" for name, part in zip(order, parts, strict=True))


@functools.cache
def style() -> str:
    """Return the style sheet; dark colours are asked for by the system or by the page's own switch."""
    dark = _text("dark.css")
    by_system = f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}\n'
    by_switch = f':root[data-theme="dark"] {{\n{dark}}}\n'
    return _text("page.css") + by_system + by_switch


def _text(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def policy() -> str:
    """Return the page's content security policy: nothing is loaded, and only our own script and style count.

    A script that data had brought onto the page would have another checksum.
    """
    return (
        f"default-src 'none'; script-src '{_source(script())}'; style-src '{_source(style())}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
