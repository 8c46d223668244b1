"""Measure how long reading an edge list takes and how much memory it needs, in a fresh process each time.

    python scripts/measure_reader.py --csv results/reader.csv

writes made-up edge lists of each kind into a temporary folder, reads each in a process of its own on one
thread, and keeps the processor seconds and the peak memory of the whole process (interpreter, torch and all).
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from result_file import write_rows

KINDS = (
    "integer.txt",
    "integer.txt.gz",
    "weighted.csv",
    "text.tsv",
    "text.tsv.gz",
    "sparse.txt",
    "integer.mtx",
)
READ = """
import json, resource, sys, time
import torch, torch_geometric.data
from gyroformer.graphs.reading.read import read_graph
torch.set_num_threads(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, start_cpu = time.perf_counter(), time.process_time()
data = read_graph(sys.argv[1])
seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak / 1024, "before": before / 1024}))
"""


def write(path: Path, source: np.ndarray, target: np.ndarray, nodes: int) -> None:
    kind = path.name.split(".")[0]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        if path.suffix == ".mtx":
            file.write(f"%%MatrixMarket matrix coordinate pattern general\n{nodes} {nodes} {source.size}\n")
            source, target = source + 1, target + 1
        for first in range(0, source.size, 100_000):
            pairs = zip(
                source[first : first + 100_000].tolist(),
                target[first : first + 100_000].tolist(),
                strict=True,
            )
            if kind == "integer":
                lines = [f"{u} {v}\n" for u, v in pairs]
            elif kind == "weighted":
                lines = [f"{u},{v},{(u ^ v) / 1024}\n" for u, v in pairs]
            elif kind == "sparse":  # 18 digits, no two near each other
                lines = [f"{10**17 + u * 300_000_007} {10**17 + v * 300_000_007}\n" for u, v in pairs]
            else:
                lines = [f"person:{u}\tperson:{v}\n" for u, v in pairs]
            file.write("".join(lines))


def measure(path: Path) -> dict[str, object]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **threads})
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--csv", type=Path, required=True)
    options, rows = parser.parse_args(), []
    random = np.random.default_rng(0)
    source, target = random.integers(0, options.nodes, size=(2, options.edges))
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            path = Path(folder) / kind
            write(path, source, target, options.nodes)
            got = measure(path)
            rows.append(
                {
                    "file": kind,
                    "edges": options.edges,
                    "nodes": options.nodes,
                    "megabytes": f"{path.stat().st_size / 1e6:.0f}",
                    "processor_seconds": f"{got['cpu']:.1f}",
                    "peak_megabytes": f"{got['peak']:.0f}",
                    "before_megabytes": f"{got['before']:.0f}",
                }
            )
            print(rows[-1], flush=True)
            path.unlink()
    write_rows(options.csv, rows)


if __name__ == "__main__":
    main()
