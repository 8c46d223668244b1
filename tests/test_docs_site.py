"""The documentation site is built without a warning, is whole, and asks nobody for anything."""

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
for tool in ("mkdocs", "material", "mkdocstrings_handlers", "latex2mathml", "nbclient"):
    pytest.importorskip(tool, reason="the documentation's tools are not here: pip install 'gyroformer[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads and which anchors it has."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif values.get("src") or (tag == "link" and values.get("href")):
            self.loaded.append(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_link_and_anchor_leads_somewhere(pages):
    assert len(pages) > 30
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file() and (
                not parts.fragment
                or target.suffix != ".html"
                or unquote(parts.fragment) in pages[target].anchors
            )
            lost += [] if there else [f"{path.name}: {link}"]
    assert not lost


def test_no_page_loads_anything_from_another_host(site, pages):
    loaded = {(path.name, name) for path, page in pages.items() for name in page.loaded}
    assert len(loaded) > 100
    assert not [one for one in loaded if urlsplit(one[1]).netloc]
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    assert not [
        found for text in styles for found in re.findall(r"(?:url\(|@import)\W*(?:https?:)?//\S+", text)
    ]


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = set(re.findall(r"([\w/]+\.(?:md|ipynb))$", nav, flags=re.M))
    docs = ROOT / "docs"
    here = {path.relative_to(docs).as_posix() for path in [*docs.rglob("*.md"), *docs.rglob("*.ipynb")]}
    assert {name.replace(".ipynb", ".md") for name in here} <= named


def test_equations_are_mathml(site):
    page = (site / "model.html").read_text(encoding="utf-8")
    assert page.count("<math") > 10
    assert not [path for path in site.rglob("*.html") if "arithmatex" in path.read_text(encoding="utf-8")]


def test_an_equation_that_cannot_be_written_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from docsite.equations import as_mathml
    from mkdocs.exceptions import PluginError

    good = r'a <span class="arithmatex">\(x &lt; 1\)</span> b'
    assert "<mo>&#x0003C;</mo>" in as_mathml(good, where="x.md")
    with pytest.raises(PluginError, match=r"x\.md: .*nosuch"):
        as_mathml(r'<div class="arithmatex">\[\nosuch{x}\]</div>', where="x.md")


def test_the_reference_shows_what_is_typed(site):
    layers = (site / "api" / "nn.html").read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]+>", "", layers)
    assert re.search(r"StereographicTransformer\(\s*dim,\s*heads", shown), "its options are its arguments"
    assert "width, all heads together" in shown
    assert ":math:" not in shown
    assert ".. math" not in shown


@pytest.mark.parametrize(
    "said, meant",
    [
        (r"With :math:`z = \kappa` and :class:`~gyroformer.nn.Block`.", r"With $z = \kappa$ and `Block`."),
        (".. math:: a = b, \\\\\n          c\n\nthen", "$$\na = b, \\\\ c\n$$\n\n\nthen"),
        ("runs so::\n\n    x", "runs so:\n\n    x"),
    ],
)
def test_docstrings_become_markdown(said, meant, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from docsite.rst import as_markdown

    assert as_markdown(said) == meant


@pytest.mark.parametrize(
    "page, link, on_the_site",
    [
        ("README.md", "docs/tasks.md#memory", "tasks.md#memory"),
        ("README.md", "src/gyroformer/train/loop.py", "source/src/gyroformer/train/loop.py.md"),
        ("tasks.md", "../RESULTS.md", "RESULTS.md"),
        ("tasks.md", "https://example.org/a", "https://example.org/a"),
        ("results/README.md", "../docs/geometry.md", "../geometry.md"),
        ("api/nn.md", "../model.md#speed", "../model.md#speed"),
        ("start.md", "notebooks/own_graph.ipynb", "notebooks/own_graph.md"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(page, link, on_the_site, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from docsite.repository import site_links

    text = "a [`b`]({}) `[c](d)`\n\n```md\n[e](f)\n```\n"
    assert site_links(text.format(link), page) == text.format(on_the_site)
