"""Equations as MathML, written when the site is built: no script, no font and no request is needed to show them."""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

#: what ``pymdownx.arithmatex`` makes of ``$...$`` and ``$$...$$`` with ``generic: true``
EQUATION = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<kind>[\(\[])(?P<latex>.*?)\\[\)\]]</(?P=tag)>', re.S
)


def as_mathml(page: str, *, where: str) -> str:
    """Return the HTML of a page with its equations as MathML; ``where`` is named if one cannot be converted."""

    def written(match: re.Match[str]) -> str:
        latex = html.unescape(match["latex"]).strip()
        display = "inline" if match["kind"] == "(" else "block"
        made = convert(latex, display=display)
        # what the converter does not know it writes out as it stands
        if unknown := re.search(r"\\[A-Za-z]*", made):
            raise PluginError(f"{where}: {unknown[0]!r} in the equation {latex!r} has no MathML")
        # the bars of |x| are no infix operators
        made = re.sub(r"<mo([^>]*)>(&#x0007C;)</mo>", r'<mo\1 lspace="0" rspace="0">\2</mo>', made)
        return f'<{match["tag"]} class="equation">{made}</{match["tag"]}>'

    return EQUATION.sub(written, page)
