"""Many runs with several processes, and a row of each: those that are done are skipped, those begun go on."""

import _thread
import dataclasses as dc
import multiprocessing as mp
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.bench.speed import commit
from gyroformer.errors import GyroformerError
from gyroformer.jobs.alone import when_alone
from gyroformer.runs.rows import (
    Row,
    Rows,
    add_row,
    generation,
    key_of,
    read_rows,
    row_of,
    settings_sha256,
    which_differs,
)
from gyroformer.settings import JobSettings
from gyroformer.tasks import TASKS
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from gyroformer.train.outcome import Progress

#: seconds between looks at what the processes tell
LOOK = 0.5


@dc.dataclass(frozen=True)
class Planned:
    """A run to be done.

    Attributes:
        job: its settings.
        variant: the name of its row in a table.
        about: what it is called in a line.
    """

    job: JobSettings
    variant: str
    about: str


@dc.dataclass(frozen=True)
class State:
    """Where many runs are.

    Attributes:
        done: runs that are done, by now and before.
        total: runs in all.
        seconds_left: time that the others will take; None while nothing is known of it.
        said: what happened last, or what is being done, in one line.
    """

    done: int
    total: int
    seconds_left: float | None
    said: str


Teller = Callable[[State], None]


def run_folder(folder: Path, job: JobSettings) -> Path:
    """Return where a run is kept: its settings are part of the name, so that variants do not meet.

    So is the generation of the code from the second on: what an earlier one has left is not taken for its own.
    """
    name = f"{Path(job.graph.source).stem}-{job.task}-{job.model.name}-{settings_sha256(job)}"
    name += f"-{now}" if (now := generation(job)) > 1 else ""
    return folder / name / f"seed-{job.seed}"


def run_all(
    runs: Sequence[Planned],
    *,
    file: Path,
    folder: Path,
    known: Rows | None = None,
    workers: int = 1,
    threads: int = 1,
    ignore_memory: bool = False,
    tell: Teller = lambda state: None,
    watch: Teller = lambda state: None,
) -> list[str]:
    """Do every run that has no row yet; return what failed, a line each.

    A run that was killed goes on from its checkpoint, and a row is written as soon as its run is done: stopping the
    command costs nothing. Ctrl-C ends every process after a checkpoint.

    Args:
        runs: the runs.
        file: the rows.
        folder: where the runs are kept.
        known: rows of other files, whose runs are not done again.
        workers: processes at a time.
        threads: threads of each.
        ignore_memory: whether to start runs even if the memory is estimated not to suffice.
        tell: hears of each run that has ended.
        watch: hears now and then how the runs under way get on.
    """
    rows = read_rows(file)
    # a variant may be what another is by its own settings: such runs are done once
    wanted = {key_of(run.job): run for run in runs}
    left = [run for key, run in wanted.items() if key not in rows and key not in (known or {})]
    made_by, failed, clock = commit() or "", list[str](), _Clock(left, workers)
    # spawned, not forked: torch's threads do not survive a fork
    context = mp.get_context("spawn")
    alive, ours = context.Pipe(duplex=False)
    news = context.Queue()
    with (
        ours,  # closed, also by the death of this process, it tells the others to stop
        ProcessPoolExecutor(workers, context, _begin, (alive, news, threads)) as pool,
    ):
        waiting: dict[Future[tuple[Row | None, str]], Planned] = {
            pool.submit(_one, number, run, folder, made_by, ignore_memory): run
            for number, run in enumerate(left)
        }
        try:
            while waiting:
                ended, _ = wait(waiting, LOOK, FIRST_COMPLETED)
                clock.hear(news)
                for future in ended:
                    run, (row, said) = waiting.pop(future), future.result()
                    clock.end(run, row)
                    if row is None:
                        if key_of(run.job) not in read_rows(file):  # else another command has done it
                            failed.append(said)
                    elif differs := which_differs(kept := add_row(file, row), row):
                        was = f"{differs} {row[differs]}, but {file} has {kept[differs]} by another command"
                        failed.append(f"{run.about}: {was}; its row was left as it is")
                    tell(State(len(wanted) - len(waiting), len(wanted), clock.left(), said))
                if not ended:
                    watch(State(len(wanted) - len(waiting), len(wanted), clock.left(), clock.now()))
        except BaseException:
            ours.close()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return failed


class _Clock:
    """Estimates the time that is left, from the runs under way and from those of the same settings that are done."""

    def __init__(self, runs: Sequence[Planned], workers: int) -> None:
        self.runs, self.workers = runs, workers
        self.seconds: dict[str, list[float]] = {}
        self.begun: dict[int, tuple[Planned, Progress]] = {}
        self.ended: set[int] = set()

    def hear(self, news: Any) -> None:
        """Take what the processes have said."""
        while True:
            try:
                number, progress = news.get_nowait()
            except queue.Empty:
                return
            if number not in self.ended:
                self.begun[number] = (self.runs[number], progress)

    def end(self, run: Planned, row: Row | None) -> None:
        """Note that a run is over."""
        number = next(i for i, one in enumerate(self.runs) if one is run)
        self.ended.add(number)
        self.begun.pop(number, None)
        if row is not None:
            self.seconds.setdefault(settings_sha256(run.job), []).append(float(row["seconds"]))

    def left(self) -> float | None:
        """Return the seconds that all will take; None if no run has got far enough to tell."""
        takes: dict[str, list[float]] = {kind: list(values) for kind, values in self.seconds.items()}
        for run, progress in self.begun.values():
            whole = progress.seconds + progress.seconds_left
            takes.setdefault(settings_sha256(run.job), []).append(whole)
        if not takes:
            return None
        usual = _mean([_mean(values) for values in takes.values()])
        rest = [progress.seconds_left for _, progress in self.begun.values()]
        longest = max(rest, default=0.0)
        for number, run in enumerate(self.runs):
            if number not in self.ended and number not in self.begun:
                kind = settings_sha256(run.job)
                rest.append(_mean(takes[kind]) if kind in takes else usual)
        return max(longest, sum(rest) / self.workers)

    def now(self) -> str:
        """Return what is being done."""
        return ", ".join(f"{run.about} {p.epoch:,}/{p.epochs:,}" for run, p in self.begun.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Worker:
    """What a process of the pool knows of itself."""

    news: Any = None
    busy = False
    alone = False


def _begin(alive: connection.Connection, news: Any, threads: int) -> None:
    """Prepare a process: Ctrl-C is for the command that started it, which tells it when to stop."""
    import torch

    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGTERM, _stop)
    torch.set_num_threads(threads)
    _Worker.news = news
    news.cancel_join_thread()  # nobody listens any more when a stopped process ends
    when_alone(alive, _leave)


def _stop(*signal_and_frame: object) -> None:
    """Leave a run where it is, before training: the loop has a handler of its own that writes a checkpoint."""
    sys.exit(0)


def _leave() -> None:
    """End this process, whose starter says so or is no more: after the checkpoint of its run."""
    _Worker.alone = True  # before the look at busy: whoever begins a run now sees it
    if not _Worker.busy:
        os._exit(0)
    _thread.interrupt_main(signal.SIGTERM)


def _one(
    number: int, run: Planned, folder: Path, made_by: str, ignore_memory: bool
) -> tuple[Row | None, str]:
    """Do one run in this process; return its row, None if it failed, and a line about it."""
    _Worker.busy = True
    try:
        if _Worker.alone:
            _stop()
        return _row(number, run, run_folder(folder, run.job), made_by, ignore_memory)
    except GyroformerError as error:
        return None, f"{run.about}: {error}"
    finally:
        if _Worker.alone:  # not the next one, which may wait in the queue already
            os._exit(0)
        _Worker.busy = False


def _row(number: int, run: Planned, out: Path, made_by: str, ignore_memory: bool) -> tuple[Row, str]:
    from gyroformer.jobs.run import run_job
    from gyroformer.runs.read import open_run

    said_at = 0.0

    def listen(progress: "Progress") -> None:
        nonlocal said_at
        if time.monotonic() - said_at > LOOK:
            said_at = time.monotonic()
            _Worker.news.put((number, progress))

    run_job(run.job, out=out, resume=True, report=False, listen=listen, ignore_memory=ignore_memory)
    found = open_run(out)
    results: Mapping[str, Any] = found.results
    row = row_of(run.job, results, found.manifest, variant=run.variant, commit=made_by)
    metric = TASKS[run.job.task].kind(run.job.objective).shown[0]
    return row, f"{run.about}: {metric_title(metric)} {results[metric]:.2f} ({results['seconds']:.0f} s)"
