"""Short runs whose first rows are kept in ``tests/golden``: a change of the code that is not meant to change results
leaves them as they are.

``python tests/helpers/golden_runs.py`` compares bit for bit (which only the machine that recorded them promises);
``--record`` writes them anew.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from small_graphs import write_blocks
from typer.testing import CliRunner

FOLDER = Path(__file__).parents[1] / "golden"
EPOCHS = 20

#: name of the run -> task, model, further words; GRAPH, FEATURES and LABELS stand for files
RUNS = {
    "embed-fpst": ("embed", "fpst", "--start random --edge-tokens undirected --heads 2 --layers 2"),
    "embed-tokengt": ("embed", "tokengt", "--start random --attention softmax --negatives 24"),
    "embed-hgcn": ("embed", "hgcn", ""),
    "embed-kappa-gcn": ("embed", "kappa-gcn", "--layers 2"),
    "classify-fpst": ("classify", "fpst", "--features FEATURES --labels LABELS --split random"),
    "classify-hgcn": ("classify", "hgcn", "--features FEATURES --labels LABELS --split random --balanced"),
    "classify-kappa-gcn": ("classify", "kappa-gcn", "--features FEATURES --labels LABELS --split random"),
    "link-fpst": ("link", "fpst", "--features FEATURES --learn-decoder"),
    "link-tokengt": ("link", "tokengt", "--recipe default"),
    "link-hgcn": ("link", "hgcn", "--features FEATURES --decoder distance"),
}


def run(name, folder):
    """Return the rows of ``metrics.jsonl`` of the run ``name``, made in ``folder``, as text."""
    from gyroformer.cli.app import app

    graph, features, labels = write_blocks(folder)
    task, model, words = RUNS[name]
    files = {"FEATURES": str(features), "LABELS": str(labels)}
    out = folder / name
    command = [task, str(graph), "--model", model, *(files.get(word, word) for word in words.split())]
    command += ["--epochs", str(EPOCHS), "--threads", "1", "--seed", "3", "--out", str(out), "--json"]
    done = CliRunner().invoke(app, command)
    if done.exit_code:
        raise AssertionError(f"{name}: exit code {done.exit_code}\n{done.output}") from done.exception
    return (out / "metrics.jsonl").read_text(encoding="utf-8")


def golden(name):
    """Return the rows that were recorded."""
    return (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the rows instead of comparing")
    record = parser.parse_args().record
    changed = []
    for name in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            found = run(name, Path(folder))
        if record:
            (FOLDER / f"{name}.jsonl").write_text(found, encoding="utf-8")
        elif found != golden(name):
            changed.append(name)
    print(
        f"{len(RUNS) - len(changed)} of {len(RUNS)} runs {'recorded' if record else 'the same, bit for bit'}"
    )
    if changed:
        sys.exit(f"changed: {', '.join(changed)}")


if __name__ == "__main__":
    main()
