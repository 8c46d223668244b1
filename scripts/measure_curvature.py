"""Measure the sectional curvature of the data sets, and the processor time it takes on one thread.

python scripts/measure_curvature.py --csv results/curvature.csv
"""

import argparse
import time
from pathlib import Path

from result_file import write_rows

import gyroformer as gf
from gyroformer.graphs.analysis.curvature import graph_curvature

#: graph and number of sampled nodes, None for all
CASES = (
    *((name, None) for name in ("web-edu", "power", "facebook", "bio-worm", "enron", "nouns")),
    ("nouns", 2048),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, required=True)
    rows = []
    path = parser.parse_args().csv
    for name, samples in CASES:
        data = gf.load(name)
        begun = time.process_time()
        found = graph_curvature(
            data.edge_index, int(data.num_nodes or 0), samples=samples, exact=samples is None
        )
        rows.append(
            {
                "graph": name,
                "samples": samples or "",
                "nodes": int(data.num_nodes or 0),
                "edges": data.summary.edges,
                "triples": found.triples,
                "curvature": f"{found.mean:.4f}",
                "standard_error": f"{found.standard_error:.4f}" if not found.exact else "",
                "negative_percent": f"{100 * found.negative_share:.0f}",
                "reading": found.reading.split(":")[0],
                "processor_seconds": f"{time.process_time() - begun:.1f}",
            }
        )
        print(rows[-1], flush=True)
        write_rows(path, rows)


if __name__ == "__main__":
    main()
