"""A whole search: workers on one study, and the recipe of its best trial."""

import _thread
import dataclasses as dc
import datetime as dt
import multiprocessing as mp
import os
import queue
import signal
import time
from collections.abc import Sequence
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.errors import DivergedError, GyroformerError, UsageError
from gyroformer.jobs.alone import when_alone
from gyroformer.search.recipe_file import write_recipe
from gyroformer.search.search import Search
from gyroformer.search.space import Choice
from gyroformer.search.storage import open_study
from gyroformer.search.study import Teller, Told, Underway, Watcher, best_of, ended, features_seen, work
from gyroformer.settings import JobSettings
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: seconds between looks whether all workers live
LOOK = 1.0
#: seconds that a worker has to queue its trial again when the command that started it is gone
LAST_WORDS = 20.0


@dc.dataclass(frozen=True)
class Found:
    """What a search has found.

    Attributes:
        study: the study's name.
        trials: trials that have ended, in all.
        pruned: those that were stopped early.
        failed: those whose settings did not work.
        number: the best trial.
        value: its validation metric.
        params: what was chosen in it, by path.
        job: its settings.
    """

    study: str
    trials: int
    pruned: int
    failed: int
    number: int
    value: float
    params: dict[str, Any]
    job: JobSettings


def run_search(
    search: Search,
    storage: str,
    *,
    workers: int = 1,
    threads: int | None = None,
    tell: Teller = lambda told: None,
    watch: Watcher = lambda underway: None,
) -> Found:
    """Do the trials that are missing, with several processes if wanted, and return the best of all.

    Args:
        search: what is searched for.
        storage: a database's URL, or a file for a journal; studies of other searches may be in it.
        workers: processes on this machine; others may work on the same storage.
        threads: threads of each; None for torch's own choice.
        tell: hears of each trial that has ended.
        watch: hears now and then how the trials under way get on.
    """
    from gyroformer.runs.read import load_graph

    graph = load_graph(search.job().graph)
    features = features_seen(search, graph)
    _need_choices(search, search.space(features))
    open_study(search, features, storage)
    if workers == 1:
        _work(search, storage, graph, threads, tell, watch)
    else:
        _in_processes(search, storage, workers, threads, tell, watch)
    return found(search, storage, graph)


def _need_choices(search: Search, space: Sequence[Choice]) -> None:
    """Refuse a search that would do one and the same run again and again."""
    if all(len(choice.values) == 1 for choice in space):
        raise UsageError(
            f"{search.task} with {search.model} leaves nothing to search on this graph: choose another model, or hold "
            "less by --fix"
        )


def found(search: Search, storage: str, graph: "Data") -> Found:
    """Return the best trial so far."""
    from optuna.trial import TrialState

    features = features_seen(search, graph)
    space, study = search.space(features), open_study(search, features, storage)
    best, done = best_of(study), ended(study)
    if best is None or best.value is None:
        reasons = [str(trial.user_attrs["error"]) for trial in done if "error" in trial.user_attrs]
        raise DivergedError(
            f"no trial of {len(done)} ran to its end" + (f": {reasons[0]}" if reasons else "")
        )
    path_of = {choice.name: choice.path for choice in space}
    point = {path_of[name]: value for name, value in best.params.items()}
    return Found(
        study=study.study_name,
        trials=len(done),
        pruned=sum(trial.state == TrialState.PRUNED for trial in done),
        failed=sum(trial.state == TrialState.FAIL for trial in done),
        number=best.number,
        value=best.value,
        params=point,
        job=search.job(point),
    )


def write_found(path: Path, result: Found, search: Search, command: str) -> None:
    """Write the best trial's settings as a recipe, with what it is the best of."""
    held_out = search.judged_by.startswith("val_")
    lines = [
        f"{metric_title(search.judged_by)} {result.value:.2f}, mean over {search.seeds} runs; the best of "
        f"{result.trials} trials ({result.pruned} pruned, {result.failed} failed), {dt.date.today()}.",
        "Chosen on validation; the test was not looked at."
        if held_out
        else "Chosen on the graph itself: this task holds nothing out.",
        f"Found by: {command}",
    ]
    write_recipe(path, result.job, lines)


def _work(
    search: Search, storage: str, graph: "Data", threads: int | None, tell: Teller, watch: Watcher
) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        work(search, storage, graph, tell, watch)
    finally:
        torch.set_num_threads(before)


def _in_processes(
    search: Search, storage: str, workers: int, threads: int | None, tell: Teller, watch: Watcher
) -> None:
    """Do the trials with several processes and pass on what they tell, the first error as well."""
    # spawned, not forked: torch's threads do not survive a fork
    context = mp.get_context("spawn")
    said: Any = context.Queue()
    alive, ours = context.Pipe(duplex=False)  # ours is closed also by the death of this process
    team = [
        context.Process(target=_worker, args=(search, storage, threads, said, alive), daemon=True)
        for _ in range(workers)
    ]
    for one in team:
        one.start()
    try:
        _listen(team, said, tell, watch)
        if all(one.exitcode for one in team):
            # where one is left it takes up the others' trials
            raise GyroformerError("every worker was ended from outside; give the command again to go on")
    finally:
        for one in team:
            if one.is_alive():
                one.terminate()  # its trial is queued again by whoever works next
        for one in team:
            one.join()
        ours.close()
        alive.close()


def _listen(team: Sequence[Any], said: Any, tell: Teller, watch: Watcher) -> None:
    """Pass on what the workers tell until all have ended, and that a trial is left if its worker is killed."""
    members, at = {one.pid: one for one in team}, dict[int, int]()
    done, best = 0, None
    while True:
        alive = any(one.is_alive() for one in team)
        for pid in [pid for pid in at if members[pid].exitcode]:
            tell(Told(at.pop(pid), "taken", None, "its process was ended from outside", done, best))
        try:
            pid, heard = said.get(timeout=LOOK)
        except queue.Empty:
            if not alive:
                return
            continue
        if isinstance(heard, GyroformerError):
            raise heard
        if isinstance(heard, Told):
            at.pop(pid, None)
            done, best = heard.done, heard.best
            tell(heard)
        elif members[pid].exitcode is None:  # not the last words of one that is gone
            at[pid] = heard.number
            watch(heard)


def _worker(
    search: Search, storage: str, threads: int | None, said: Any, alive: connection.Connection
) -> None:
    # a shell starts commands in the background with Ctrl-C ignored, and then nothing could interrupt the worker
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def say(what: Told | Underway | GyroformerError) -> None:
        said.put((os.getpid(), what))

    try:
        when_alone(alive, _leave)
        import torch

        from gyroformer.runs.read import load_graph

        torch.set_num_threads(threads or 1)
        work(search, storage, load_graph(search.job().graph), say, say)
    except GyroformerError as error:
        say(error)
    except KeyboardInterrupt:
        pass  # the command that started this says so


def _leave() -> None:
    """End this worker like Ctrl-C, which queues its trial again; or without that, if it does not listen in time."""
    _thread.interrupt_main()
    time.sleep(LAST_WORDS)
    os._exit(1)
