"""Notebooks as pages: text, code, and the output that is kept in the file."""

import base64
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def add_notebooks(files: Files, config: MkDocsConfig) -> None:
    """Add a page, and its pictures, for each notebook in docs/; the notebook itself stays there to be downloaded."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text, pictures = notebook_page(Path(notebook.abs_src_path or ""))
        files.append(File.generated(config, f"{notebook.src_uri.removesuffix('.ipynb')}.md", content=text))
        for name, picture in pictures.items():
            path = posixpath.join(posixpath.dirname(notebook.src_uri), name)
            files.append(File.generated(config, path, content=picture))


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and the pictures in it by the names under which it shows them."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```py\n{cell.source}\n```")
            parts += outputs(cell, path.stem, pictures)
    note = f"[The notebook itself]({path.name}){{: download }}; the tests run it."
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n{note}\n{rest}\n", pictures


def outputs(cell: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Return what a cell has printed, returned and drawn; pictures are put into ``pictures``."""
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            name = f"{stem}_{len(pictures)}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            yield f"![what the code above draws]({name})"
        elif text := output.get("text") or data.get("text/plain"):
            yield f"```text\n{text.rstrip()}\n```"
