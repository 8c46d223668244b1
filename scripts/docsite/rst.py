"""Docstrings, which are written for ``help()`` and editors, as Markdown."""

import re

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?(?:[\w.]+\.)?(\w+)`")
#: a directive with its equation: to the next empty line
DISPLAY = re.compile(
    r"^(?P<indent> *)\.\. math:: *(?P<latex>.*(?:\n *\S.*)*?)(?=\n *\n|\Z|\n(?P=indent)\S)", re.M
)


def as_markdown(text: str) -> str:
    """Return a docstring with its equations between dollars and its references as code."""

    def display(match: re.Match[str]) -> str:
        indent, latex = match["indent"], " ".join(match["latex"].split())
        if "&=" in latex:
            latex = rf"\begin{{aligned}} {latex} \end{{aligned}}"
        return f"{indent}$$\n{indent}{latex}\n{indent}$$\n"

    text = DISPLAY.sub(display, text)
    text = re.sub(r":math:`([^`]+)`", lambda match: f"${' '.join(match[1].split())}$", text)
    text = ROLE.sub(r"`\1`", text)
    text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.M)  # the one that is shown as code
    return re.sub(r"::$", ":", text, flags=re.M)
