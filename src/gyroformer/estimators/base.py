"""What the estimators share: parameters to a job, the job's course, and the way to a run folder and back."""

import dataclasses as dc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gyroformer.config import as_plain
from gyroformer.data.split import Split
from gyroformer.errors import UsageError
from gyroformer.estimators.graph_file import read_graph_file, write_graph
from gyroformer.estimators.inputs import Ids, graph_of, plain, seed_of, source_of
from gyroformer.jobs.plan import Plan, read_graph_of, to_device, usable_device, with_features
from gyroformer.jobs.run import TASK_PARTS, embedding_arrays, run_job
from gyroformer.jobs.settings import JobSettings, job_from_plain, make_job
from gyroformer.models import GraphModel
from gyroformer.models.pretrained import CONFIG
from gyroformer.train.finished import METRICS, load_run
from gyroformer.train.outcome import Outcome, Progress
from gyroformer.train.run_folder import RunFolder

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: parameters with a name of their own, by where a job has them
MODEL_PARAMETERS = ("dim", "heads", "layers")
TRAINING_PARAMETERS = ("epochs", "lr", "curvature_lr", "weight_decay")
#: with ``verbose``, lines printed over a whole run
LINES = 10


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of the estimators.

    A subclass names its ``_task``, and says in ``_objective`` what the job is to reach, in ``_planning`` what the
    plan takes beside the graph, and in ``_take_plan`` which names of its own a trained plan gives.
    """

    _task: ClassVar[str]

    # scikit-learn reads the parameters from each subclass's own constructor
    model: str
    recipe: str | None
    model_options: dict[str, Any] | None
    feature_settings: dict[str, Any] | None
    training: dict[str, Any] | None
    random_state: Any
    device: str
    dtype: str
    ignore_memory: bool
    verbose: bool
    out: str | Path | None

    def _objective(self) -> dict[str, Any]:
        """Return the job's objective, without what is left to the recipe."""
        raise NotImplementedError

    def _take_plan(self, plan: Plan) -> None:
        """Set the fitted names that this task gives."""
        raise NotImplementedError

    def _kept(self) -> dict[str, Any]:
        """Return arrays that a run folder must hold so that the estimator can be built again."""
        return {}

    def _restore(self, arrays: dict[str, Any], data: "Data") -> None:
        """Take back what ``_kept`` returned; ``arrays`` is empty for a run of the command line."""

    @classmethod
    def _from_objective(cls, objective: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that a job's objective stands for."""
        raise NotImplementedError

    def _job(self, data: "Data", source: str, seed: int) -> JobSettings:
        """Return the job of these parameters; None leaves a setting to the recipe."""
        options = self._table("model_options", MODEL_PARAMETERS)
        values = {
            "graph": {"source": source},
            "model": {"name": self.model, "options": options},
            "features": self._table("feature_settings", ()),
            "training": self._table("training", TRAINING_PARAMETERS),
            "objective": plain(self._objective()),
            "seed": seed,
            "device": usable_device(self.device),
            "dtype": self.dtype,
        }
        dataset = str(getattr(data, "name", "") or "")
        return make_job(
            self._task, recipe=self.recipe, dataset=dataset, has_features=data.x is not None, **values
        )

    def _table(self, name: str, named: tuple[str, ...]) -> dict[str, Any]:
        """Return the dictionary parameter ``name`` with those that have a name of their own."""
        table = getattr(self, name)
        if table is not None and not isinstance(table, dict):
            raise UsageError(f"{name} must be a dictionary or None, got {table!r}")
        own = {key: getattr(self, key) for key in named if getattr(self, key) is not None}
        for key in own.keys() & (table or {}).keys():
            raise UsageError(f"{key} is given twice, as a parameter and in {name}: keep one")
        return dict(plain({**(table or {}), **own}))

    def _run(self, data: "Data", job: JobSettings, **planning: Any) -> Self:
        """Do the job and take its result; torch's global random state is the caller's again afterwards."""
        if self.out is not None and (Path(self.out) / CONFIG).exists():
            raise UsageError(
                f"{self.out}: holds a run already; choose another out, or read a run that is finished with "
                f"{type(self).__name__}.from_run"
            )
        listen, ignore_memory = _told if self.verbose else None, self.ignore_memory
        with own_random_state(job.device):
            done = run_job(
                job, data=data, out=self.out, listen=listen, ignore_memory=ignore_memory, **planning
            )
        assert done.plan is not None
        assert done.outcome is not None
        self._take(data, done.plan, done.outcome, done.results)
        if self.out is not None:
            self._write_graph(Path(self.out))
        return self

    def _take(self, data: "Data", plan: Plan, outcome: Outcome, results: dict[str, Any]) -> None:
        self._plan, self._outcome, self.graph_, self.results_ = plan, outcome, data, results
        self.model_, self.history_, self.seed_ = plan.model, outcome.history, plan.job.seed
        self._ids = Ids(data.ids)
        self.ids_ = self._ids.array()
        self.curvatures_ = plan.model.curvatures.detach().cpu().numpy().copy()
        if plan.data.x is not None and data.x is not None:
            self.n_features_in_ = int(data.x.size(1))
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        with torch.no_grad():
            self._take_plan(plan)

    def _ready(self, graph: object) -> "Data":
        """Return a graph made ready for the fitted model: the fitted one if ``graph`` is None."""
        check_is_fitted(self)
        if graph is None:
            return self._plan.data
        data, job, fitted = graph_of(graph), self._plan.job, self._plan.data
        if fitted.x is None:
            if list(data.ids) != self._ids.names:
                raise UsageError(
                    f"the model learned a vector for each of its {len(self._ids.names)} nodes and knows no others: "
                    "give a graph with the same ids in the same order, or fit one with node features"
                )
        elif data.x is None or data.x.size(1) != self.n_features_in_:
            found = 0 if data.x is None else data.x.size(1)
            raise UsageError(
                f"X has {found} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input: give each node as many as the graph that was fitted has"
            )
        ready = to_device(with_features(job, data, use=fitted.x is not None), job)
        with torch.no_grad():
            return self.model_.prepare(ready)

    def save(self, folder: str | Path) -> None:
        """Write a run folder, as the command line does, and the graph beside it."""
        check_is_fitted(self)
        plan = self._plan
        with RunFolder(folder) as run:
            run.begin(as_plain(plan.job), resume=False)
            for row in self.history_:
                run.metrics.append(row)
            run.task = plan.task
            arrays = embedding_arrays(plan.model, plan.data)
            run.finish(plan.model, self._outcome, self.results_, arrays, plan.data.ids)
        self._write_graph(Path(folder))

    def _write_graph(self, folder: Path) -> None:
        split = getattr(self, "split_", None)
        # a split of edges is drawn again from the seed
        write_graph(folder, self.graph_, self._kept(), split if isinstance(split, Split) else None)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return the estimator that ``save`` wrote."""
        return cls.from_run(folder)

    @classmethod
    def from_run(cls, path: str | Path, graph: object = None) -> Self:
        """Return a fitted estimator from the folder of a finished run.

        Args:
            path: the folder, written by the command line, by ``save`` or by ``fit`` with ``out``.
            graph: the graph of the run, if it is no longer where the run says.
        """
        folder = Path(path)
        with own_random_state("cpu"):  # building a model draws its first weights
            run = load_run(folder)
        job = job_from_plain(run.config)
        if job.task != cls._task:
            raise UsageError(
                f"{path}: a run of the task {job.task!r}, and {cls.__name__} is for {cls._task!r}"
            )
        stored = read_graph_file(folder)
        data, arrays, split = stored or (None, {}, None)
        if graph is not None or data is None:
            data = graph_of(graph) if graph is not None else read_graph_of(job)
        if [str(name) for name in data.ids] != run.ids:
            raise UsageError(f"{path}: was run on another graph: its nodes are not those of the one given")
        estimator = cls(**cls._parameters(job))
        planning = {} if split is None else {"split": split}
        with own_random_state(job.device):
            plan = TASK_PARTS[job.task].plan(job, data, **planning)
        assert isinstance(run.model, GraphModel)
        plan = dc.replace(plan, model=run.model.to(job.device))
        if isinstance(plan.task, torch.nn.Module):
            plan.task.load_state_dict(run.task)
            plan.task.eval()
        estimator._restore(arrays, data)
        rows = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
        estimator._take(data, plan, _outcome_of(run.results, rows, job), run.results)
        return estimator

    @classmethod
    def _parameters(cls, job: JobSettings) -> dict[str, Any]:
        """Return the constructor's arguments that give ``job`` again; what its recipe says is left to that."""
        base = as_plain(make_job(job.task, recipe=job.recipe, model={"name": job.model.name}))
        values = as_plain(job)
        options = _different(values["model"]["options"], base["model"]["options"])
        training = _different(values["training"], base["training"])
        return {
            **{key: options.pop(key, None) for key in MODEL_PARAMETERS},
            **{key: training.pop(key, None) for key in TRAINING_PARAMETERS},
            **cls._from_objective(values["objective"]),
            "model": job.model.name,
            "model_options": options or None,
            "feature_settings": _different(values["features"], base["features"]) or None,
            "training": training or None,
            "recipe": job.recipe,
            "random_state": job.seed,
            "device": job.device,
            "dtype": job.dtype,
        }


@contextmanager
def own_random_state(device: str) -> Iterator[None]:
    """Give back torch's global random states after the block as they were before it."""
    found = torch.device(device)
    devices = [found.index or 0] if found.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def prepared(estimator: GraphEstimator, graph: object) -> tuple["Data", JobSettings]:
    """Return the clean graph and the job of a ``fit``."""
    data = graph_of(graph)
    return data, estimator._job(data, source_of(graph), seed_of(estimator.random_state))


def _different(values: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in base or base[key] != value}


def _told(progress: Progress) -> None:
    """Print a line at every tenth of the run."""
    step = max(1, progress.epochs // LINES)
    if progress.epoch % step == 0 or progress.epoch == progress.epochs:
        figures = "".join(f"  {name} {value:.4g}" for name, value in progress.metrics.items())
        print(f"epoch {progress.epoch}/{progress.epochs}  loss {progress.loss:.6g}{figures}")


def _outcome_of(results: dict[str, Any], rows: list[dict[str, Any]], job: JobSettings) -> Outcome:
    """Return the outcome of a run that was read from a folder."""
    metrics = [row["metrics"] for row in rows if row["epoch"] == results["best_epoch"] and "metrics" in row]
    return Outcome(
        epochs=results["epochs"],
        best_epoch=results["best_epoch"],
        metrics=metrics[-1] if metrics else {},
        history=rows,
        stopped=results["stopped"],
        seconds=results["seconds"],
        lowered=results["rate_lowered"],
        compiled=job.training.compile,
    )
