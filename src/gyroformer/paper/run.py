"""Do the runs of a table that are not done yet, with several processes, and keep a row of each."""

import dataclasses as dc
import multiprocessing as mp
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from gyroformer.bench.speed import commit
from gyroformer.errors import GyroformerError
from gyroformer.paper.rows import Row, Rows, key_of, read_rows, row_of, settings_sha256, write_rows
from gyroformer.paper.tables import Cell
from gyroformer.settings import JobSettings


@dc.dataclass(frozen=True)
class State:
    """Where a table is.

    Attributes:
        done: runs that are done, by now and before.
        total: runs in all.
        seconds_left: time that the others will take at the pace of those done here.
        said: what happened last, in one line.
    """

    done: int
    total: int
    seconds_left: float
    said: str


def run_cells(
    cells: Sequence[Cell],
    *,
    file: Path,
    folder: Path,
    known: Rows | None = None,
    workers: int = 1,
    threads: int = 1,
    tell: Callable[[State], None] = lambda state: None,
) -> list[str]:
    """Do every run of the cells that has no row yet; return what failed, a line each.

    A run that was killed goes on from its checkpoint, and a row is written as soon as its run is done: stopping the
    command costs nothing.

    Args:
        cells: the cells.
        file: the rows.
        known: rows of other files, whose runs are not done again.
        folder: where the runs are kept.
        workers: processes at a time.
        threads: threads of each.
        tell: hears of each run.
    """
    rows = read_rows(file)
    # a variant may be what another is by its own settings: such runs are done once
    jobs = {key_of(job): (cell, job) for cell in cells for job in cell.jobs()}
    left = [(cell, job) for key, (cell, job) in jobs.items() if key not in rows and key not in (known or {})]
    begun, made_by, failed = time.monotonic(), commit() or "", list[str]()
    # spawned, not forked: torch's threads do not survive a fork
    with ProcessPoolExecutor(workers, mp_context=mp.get_context("spawn")) as pool:
        waiting = {pool.submit(_one, cell, job, folder, threads, made_by): job for cell, job in left}
        try:
            for count, future in enumerate(as_completed(waiting), start=1):
                job, (row, said) = waiting[future], future.result()
                if row is None:
                    failed.append(said)
                else:
                    rows[key_of(job)] = row
                    write_rows(file, rows.values())
                rest = len(left) - count
                pace = (time.monotonic() - begun) / count
                tell(State(len(jobs) - rest, len(jobs), pace * rest, said))
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return failed


def run_folder(folder: Path, job: JobSettings) -> Path:
    """Return where a run is kept: its settings are part of the name, so that variants do not meet."""
    name = f"{Path(job.graph.source).stem}-{job.task}-{job.model.name}-{settings_sha256(job)}"
    return folder / name / f"seed-{job.seed}"


def _one(cell: Cell, job: JobSettings, folder: Path, threads: int, made_by: str) -> tuple[Row | None, str]:
    """Do one run in this process; return its row, None if it failed, and a line about it."""
    import torch

    from gyroformer.jobs.run import run_job
    from gyroformer.runs.read import open_run

    torch.set_num_threads(threads)
    out = run_folder(folder, job)
    about = f"{cell.column.name} {cell.variant.name} seed {job.seed}"
    try:
        run_job(job, out=out, resume=True, report=False)
        run = open_run(out)
    except GyroformerError as error:
        return None, f"{about}: {error}"
    heads, width = run.embeddings["embedding"].shape[1:]
    row = row_of(
        job, run.results, run.manifest, variant=cell.variant.name, width=heads * width, commit=made_by
    )
    return row, f"{about}: {cell.metric} {run.results[cell.metric]:.2f} ({run.results['seconds']:.0f} s)"
