"""The options that ``embed``, ``classify`` and ``link`` share, and their places in a job's settings."""

import dataclasses as dc
import functools
import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gyroformer.cli.options import Json, Seed, Threads
from gyroformer.errors import UsageError

MODEL, FEATURES, TRAINING, RUN = "Model", "Features", "Training", "Run"
#: the keys of gyroformer.models.MODELS, written out because importing that takes seconds and --help must not
MODEL_NAMES = (
    *("fpst", "tokengt", "mlp", "gcn", "gat", "sage", "sgc", "hgcn", "hgnn", "hat", "kappa-gcn", "q-gcn"),
    *("gil", "fmgnn", "hyp-attention", "hypformer"),
)


def _option(text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


@dc.dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What the user typed; None stands for the recipe's or the model's own value."""

    model: Annotated[str, _option(f"One of {', '.join(MODEL_NAMES)} (default: fpst).", MODEL)] = "fpst"
    dim: Annotated[int | None, _option("Width, all heads together (16).", MODEL, min=1)] = None
    heads: Annotated[int | None, _option("Number of heads or components (2).", MODEL, min=1)] = None
    layers: Annotated[int | None, _option("Number of layers (1).", MODEL, min=1)] = None
    dropout: Annotated[float | None, _option("Share of values dropped.", MODEL)] = None
    activation: Annotated[str | None, _option("relu, elu, tanh, sigmoid or gelu.", MODEL)] = None
    attention: Annotated[str | None, _option("linear or softmax.", MODEL)] = None
    identifiers: Annotated[int | None, _option("Number of Laplacian eigenvectors.", MODEL)] = None
    edge_tokens: Annotated[str | None, _option("undirected, directed or none.", MODEL)] = None
    set_: Annotated[
        list[str] | None,
        _option("Any other option of the model, as NAME=VALUE; may be repeated.", MODEL, "--set"),
    ] = None
    entries: Annotated[str | None, _option("auto, raw, binary, row, l2 or zscore.", FEATURES)] = None
    mixing: Annotated[str | None, _option("none, power (the paper's), ppr or joined.", FEATURES)] = None
    hops: Annotated[int | None, _option("Steps over which features are mixed.", FEATURES)] = None
    alpha: Annotated[float | None, _option("Restart probability of ppr.", FEATURES)] = None
    size: Annotated[str | None, _option("Size of the rows: rms, l2 or none.", FEATURES)] = None
    scale: Annotated[float | None, _option("Length that the rows get.", FEATURES)] = None
    epochs: Annotated[int | None, _option("Number of steps, each on the whole graph.", TRAINING)] = None
    lr: Annotated[float | None, _option("Rate of Adam.", TRAINING)] = None
    curvature_lr: Annotated[float | None, _option("Rate for the curvatures.", TRAINING)] = None
    weight_decay: Annotated[float | None, _option("L2 term, not on curvatures.", TRAINING)] = None
    schedule: Annotated[str | None, _option("constant, linear or cosine.", TRAINING)] = None
    clip: Annotated[float | None, _option("Largest norm of the gradient.", TRAINING)] = None
    patience: Annotated[
        int | None, _option("Evaluations without improvement before training stops.", TRAINING)
    ] = None
    eval_every: Annotated[int | None, _option("Epochs between evaluations.", TRAINING)] = None
    compile: Annotated[bool, _option("Compile the model (some ten seconds at the start).", TRAINING)] = False
    tensorboard: Annotated[bool, _option("Write TensorBoard files too.", TRAINING)] = False
    recipe: Annotated[
        str | None, _option("Named settings to start from: default, paper, or a data set's.", RUN)
    ] = None
    out: Annotated[Path | None, _option("Folder for the run (default: a new one in runs/).", RUN)] = None
    resume: Annotated[bool, _option("Continue what is in --out, or start it.", RUN)] = False
    seeds: Annotated[int, _option("Number of runs, with the seeds --seed, --seed + 1, …", RUN, min=1)] = 1
    ignore_memory: Annotated[bool, _option("Start even if memory may not suffice.", RUN)] = False
    device: Annotated[str, _option("cpu, cuda, … or auto.", RUN)] = "cpu"
    dtype: Annotated[str, _option("float32 or float64.", RUN)] = "float32"
    seed: Seed = 0
    threads: Threads = None
    as_json: Json = False


#: where the options go; those that are not here are not settings
PLACES = {
    "model.options": (
        *("dim", "heads", "layers", "dropout", "activation", "attention", "identifiers", "edge_tokens"),
    ),
    "features": ("entries", "mixing", "hops", "alpha", "size", "scale"),
    "training": (
        *("epochs", "lr", "curvature_lr", "weight_decay", "schedule", "clip", "patience", "eval_every"),
        *("compile", "tensorboard"),
    ),
}


def job_values(options: JobOptions) -> dict[str, Any]:
    """Return the settings that the options name, nested like a job's."""
    from gyroformer.jobs.plan import usable_device

    values: dict[str, Any] = {
        "model": {"name": options.model, "options": _typed_options(options.set_ or [])},
        "seed": options.seed,
        "device": usable_device(options.device),
        "dtype": options.dtype,
    }
    for place, names in PLACES.items():
        table = values
        for part in place.split("."):
            table = table.setdefault(part, {})
        table.update(
            {name: getattr(options, name) for name in names if getattr(options, name) not in (None, False)}
        )
    return values


def takes_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command``, which takes ``options: JobOptions``, each of their fields as an option of its own."""
    hints = get_type_hints(JobOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dc.fields(JobOptions)
    ]
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "options"
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = JobOptions(**{field.name: given.pop(field.name) for field in dc.fields(JobOptions)})
        command(options=options, **given)

    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return run


def _typed_options(settings: list[str]) -> dict[str, Any]:
    """Return NAME=VALUE pairs with values read as numbers, truth values or lists where they are such."""
    found = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise UsageError(f"--set takes NAME=VALUE, got {setting!r}")
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = text
    return found
