import sys
from pathlib import Path

import pytest
import typer

from gyroformer.cli.app import guarded
from gyroformer.cli.resume_command import resume_command
from gyroformer.errors import Interrupted


@pytest.mark.parametrize(
    "argv, expected",
    [
        (["gyroformer", "embed", "web-edu"], "gyroformer embed web-edu --out 'my runs/a' --resume"),
        (["/bin/gyroformer", "embed", "g", "--out", "a"], "gyroformer embed g --out a --resume"),
        (["gyroformer", "embed", "g", "--out=a", "--resume"], "gyroformer embed g --out=a --resume"),
    ],
)
def test_the_command_that_goes_on(argv, expected):
    assert resume_command(argv, Path("my runs/a")) == expected


def test_an_interrupted_command_prints_it_and_exits_with_130(monkeypatch, capsys):
    def command():
        raise Interrupted(Path("runs/a"), 17)

    monkeypatch.setattr(sys, "argv", ["gyroformer", "embed", "karate"])
    with pytest.raises(typer.Exit) as caught:
        guarded(command)()
    assert caught.value.exit_code == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "interrupted after epoch 17; to go on:\n  gyroformer embed karate --out runs/a --resume\n"
