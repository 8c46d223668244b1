"""Where a study is kept: files that are no journal, or a damaged one, are said and left as they are."""

import json

import pytest
from small_searches import search_of
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.errors import CorruptFileError, UsageError
from gyroformer.search.run import run_search

pytest.importorskip("optuna")


def test_a_storage_that_cannot_be_used_is_named(files, tmp_path):
    (tmp_path / "file").write_text("")
    for storage in (str(tmp_path / "file" / "journal.log"), f"sqlite:///{tmp_path}/none/x.db"):
        with pytest.raises(UsageError, match=r"--storage .* cannot be used"):
            run_search(search_of(files), storage)
    for text in ('{"a": 1}\n', "[1, 2]\n", "words\n", "words\nof mine", '{"a": 1}'):
        (tmp_path / "file").write_text(text)
        with pytest.raises(UsageError, match=r"--storage .* is no journal"):
            run_search(search_of(files), str(tmp_path / "file"))
        assert (tmp_path / "file").read_text() == text


def test_a_journal_whose_last_line_is_torn_is_used(files, tmp_path):
    journal = tmp_path / "journal.log"
    first = run_search(search_of(files, 2), str(journal))
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 4, "wor')
    assert run_search(search_of(files, 2), str(journal)) == first
    assert run_search(search_of(files, 3), str(journal)).trials == 3
    for line in journal.read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    "text",
    [
        '{"op_code":99,"worker_id":"a"}\n',
        '{"op_code":"x"}\n',
        '{"op_code":0}\n',
        '{"op_code":0,"worker_id":[],"study_name":[],"directions":[7]}\n',
        '{"op_code":0}\n{"op_code":4, "wor',
        '{"op_code":' + "[" * 100_000 + "\n",
        '{"op_code":99}',
    ],
)
def test_a_damaged_journal_is_one_line_and_stays_as_it_is(text, files, tmp_path):
    journal = tmp_path / "x.log"
    journal.write_text(text)
    words = ["tune", "embed", str(files[0]), "--model", "hgcn", "--trials", "1", "--storage", str(journal)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3, done.output
    assert f"{journal}: the journal of the search is damaged" in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        done.stderr.splitlines()[-1]
    ]
    assert journal.read_text().rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("at_end", [True, False])
def test_a_line_of_a_journal_that_is_no_json_is_said(at_end, files, tmp_path):
    journal = tmp_path / "journal.log"
    run_search(search_of(files, 2), str(journal))
    lines = journal.read_bytes().splitlines(keepends=True)
    lines.insert(len(lines) if at_end else 5, b'{"op_code": 4, x\n')
    journal.write_bytes(b"".join(lines))
    with pytest.raises(CorruptFileError, match="is damaged"):
        run_search(search_of(files, 3), str(journal))
    assert journal.read_bytes() == b"".join(lines)


def test_a_line_of_a_journal_that_lacks_its_end_is_kept(files, tmp_path):
    journal = tmp_path / "journal.log"
    first = run_search(search_of(files, 2), str(journal))
    journal.write_bytes(journal.read_bytes()[:-1])
    assert run_search(search_of(files, 2), str(journal)) == first


def test_a_database_keeps_a_study_too(files, tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    assert run_search(search_of(files, 2), storage).trials == 2
    assert run_search(search_of(files, 3), storage).trials == 3
