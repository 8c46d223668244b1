"""The hooks that mkdocs.yml names: mkdocs calls these functions while it builds the site."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

# mkdocs loads this file by its path; the package that it is in, and the extension of griffe, are found here
sys.path.insert(0, str(Path(__file__).parents[1]))

from docsite import equations, notebooks, repository


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the notebooks, the pages that lie outside docs/ and the files that pages link to."""
    notebooks.add_notebooks(files, config)
    repository.add_pages(files, config)
    repository.add_linked_files(files, config)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    return repository.site_links(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Write equations as MathML, which browsers draw without a script."""
    return equations.as_mathml(html, where=page.file.src_uri)
