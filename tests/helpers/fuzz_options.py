"""Every command, every option, every kind of wrong value, from the declarations; none is written down here."""

import os
import shutil

import torch
from evil_runs import small_run
from small_graphs import write_blocks
from typer.main import get_command
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.job_flags import job_flags
from gyroformer.models import MODELS
from gyroformer.tasks import TASKS

VALUES = [
    *(
        "-1",
        "0",
        "1000000000000000000",
        "1e308",
        "-1e-300",
        "nan",
        "inf",
        "",
        "x",
        "[",
        "[1]",
        "null",
        "1.5",
        "[/i]",
    ),
    *(
        "true",
        "\u0661",
        " 1",
        "1e3",
        "--help",
        "../..",
        "/dev/zero",
        "\udc80",
        "99999999999999999999999999",
    ),
]
#: exit codes that a command may have: done, usage, data, diverged, a missing part
ALLOWED = {0, 2, 3, 4, 5}
DIVERGED = 4
#: commands that do work of minutes: only what they refuse is tried, with a folder that cannot be
HEAVY = {
    "tune": ["embed", "no-such-graph.csv"],
    "compare": ["embed", "no-such-graph.csv", "--models", "gcn,mlp"],
    "demo": ["--out", "/dev/null/x"],
    "bench": ["no-such-case"],
    "reproduce": ["table1", "--collect-only"],
}


def usual_words(command, folder):
    """Return what a command needs to be quick."""
    graph, features, labels, run = folder / "edges.csv", folder / "x.csv", folder / "y.csv", folder / "run"
    quick = ["--epochs", "1", "--out", folder / "new"]
    words = {
        **{task: [graph, *quick] for task in TASKS},
        "classify": [graph, "--labels", labels, "--features", features, *quick],
        "curvature": [graph],
        "predict": [run],
        "report": [run, "--out", folder / "new.html"],
        "datasets": ["cora"],
        **HEAVY,
    }
    return [str(word) for word in words.get(command, [])]


def flags(command):
    """Return the options of a command as they are typed, of a task for every model."""
    if command in TASKS:
        for model in MODELS:
            for flag in job_flags(command, model):
                if not flag.hidden:
                    yield ["--model", model], flag.words.split("/")[0], flag.is_switch
        return
    for one in get_command(app).commands[command].params:
        for word in one.opts:
            if word.startswith("--"):
                yield [], word, one.is_flag


def cases():
    """Yield every command, option and value."""
    for command in get_command(app).commands:
        for more, word, is_switch in flags(command):
            for value in VALUES:
                yield command, [*more, f"{word}={value}"] if not is_switch else [*more, word, value]
        for value in VALUES:
            yield command, [value]
            yield command, ["--no-such-option", value]


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def options(folder, stream):
    """Type every case, in an order drawn by the stream."""
    paths = write_blocks(folder)
    for path, name in zip(paths, ("edges.csv", "x.csv", "y.csv"), strict=True):
        if path.name != name:
            shutil.copy(path, folder / name)
    small_run(folder / "run", epochs=2)
    before = listing(folder)
    everything = list(cases())
    stream.shuffle(everything)
    os.chdir(folder)
    for command, words in everything:
        typed = [command, *words] if len(words) == 1 and not words[0].startswith("--") else None
        typed = typed or [command, *without(usual_words(command, folder), words), *words]
        yield repr(typed), lambda typed=typed: one(typed, folder, before)


def without(usual, words):
    """Return the usual words without an option that is tried."""
    tried = {word.partition("=")[0] for word in words}
    kept, skip = [], False
    for index, word in enumerate(usual):
        if skip:
            skip = False
        elif word in tried and index + 1 < len(usual):
            skip = True
        else:
            kept.append(word)
    return kept


def one(typed, folder, before):
    """Run a command line and look at what it leaves."""
    threads = torch.get_num_threads()
    done = CliRunner().invoke(app, typed)
    torch.set_num_threads(threads)
    try:
        assert done.exit_code in ALLOWED, (done.exit_code, done.exception, done.stderr[-300:])
        assert "Traceback" not in done.output
        if done.exit_code not in (0, DIVERGED):  # which has trained, says why, and keeps its folder
            # what was understood of the file may come before the error
            errors = [line for line in done.stderr.splitlines() if "directed edges of" not in line]
            assert len(errors) <= 1, done.stderr
            assert listing(folder) == before, "it left files"
    finally:
        for name in listing(folder):
            if name not in before and (folder / name).exists():
                path = folder / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
