"""Foreign text is shown as it is: no markup, no escape sequence, no second line, wherever it is printed."""

import ast
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from small_graphs import write_tree
from typer.testing import CliRunner

import gyroformer
from gyroformer.cli import progress
from gyroformer.cli.app import app
from gyroformer.cli.terminal import print_json, print_table, say, styled, terminal, visible

HOSTILE = [
    "[/i]", "[bold]", "[red]c", "[link=x]", ":smile:", "\x1b[31mred", "\x1b]0;title\x07", "a\nerror: b",
    "a\rb", "\x9b2J", "\u202egnp.exe", "half \udc80", "\x00", "tab\there", "[/]", "\\[x]",
]  # fmt: skip
SOURCE = Path(gyroformer.__file__).parent


def safe(text):
    """Return whether a terminal would only show it: printable characters on lines of their own."""
    return all(line.isprintable() for line in text.split("\n"))


@given(st.text(st.characters(codec=None)))
def test_what_is_visible_is_printable_and_on_one_line(text):
    shown = visible(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize("name", HOSTILE)
def test_every_way_to_print(name, capsys, caplog):
    file = io.StringIO()
    console = terminal(file=file, width=200)
    table = Table(name, title=name)
    table.add_row(name)
    table.add_row(styled(name))
    for one in (name, styled(name), table):
        console.print(one)
    assert safe(file.getvalue())
    assert file.getvalue().count(visible(name)) == 6
    say(name)
    say(name, err=True)
    print_json({"a": name})
    out, err = capsys.readouterr()
    assert safe(out)
    assert err == visible(name) + "\n"


HEAD, ROW = (
    ("data set", "row", "difference"),
    ("web-edu", "no eigenvectors among the tokens of " * 3, "+0.10"),
)


def test_a_table_in_a_file_has_a_line_for_each_row(capsys):
    print_table(HEAD, [ROW])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        " ".join(cells).split() for cells in (HEAD, ROW)
    ]


def test_a_narrow_terminal_breaks_no_word_of_a_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(HEAD, [ROW])
    out = capsys.readouterr().out
    assert len(out.splitlines()) > 4
    assert out.split().count("eigenvectors") == 3


def test_a_line_of_progress_and_of_the_log(capsys, monkeypatch):
    CliRunner().invoke(app, ["doctor", "--help"])  # a command shows the log
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    shown = progress.Progress()
    for name in HOSTILE:
        shown.show(name)
    shown.stop()
    logging.getLogger("gyroformer.data").warning("read %s", "\x1b[31m\nsecond")
    err = capsys.readouterr().err
    assert all(visible(name) in err for name in HOSTILE)
    assert err.endswith("read \\x1b[31m\\nsecond\n")
    assert "\x1b[31m" not in err


@pytest.mark.parametrize("name", [name for name in HOSTILE if "/" not in name and "\x00" not in name])
def test_a_file_of_that_name(name, tmp_path):
    path = tmp_path / f"{name}.csv"
    write_tree(path)
    for words in (
        ["curvature", path],
        ["curvature", tmp_path / f"{name}-none.csv"],
        ["embed", path, "--lr", name],
    ):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code in (0, 2, 3), done.exception
        assert safe(done.output)
        assert done.stderr.count("\n") <= 1
        assert visible(name) in done.stdout + done.stderr


def test_ids_of_such_names_are_told_by_predict(tmp_path):
    names = [name for name in HOSTILE if not set(name) & set("\n\r\x00\t\udc80")]
    path = tmp_path / "g.csv"
    path.write_text("source,target\n" + "".join(f"{name},root\n" for name in names), encoding="utf-8")
    run = str(tmp_path / "run[/bold]")
    for words in (
        ["embed", str(path), "--epochs", "1", "--out", run],
        ["predict", run, "--node", names[0], "--nearest", "20"],
    ):
        done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
        assert done.exit_code == 0, (done.output, done.exception)
        assert safe(done.output)
    assert all(visible(name) in done.output for name in names)


#: what writes to the terminal; a name in a module of the command line other than ``terminal`` is a leak
WRITERS = {"echo", "secho", "print", "Console", "write", "warn", "showwarning"}


def leaks(source):
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
            ours = owner.startswith(("console", "terminal(", "said"))  # made by terminal()
            guarded = node.args and ast.unparse(node.args[0]).startswith("visible(")
            if name in WRITERS and not ours and not guarded:
                found.append(ast.unparse(node)[:60])
    return found


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").glob("*.py")), ids=lambda path: path.name)
def test_nothing_else_prints(path):
    if path.name != "terminal.py":
        assert leaks(path.read_text(encoding="utf-8")) == []


def test_a_leak_is_seen():
    for line in ("typer.echo(name)", "print(name)", "Console().print(name)", "sys.stderr.write(name)"):
        assert leaks(line)
    assert not leaks("say(name)\nterminal().print(table)\nprint(visible(name))")


def run_cli(*words, stdout=subprocess.PIPE, **env):
    return subprocess.run(
        [sys.executable, "-m", "gyroformer", *map(str, words)],
        stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **env}, timeout=120,
    )  # fmt: skip


def test_a_full_disk_behind_stdout():
    with Path("/dev/full").open("wb") as full:
        done = run_cli("datasets", stdout=full)
    assert done.returncode == 3
    assert done.stderr == b"error: stdout: No space left on device\n"


def test_a_reader_that_has_gone():
    read, write = os.pipe()
    os.close(read)
    done = run_cli("datasets", "--json", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_encoding_that_lacks_the_letters(tmp_path):
    path = tmp_path / "größe.csv"
    path.write_text("source,target\na,b\nb,c\n", encoding="utf-8")
    done = run_cli("curvature", path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert rb"gr\xf6\xdfe.csv" in done.stdout
    done = run_cli("curvature", path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words", [["embed"], ["predict"], ["--nope"], ["embed", "g.csv", "--dim"], ["no-such-command"]]
)
def test_a_wrong_command_line_is_one_line(words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["report", "r", "--out", ""], ["report", "r", "--out="], ["embed", ""], ["bench", "--variants", ""]],
)
def test_an_empty_word_is_not_taken_as_absent(words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "empty" in done.stderr
