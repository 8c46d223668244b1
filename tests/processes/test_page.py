"""docs/many_processes.md does what it says: its commands run from top to bottom, those of torchrun by torchrun."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "many_processes.md"
STARTED_BY = {"torchrun": ["torch.distributed.run", "--standalone"], "gyroformer": ["gyroformer"]}


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```(python|console)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    programs = []
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, PAGE.name, "exec"), {})
            continue
        for line in block.splitlines():
            prompt, program, *words = shlex.split(line)
            assert prompt == "$"
            programs.append(program)
            done = subprocess.run(
                [sys.executable, "-m", *STARTED_BY[program], *words],
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, done.stderr
            assert "mAP" in done.stdout
    assert programs == ["torchrun", "gyroformer"]
    checkpoints = Path("runs/tree/checkpoints").glob("*.json")
    assert json.loads(Path("runs/tree/results.json").read_text())["epochs"] == 60
    assert {json.loads(path.read_text())["environment"]["processes"] for path in checkpoints} == {1, 2}
