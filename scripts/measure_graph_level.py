"""Classify handwritten digits by the graph of their dark pixels, with and without curvature: results/graph_level.csv.

python scripts/measure_graph_level.py [--epochs 25] [--seeds 3]

scikit-learn brings 1,797 scanned digits (8 x 8 pixels, from the UCI repository). A digit's graph has a node for each
dark pixel, with its ink, and an edge between pixels that touch, also by a corner. Where the pixels are is left out: a
6 and a 9 differ in nothing but their writers' habits. A quarter of the digits is for the test. The baseline counts:
nodes, edges, triangles, components, degrees and ink in histograms, the lowest eigenvalues; a random forest learns from
that.
"""

import argparse
import platform
import time
from pathlib import Path

import networkx as nx
import numpy as np
from result_file import write_rows
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import gyroformer as gf

TARGET = Path(__file__).parents[1] / "results" / "graph_level.csv"
#: ink from which a pixel is dark, of 16
DARK = 4
EIGENVALUES = 8


def digit_graph(image: np.ndarray) -> nx.Graph:
    """Return the graph of an image's dark pixels."""
    graph = nx.Graph()
    graph.add_nodes_from(
        ((int(r), int(c)), {"ink": float(image[r, c])}) for r, c in np.argwhere(image >= DARK)
    )
    for r, c in list(graph):
        graph.add_edges_from(
            ((r, c), near)
            for near in ((r, c + 1), (r + 1, c - 1), (r + 1, c), (r + 1, c + 1))
            if near in graph
        )
    return graph


def counts(graph: nx.Graph) -> list[float]:
    """Return what the baseline knows of a graph."""
    degrees = np.bincount([degree for _, degree in graph.degree()], minlength=9)
    ink = np.histogram([ink for _, ink in graph.nodes(data="ink")], bins=6, range=(DARK, 16))[0]
    values = np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph).toarray())[:EIGENVALUES]
    return [
        len(graph),
        graph.number_of_edges(),
        sum(nx.triangles(graph).values()) / 3,
        nx.number_connected_components(graph),
        *degrees,
        *ink,
        *np.pad(values, (0, EIGENVALUES - len(values)), constant_values=2.0),
    ]


def main() -> None:
    """Measure and write."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--epochs", type=int, default=25)
    words.add_argument("--seeds", type=int, default=3)
    words.add_argument("--out", type=Path, default=TARGET)
    given = words.parse_args()
    digits = load_digits()
    graphs = [digit_graph(image) for image in digits.images]
    y = digits.target
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0, stratify=y)
    table = np.array([counts(graph) for graph in graphs])
    rows = []
    for seed in range(given.seeds):
        forest = RandomForestClassifier(500, random_state=seed)
        began = time.process_time()
        forest.fit(table[train], y[train])
        known = {"train": len(train), "test": len(test), "machine": platform.machine()}
        rows.append(
            {
                "model": "counts and a random forest",
                "seed": seed,
                "accuracy": round(100 * forest.score(table[test], y[test]), 2),
                "parameters": "",
                "epochs": "",
                "cpu_seconds": round(time.process_time() - began, 1),
                **known,
            }
        )
        for model in ("fpst", "tokengt"):
            began = time.process_time()
            found = gf.GraphClassifier(model=model, features=["ink"], epochs=given.epochs, random_state=seed)
            found.fit([graphs[i] for i in train], y[train])
            accuracy = found.score([graphs[i] for i in test], y[test])
            rows.append(
                {
                    "model": model,
                    "seed": seed,
                    "accuracy": round(100 * accuracy, 2),
                    "parameters": found.results_["parameters"],
                    "epochs": found.results_["epochs"],
                    "cpu_seconds": round(time.process_time() - began, 1),
                    **known,
                }
            )
            print(rows[-1], flush=True)
        write_rows(given.out, rows)


if __name__ == "__main__":
    main()
