"""The same job with several seeds, and what its results say together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.durable import check_target, write_output
from gyroformer.jobs.run import Finished, run_job
from gyroformer.runs.spread import interval
from gyroformer.settings import JobSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

SUMMARY = "seeds.json"


def run_seeds(
    job: JobSettings,
    seeds: int,
    *,
    data: "Data | None" = None,
    out: Path,
    resume: bool = False,
    tell: Callable[[int, dict[str, Any]], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run ``job`` with ``seeds`` consecutive seeds, each in a folder of its own under ``out``.

    Returns:
        ``runs``: the results of each; and for every metric its ``mean`` and the half width of its 95 %
        ``interval``. They are written to ``seeds.json`` too, the runs that are done as they come.
    """
    if out.is_dir():
        check_target(out / SUMMARY, "--out")
    runs: list[dict[str, Any]] = []
    for seed in range(job.seed, job.seed + seeds):
        one: Finished = run_job(
            job.but(seed=seed),
            data=data,
            out=seed_folder(out, seed),
            resume=resume,
            report=False,
            **options,
        )
        runs.append(one.results)
        write_output(out / SUMMARY, (json.dumps(summary(runs), indent=2) + "\n").encode())
        if tell is not None:
            tell(seed, one.results)
    return summary(runs)


def seed_folder(out: Path, seed: int) -> Path:
    """Return the folder of one of several runs."""
    return out / f"seed-{seed}"


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the runs with the mean and the 95 % interval of each metric that is a number in all of them."""
    metrics = [
        key
        for key, value in runs[0].items()
        if isinstance(value, float) and all(isinstance(run.get(key), float) for run in runs)
    ]
    spread = {key: interval([run[key] for run in runs]) for key in metrics}
    return {
        "runs": runs,
        "mean": {key: mean for key, (mean, _) in spread.items()},
        "interval": {key: half for key, (_, half) in spread.items()},
    }
