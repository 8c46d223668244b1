"""The command sets how long threads wait for each other and what pages memory has, unless the user has."""

import os
import subprocess
import sys

import pytest

CODE = """
import atexit, gc, os, sys
from gyroformer.__main__ import main
names = "GOMP_SPINCOUNT", "THP_MEM_ALLOC_ENABLE"
atexit.register(lambda: print(*map(os.environ.get, names), gc.get_threshold()[0], "torch" in sys.modules))
sys.argv = ["gyroformer", "--version"]
main()
"""


@pytest.mark.parametrize(
    "own, expected",
    [
        ({}, "10000 1"),
        ({"GOMP_SPINCOUNT": "7"}, "7 1"),
        ({"OMP_WAIT_POLICY": "active"}, "None 1"),
        ({"THP_MEM_ALLOC_ENABLE": "0"}, "10000 0"),
    ],
)
def test_what_the_user_set_stays(own, expected):
    ours = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "THP_MEM_ALLOC_ENABLE")
    plain = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=plain | own)
    assert done.stdout.splitlines()[-1] == f"{expected} 20000 False"
