"""Rows of the paper's tables that are made up, and the command that shows them."""

from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.paper.tables import TABLES
from gyroformer.runs import rows as rows_module
from gyroformer.runs.rows import key_of


def call(*words, code=0):
    """Return what ``gyroformer reproduce`` said, which must end with this code."""
    done = CliRunner().invoke(app, ["reproduce", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def rows_with(cell, values):
    """Return rows of the first seeds of a cell with these values."""
    row = dict.fromkeys(rows_module.COLUMNS, "0") | {"metric": cell.metric}
    keys = [dict(zip(rows_module.KEY, key_of(job), strict=True)) for job in cell.jobs()]
    return [row | key | {"value": str(value)} for key, value in zip(keys, values, strict=False)]


def row_of_fpst(value=98.0, **entries):
    """Return a row of FPS-T on Web-Edu, seed 0, with some entries changed."""
    return rows_with(TABLES["table1"].cells(["web-edu"], ["fpst"])[0], [value])[0] | entries
