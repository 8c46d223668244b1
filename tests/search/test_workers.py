"""Workers of a search: what becomes of them, and of their trials, when others end or take over."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_searches import search_of, study_of

from gyroformer.search.study import running

pytest.importorskip("optuna")


def wait_for(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def is_gone(pid):
    """Return whether a process has ended, also if nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


#: a search that does not end by itself, in a command of its own
ENDLESS = """
import sys
sys.path.insert(0, {helpers!r})
from small_searches import search_of
from gyroformer.search.run import run_search
if __name__ == "__main__":
    fixed = {{"training": {{"epochs": 1_000_000}}}}
    run_search(search_of({files!r}, 4, fixed=fixed), {storage!r}, workers=2, threads=1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_with_the_command_that_is_killed(files, tmp_path):
    storage, script = tmp_path / "journal.log", tmp_path / "endless.py"
    helpers = str(Path(__file__).parents[1] / "helpers")
    edges, given = files
    script.write_text(ENDLESS.format(helpers=helpers, files=(str(edges), given), storage=str(storage)))
    command = subprocess.Popen([sys.executable, str(script)])
    try:
        endless = search_of(files, 4, fixed={"training": {"epochs": 1_000_000}})
        wait_for(storage.exists)
        study = study_of(files, storage, search=endless)
        wait_for(lambda: sum("beat" in trial.user_attrs for trial in running(study)) == 2)
        pids = [trial.user_attrs["pid"] for trial in running(study)]
        assert not any(is_gone(pid) for pid in pids)
    finally:
        command.kill()
        command.wait()
    try:
        wait_for(lambda: all(is_gone(pid) for pid in pids), seconds=15)
    finally:
        for pid in pids:
            if not is_gone(pid):
                os.kill(pid, 9)
    # their last words: whoever works next, on whatever machine, need not wait for silence
    assert running(study) == []
