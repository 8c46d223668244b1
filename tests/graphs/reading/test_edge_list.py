import gzip

import pytest

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.reading.columns import Wanted
from gyroformer.graphs.reading.edge_list import read_edge_list
from gyroformer.graphs.reading.read import read_graph


def pairs(path, **options):
    listing = read_edge_list(path, **options)
    ids = listing.ids
    return [(ids[u], ids[v]) for u, v in zip(listing.source, listing.target, strict=True)]


PLAIN = [(1, 2), (2, 30), (30, 1)]


@pytest.mark.parametrize(
    "content, name",
    [
        ("1 2\n2 30\n30 1\n", "g.txt"),
        ("1 2\n2 30\n30 1", "g.edges"),  # no last line end
        ("1\t2\n2\t30\n30\t1\n", "g.tsv"),
        ("1,2\n2,30\n30,1\n", "g.csv"),
        ("1, 2\n2, 30\n30, 1\n", "g.txt"),
        ("1;2\n2;30\n30;1\n", "g.csv"),
        ("1|2\n2|30\n30|1\n", "g.txt"),
        ("  1   2\n  2  30\n 30   1\n", "g.txt"),
        ("1,2,\n2,30,\n30,1,\n", "g.csv"),  # a delimiter at the end
        ('"1","2"\n"2","30"\n"30","1"\n', "g.csv"),
        ("# SNAP\n# FromNodeId\tToNodeId\n1\t2\n2\t30\n30\t1\n", "g.txt"),
        ("% konect sym\n1 2\n\n2 30\n   \n# late\n30 1\n\n", "g.txt"),
        ("#FromNodeId\tToNodeId\n1\t2\n#some words here\n##\n2\t30\n30\t1\n", "g.txt"),
        ("source,target\n1,2\n2,30\n30,1\n", "g.csv"),
        ("Person,Friend\n1,2\n2,30\n30,1\n", "g.csv"),
        ("kind,target,source\nx,2,1\ny,30,2\nz,1,30\n", "g.csv"),
        ("1 2 {}\n2 30 {}\n30 1 {}\n", "g.edgelist"),
        ("1, 2, {'a': {'b': 3}}\n2, 30, {}\n30, 1, {}\n", "g.edgelist"),
        (b"1 2\r\n2 30\r\n30 1\r\n", "g.txt"),
        (b"1 2\r2 30\r30 1\r", "g.txt"),
        (b"\xef\xbb\xbf1 2\n2 30\n30 1\n", "g.txt"),
        ("1 2\n2 30\n30 1\n".encode("utf-16"), "g.txt"),
        (b"\xfe\xff" + "1,2\r\n2,30\r\n30,1\r\n".encode("utf-16-be"), "g.csv"),
        ("1 2\n2 30\n30 1\n".encode("utf-32"), "g.txt"),
        (gzip.compress(b"1 2\n2 30\n30 1\n", mtime=0), "g.txt.gz"),
        (gzip.compress(b"1 2\n2 30\n30 1\n", mtime=0), "g.txt"),  # packed in spite of its name
    ],
)
def test_one_graph_in_many_dialects(write, content, name):
    path = write(content, name)
    assert pairs(path) == PLAIN
    assert read_edge_list(path).ids == [1, 2, 30]
    assert read_edge_list(path).weight is None


@pytest.mark.parametrize(
    "content, name",
    [
        ("a b 0.5\nb c -2\nc a 1e3\n", "g.txt"),
        ("a,b,0.5\nb,c,-2\nc,a,1000\n", "g.csv"),
        ("from,weight,to\na,0.5,b\nb,-2,c\nc,1000,a\n", "g.csv"),
        ("a,b,likes\na,b,0.5\nb,c,-2\nc,a,1000\n".replace("a,b,likes", "one,two,w"), "g.csv"),
        ("a b 0.5 1999\nb c -2 2000\nc a 1000 2001\n", "out.txt"),
        ("a b {'weight': 0.5}\nb c {'weight': -2, 'x': 1}\nc a {'x': 1, 'weight': 1000}\n", "g.edgelist"),
        ("a,b,{'weight': 0.5}\nb,c,{'weight': -2}\nc,a,{'weight': 1000}\n", "g.csv"),
    ],
)
def test_weights(write, content, name):
    listing = read_edge_list(write(content, name))
    assert listing.ids == ["a", "b", "c"]
    assert listing.weight.tolist() == [0.5, -2.0, 1000.0]


def test_integer_weights_of_integer_nodes(write):
    listing = read_edge_list(write("1 2 3\n2 5 4\n"))
    assert (listing.ids, listing.weight.tolist()) == ([1, 2, 5], [3.0, 4.0])


def test_other_columns_of_a_header_are_not_weights(write):
    path = write("id1,id2,year\n1,2,1999\n2,3,2000\n", "g.csv")
    assert read_edge_list(path).weight is None
    assert pairs(path) == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    "content, ids",
    [
        ("nan None\nNone inf\n", ["nan", "None", "inf"]),
        ("-1 -5\n-5 0\n", [-1, -5, 0]),
        ("007 7\n7 07\n", ["007", "7", "07"]),
        ("+1 1\n1 -0\n", ["+1", "1", "-0"]),
        ("9223372036854775807 9223372036854775808\n9223372036854775808 5\n", [2**63 - 1, 2**63, 5]),
        (f"{10**40} {-(10**40)}\n3 {10**40}\n", [10**40, -(10**40), 3]),
        ("5 1000000000000000000\n", [5, 10**18]),
        ("999999999999999999 -999999999999999999\n", [10**18 - 1, -(10**18) + 1]),
        ("1 2\n2 x\n", ["1", "2", "x"]),
        ("é ü\n日本 é\n", ["é", "ü", "日本"]),
        ("1.0 2.5\n2.5 3\n", ["1.0", "2.5", "3"]),
        ("a x{1}\nx{1} {}\n", ["a", "x{1}", "{}"]),
        ("a {}\n{} c\n", ["a", "{}", "c"]),
        ("u v\nv w\n", ["u", "v", "w"]),  # an edge, not a header
    ],
)
def test_ids_are_opaque(write, content, ids):
    listing = read_edge_list(write(content))
    assert listing.ids == ids
    assert [type(name) for name in listing.ids] == [type(name) for name in ids]


def test_ids_with_blanks_and_delimiters(write):
    assert pairs(write('New York,Boston\n"Paris, Texas",New York\n', "g.csv")) == [
        ("New York", "Boston"),
        ("Paris, Texas", "New York"),
    ]
    assert pairs(write("New York\tBoston\n", "g.tsv")) == [("New York", "Boston")]
    assert pairs(write("Smith,J Doe,K\nDoe,K Poe,E\n")) == [("Smith,J", "Doe,K"), ("Doe,K", "Poe,E")]
    assert pairs(write('say "hi",b\nb,c\n', "g.csv")) == [('say "hi"', "b"), ("b", "c")]
    assert pairs(write('"say ""hi""",b\n', "g.csv")) == [('say "hi"', "b")]


def test_the_user_may_name_delimiter_and_header(write):
    assert pairs(write("a,x b,y\n"), delimiter=" ") == [("a,x", "b,y")]
    assert pairs(write("a:b\nb:c\n"), delimiter=":") == [("a", "b"), ("b", "c")]
    assert pairs(write("source target\nb c\n"), wanted=Wanted(header=False)) == [
        ("source", "target"),
        ("b", "c"),
    ]
    assert pairs(write("x y\nb c\n"), wanted=Wanted(header=True)) == [("b", "c")]
    with pytest.raises(UsageError, match="single ASCII character"):
        read_edge_list(write("a::b\n"), delimiter="::")


def test_blocks_agree_with_one_block(write, monkeypatch):
    """Integers first, then text, a comment and a negative number, cut at every possible place."""
    content = b"# c\r\n1 2\r\n22 3\r\n# c\r\n\r\n-4 1\r\n\xc3\xa9 22\r\n007 7\r\n"
    expected = [("1", "2"), ("22", "3"), ("-4", "1"), ("é", "22"), ("007", "7")]
    from gyroformer.graphs.reading import edge_list, lines

    for size in range(1, len(content) + 1):
        monkeypatch.setattr(edge_list, "line_blocks", lambda path, size=size: lines.line_blocks(path, size))
        assert pairs(write(content)) == expected
        assert pairs(write(content.decode().encode("utf-16"))) == expected


@pytest.mark.parametrize(
    "content, name, line, words",
    [
        (b"", "g.txt", None, "no line with data"),
        ("\n\n", "g.txt", None, "no line with data"),
        ("# only\n% comments\n", "g.txt", None, "no line with data"),
        ("source,target\n", "g.csv", None, "only a header"),
        ("1\n2\n3\n", "g.txt", 1, "one column"),
        ("a\nb\n", "g.csv", 1, "one column"),
        ("1 2\n2 3\n3\n", "g.txt", 3, "1 column where 2"),
        ("1,2\n2,3,4\n", "g.csv", 2, "3 columns where 2"),
        ("1 2 3\n2 3\n", "g.txt", 2, "2 columns where 3"),
        ("1,2\n,3\n", "g.csv", 2, "empty node id"),
        ("1,2\n3,\n", "g.csv", 2, "empty node id"),
        ("1,2\n,3 4\n", "g.csv", 2, "empty node id"),  # as many numbers as two edges have
        ("1,2\n3 4,\n", "g.csv", 2, "empty node id"),
        ("1 2\n3 4 5\n6\n", "g.txt", 2, "3 columns where 2"),  # as many numbers as three edges have
        ("1 2\n3\n4 5 6\n", "g.txt", 2, "1 column where 2"),
        ("# c\n1 2 1\n\n2 3 x\n", "g.txt", 4, "weight 'x' is not a finite number"),
        ("1 2 1\n2 3 nan\n", "g.txt", 2, "weight 'nan'"),
        ("1 2 1\n2 3 1e999\n", "g.txt", 2, "weight '1e999'"),
        ("1 2 1\n2 3 1_0\n", "g.txt", 2, "weight '1_0'"),
        ("a b {'weight': 1}\nb\n", "g.txt", 2, "1 column where 3"),
        ("a b {'weight': 1}\nb c {}\n", "g.txt", 2, "2 columns where 3"),
        ("a likes b\nb likes c\n", "g.txt", 1, "'b' is not a number"),
        ("joy,love\n#joy,love\n", "g.csv", 2, "'#joy,love' may be a comment or an edge"),
        ("joy love\n# a b\n%joy love\n", "g.txt", 3, "may be a comment or an edge"),
        ('1,2\n"3,4\n', "g.csv", 2, "quotation marks"),
        ("1 2\n3 4\0\n", "g.txt", 2, "zero byte"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "g.txt", 1, "0x89 is not UTF-8: give a text file"),
        (b"1 2\ncaf\xe9 2\n", "g.txt", 2, "0xe9 is not UTF-8"),
        (b"\xff\xfe1\x00 \x00\x00\xd8", "g.txt", 1, "not utf-16-le"),
        (gzip.compress(b"1 2\n" * 99999, mtime=0)[:-20], "g.txt.gz", None, "truncated"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff", "g.txt.gz", None, "damaged"),
        ("1 2\n", "g.txt.gz", None, "not compressed"),
    ],
)
def test_bad_files_are_named_with_line_and_remedy(write, content, name, line, words):
    path = write(content, name)
    with pytest.raises(DataError) as caught:
        read_graph(path)
    message = str(caught.value)
    assert words in message
    assert message.startswith(str(path) + (f":{line}: " if line else ":"))
    assert "\n" not in message


def test_a_flipped_bit_in_gzip_is_noticed(write):
    packed = bytearray(gzip.compress(b"".join(b"%d %d\n" % (i, i + 1) for i in range(5000))))
    packed[-6] ^= 1  # in the checksum
    with pytest.raises(DataError, match="damaged"):
        read_graph(write(bytes(packed), "g.txt.gz"))


def test_a_comment_in_a_later_block_that_may_be_an_edge(write, monkeypatch):
    from gyroformer.graphs.reading import edge_list, lines

    monkeypatch.setattr(edge_list, "line_blocks", lambda path: lines.line_blocks(path, 4))
    with pytest.raises(DataError, match=":3: '#a b' may be a comment or an edge"):
        read_edge_list(write("a b\nb c\n#a b\n"))


@pytest.mark.parametrize("content", ["1 2\n3 4\n", "a b\nc d\n"])
def test_max_nodes(write, content):
    assert read_graph(write(content), max_nodes=4).num_nodes == 4
    with pytest.raises(DataError, match="4 nodes or more, but the limit is 3: raise max_nodes"):
        read_graph(write(content), max_nodes=3)


def test_an_endless_line(write, monkeypatch):
    monkeypatch.setattr("gyroformer.graphs.reading.lines.LONGEST_LINE", 1000)
    with pytest.raises(DataError, match="no line break within 1000 bytes"):
        read_graph(write(b"1" * 5000))
