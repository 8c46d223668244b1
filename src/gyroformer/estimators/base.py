"""What the estimators share: parameters to a job, the job's course, and the way to a run folder and back.

The parameters are derived from the declared options: those of :class:`EstimatorOptions`, which all estimators have, and
each option of the task's objective, where None leaves it to the recipe.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.inputs import Ids, graph_of, own_random_state, plain, seed_of, source_of
from gyroformer.estimators.notebook import Explorer
from gyroformer.estimators.parameters import Parameter, constructor
from gyroformer.jobs.plan import Plan, ready_for, trained_features, usable_device
from gyroformer.jobs.restore import restored_task
from gyroformer.jobs.run import embedding_arrays, keep_graph, run_job
from gyroformer.models.pretrained import CONFIG
from gyroformer.options import Options, as_plain, option, options_of
from gyroformer.report.page import page, read_runs
from gyroformer.runs.files import RESULTS
from gyroformer.runs.folder import RunFolder
from gyroformer.runs.read import open_run
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS
from gyroformer.train.outcome import Outcome, Progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: with ``verbose``, lines printed over a whole run
LINES = 10


class EstimatorOptions(Options):
    """The parameters of every estimator; None leaves one to the recipe or to the model."""

    model: str = option("a name that gyroformer.MODELS lists", default="fpst")
    dim: int | None = option("width, all heads together", default=None)
    heads: int | None = option("number of heads", default=None)
    layers: int | None = option("number of layers", default=None)
    epochs: int | None = option("number of steps, each on the whole graph", default=None)
    lr: float | None = option("learning rate of Adam", default=None)
    curvature_lr: float | None = option("learning rate of the curvatures", default=None)
    weight_decay: float | None = option("the L2 term, not on curvatures", default=None)
    recipe: str | None = option("named settings to start from; none for the usual ones", default=None)
    model_options: dict[str, Any] | None = option("further options of the model", default=None)
    feature_options: dict[str, Any] | None = option("how node features are prepared", default=None)
    training: dict[str, Any] | None = option("further options of training", default=None)
    random_state: Any = option(
        "an integer, a RandomState, or none for a seed that is drawn and kept as seed_", default=None
    )
    device: str = option("where to compute; auto takes the fastest", default="cpu")
    dtype: Literal["float32", "float64"] = option("precision of the numbers", default="float32")
    ignore_memory: bool = option("whether to start even if the memory may not suffice", default=False)
    verbose: bool = option("whether to print some lines over the run", default=False)
    out: str | Path | None = option("a folder for the run; nothing is kept without one", default=None)


#: parameters with a name of their own, by the table of a job that has them
NAMED = {
    "model_options": ("dim", "heads", "layers"),
    "training": ("epochs", "lr", "curvature_lr", "weight_decay"),
}


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of the estimators.

    A subclass names its ``task``, and says in ``_take_plan`` which names of its own a trained plan gives.
    """

    _task: ClassVar[str]
    #: options of the objective that are no parameters, because another parameter stands for them
    _hidden: ClassVar[tuple[str, ...]] = ()

    model: str
    recipe: str | None
    random_state: Any
    device: str
    dtype: str
    ignore_memory: bool
    verbose: bool
    out: str | Path | None

    def __init_subclass__(
        cls,
        task: str | None = None,
        more: type[Options] | None = None,
        hidden: tuple[str, ...] = (),
        **keywords: Any,
    ) -> None:
        """Give the subclass a constructor with the parameters of its task.

        Args:
            task: the task; None for a subclass of an estimator, which has what that has.
            more: parameters of the estimator's own; one with a name of the objective's stands for that.
            hidden: options of the objective that are no parameters.
            keywords: for other bases.
        """
        super().__init_subclass__(**keywords)
        if task is None:
            return
        cls._task, cls._hidden = task, hidden
        own = {one.name: one for one in (options_of(more) if more else ())}
        shared = {one.name: one for one in options_of(EstimatorOptions)}
        left = [one for one in options_of(TASKS[task].Objective) if one.name not in (*hidden, *own)]
        known = list(shared.values())
        parameters = {
            **{one.name: Parameter(one, one.default) for one in known[: known.index(shared["random_state"])]},
            **{name: Parameter(one, one.default) for name, one in own.items()},
            **{one.name: Parameter(one, None) for one in left},
            **{one.name: Parameter(one, one.default) for one in known[known.index(shared["random_state"]) :]},
        }
        cls._objective_names = tuple(one.name for one in left)
        cls.__init__ = constructor(parameters)  # type: ignore[method-assign]

    #: parameters that are options of the objective
    _objective_names: ClassVar[tuple[str, ...]]

    def _objective(self) -> dict[str, Any]:
        """Return the job's objective, without what is left to the recipe."""
        return {name: value for name in self._objective_names if (value := getattr(self, name)) is not None}

    def _directed(self) -> bool:
        """Return whether the directions of edges count."""
        return False

    def _take_plan(self, plan: Plan) -> None:
        """Set the fitted names that this task gives."""
        raise NotImplementedError

    def _kept(self) -> dict[str, Any]:
        """Return arrays that a run folder must hold so that the estimator can be built again."""
        return {}

    def _restore(self, arrays: dict[str, Any], data: "Data") -> None:
        """Take back what ``_kept`` returned; ``arrays`` is empty for a run of the command line."""

    def _job(self, data: "Data", source: str, seed: int) -> JobSettings:
        """Return the job of these parameters; None leaves a setting to the recipe."""
        values = {
            "graph": {"source": source, "directed": self._directed()},
            "model": {"name": self.model, "options": self._table("model_options")},
            "features": self._table("feature_options"),
            "training": self._table("training"),
            "objective": plain(self._objective()),
            "seed": seed,
            "device": usable_device(self.device),
            "dtype": self.dtype,
        }
        dataset = str(getattr(data, "name", "") or "")
        return make_job(
            self._task, recipe=self.recipe, dataset=dataset, has_features=data.x is not None, **values
        )

    def _table(self, name: str) -> dict[str, Any]:
        """Return the dictionary parameter ``name`` with those that have a name of their own."""
        table = getattr(self, name)
        if table is not None and not isinstance(table, dict):
            raise UsageError(f"{name} must be a dictionary or None, got {table!r}")
        own = {key: value for key in NAMED.get(name, ()) if (value := getattr(self, key)) is not None}
        for key in own.keys() & (table or {}).keys():
            raise UsageError(f"{key} is given twice, as a parameter and in {name}: keep one")
        return dict(plain({**(table or {}), **own}))

    def _run(self, data: "Data", job: JobSettings, **given: Any) -> Self:
        """Do the job and take its result; torch's global random state is the caller's again afterwards."""
        if self.out is not None and (Path(self.out) / RESULTS).exists():
            raise UsageError(
                f"{self.out}: holds a finished run; choose another out, or read it with "
                f"{type(self).__name__}.from_run"
            )
        listen, ignore_memory = _told if self.verbose else None, self.ignore_memory
        with own_random_state(job.device):
            done = run_job(
                job,
                data=data,
                out=self.out,
                # what was interrupted goes on; with other settings it is refused
                resume=self.out is not None and (Path(self.out) / CONFIG).exists(),
                listen=listen,
                ignore_memory=ignore_memory,
                keep=self._kept(),
                **given,
            )
        assert done.plan is not None
        assert done.outcome is not None
        self._take(data, done.plan, done.outcome, done.results)
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
        """Return a graph prepared for the fitted model: the fitted one if ``graph`` is None."""
        check_is_fitted(self)
        if graph is None:
            return self._plan.data
        job, fitted = self._plan.job, self._plan.data
        data = graph_of(graph, directed=job.graph.directed)
        if fitted.x is None:
            if list(data.ids) != self._ids.names:
                raise UsageError(
                    f"the model learned a vector for each of its {len(self._ids.names)} nodes and knows no others: "
                    "give a graph with the same ids in the same order, or fit one with node features (a GraphEmbedder "
                    "can add new nodes by their edges)"
                )
        elif data.x is None or data.x.size(1) != self.n_features_in_:
            found = 0 if data.x is None else data.x.size(1)
            raise UsageError(
                f"X has {found} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input: give each node as many as the graph that was fitted has"
            )
        trained = trained_features(self._plan.graph, self._plan.task)
        ready = ready_for(job, trained)(data, fitted.x is not None)
        with torch.no_grad():
            return self.model_.prepare(ready)

    def save(self, folder: str | Path) -> None:
        """Write a run folder, as the command line does."""
        check_is_fitted(self)
        plan, outcome = self._plan, self._outcome
        with RunFolder(folder) as run:
            run.begin(as_plain(plan.job), resume=False)
            # the object itself, whatever it was read from: its labels may have been given apart
            split = getattr(self, "split_", None)
            keep_graph(run.path, plan, by_name=False, more=self._kept(), split=split)
            for row in self.history_:
                run.metrics.append(row)
            run.task_module = plan.task.module
            arrays = embedding_arrays(plan.model, plan.data)
            seconds, compiled = outcome.seconds, outcome.compiled
            run.finish(plan.model, self.results_, arrays, plan.data.ids, seconds=seconds, compiled=compiled)

    def explore(self, *, node_data: str | Path | None = None, height: int = 900) -> Explorer:
        """Return the explorer of the fitted graph: shown inline at the end of a notebook's cell.

        Args:
            node_data: a table of more columns for the nodes (id first) to colour and size by, and to search.
            height: of the frame in the notebook, in pixels.
        """
        check_is_fitted(self)
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / self._plan.job.model.name
            self.save(run)
            return Explorer(
                page(read_runs([run]), node_data=None if node_data is None else Path(node_data)), height
            )

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return the estimator that ``save`` wrote."""
        return cls.from_run(folder)

    @classmethod
    def from_run(cls, path: str | Path, graph: object = None) -> Self:
        """Return a fitted estimator from the folder of a finished run.

        Args:
            path: the folder, written by the command line, by ``save`` or by ``fit`` with ``out``.
            graph: the graph of the run, for a run of a version that did not keep it.
        """
        with own_random_state("cpu"):  # building a model draws its first weights
            run = open_run(path)
            job, model = run.settings, run.model
        if job.task != cls._task:
            raise UsageError(
                f"{path}: a run of the task {job.task!r}, and {cls.__name__} is for {cls._task!r}"
            )
        if graph is not None:
            run.graph = graph_of(graph, directed=run.settings.graph.directed)
        data, stored = run.graph, run.stored_graph
        if [str(name) for name in data.ids] != run.ids:
            raise UsageError(f"{path}: was run on another graph: its nodes are not those of the one given")
        estimator = cls(**cls._parameters(job))
        task = restored_task(run, job)
        plan = Plan(job, data, task, model.to(job.device))
        estimator._restore({} if stored is None else stored.more, data)
        estimator._take(data, plan, _outcome_of(run.results, run.history, job), run.results)
        return estimator

    @classmethod
    def _parameters(cls, job: JobSettings) -> dict[str, Any]:
        """Return the constructor's arguments that give ``job`` again; what its recipe says is left to that."""
        base = as_plain(make_job(job.task, recipe=job.recipe, model={"name": job.model.name}))
        values = as_plain(job)
        tables = {
            "model_options": _different(values["model"]["options"], base["model"]["options"]),
            "feature_options": _different(values["features"], base["features"]),
            "training": _different(values["training"], base["training"]),
        }
        named = {key: tables[table].pop(key, None) for table, keys in NAMED.items() for key in keys}
        objective = _different(values["objective"], base["objective"])
        return {
            **named,
            **{name: table or None for name, table in tables.items()},
            **{key: value for key, value in objective.items() if key not in cls._hidden},
            "model": job.model.name,
            "recipe": job.recipe,
            "random_state": job.seed,
            "device": job.device,
            "dtype": job.dtype,
        }


def prepared(estimator: GraphEstimator, graph: object) -> tuple["Data", JobSettings]:
    """Return the clean graph and the job of a ``fit``."""
    data = graph_of(graph, directed=estimator._directed())
    return data, estimator._job(data, source_of(graph), seed_of(estimator.random_state))


def _different(values: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in base or base[key] != value}


def _told(progress: Progress) -> None:
    """Print a line at every tenth of the run."""
    step = max(1, progress.epochs // LINES)
    if progress.epoch % step == 0 or progress.epoch == progress.epochs:
        metrics = "".join(f"  {name} {value:.4g}" for name, value in progress.metrics.items())
        print(f"epoch {progress.epoch}/{progress.epochs}  loss {progress.loss:.6g}{metrics}")


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
