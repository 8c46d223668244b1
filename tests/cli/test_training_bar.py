import io
import time

import pytest

from gyroformer.cli import training_bar as bar_module
from gyroformer.cli.training_bar import TrainingBar, duration, line, short_curvatures, training_bar
from gyroformer.train.outcome import Progress


def progress(epoch, **changes):
    fields = {
        "epoch": epoch,
        "epochs": 200,
        "loss": 0.12345678,
        "metrics": {"map": 0.98765},
        "curvatures": [-1.5, 0.25],
        "seconds": 1.0,
        "seconds_left": 200.0,
    }
    return Progress(**fields | changes)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_line_holds_what_one_wants_to_know():
    assert line(progress(7)) == "epoch 7/200  loss 0.1235  map 0.9877  k -1.5 +0.25  3 min 20 s left"
    assert line(progress(7, metrics={}, curvatures=[])) == "epoch 7/200  loss 0.1235  3 min 20 s left"


def test_many_curvatures_are_shortened():
    assert short_curvatures([0.0, 1.0, -2.0, 3.0]) == "+0 +1 -2 +3"
    assert short_curvatures([0.0, 1.0, -2.0, 3.0, 0.5]) == "-2 … +3 (5)"


@pytest.mark.parametrize(
    "seconds, text",
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3600, "1 h 00 min"), (7505, "2 h 05 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_without_a_terminal_a_line_every_ten_seconds(clock, capsys):
    file = io.StringIO()
    bar = TrainingBar(file)
    for second in range(36):
        clock[0] = 1000.0 + second
        bar(progress(second + 1))
    said = file.getvalue().splitlines()
    assert [text.split()[1] for text in said] == ["3/200", "13/200", "23/200", "33/200"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_short_run_shows_nothing(kind, clock):
    file = kind()
    bar = TrainingBar(file)
    for step in range(19):
        clock[0] = 1000.0 + step / 10
        bar(progress(step + 1))
    bar.stop()
    assert file.getvalue() == ""


def test_on_a_terminal_a_bar_that_goes_away(clock, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    file = Terminal()
    bar = TrainingBar(file)
    clock[0] += 3
    bar(progress(40))
    shown = file.getvalue()
    assert "epoch 40/200" in shown
    assert "map 0.9877" in shown
    bar.stop()
    assert file.getvalue().endswith("\x1b[2K"), "the line is erased"


def test_it_speaks_on_stderr_and_stops_after_an_error(clock, capsys, monkeypatch):
    stopped = []
    monkeypatch.setattr(bar_module.TrainingBar, "stop", lambda self: stopped.append(self))

    def fails():
        with training_bar() as bar:
            clock[0] += 11
            bar(progress(3))
            raise RuntimeError("training failed")

    with pytest.raises(RuntimeError, match="training failed"):
        fails()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("epoch 3/200")
    assert len(stopped) == 1
