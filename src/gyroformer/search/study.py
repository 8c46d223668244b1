"""A study: trials of settings for one model on one graph, kept where several processes and machines can share them.

A trial trains with settings that Optuna's TPE proposes and tells the validation metric of the best state; the median
of the others' courses prunes it. The test part is never looked at. Settings that were tried are not trained again.
"""

import dataclasses as dc
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gyroformer.errors import DivergedError, GyroformerError, UsageError
from gyroformer.graphs.features import Kind, kind_of_features
from gyroformer.search.life import beating, queue_again, running, sign, take_up_lost
from gyroformer.search.search import Search, leaves
from gyroformer.search.space import Choice
from gyroformer.search.storage import open_study
from gyroformer.tasks import TASKS

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial, TrialState
    from torch_geometric.data import Data

    from gyroformer.train.outcome import Progress

#: seconds between looks whether the trials of others have ended, and between words about one that is under way
LOOK = 1.0
#: epochs between comparisons with the other trials
COMPARED_EVERY = 10


@dc.dataclass(frozen=True)
class Told:
    """A trial that has ended.

    Attributes:
        number: its number in the study.
        state: ``"complete"``, ``"pruned"`` or ``"failed"``; ``"taken"`` if another worker took it up, or will since
            this one was killed; or ``"waiting"`` for those of other workers.
        value: its validation metric; None if it failed.
        said: why it failed, which trial had the same settings, or what is waited for.
        done: trials that have ended so far, in all.
        best: the best value so far.
    """

    number: int
    state: str
    value: float | None
    said: str
    done: int
    best: float | None


@dc.dataclass(frozen=True)
class Underway:
    """How a trial gets on.

    Attributes:
        number: its number in the study.
        run: which of its runs it is at, from 1.
        runs: its runs in all.
        epoch: epochs done of this run; 0 while it is prepared.
        epochs: epochs of this run in all, if none stops it early.
    """

    number: int
    run: int
    runs: int
    epoch: int = 0
    epochs: int = 0


Teller = Callable[[Told], None]
Watcher = Callable[[Underway], None]


def work(
    search: Search,
    storage: str,
    graph: "Data",
    tell: Teller = lambda told: None,
    watch: Watcher = lambda underway: None,
) -> None:
    """Do trials until the study has as many as it should; those that others have under way are waited for.

    Args:
        search: what is searched for.
        storage: where its study is.
        graph: the graph.
        tell: hears of each trial that has ended.
        watch: hears now and then how a trial gets on.
    """
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
        told = _one(study, trial, search, space, graph, watch)
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


def _one(
    study: "Study", trial: "Trial", search: Search, space: list[Choice], graph: "Data", watch: Watcher
) -> Told:
    """Do one trial and store how it ended; if another worker took it up meanwhile, it is that one's."""
    from optuna.exceptions import UpdateFinishedTrialError

    try:
        return _stored(study, trial, search, space, graph, watch)
    except UpdateFinishedTrialError:
        return Told(trial.number, "taken", None, "another worker took it up", 0, None)


def _stored(
    study: "Study", trial: "Trial", search: Search, space: list[Choice], graph: "Data", watch: Watcher
) -> Told:
    from optuna import TrialPruned
    from optuna.trial import TrialState

    try:
        sign(trial)
        point = _point(trial, search, space)
        if (same := _same(study, trial)) is not None:
            _tell(study, trial, value=same.value)
            return Told(trial.number, "complete", same.value, f"the settings of trial {same.number}", 0, None)
        with beating(trial) as is_taken:
            value = _value(search, point, graph, _Listener(trial, search, is_taken, watch))
        _tell(study, trial, value=value)
        return Told(trial.number, "complete", value, "", 0, None)
    except TrialPruned:
        _tell(study, trial, state=TrialState.PRUNED)
        return Told(trial.number, "pruned", None, "", 0, None)
    except (DivergedError, UsageError) as error:
        # settings that do not work are a result; whatever else goes wrong ends the search
        trial.set_user_attr("error", str(error))
        _tell(study, trial, state=TrialState.FAIL)
        return Told(trial.number, "failed", None, str(error), 0, None)
    except (KeyboardInterrupt, GyroformerError):
        queue_again(study, trial.number)
        raise


def _tell(
    study: "Study", trial: "Trial", value: float | None = None, state: "TrialState | None" = None
) -> None:
    """End a trial; UpdateFinishedTrialError if it has ended already, for which Optuna has two errors."""
    from optuna.exceptions import UpdateFinishedTrialError

    try:
        study.tell(trial, value, state)
    except ValueError as error:
        raise UpdateFinishedTrialError(str(error)) from None


def _point(trial: "Trial", search: Search, space: list[Choice]) -> dict[str, Any]:
    """Return what is proposed, by path."""
    point: dict[str, Any] = {}
    held = dict(leaves(search.fixed))
    for choice in space:
        if choice.applies({**held, **point}):
            point[choice.path] = trial.suggest_categorical(choice.name, choice.values)
    return point


def _same(study: "Study", trial: "Trial") -> "FrozenTrial | None":
    """Return a complete trial of the same settings: it would give the same again."""
    from optuna.trial import TrialState

    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((one for one in complete if one.params == trial.params), None)


def _value(search: Search, point: Mapping[str, Any], graph: "Data", listen: "_Listener") -> float:
    """Return the mean of the metric over the runs of a trial."""
    from gyroformer.jobs.run import train_only

    values = []
    for replicate in range(search.seeds):
        listen.begin(replicate)
        outcome = train_only(search.job(point, replicate), graph, listen=listen)
        values.append(outcome.metrics[search.judged_by])
    return sum(values) / len(values)


class _Listener:
    """Hears how the runs of a trial get on, and passes it on.

    Stops the trial while it trains if the course of its first run is below the median, or if another worker has taken
    it up.
    """

    def __init__(self, trial: "Trial", search: Search, is_taken: Callable[[], bool], watch: Watcher) -> None:
        self.trial, self.metric, self.is_taken, self.watch = trial, search.judged_by, is_taken, watch
        self.at, self.said_at = Underway(trial.number, 1, search.seeds), 0.0
        self.best = -float("inf")

    def begin(self, replicate: int) -> None:
        """Go on to a run of the trial."""
        self.at = Underway(self.at.number, replicate + 1, self.at.runs)
        self.watch(self.at)

    def __call__(self, progress: "Progress") -> None:
        from optuna import TrialPruned
        from optuna.exceptions import UpdateFinishedTrialError

        if self.is_taken():
            raise UpdateFinishedTrialError
        if time.monotonic() - self.said_at > LOOK:
            self.said_at = time.monotonic()
            self.watch(dc.replace(self.at, epoch=progress.epoch, epochs=progress.epochs))
        if self.at.run > 1 or self.metric not in progress.metrics:
            return
        self.best = max(self.best, progress.metrics[self.metric])
        if progress.epoch % COMPARED_EVERY == 0:
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
