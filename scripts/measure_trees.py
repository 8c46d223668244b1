"""Classify the nodes of table 2 by gradient-boosted trees on their own features, without the graph: results/trees.csv.

python scripts/measure_trees.py [--datasets airport] [--seeds 10] [--out FILE]

One row is a run, on the split that the table's models have with the same seed. The settings are scikit-learn's: nothing
is chosen, and validation nodes have no part in it.
"""

import argparse
from pathlib import Path
from typing import Any

from result_file import write_rows

TARGET = Path(__file__).parents[1] / "results" / "trees.csv"


def main() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    import gyroformer as gf
    from gyroformer.paper.tables import TABLES
    from gyroformer.tasks.classify import split_of

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(TABLES["table2"].datasets))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for cell in TABLES["table2"].cells(given.datasets.split(","), ["mlp"], given.seeds):
        graph = gf.load(cell.column.dataset)
        x, y = graph.x.numpy(), graph.y.numpy()
        # a fixed split has one answer: nothing is drawn by the trees
        for job in cell.jobs() if cell.column.overlap else cell.jobs()[:1]:
            split = split_of(graph, job.objective, job.seed)
            trees = HistGradientBoostingClassifier(random_state=job.seed)
            trees.fit(x[split.train], y[split.train])
            f1 = 100 * trees.score(x[split.test], y[split.test])
            about = {"dataset": cell.column.name, "split": split.describe(), "seed": job.seed}
            rows.append(about | {"test_f1": f"{f1:.2f}"})
            print(rows[-1], flush=True)
        write_rows(given.out, rows)


if __name__ == "__main__":
    main()
