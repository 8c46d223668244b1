"""Time and memory of ``StereographicTransformer(16, 2, 1)`` by the number of tokens: results/tokens.csv.

python scripts/measure_tokens.py [--tokens 100000,1000000,10000000] [--rounds 3] [--out FILE]

One row is one size, forward and backward of ``model(tokens)`` in a process of its own, one thread. ``seconds`` is the
median processor time after a warm-up, ``ns_per_token`` that of a token; ``peak_gb`` is the largest resident memory of
the whole process.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from result_file import write_rows

TARGET = Path(__file__).parents[1] / "results" / "tokens.csv"
WIDTH, HEADS, LAYERS = 16, 2, 1


def work(tokens: int, rounds: int) -> None:
    """Measure one size in this process."""
    import torch

    import gyroformer as gf
    from gyroformer.bench.speed import resident

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = gf.nn.StereographicTransformer(WIDTH, HEADS, LAYERS)
    x = torch.randn(1, tokens, WIDTH)

    def step() -> float:
        begun = time.process_time()
        model(x).square().mean().backward()
        return time.process_time() - begun

    step()
    seconds = median(step() for _ in range(rounds))
    peak = resident("VmHWM")
    print(json.dumps({"seconds": seconds, "peak_gb": None if peak is None else peak / 1e6}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", default="100000,1000000,10000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    rows = []
    for tokens in map(int, given.tokens.split(",")):
        command = [sys.executable, __file__, "--work", str(tokens), str(given.rounds)]
        found = json.loads(subprocess.check_output(command))
        rows.append(
            {
                "tokens": tokens,
                "seconds": f"{found['seconds']:.3f}",
                "ns_per_token": round(1e9 * found["seconds"] / tokens),
                "peak_gb": "" if found["peak_gb"] is None else f"{found['peak_gb']:.2f}",
            }
        )
        print(rows[-1], flush=True)
    write_rows(given.out, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
