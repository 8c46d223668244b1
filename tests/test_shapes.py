"""The shapes in the signatures are true: tests run again with every annotation checked at each call.

In a process of its own: the checks are an import hook, and ``torch.compile`` cannot look through them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ",".join(
    ["gyroformer.nn", *(f"gyroformer.ops.{n}" for n in ("attention", "blockwise", "lifted", "positions"))]
)
#: tests that hand over what must be refused: here the hook refuses it first, with its own words
EXCEPT = (
    "not wrong and not refused and not named and not compile and not export and not half and not autocast"
)
FILES = [*(f"tests/nn/test_{n}.py" for n in ("layers", "encoder", "functional", "sparse")), "tests/tokens"]
CONTRACT = "tests/models/test_contract.py"


@pytest.mark.parametrize(
    "words", [FILES, [CONTRACT, "-k", f"{EXCEPT} and not 500 and not double"]], ids=["layers", "models"]
)
def test_every_call_has_the_shapes_it_says(words):
    hook = [f"--jaxtyping-packages={PACKAGES},beartype.beartype", "-k", EXCEPT]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *hook, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


WRONG = """
from jaxtyping import install_import_hook
with install_import_hook("gyroformer.nn", "beartype.beartype"):
    from gyroformer.nn import StereographicBlock
import torch
block = StereographicBlock(8, 2)
block(torch.zeros(1, 5, 2, 4), torch.ones(1, 5, dtype=torch.bool))
block(torch.zeros(1, 5, 2, 4), torch.ones(1, 6, dtype=torch.bool))
"""


def test_a_wrong_shape_is_seen():
    done = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True)
    assert done.returncode == 1
    assert "mask" in done.stderr
    assert done.stderr.count("jaxtyping.TypeCheckError") >= 1
