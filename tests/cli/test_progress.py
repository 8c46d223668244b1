"""Nothing is silent for long, and nothing short is shown."""

import time

import pytest

from gyroformer.cli import progress as module
from gyroformer.cli.root import in_our_form
from gyroformer.cli.training_bar import TrainingBar


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    monkeypatch.setattr(module, "LOOK", 0.02)


def wait_for(capsys, text):
    heard, until = "", time.monotonic() + 20
    while text not in heard and time.monotonic() < until:
        heard += capsys.readouterr().err
        time.sleep(0.02)
    return heard


def test_long_work_is_said_although_nobody_calls(hurried, capsys):
    with module.progress() as shown:
        shown.show("reading")
        assert capsys.readouterr().err == ""
        assert wait_for(capsys, "reading") == "reading\n"
        shown.rest()
        time.sleep(0.3)
        assert capsys.readouterr().err == ""


def test_without_a_terminal_lines_become_rare(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    shown, heard = module.Progress(), []
    monkeypatch.setattr(module.threading.Thread, "start", lambda thread: None)
    for now in range(100, 1100):
        shown.show("training")
        heard += [now - 100] if capsys.readouterr().err else []
    assert heard == [2, 12, 32, 72, 152, 312, 612, 912]
    shown.rest()
    for now in range(1100, 1140):
        shown.show("writing")
        heard += [now - 1100] if capsys.readouterr().err else []
    assert heard[8:] == [10, 20]


def test_what_was_going_on_is_not_said_after_its_end(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    monkeypatch.setattr(module.threading.Thread, "start", lambda thread: None)
    shown = module.Progress()
    shown.show("run 1 at 20 %")
    now = 105.0
    shown._draw()
    shown.show("run 1 at 50 %")
    now = 120.0
    shown.tell("run 1 is done")
    shown._draw()
    assert capsys.readouterr().err == "run 1 at 20 %\nrun 1 is done\n"
    now = 141.0
    shown.show("run 2 at 10 %")
    assert capsys.readouterr().err == "run 2 at 10 %\n"


def test_short_work_is_not(hurried, capsys):
    with module.progress() as shown:
        shown.show("reading")
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_stages_of_a_job(hurried, capsys):
    bar = TrainingBar()
    bar.about = "run 1 of 3: "
    bar.stage("preparing")
    assert wait_for(capsys, "preparing") == "run 1 of 3: preparing …\n"
    bar.stop()


@pytest.mark.parametrize(
    "message, words, said",
    [
        ("Missing argument 'graph'.", [], "GRAPH is missing: give it"),
        (
            "No such option: --epoch (Possible options: --epochs)",
            [],
            "no option is called '--epoch'; did you mean '--epochs'?",
        ),
        (
            "Invalid value for '--trials': Input should be greater than or equal to 1",
            ["--trials", "0"],
            "--trials must be at least 1; got '0'",
        ),
        (
            "Invalid value for '--trials': Input should be a valid integer, unable to parse string as an integer",
            ["--trials=x"],
            "--trials must be a whole number; got 'x'",
        ),
        ("Something else.", [], "something else"),
    ],
)
def test_usage_errors_have_one_form(message, words, said):
    assert in_our_form(message, words) == said


def test_ctrl_c_while_the_watcher_starts_is_ctrl_c(monkeypatch):
    def interrupted(thread):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), module.progress() as shown:
        shown.show("reading")
