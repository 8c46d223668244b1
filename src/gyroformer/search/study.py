"""A study: trials of settings for one model on one graph, kept where several processes and machines can share them.

A trial trains with settings that Optuna's TPE proposes and tells the validation metric of the best state; the median
of the others' courses prunes it. The test part is never looked at. A trial whose worker has died is done again.
"""

import contextlib
import dataclasses as dc
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.durable import sha256_of
from gyroformer.errors import DivergedError, GyroformerError, MissingPartError, UsageError
from gyroformer.graphs.features import Kind, kind_of_features
from gyroformer.options import as_plain, merged
from gyroformer.runs.rows import generation
from gyroformer.search.space import Choice, space_of, starts_of
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial
    from torch_geometric.data import Data

    from gyroformer.train.outcome import Progress

#: seeds of trials, which no table reports: its own begin at 0
FIRST_SEED = 1000
#: seconds after which a trial that has given no sign of life is taken to be lost
LOST_AFTER = 180.0
#: seconds between signs of life
BEAT = 30.0
#: what a journal of Optuna's begins with
JOURNAL = b'{"op_code":'
#: seconds between looks whether the trials of others have ended
LOOK = 1.0
#: trials before which nothing is pruned, and the fraction of the epochs before which none is
UNPRUNED_TRIALS, UNPRUNED_EPOCHS = 4, 0.25
#: epochs between comparisons with the other trials
COMPARED_EVERY = 10


@dc.dataclass(frozen=True)
class Search:
    """What is searched for.

    Attributes:
        task: the task.
        graph: a data set's name or a file.
        model: the model.
        recipe: the recipe that settings outside the space come from; None for the usual one.
        fixed: settings that are held, nested like a job's; they leave the space.
        trials: trials in all, those of other workers and of earlier calls among them.
        seeds: runs of each trial, whose mean counts; with a drawn split each has a split of its own.
        seed: of the sampler.
    """

    task: str
    graph: str
    model: str
    trials: int
    recipe: str | None = None
    fixed: Mapping[str, Any] = dc.field(default_factory=dict)
    seeds: int = 1
    seed: int = 0

    def job(self, point: Mapping[str, Any] | None = None, replicate: int = 0) -> JobSettings:
        """Return the job at a point of the space, given by paths."""
        values: dict[str, Any] = {"graph": {"source": self.graph}, "model": {"name": self.model}}
        for path, value in (point or {}).items():
            *tables, name = path.split(".")
            inner: dict[str, Any] = {name: value}
            for table in reversed(tables):
                inner = {table: inner}
            values = merged(values, inner)
        values = merged(values, {**self.fixed, "seed": FIRST_SEED + replicate})
        return make_job(self.task, recipe=self.recipe, dataset=self.graph, **values)

    def space(self, features: Kind | None) -> list[Choice]:
        """Return the choices that are not held fixed, for models that see features of this kind, or none."""
        held = dict(_leaves(self.fixed))
        return [choice for choice in space_of(self.job(), features) if choice.path not in held]

    @property
    def judged_by(self) -> str:
        """The metric that is to become large."""
        return TASKS[self.task].kind(self.job().objective).judged_by

    def name(self, space: list[Choice]) -> str:
        """Return the study's name: other settings, another space, graph or code of the model are another study."""
        job = self.job()
        files = [Path(value) for value in as_plain(job.graph).values() if isinstance(value, str)]
        graph = [sha256_of(path) for path in files if path.is_file()]
        about = [as_plain(job), [dc.asdict(choice) for choice in space], self.seeds, graph, generation(job)]
        mark = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:8]
        return f"{self.task}-{Path(self.graph).stem}-{self.model}-{mark}"


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables, each with its path."""
    for key, value in table.items():
        path = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


@dc.dataclass(frozen=True)
class Told:
    """A trial that has ended.

    Attributes:
        number: its number in the study.
        state: ``"complete"``, ``"pruned"`` or ``"failed"``; or ``"waiting"`` for those of other workers.
        value: its validation metric; None if it failed.
        said: why it failed, or what is waited for.
        done: trials that have ended so far, in all.
        best: the best value so far.
    """

    number: int
    state: str
    value: float | None
    said: str
    done: int
    best: float | None


def open_study(search: Search, features: Kind | None, storage: str) -> "Study":
    """Return the study, new or as it was left.

    Args:
        search: what is searched for.
        features: the kind of node features that the models see; None if they see none.
        storage: a database's URL, or a file for a journal.
    """
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise MissingPartError("optuna", "tune", "the search for settings") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space, epochs = search.space(features), search.job().training.epochs
    try:
        if "://" in storage:
            where: Any = storage
        else:
            Path(storage).parent.mkdir(parents=True, exist_ok=True)
            lock = JournalFileOpenLock(storage)
            _mend_journal(Path(storage), lock)
            where = JournalStorage(JournalFileBackend(storage, lock))
        study = optuna.create_study(
            study_name=search.name(space),
            storage=where,
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(UNPRUNED_TRIALS, int(UNPRUNED_EPOCHS * epochs)),
        )
    except UsageError:
        raise
    except (
        OSError,
        KeyError,
        ValueError,
        ImportError,
        SQLAlchemyError,
        optuna.exceptions.OptunaError,
    ) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"--storage {storage}: cannot be used ({reason})") from None
    if not study.get_trials(deepcopy=False):
        for start in starts_of(space, search.job(), features)[: search.trials]:
            study.enqueue_trial(start, skip_if_exists=True)
    return study


def _mend_journal(journal: Path, lock: Any) -> None:
    """Take away what a process that was killed while it wrote has left of a line: the next would be joined to it.

    A file that is no journal is refused: Optuna would write into it.
    """
    if not journal.is_file():
        return
    lock.acquire()
    try:
        with journal.open("rb+") as file:
            content = file.read()
            if content and not content.startswith(JOURNAL):
                raise UsageError(f"--storage {journal}: is no journal of a search; name another file")
            file.truncate(content.rfind(b"\n") + 1)
    finally:
        lock.release()


def work(
    search: Search, storage: str, graph: "Data", tell: Callable[[Told], None] = lambda told: None
) -> None:
    """Do trials until the study has as many as it should; those that others have under way are waited for."""
    features = features_seen(search, graph)
    space, study = search.space(features), open_study(search, features, storage)
    waits = False
    while True:
        take_up_lost(study)
        done, others = len(ended(study)), len(running(study))
        if done >= search.trials:
            return
        if done + others >= search.trials:
            # whoever asks wants the best of all; and a worker that dies leaves its trial to be done
            if not waits:
                tell(Told(-1, "waiting", None, f"{others} under way", done, None))
            waits = True
            time.sleep(LOOK)
            continue
        waits = False
        study.sampler = sampler(search, done + others)
        trial = study.ask()
        told = _one(study, trial, search, space, graph)
        finished = ended(study)
        best = best_of(study)
        tell(dc.replace(told, done=len(finished), best=None if best is None else best.value))


def sampler(search: Search, begun: int) -> "TPESampler":
    """Return what proposes the next trial after ``begun`` others.

    A sampler's state is not stored. Seeded by how many trials have begun, it goes on in a study that was stopped as it
    would have, and workers that start together do not try the same.
    """
    from optuna.samplers import TPESampler

    return TPESampler(seed=(search.seed + 1_000_003 * begun) % 2**32)


def features_seen(search: Search, graph: "Data") -> Kind | None:
    """Return the kind of node features that the models of a search see, None if they see none."""
    seen = graph.x is not None and TASKS[search.task].uses_features(search.job().objective)
    return kind_of_features(graph.x) if seen else None


def _one(study: "Study", trial: "Trial", search: Search, space: list[Choice], graph: "Data") -> Told:
    """Do one trial and store how it ended."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    trial.set_user_attr("host", platform.node())
    trial.set_user_attr("pid", os.getpid())
    try:
        value = _value(trial, search, space, graph)
        study.tell(trial, value)
        return Told(trial.number, "complete", value, "", 0, None)
    except TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
        return Told(trial.number, "pruned", None, "", 0, None)
    except (DivergedError, UsageError) as error:
        # settings that do not work are a result; whatever else goes wrong ends the search
        trial.set_user_attr("error", str(error))
        study.tell(trial, state=TrialState.FAIL)
        return Told(trial.number, "failed", None, str(error), 0, None)
    except (KeyboardInterrupt, GyroformerError):
        _again(study, trial.number)
        raise


def _value(trial: "Trial", search: Search, space: list[Choice], graph: "Data") -> float:
    """Return the mean of the metric over the runs of a trial."""
    from gyroformer.jobs.run import train_only

    point: dict[str, Any] = {}
    held = dict(_leaves(search.fixed))
    for choice in space:
        if choice.applies({**held, **point}):
            point[choice.path] = trial.suggest_categorical(choice.name, choice.values)
    listen = _Listener(trial, search.judged_by)
    values = []
    for replicate in range(search.seeds):
        listen.prunes = replicate == 0
        outcome = train_only(search.job(point, replicate), graph, listen=listen)
        values.append(outcome.metrics[search.judged_by])
    return sum(values) / len(values)


class _Listener:
    """Gives signs of life while a trial trains, and prunes it if its course is below the median."""

    def __init__(self, trial: "Trial", metric: str) -> None:
        self.trial, self.metric, self.prunes = trial, metric, True
        self.best, self.beaten_at = -float("inf"), 0.0

    def __call__(self, progress: "Progress") -> None:
        if time.time() - self.beaten_at > BEAT:
            self.beaten_at = time.time()
            self.trial.set_user_attr("beat", self.beaten_at)
        if not self.prunes or self.metric not in progress.metrics:
            return
        self.best = max(self.best, progress.metrics[self.metric])
        if progress.epoch % COMPARED_EVERY == 0:
            from optuna import TrialPruned

            self.trial.report(self.best, progress.epoch)
            if self.trial.should_prune():
                raise TrialPruned


def ended(study: "Study") -> "list[FrozenTrial]":
    """Return the trials that count: complete, pruned, or failed by their own settings."""
    from optuna.trial import TrialState

    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
        or (trial.state == TrialState.FAIL and "error" in trial.user_attrs)
    ]


def best_of(study: "Study") -> "FrozenTrial | None":
    """Return the complete trial with the best value, the first of several; None if there is none."""
    from optuna.trial import TrialState

    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: trial.value or 0.0, default=None)


def running(study: "Study") -> "list[FrozenTrial]":
    """Return the trials that are under way."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def take_up_lost(study: "Study") -> None:
    """Queue again the trials whose worker is gone: on this machine by its process, elsewhere by its silence."""
    for trial in running(study):
        told = trial.user_attrs
        if os.name == "posix" and told.get("host") == platform.node():
            lost = not _alive(int(told.get("pid", 0)))
        else:
            begun = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
            lost = time.time() - max(float(told.get("beat", 0.0)), begun) > LOST_AFTER
        if lost:
            _again(study, trial.number)


def _again(study: "Study", number: int) -> None:
    """End a trial without a result and queue its settings anew; a trial that another worker took up is left."""
    from optuna.trial import TrialState

    with contextlib.suppress(ValueError):  # it has ended meanwhile
        study.tell(number, state=TrialState.FAIL)
        study.enqueue_trial(study.get_trials(deepcopy=False)[number].params)


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
