import pytest

from gyroformer.graphs.reading.lines import line_blocks, quoted, whole_text

TEXT = "one\n\ntwo é\nthree\n\n\nfour\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_blocks_of_any_size_hold_the_same_numbered_lines(tmp_path, end, encoding):
    path = tmp_path / "t.txt"
    path.write_bytes(TEXT.replace("\n", end).encode(encoding))
    for size in range(1, path.stat().st_size + 2):
        blocks = list(line_blocks(path, size))
        assert b"".join(block.text for block in blocks) == TEXT.encode()
        line = 1
        for block in blocks:
            assert block.first == line
            assert block.text.endswith(b"\n")
            line += block.text.count(b"\n")


def test_the_last_line_needs_no_end(tmp_path):
    for content in (b"a\nb", b"a\nb\r", b"a\r\nb"):
        (tmp_path / "t.txt").write_bytes(content)
        assert whole_text(tmp_path / "t.txt") == "a\nb\n"


def test_quotes_are_short():
    assert quoted(b"x" * 100) == repr("x" * 57 + "...")
    assert quoted(" a\tb ") == repr("a\tb")
