"""A page of the documentation, run as its reader would: block by block, in one folder."""

import re
import shlex

from typer.testing import CliRunner

from gyroformer.cli.app import app


def run_page(page):
    """Run the Python blocks and commands of a page in the current folder; return what each command printed."""
    names, said = {}, {}
    blocks = re.findall(
        r"^```(python|console)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for i, (kind, block) in enumerate(blocks):
        if kind == "python":
            exec(compile(block, f"{page.name}, block {i}", "exec"), names)
            continue
        for line in block.splitlines():
            prompt, program, *args = shlex.split(line)
            assert (prompt, program) == ("$", "gyroformer"), f"{page.name}: {line}"
            done = CliRunner().invoke(app, args, catch_exceptions=False)
            assert done.exit_code == 0, (line, done.stderr)
            said[line] = done.stdout
    return said
