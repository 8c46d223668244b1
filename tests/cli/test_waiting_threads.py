"""The command sets how long threads wait for each other, unless the user has."""

import os
import subprocess
import sys

import pytest

CODE = """
import atexit, gc, os, sys
from gyroformer.__main__ import main
atexit.register(lambda: print(os.environ.get("GOMP_SPINCOUNT"), gc.get_threshold()[0], "torch" in sys.modules))
sys.argv = ["gyroformer", "--version"]
main()
"""


@pytest.mark.parametrize(
    "own, expected",
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_what_the_user_set_stays(own, expected):
    plain = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=plain | own)
    assert done.stdout.splitlines()[-1] == f"{expected} 20000 False"
