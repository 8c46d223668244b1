"""Tables of the declared options."""

import json
from collections.abc import Iterable

from gyroformer.cli.job_flags import RunOptions
from gyroformer.models import MODELS
from gyroformer.options import Option, options_of
from gyroformer.options.check import described
from gyroformer.options.constructor import shown
from gyroformer.options.layers import CurvatureOptions
from gyroformer.options.models import NodeModelOptions, TokenOptions
from gyroformer.settings import GraphOptions, JobSettings
from gyroformer.tasks import TASKS
from tables.markdown import markdown


def option_cells(one: Option) -> list[str]:
    """Return an option as the cells of a row: name, values, default, meaning."""
    flag = "" if one.flag is None else f" (`--{one.flag.replace('/', '`, `')}`)"
    values = described(one.hint, one.range).replace("true or false", "yes or no")
    # a list as it is typed
    default = json.dumps(one.default) if isinstance(one.default, tuple) else shown(one.default) or "empty"
    return [f"`{one.name}`{flag}", values, default, one.help]


def option_table(some: Iterable[Option]) -> str:
    """Return a table with a row for each option."""
    return markdown(["option", "values", "default", "meaning"], [option_cells(one) for one in some], text=4)


def graph_options() -> str:
    """Return the table of the graph's options, with the commands that have a flag for each."""
    rows = []
    for one in options_of(GraphOptions):
        having = [f"`{name}`" for name, task in TASKS.items() if one.name in task.graph_flags]
        rows.append([*option_cells(one), "the argument GRAPH" if one.name == "source" else ", ".join(having)])
    return markdown(["option", "values", "default", "meaning", "flag of"], rows, text=5)


def transformer_options() -> str:
    """Return the tables of FPS-T's options: encoder, tokens, curvature."""
    groups: dict[str, list[Option]] = {"encoder": [], "tokens": [], "curvature": []}
    names = {
        "tokens": {one.name for one in options_of(TokenOptions)},
        "curvature": {one.name for one in options_of(CurvatureOptions)},
    }
    for one in MODELS["fpst"].choices():
        groups[next((group for group, known in names.items() if one.name in known), "encoder")].append(one)
    return "\n\n".join(f"### {group}\n\n{option_table(some)}" for group, some in groups.items())


def network_options() -> str:
    """Return the tables of the networks' options: those that all share, then what each has or changes."""
    shared = list(options_of(NodeModelOptions))
    parts = []
    for name, spec in MODELS.items():
        if not issubclass(spec.options, NodeModelOptions):
            continue
        own = [one for one in spec.choices() if one not in shared]
        about = (
            f"{spec.about[0].upper()}{spec.about[1:]}. Dropout with classes: {spec.options.usual_dropout:g}."
        )
        parts.append(f"### {name}\n\n{about}" + (f"\n\n{option_table(own)}" if own else ""))
    common = [one for one in MODELS["mlp"].choices() if one in shared]
    return "\n\n".join([option_table(common), *parts])


def objective_options() -> str:
    """Return the tables of the tasks' objectives."""
    return "\n\n".join(
        f"### {name}\n\n{option_table(options_of(task.Objective))}" for name, task in TASKS.items()
    )


def run_options() -> str:
    """Return the table of the options of a run."""
    own = [one for one in options_of(JobSettings) if one.name in ("seed", "device", "dtype")]
    return option_table([*own, *options_of(RunOptions)])
