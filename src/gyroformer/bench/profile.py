"""Where the time of a training step goes: ``python -m gyroformer.bench.profile CASE VARIANT``."""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from gyroformer.bench import speed

ROWS = 14
STEPS = 3


def table(name: str, variant: str) -> str:
    """Return the operators of a training step, the costliest first, for a case and variant of the benchmark."""
    case = speed.CASES[name]
    tokens = torch.randn(case.tokens, case.width, generator=torch.Generator().manual_seed(0))
    step = speed.training_step(*speed.build(variant, case), tokens)
    step()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(STEPS):
            step()
    rows = sorted(seen.key_averages(), key=lambda row: -row.self_cpu_time_total)
    whole = sum(row.self_cpu_time_total for row in rows)
    lines = [f"{name}, {variant}: {whole / STEPS / 1e3:.0f} ms a step, {torch.get_num_threads()} threads"]
    for row in rows[:ROWS]:
        share = row.self_cpu_time_total / whole
        lines.append(f"{share:7.1%}  {row.count // STEPS:5d} calls  {row.key}")
    return "\n".join(lines)


def main() -> None:
    """Print the profile of one case and variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=speed.CASES)
    parser.add_argument("variant", choices=speed.VARIANTS)
    arguments = parser.parse_args()
    print(table(arguments.case, arguments.variant))


if __name__ == "__main__":
    main()
