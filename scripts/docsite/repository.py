"""Pages of the site from files of the repository, with links that work in both.

A page links to another file as it lies in the repository, ``[the loop](../src/gyroformer/train/loop.py)``, so that a
reader who browses the repository can follow it. On the site a page of ``docs/`` lies at the top, README and RESULTS.md
beside it; any other file that a page links to is shown on a page of its own below ``source/``, or, if it holds data,
lies there as it is.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
#: pages that lie outside docs/, under the same paths on the site; README.md is its first page
OUTSIDE = ("README.md", "RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")
#: what a browser shows or saves without our help
DATA = {".csv", ".json", ".txt", ".png"}
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml", ".sh": "sh"}

CODE = r"^```.*?^```|^~~~.*?^~~~|`[^`\n]+`"
LINK = re.compile(
    rf"(?P<code>{CODE})|(?<=\]\()(?P<path>(?![a-z]+:)[^)\s#]+)(?P<anchor>#[^)\s]*)?", re.M | re.S
)


def repository_path(src_uri: str) -> str:
    """Return where the page ``src_uri`` of the site lies in the repository."""
    return src_uri if src_uri in OUTSIDE else f"docs/{src_uri}"


def site_path(path: str) -> str:
    """Return the ``src_uri`` under which the site has the file ``path`` of the repository."""
    if path in OUTSIDE:
        return path
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    return path if Path(path).suffix in DATA else f"source/{path}.md"


def links(text: str, src_uri: str) -> Iterator[str]:
    """Return the files of the repository that a page links to."""
    folder = posixpath.dirname(repository_path(src_uri))
    for match in LINK.finditer(text):
        if match["path"]:
            yield posixpath.normpath(posixpath.join(folder, match["path"]))


def site_links(text: str, src_uri: str) -> str:
    """Return a page's Markdown with its links as the site needs them."""
    if src_uri.startswith("source/"):
        return text
    folder = posixpath.dirname(repository_path(src_uri))

    def moved(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        target = site_path(posixpath.normpath(posixpath.join(folder, match["path"])))
        return posixpath.relpath(target, posixpath.dirname(src_uri) or ".") + (match["anchor"] or "")

    return LINK.sub(moved, text)


def add_pages(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that lie outside docs/."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


def add_linked_files(files: Files, config: MkDocsConfig) -> None:
    """Add every file that a page links to and that is none itself; a link to nothing is left for mkdocs to refuse."""
    pages = [(page.content_string, page.src_uri) for page in files.documentation_pages()]
    linked = {path for text, src_uri in pages for path in links(text, src_uri)}
    for path in sorted(linked):
        target = site_path(path)
        if not (ROOT / path).is_file() or files.get_file_from_path(target) is not None:
            continue
        if target.endswith(".md"):
            files.append(File.generated(config, target, content=source_page(path)))
        else:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / path)))


def source_page(path: str) -> str:
    """Return a page that shows a file of the repository."""
    text = (ROOT / path).read_text(encoding="utf-8")
    language = LANGUAGES.get(Path(path).suffix, "text")
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# `{path}`\n\n"
    return f"{head}~~~~~~{language}\n{text.rstrip()}\n~~~~~~\n"
