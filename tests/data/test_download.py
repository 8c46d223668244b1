"""The downloader against a server on this machine that misbehaves on request."""

import hashlib
import shutil
import ssl
import subprocess
import sys
import threading
import time

import pytest
from file_server import Server

from gyroformer.data.download import Patience, download
from gyroformer.durable import only_one
from gyroformer.errors import DataError

BODY = bytes(range(256)) * 4096  # 1 MiB
SIZE = len(BODY)
SUM = hashlib.sha256(BODY).hexdigest()
AT_ONCE = Patience(timeout=5.0, attempts=3, sleep=lambda _: None)


@pytest.fixture
def server():
    one = Server(BODY)
    yield one
    one.close()


def get(server, target, *, sha256=SUM, size=SIZE, **options):
    options = {"loopback_http": True, "patience": AT_ONCE} | options
    return download([server.url], target, sha256=sha256, size=size, **options)


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_good_file_arrives_once(server, tmp_path):
    seen = []
    target = tmp_path / "new" / "file.bin"
    assert get(server, target, progress=seen.append) is True
    assert target.read_bytes() == BODY
    assert sum(seen) == len(BODY)
    assert leftovers(target.parent) == ["file.bin"]
    assert get(server, target) is False
    assert len(server.ranges) == 1


def test_a_file_that_is_there_is_used_as_it_is(server, tmp_path):
    target = tmp_path / "file.bin"
    target.write_text("mine")
    assert get(server, target) is False
    assert target.read_text() == "mine"
    assert server.ranges == []


def test_a_wrong_sum_is_refused_and_leaves_nothing(server, tmp_path):
    server.body = BODY[:-1] + b"!"
    with pytest.raises(DataError, match=f"wrong sha256: expected {SUM}, found "):
        get(server, tmp_path / "file.bin")
    assert leftovers(tmp_path) == []
    assert len(server.ranges) == 1  # the same bytes would come again


def test_a_cut_transfer_is_taken_up_where_it_stopped(server, tmp_path):
    server.behaviour = ["cut"]
    assert get(server, tmp_path / "file.bin")
    assert server.ranges == [None, f"bytes={len(BODY) // 2}-"]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_transfer_that_is_always_cut_fails_and_keeps_its_part_for_next_time(server, tmp_path):
    server.behaviour = ["cut"] * 3
    with pytest.raises(DataError, match=r"cut off after \d+ of 1048576 bytes \(tried 3 times\)"):
        get(server, tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()
    assert leftovers(tmp_path) == [f"file.bin.{SUM[:12]}.part"]
    before = len(server.ranges)
    assert get(server, tmp_path / "file.bin")
    assert server.ranges[before] == f"bytes={len(BODY) * 7 // 8}-"
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_server_without_ranges_sends_it_all_again(server, tmp_path):
    server.behaviour = ["cut", "no-range"]
    assert get(server, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == BODY


@pytest.mark.parametrize("how", ["elsewhere", "416"])
def test_a_range_that_is_not_the_one_asked_for_starts_afresh(server, tmp_path, how):
    server.behaviour = ["cut", how]
    assert get(server, tmp_path / "file.bin")
    assert server.ranges[-1] is None
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_bytes_left_by_something_else_do_not_spoil_the_file(server, tmp_path):
    (tmp_path / f"file.bin.{SUM[:12]}.part").write_bytes(b"x" * 1000)
    assert get(server, tmp_path / "file.bin")
    assert server.ranges == ["bytes=1000-", None]
    assert (tmp_path / "file.bin").read_bytes() == BODY


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    server.behaviour = ["503", "429"]
    waits = []
    assert get(server, tmp_path / "a", patience=Patience(attempts=3, sleep=waits.append))
    assert waits == [1.0, 2.0]
    server.behaviour = ["404"]
    with pytest.raises(DataError, match="the server answered 404"):
        get(server, tmp_path / "b")


def test_the_next_address_is_tried(server, tmp_path):
    server.behaviour = ["404"]
    options = {"sha256": SUM, "size": len(BODY), "loopback_http": True, "patience": AT_ONCE}
    assert download([server.url, server.url], tmp_path / "file.bin", **options)


@pytest.mark.parametrize("how, words", [("well", "announced 1048576"), ("endless", "more than the expected")])
def test_not_one_byte_more_than_expected_is_kept(server, tmp_path, how, words):
    server.behaviour = [how]
    with pytest.raises(DataError, match=words):
        get(server, tmp_path / "file.bin", size=1000)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


def test_offline_touches_nothing(server, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="network is switched off"):
        get(server, tmp_path / "file.bin", offline=True)
    monkeypatch.setenv("GYROFORMER_OFFLINE", "1")
    with pytest.raises(DataError, match="network is switched off"):
        get(server, tmp_path / "file.bin")
    assert server.ranges == []
    assert list(tmp_path.iterdir()) == []


def test_a_dead_server_is_one_line(server, tmp_path):
    server.close()
    try:
        with pytest.raises(DataError, match="no connection") as error:
            get(server, tmp_path / "file.bin")
        assert "\n" not in str(error.value)
    finally:
        server.close = lambda: None


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/x", "http://example.org/x", "ftp://example.org/x", "file:///etc/passwd"]
)
def test_only_https_is_asked(tmp_path, url):
    with pytest.raises(DataError, match="not an https address"):
        download([url], tmp_path / "file.bin", sha256=SUM, size=1)


@pytest.mark.parametrize("to", ["http://example.org/x", "file:///etc/passwd", "ftp://example.org/x"])
def test_a_redirect_to_something_unencrypted_is_refused(server, tmp_path, to):
    server.behaviour, server.redirect_to = ["redirect"], to
    with pytest.raises(DataError, match=r"not an https address|is not allowed"):
        get(server, tmp_path / "file.bin")


def test_a_redirect_keeps_the_range(server, tmp_path):
    server.behaviour, server.redirect_to = ["redirect", "cut", "redirect"], server.url
    assert get(server, tmp_path / "file.bin")
    assert server.ranges[-1] == f"bytes={len(BODY) // 2}-"


def test_two_at_once_download_once(server, tmp_path):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(get(server, tmp_path / "file.bin"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    assert len(server.ranges) == 1


def test_a_lock_left_by_a_killed_process_does_not_block(server, tmp_path):
    (tmp_path / "file.bin.lock").write_bytes(b"")
    assert get(server, tmp_path / "file.bin")


def test_a_killed_download_leaves_no_file_and_is_taken_up(server, tmp_path):
    server.behaviour = ["hang"]
    target = tmp_path / "file.bin"
    call = (
        f"download([{server.url!r}], Path({str(target)!r}), sha256={SUM!r}, size={SIZE}, loopback_http=True)"
    )
    code = f"from pathlib import Path; from gyroformer.data.download import download; {call}"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        deadline = time.monotonic() + 20
        while not any(path.stat().st_size for path in tmp_path.glob("*.part")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
    server.release.set()
    assert not target.exists()
    assert get(server, target)
    assert server.ranges[1].startswith("bytes=")
    assert target.read_bytes() == BODY


def test_a_held_lock_is_waited_for_and_then_named(tmp_path):
    with (
        only_one(tmp_path / "a.lock"),
        pytest.raises(DataError, match="held by another process"),
        only_one(tmp_path / "a.lock", patience=0.1),
    ):
        pass
    with only_one(tmp_path / "a.lock", patience=0.1):
        pass


def test_a_folder_that_cannot_be_written_is_one_line(server, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match="GYROFORMER_DATA"):
        get(server, tmp_path / "taken" / "file.bin")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("making a certificate needs the openssl program")
    folder = tmp_path_factory.mktemp("tls")
    made = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", *kind, *names, *made], check=True, capture_output=True)
    return folder


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    one = Server(BODY, context)
    yield one
    one.close()


def test_a_certificate_that_nobody_vouches_for_is_refused(secure, tmp_path):
    with pytest.raises(DataError, match="certificate not accepted"):
        get(secure, tmp_path / "file.bin")
    assert secure.ranges == []


def test_https_works_but_never_leads_to_http(secure, server, certificate, tmp_path):
    trusting = ssl.create_default_context(cafile=certificate / "cert.pem")
    assert get(secure, tmp_path / "a", context=trusting)
    secure.behaviour, secure.redirect_to = ["redirect"], server.url
    # plain http to this machine is allowed here, and still not as the end of an https address
    with pytest.raises(DataError, match="redirected to http://127"):
        get(secure, tmp_path / "b", context=trusting)
    assert server.ranges == []
