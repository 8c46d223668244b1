"""The root command, its subcommands, and the way from an error to an exit code.

A command is a function in a file of its own under ``cli/``; heavy packages are imported inside that
function, so that ``--help`` answers at once. To add one: write the file, add a line to ``COMMANDS``. Tasks are commands
by themselves (``gyroformer.tasks``).
"""

import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperCommand

import gyroformer
from gyroformer.cli.bench import bench
from gyroformer.cli.compare import compare_command
from gyroformer.cli.curvature import curvature
from gyroformer.cli.datasets import datasets
from gyroformer.cli.demo import demo
from gyroformer.cli.doctor import doctor
from gyroformer.cli.job import run_command
from gyroformer.cli.job_flags import job_command
from gyroformer.cli.pair_option import PairCommand
from gyroformer.cli.predict import predict
from gyroformer.cli.report import report
from gyroformer.cli.reproduce import reproduce
from gyroformer.cli.resume_command import resume_command
from gyroformer.cli.root import READER_GONE, Root
from gyroformer.cli.terminal import give_up_stdout, say, show_log
from gyroformer.cli.tune import tune
from gyroformer.errors import (
    DataError,
    EchoedError,
    GyroformerError,
    Interrupted,
    ProcessLostError,
    UsageError,
)
from gyroformer.processes.launch import refuse_several, speaks_here
from gyroformer.tasks import TASKS

app = typer.Typer(
    name="gyroformer",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command`` with our errors turned into one line on stderr and their exit code."""

    @functools.wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            say("interrupted", err=True)
            raise typer.Exit(Interrupted.exit_code) from None
        except BrokenPipeError:
            give_up_stdout()
            raise typer.Exit(READER_GONE) from None
        except Interrupted as stop:
            say(f"interrupted after epoch {stop.epoch}; to go on:", err=True)
            say(f"  {resume_command(sys.argv, stop.run)}", err=True)
            raise typer.Exit(stop.exit_code) from None
        except EchoedError as error:
            raise typer.Exit(error.exit_code) from None
        except GyroformerError as error:
            if os.environ.get("GYROFORMER_TRACEBACK"):
                raise
            # a wrong word or file is wrong in all processes of a machine, and one says so
            if speaks_here() or not isinstance(error, (UsageError, DataError)):
                say(f"error: {error}", err=True)
            if isinstance(error, ProcessLostError) and error.run is not None:
                say("to go on:", err=True)
                say(f"  {resume_command(sys.argv, error.run)}", err=True)
            raise typer.Exit(error.exit_code) from None

    return run


#: every task is a command
JOBS = dict(job_command(task, run_command, guarded) for task in TASKS)
COMPARE = compare_command(guarded)
COMMANDS: tuple[Callable[..., None], ...] = (
    demo,
    *JOBS,
    COMPARE[0],
    predict,
    report,
    tune,
    reproduce,
    datasets,
    curvature,
    bench,
    doctor,
)
#: commands that read their words in a way of their own
CLASSES: dict[Callable[..., None], type[TyperCommand]] = {
    predict: PairCommand,
    **JOBS,
    COMPARE[0]: COMPARE[1],
}

for _command in COMMANDS:
    app.command(cls=CLASSES.get(_command))(guarded(_command))


def _print_version(asked: bool) -> None:
    if asked:
        say(f"gyroformer {gyroformer.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Transformers whose attention heads live in spaces of learnable curvature, for graphs."""
    show_log()
    if context.invoked_subcommand not in (None, *TASKS):
        refuse_several(str(context.invoked_subcommand), list(TASKS))


def main() -> None:
    """Run the command line and exit: 0 done, 2 wrong usage, else the code of the error raised."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None or another where a program embeds this one
            stream.reconfigure(errors="backslashreplace")  # ids that the terminal's encoding does not have
    app()
