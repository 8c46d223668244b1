"""The flags of the commands that train, derived from the declared options of the task, the model and the rest.

A flag's default is the one of the chosen model and recipe. What the user types is parsed by the option's declared type;
what is not typed is not given, so that a recipe's value stands (and a typed 0 or "no" is a value like any other).
"""

import dataclasses as dc
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, get_origin

import typer
from typer.core import TyperCommand

from gyroformer.cli.options import MAX_THREADS
from gyroformer.errors import GyroformerError, UsageError, did_you_mean
from gyroformer.models import MODELS, get_model
from gyroformer.options import Options, from_plain, merged, option, options_of
from gyroformer.options.check import alternatives, choices_of, from_text
from gyroformer.options.constructor import shown
from gyroformer.options.declare import Option
from gyroformer.options.features import FeatureOptions
from gyroformer.options.training import TrainOptions
from gyroformer.settings import GraphOptions, JobSettings, make_job
from gyroformer.tasks import TASKS
from gyroformer.tasks.task import READING


class RunOptions(Options):
    """How a command that trains is run."""

    recipe: str | None = option(
        "a recipe: named settings to start from (default, plain for graphs without features, paper, a data set's own, "
        "or a file); none for the usual one, which suits the graph",
        default=None,
    )
    out: str | None = option("folder for the run; none for a new one in runs/", default=None)
    resume: bool = option("continue what is in --out, or start it", default=False)
    seeds: int = option(
        "number of runs, with the seeds --seed, --seed + 1, …", default=1, at_least=1, at_most=10_000
    )
    thorough: bool = option(
        "train the full length; by default a graph of your own is trained until its loss has converged",
        default=False,
    )
    new_edges: int = option(
        "number of likely missing edges to print and to write to new_edges.csv; 0 for none",
        default=10,
        at_least=0,
        at_most=1_000_000,
    )
    for_node: str | None = option(
        "the node whose missing edges are wanted; none for all", default=None, flag="for"
    )
    dry_run: bool = option(
        "say what the job will take (tokens, memory, time) from a few epochs, and write nothing",
        default=False,
    )
    ignore_memory: bool = option("start even if memory may not suffice", default=False)
    threads: int | None = option(
        "CPU threads for torch; none for torch's own choice", default=None, at_least=1, at_most=MAX_THREADS
    )
    wait: float = option(
        "seconds that one of several processes (torchrun) may keep the others waiting before they give up",
        default=20.0,
        above=0,
        at_most=86_400,
    )
    json: bool = option("print one JSON object, alone, on stdout", default=False)


@dc.dataclass(frozen=True)
class Flag:
    """A flag of a command.

    Attributes:
        path: where its value goes in a job's settings; ``("run", …)`` for how the command is run.
        option: the option that it sets.
        panel: heading in the help.
        default: the value that stands if it is not typed.
        hidden: whether the help leaves it out, because it belongs to another model.
    """

    path: tuple[str, ...]
    option: Option
    panel: str
    default: Any = None
    hidden: bool = False

    @property
    def name(self) -> str:
        """The flag as it is typed, without dashes."""
        return self.option.flag or self.option.name.replace("_", "-")

    @property
    def words(self) -> str:
        """What is handed to Typer: one word, or two with a slash for yes and no."""
        if not self.is_switch:
            return f"--{self.name}"
        name, _, no = self.name.partition("/")
        return f"--{name}" if self.path[0] == "run" else f"--{name}/{no or f'--no-{name}'}"

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.option.hint in (bool, bool | None)

    def parameter(self) -> inspect.Parameter:
        """Return it as a parameter of a Typer command; None stands for not typed."""
        default = "" if self.default is None else f" (default: {shown(self.default)})"
        info = typer.Option(
            self.words,
            help=f"{self.option.help[0].upper()}{self.option.help[1:]}{default}.",
            rich_help_panel=self.panel,
            show_default=False,
            hidden=self.hidden,
            metavar=None if self.is_switch else _metavar(self.option),
        )
        kind = bool | None if self.is_switch else str | None
        annotation = Annotated[kind, info]  # type: ignore[valid-type]
        return inspect.Parameter(
            "__".join(self.path), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )

    def value(self, typed: Any) -> Any:
        """Return the value of what was typed."""
        if self.is_switch:
            return typed
        return from_text(self.option.hint, typed, f"--{self.name}", self.option.range)


def _metavar(one: Option) -> str:
    choices = choices_of(one.hint)
    numbers = {int: "INTEGER", float: "FLOAT"}
    kinds = [numbers[kind] for kind in alternatives(one.hint) if kind in numbers]
    lists = ["LIST"] if any(get_origin(kind) is Sequence for kind in alternatives(one.hint)) else []
    return "|".join([*choices, *kinds, *lists]) or "TEXT"


def job_flags(task: str, model: str = "fpst", recipe: str | None = None, graph: str = "") -> list[Flag]:
    """Return the flags of the command ``task`` with the defaults of a model, a recipe and a graph."""
    job = make_job(task, recipe=recipe, dataset=graph, graph={"source": graph}, model={"name": model})
    features = _flags_of(job, "features", FeatureOptions, "Features")
    training = _flags_of(job, "training", TrainOptions, "Training")
    return [*_task_flags(job), *_model_flags(job), *features, *training, *_run_flags(job)]


def _task_flags(job: JobSettings) -> Iterator[Flag]:
    task = TASKS[job.task]
    for one in options_of(GraphOptions):
        if one.name in (*task.graph_flags, *READING):
            yield Flag(("graph", one.name), one, "Graph", getattr(job.graph, one.name))
    yield from _flags_of(job, "objective", task.Objective, "Objective")


def _flags_of(job: JobSettings, table: str, kind: type[Options], panel: str) -> Iterator[Flag]:
    for one in options_of(kind):
        yield Flag((table, one.name), one, panel, getattr(getattr(job, table), one.name))


def _model_flags(job: JobSettings) -> Iterator[Flag]:
    """Yield the model's own flags, then those of all other models, hidden: so that a wrong one is named as such."""
    own = {one.name: one for one in get_model(job.model.name).choices()}
    for name, one in own.items():
        yield Flag(("model", "options", name), one, f"Model: {job.model.name}", job.model.options[name])
    others = {one.name: one for spec in MODELS.values() for one in spec.choices()}
    for name, one in others.items():
        if name not in own:
            yield Flag(("model", "options", name), one, "", hidden=True)


def _run_flags(job: JobSettings) -> Iterator[Flag]:
    for one in options_of(JobSettings):
        if one.name in ("seed", "device", "dtype"):
            yield Flag((one.name,), one, "Run", getattr(job, one.name))
    others = {name for task in TASKS.values() for name in task.run_flags} - set(TASKS[job.task].run_flags)
    for one in options_of(RunOptions):
        if one.name in others:
            continue
        yield Flag(("run", one.name), one, "Run", None if one.default is False else one.default)


class DerivedCommand(TyperCommand):
    """A command whose flags depend on its own words."""

    #: makes of the words a function with the flags as its parameters
    made: ClassVar[Callable[[list[str]], Callable[..., None]]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse ``args`` with the flags of what they name."""
        app = typer.Typer(add_completion=False)
        app.command()(type(self).made(args))
        fresh: Any = typer.main.get_command(app)
        self.params, self.callback = fresh.params, fresh.callback
        return super().parse_args(ctx, args)


def derived_class(made: Callable[[list[str]], Callable[..., None]]) -> type[DerivedCommand]:
    """Return the class for Typer of a command whose function ``made`` makes of its words."""
    return type("DerivedCommand", (DerivedCommand,), {"made": staticmethod(made)})


def with_parameters(
    function: Callable[..., None], name: str, help: str, parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return ``function``, which takes any keywords, with a signature that Typer reads."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    function.__name__, function.__doc__ = name, help
    return function


def job_command(
    task: str, run: Callable[[str, JobSettings, RunOptions], None], guard: Callable[..., Any] = lambda f: f
) -> tuple[Callable[..., None], type[DerivedCommand]]:
    """Return the command of a task, as a function and a class for Typer.

    Args:
        task: the task, whose name is the command's.
        run: is called with the graph, the job and how to run it.
        guard: turns errors into exit codes.
    """

    def made(args: list[str]) -> Callable[..., None]:
        try:
            flags = job_flags(task, **_chosen(args)) if args else []
        except GyroformerError:  # the command itself says what is wrong
            flags = job_flags(task)

        @guard
        def called(graph: str, model: str, set_: list[str] | None, **typed: Any) -> None:
            values = given_values(flags, typed, model, set_ or [])
            options = from_plain(RunOptions, values.pop("run", {}))
            values = merged(values, {"graph": {"source": graph}, "model": {"name": model}})
            if options.thorough:
                values = _thorough(values)
            run(graph, make_job(task, recipe=options.recipe, dataset=graph, **values), options)

        parameters = [*_common_parameters(flags), *(flag.parameter() for flag in flags)]
        return with_parameters(called, task, TASKS[task].help, parameters)

    return made([]), derived_class(made)


def _thorough(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the full length of the training."""
    if values.get("training", {}).get("converged") is not None:
        raise UsageError("--thorough trains the full length, and --converged stops early: leave one out")
    return merged(values, {"training": {"converged": None}})


def _chosen(args: list[str]) -> dict[str, Any]:
    """Return the model, recipe and graph that the words name; what does not exist is left to the command to say."""
    found: dict[str, Any] = {}
    for name in ("model", "recipe"):
        for word, following in zip(args, [*args[1:], ""], strict=False):
            if word == f"--{name}":
                found[name] = following
            elif word.startswith(f"--{name}="):
                found[name] = word.partition("=")[2]
    if args and not args[0].startswith("-"):
        found["graph"] = args[0]
    if found.get("model") not in MODELS:
        found.pop("model", None)
    return found


def _common_parameters(flags: list[Flag]) -> list[inspect.Parameter]:
    """Return the parameters that are no declared options: the graph, the model, and ``--set``."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    panel = next((flag.panel for flag in flags if flag.path[0] == "model"), "Model")
    about = f"One of {', '.join(MODELS)} (default: fpst)."
    graph = Annotated[str, typer.Argument(help="A data set's name, or a file.", show_default=False)]
    model = Annotated[
        str, typer.Option(help=about, rich_help_panel=panel, metavar="NAME", show_default=False)
    ]
    more = Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="An option of the model as NAME=VALUE; may be repeated.",
            rich_help_panel=panel,
            metavar="NAME=VALUE",
            show_default=False,
        ),
    ]
    return [
        inspect.Parameter("graph", keyword, annotation=graph),
        inspect.Parameter("model", keyword, default="fpst", annotation=model),
        inspect.Parameter("set_", keyword, default=None, annotation=more),
    ]


def given_values(flags: list[Flag], typed: Mapping[str, Any], model: str, set_: list[str]) -> dict[str, Any]:
    """Return the settings that were typed, nested like a job's, with those of the command under ``run``."""
    values: dict[str, Any] = {}
    for flag in flags:
        text = typed.get("__".join(flag.path))
        if text is not None:
            _put(values, flag.path, flag.value(text))
    for name, value in _set_options(set_, model).items():
        if name in values.get("model", {}).get("options", {}):
            raise UsageError(f"{name} is given twice, as --{name.replace('_', '-')} and by --set: keep one")
        _put(values, ("model", "options", name), value)
    return values


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *tables, name = path
    table = functools.reduce(lambda table, key: table.setdefault(key, {}), tables, values)
    table[name] = value


def _set_options(settings: list[str], model: str) -> dict[str, Any]:
    """Return NAME=VALUE pairs, each value parsed by the type that the model's option declares."""
    known = {one.name: one for one in get_model(model).choices()}
    found: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise UsageError(f"--set takes NAME=VALUE, got {setting!r}")
        if name not in known:
            raise UsageError(
                f"the model {model!r} has no option {name!r}{did_you_mean(name, known)} "
                f"(options: {', '.join(known)})"
            )
        if name in found:
            raise UsageError(f"--set gives {name} twice: keep one")
        found[name] = from_text(known[name].hint, text, f"--set {name}", known[name].range)
    return found
