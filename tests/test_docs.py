"""The documentation does what it says: its code runs, its names exist, its tables are the results'."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer
from page_runner import run_page

import gyroformer
from gyroformer.cli.app import COMMANDS, app
from gyroformer.cli.job_flags import job_flags
from gyroformer.models import MODELS
from gyroformer.options import options_of
from gyroformer.paper.figures import FIGURES
from gyroformer.settings import GraphOptions
from gyroformer.tasks import TASKS

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "RESULTS.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
)
#: pages that a test of their own runs, with the data sets that they need
ELSEWHERE = {
    "datasets.md": "tests/data/test_docs_page.py",
    "hierarchies.md": "tests/cli/test_hierarchy.py",
    "many_processes.md": "tests/processes/test_page.py",
    "predict.md": "tests/jobs/test_predict_page.py",
    "structure.md": "tests/graphs/test_structure_page.py",
}
#: pages whose commands follow on each other: they are run from top to bottom in one folder
IN_ORDER = {"own_graph.md", "start.md"}
NETWORK = {"--fetch"}
#: commands whose first argument names a data set, unless it is a file
NAMED_DATA = {"curvature", "embed", "classify", "link"}


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def pages_with(kind):
    return [page for page in PAGES if blocks(page, kind)]


def skip_if_tested_elsewhere(page):
    if page.name in ELSEWHERE:
        assert (ROOT / ELSEWHERE[page.name]).is_file()
        pytest.skip(f"{ELSEWHERE[page.name]} runs this page")
    if page.name in IN_ORDER:
        pytest.skip("run from top to bottom by test_pages_run_in_order")


@pytest.mark.parametrize("name", sorted(IN_ORDER))
def test_pages_run_in_order(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run_page(ROOT / "docs" / name)
    assert said
    assert all(said.values())


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    skip_if_tested_elsewhere(page)
    monkeypatch.chdir(tmp_path)
    names = {}
    for i, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {i}", "exec"), names)


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run(path, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    plt.switch_backend("agg")
    cells = [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    assert any(cell["outputs"] for cell in cells), "python scripts/run_notebooks.py keeps what it prints"
    names = {}
    for i, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {i}", "exec"), names)


def commands():
    found = []
    for page in pages_with("console"):
        lines = [line for block in blocks(page, "console") for line in block.splitlines()]
        found += [
            pytest.param(page, line, id=f"{page.name}:{line[2:]}")
            for line in lines
            if line.startswith("$ gyro")
        ]
    return found


@pytest.mark.parametrize("page, line", commands())
def test_commands_run(page, line, tmp_path):
    skip_if_tested_elsewhere(page)
    _, _, command, *args = shlex.split(line)
    if NETWORK.intersection(args):
        pytest.skip("needs the network")
    graph = args[1:2] if command in ("tune", "compare") else args[:1] if command in NAMED_DATA else []
    needs_data = any(not Path(name).suffix for name in graph)
    if needs_data and not os.environ.get("GYROFORMER_DATA"):
        pytest.skip("the real data sets are not here: set GYROFORMER_DATA to their folder")
    done = subprocess.run(
        [sys.executable, "-m", "gyroformer", command, *args],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readme_names_every_command():
    rows = re.findall(r"^\| `gyroformer (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert {command.__name__ for command in COMMANDS} <= set(rows)


def test_every_make_target_that_is_named_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documented = set(re.findall(r"^([a-z-]+):.*##", makefile, flags=re.M))
    assert set(re.findall(r"^\.PHONY: (.*)$", makefile, flags=re.M)[0].split()) == documented
    for page in PAGES:
        code = "\n".join(re.findall(r"`[^`\n]+`|```.*?```", page.read_text(encoding="utf-8"), flags=re.S))
        named = set(re.findall(r"\bmake ([a-z-]+)", code))
        assert named <= documented, f"{page.name} names {named - documented}"


def test_make_help_lists_the_targets():
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"demo", "test", "figures", "check"} <= {line.split()[0] for line in said.splitlines()}


def anchors(page):
    """Return the anchors of a page's headings, as browsers of repositories and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_anchors_are_those_of_the_headings(tmp_path):
    (tmp_path / "x.md").write_text(
        "# A `b`: c, d\n\n```sh\n# no heading\n```\n\n## 3. Curvature κ\n", encoding="utf-8"
    )
    assert anchors(tmp_path / "x.md") == {"a-b-c-d", "3-curvature-κ"}


def test_every_picture_is_drawn_shown_and_small():
    source = (ROOT / "scripts" / "make_figures.py").read_text(encoding="utf-8")
    drawn = set(re.findall(r'^    "(\w+)": \w+\.\w+,$', source, flags=re.M))
    files = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "figures").glob("*.png")}
    shown = {
        Path(target).stem
        for page in PAGES
        for target in re.findall(r"!\[[^]]*\]\(([^)]*figures/[^)]+)\)", page.read_text(encoding="utf-8"))
    }
    # those of `gyroformer reproduce figures`, of which only some have their runs
    of_runs = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert drawn
    assert set(of_runs) <= set(FIGURES)
    assert drawn == set(files)
    assert shown == set(files) | set(of_runs)
    assert max(files.values()) < 100_000
    assert max(of_runs.values()) < 200_000


def test_what_curvature_gives_is_not_taken_from_another_task(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    gains = importlib.import_module("tables.alone").gains("table2", "links")
    assert ("table2", "cora") in gains  # an ablation of the labels' recipe, which says nothing of links
    assert gains.get(("links", "cora")) != gains["table2", "cora"]


def test_tables_are_what_the_results_give():
    done = subprocess.run(
        [sys.executable, "scripts/make_tables.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


#: numbers that stand in a table and are nobody's measurement, by page
NOT_MEASURED = {
    "README.md": {"95"},  # of intervals
    "datasets.md": {"0.6", "0.2"},
    "model.md": {"7.27", "1e-5", "3e-10"},  # bounds of the code
    "own_graph.md": {"50", "100"},  # chance, and no error
    "paper_map.md": {"0.63", "0.28", "0.08", "0.03"},  # the paper's own
}


#: a decimal number, or one with an exponent or a percent sign
NUMBER = re.compile(r"(?<![\w.])(?:\d*\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+(?= ?%))")


def typed_numbers(text):
    """Return the numbers in tables that no script fills; marks that nothing fills make_tables.py refuses."""
    text = re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", "", text, flags=re.S)
    rows = [re.sub(r"`[^`]*`", "", line) for line in text.splitlines() if line.lstrip().startswith("|")]
    return {number for row in rows for number in NUMBER.findall(row)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_number_is_typed_into_a_table(page):
    found = typed_numbers(page.read_text(encoding="utf-8"))
    assert found <= NOT_MEASURED.get(page.name, set()), f"{page.name}: {found}: let make_tables.py fill them"


def test_a_typed_number_is_seen():
    assert typed_numbers(
        "| a | 1.5 |\n<!-- begin x -->\n| b | 2.5 |\n<!-- end x -->\n| `3.5` | v4.5 | 7 |\n  | .93 | 1e-3 | 98 % |\n"
    ) == {"1.5", ".93", "1e-3", "98"}


def test_the_options_page_names_every_option():
    rows = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)`", rows, flags=re.M))
    flags = {
        flag.option.name
        for task in TASKS
        for model in MODELS
        for flag in job_flags(task, model)
        if not flag.hidden
    }
    assert named == flags | {one.name for one in options_of(GraphOptions)}


def code_of(page):
    """Return the code of a page that is ours: blocks and inline code, without the lines of other programs."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"```.*?^```|`[^`\n]+`", text, flags=re.M | re.S)
    lines = [line.strip("$` ") for code in found for line in code.splitlines()]
    return "\n".join(line for line in lines if not re.match(r"python |pip |git |make ", line))


#: flags of the project's scripts
OF_SCRIPTS = {
    flag
    for folder in ("scripts", "tests/helpers")
    for path in (ROOT / folder).glob("*.py")
    for flag in re.findall(r'add_argument\(\s*"(--[a-z-]+)"', path.read_text(encoding="utf-8"))
}
OF_TORCHRUN = {"--nproc-per-node", "--nnodes", "--rdzv-backend", "--rdzv-endpoint", "--max-restarts"}


def every_flag():
    """Return the flags of all commands, those of every model and task among them."""
    jobs = [flag for task in TASKS for model in MODELS for flag in job_flags(task, model)]
    others = [one for command in typer.main.get_command(app).commands.values() for one in command.params]
    return {word for flag in jobs for word in flag.words.split("/")} | {
        word for one in others for word in (*one.opts, *one.secondary_opts)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_in_the_docs_exist(page):
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?!-…)", code_of(page)))
    assert not named - every_flag() - OF_SCRIPTS - OF_TORCHRUN - {"--help", "--version"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_in_the_docs_exist(page):
    for path in re.findall(r"\b(?:src|tests|scripts|results|docs)/[\w./]*\w", code_of(page)):
        if "NAME" not in path and "TASK" not in path:
            assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_contributing_lists_the_layers_in_order():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## The layers")[1].split("## ")[0]
    source = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    layers = re.findall(r'"(\w+)"', source.split("LAYERS = [")[1].split("\n]")[0])
    assert re.findall(r"^\| `(\w+)`", table, flags=re.M) == layers


def test_a_picture_can_be_drawn(tmp_path):
    script = [sys.executable, "scripts/make_figures.py", "--only", "transport", "--out", str(tmp_path)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "transport.png").read_bytes().startswith(b"\x89PNG")


def built_names(text):
    """Return the names that a page says exist: those that do not follow "not yet built" in their cell."""
    cells = [
        cell.split("*not yet built*")[0]
        for line in text.splitlines()
        for cell in re.split(r"(?<!\\)\|", line)
    ]
    return {name for cell in cells for name in re.findall(r"`(gyroformer(?:\.\w+)+)`", cell)}


def exists(name):
    module, found = "gyroformer", gyroformer
    for part in name.split(".")[1:]:
        module = f"{module}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = __import__(module, fromlist=["_"])
            except ModuleNotFoundError:
                return False
    return True


def test_names_that_do_not_exist_are_seen():
    text = "| a | `gyroformer.geometry.dist`; *not yet built*: `gyroformer.nn.Later` | `gyroformer.nn.Now` |"
    assert built_names(text) == {"gyroformer.geometry.dist", "gyroformer.nn.Now"}
    assert exists("gyroformer.testing.regimes.radius")
    assert not exists("gyroformer.nn.Now")
    assert not exists("gyroformer.geometry.distt")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_docs_exist(page):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = {name for name in built_names(page.read_text(encoding="utf-8")) if not exists(name)}
    assert not missing


def test_what_is_called_not_yet_built_is_not():
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    coming = set(re.findall(r"`(gyroformer(?:\.\w+)+)`", text)) - built_names(text)
    assert not {name for name in coming if exists(name)}, "these exist by now: say so in docs/paper_map.md"


def test_the_paper_map_is_whole():
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    listed = {name.rsplit(".", 1)[1] for name in built_names(text) if name.startswith("gyroformer.geometry.")}
    assert set(gyroformer.geometry.__all__) <= listed
    errata = [int(number) for number in re.findall(r"\*\*E(\d+)\*\* ", text)]
    assert sorted(errata) == list(range(1, 36))
