"""Workers of a search: what becomes of them, and of their trials, when others end or take over."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_searches import search_of, study_of

from gyroformer.jobs import run as jobs
from gyroformer.search import life
from gyroformer.search.life import machine, queue_again, running, take_up_lost
from gyroformer.search.run import run_search

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


#: what keeps a search from ending by itself
FOREVER = {"training": {"epochs": 1_000_000, "patience": 1_000_000}}
#: such a search, in a command of its own, as a shell starts one in the background: Ctrl-C is ignored
ENDLESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.insert(0, {helpers!r})
from small_searches import search_of
from gyroformer.search.run import run_search
if __name__ == "__main__":
    run_search(search_of({files!r}, 4, fixed={fixed!r}), {storage!r}, workers=2, threads=1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_with_the_command_that_is_killed(files, tmp_path):
    storage, script = tmp_path / "journal.log", tmp_path / "endless.py"
    helpers = str(Path(__file__).parents[1] / "helpers")
    edges, given = files
    words = {"helpers": helpers, "files": (str(edges), given), "fixed": FOREVER, "storage": str(storage)}
    script.write_text(ENDLESS.format(**words))
    command = subprocess.Popen([sys.executable, str(script)])
    try:
        endless = search_of(files, 4, fixed=FOREVER)
        wait_for(storage.exists)
        study = study_of(files, storage, search=endless)
        wait_for(lambda: sum("beat" in trial.user_attrs for trial in running(study)) == 2)
        pids = [trial.user_attrs["pid"] for trial in running(study)]
        assert not any(is_gone(pid) for pid in pids)
    finally:
        command.kill()
        command.wait()
    try:
        wait_for(lambda: all(is_gone(pid) for pid in pids))
    finally:
        for pid in pids:
            if not is_gone(pid):
                os.kill(pid, 9)
    # their last words: whoever works next, on whatever machine, need not wait for silence
    assert running(study) == []


def taken_up(files, storage, train, search):
    """Return ``train`` which is slow the first time: meanwhile another machine takes up the trial."""

    def slow(*args, **options):
        if not slow.done:
            slow.done = True
            other = study_of(files, storage, search=search)
            queue_again(other, running(other)[0].number)
            time.sleep(slow.seconds)
        return train(*args, **options)

    slow.done, slow.seconds = False, 0.0
    return slow


@pytest.mark.parametrize("epochs", [3, 40])  # noticed when the trial is told, or before, when its course is
def test_a_worker_whose_trial_was_taken_up_goes_on(epochs, files, tmp_path, monkeypatch):
    storage = str(tmp_path / "journal.log")
    search = search_of(files, 3, fixed={"training": {"epochs": epochs}})
    monkeypatch.setattr(jobs, "train_only", taken_up(files, storage, jobs.train_only, search))
    told = []
    found = run_search(search, storage, tell=told.append)
    assert [one.state for one in told].count("taken") == 1
    assert found.trials == 3
    # its settings were done after all
    params = [trial.params for trial in study_of(files, storage, search=search).trials]
    assert params[told[0].number] in params[told[0].number + 1 :]


def test_a_worker_hears_in_training_that_its_trial_was_taken_up(files, tmp_path, monkeypatch):
    storage = str(tmp_path / "journal.log")
    search = search_of(files, 1, fixed={"training": {"epochs": 7}})
    slow = taken_up(files, storage, jobs.train_only, search)
    slow.seconds, heard = 1.0, []

    def train(job, graph, listen):
        return slow(job, graph, listen=lambda progress: (heard.append(progress.epoch), listen(progress)))

    monkeypatch.setattr(life, "BEAT", 0.05)
    monkeypatch.setattr(jobs, "train_only", train)
    run_search(search, storage)
    assert len(heard) == 1 + 7  # one epoch of the trial that was taken, and the other


def test_a_worker_gives_signs_of_life_while_it_prepares(files, tmp_path, monkeypatch):
    search, storage, beats = search_of(files, 1), str(tmp_path / "journal.log"), set()
    train = jobs.train_only

    def prepared_slowly(*args, **options):
        study = study_of(files, storage)
        end = time.monotonic() + 20
        while len(beats) < 3 and time.monotonic() < end:
            beats.update(trial.user_attrs.get("beat") for trial in running(study))
            time.sleep(0.02)
        return train(*args, **options)

    monkeypatch.setattr(life, "BEAT", 0.05)
    monkeypatch.setattr(jobs, "train_only", prepared_slowly)
    run_search(search, storage)
    assert len(beats) >= 3


def test_containers_of_one_name_are_told_apart(files, tmp_path):
    study = study_of(files, tmp_path / "journal.log")
    beyond = 2**22 + 1  # no process has this number
    far, before = study.ask(), study.ask()
    for name, value in (("pid", beyond), ("beat", time.time()), ("host", f"{machine()[:-1]}!")):
        far.set_user_attr(name, value)
    # the same container, started again: this process has the number of one that is gone
    for name, value in (("pid", os.getpid()), ("worker", "another"), ("host", machine())):
        before.set_user_attr(name, value)
    take_up_lost(study)
    assert [trial.number for trial in running(study)] == [far.number]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_machine_is_more_than_its_name():
    assert machine().startswith(f"{platform.node()} ")
    assert machine().endswith(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115


def test_what_a_lost_trial_was_to_begin_with_is_kept(files, tmp_path):
    study = study_of(files, tmp_path / "journal.log")
    first = study.ask()
    begins = study.trials[first.number].system_attrs["fixed_params"]
    queue_again(study, first.number)  # before it has asked for anything
    assert study.trials[-1].system_attrs["fixed_params"] == begins != {}


def test_a_trial_whose_worker_is_killed_is_said_to_be_left(files, tmp_path):
    storage, told, killed = str(tmp_path / "journal.log"), [], []
    search = search_of(files, 3, fixed={"training": {"epochs": 300}})

    def kill_one(one):
        if not killed and one.epoch:
            study = study_of(files, storage, search=search)
            pids = {trial.number: trial.user_attrs["pid"] for trial in running(study)}
            if one.number in pids:  # else it has ended meanwhile
                killed.append(one.number)
                os.kill(pids[one.number], 9)

    found = run_search(search, storage, workers=2, threads=1, tell=told.append, watch=kill_one)
    assert found.trials == 3
    left = [one for one in told if one.state == "taken"]
    assert len(killed) == 1
    assert [one.number for one in left] == killed
    assert "ended from outside" in left[0].said
