"""Download one file so that it is exactly the file that was meant.

TLS is verified, the checksum and the length are known beforehand, the bytes go to a ``.part`` file beside the
target and are moved into place only when the checksum is right. A broken connection is taken up where it
stopped. An https address never leads to an unencrypted one.
"""

import dataclasses as dc
import http.client
import ipaddress
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from gyroformer.data.folder import OFFLINE_VARIABLE, is_offline
from gyroformer.durable import CHUNK, make_folder, move_into_place, only_one, sha256_of
from gyroformer.errors import DataError

#: answers worth a second try: the server is busy or broken, not the request
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_RANGE_NOT_SATISFIABLE = 416

Progress = Callable[[int], None]


@dc.dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to try: seconds for one answer, tries an address, and how to wait between them."""

    timeout: float = 30.0
    attempts: int = 4
    sleep: Callable[[float], None] = time.sleep


class _Refused(Exception):
    """This address will not do; the next one may."""


class _Broken(Exception):
    """The transfer failed in a way that may pass."""


def download(
    urls: Sequence[str],
    target: Path,
    *,
    sha256: str,
    size: int,
    offline: bool = False,
    loopback_http: bool = False,
    context: ssl.SSLContext | None = None,
    patience: Patience | None = None,
    progress: Progress | None = None,
) -> bool:
    """Put the file with this checksum and length at ``target``; return False if one was there already.

    Args:
        urls: addresses of the same bytes, tried in turn.
        target: where the file goes; its folder is created.
        sha256: the checksum it must have, in hexadecimal.
        size: the length it must have; not one byte more is read.
        offline: raise instead of using the network, as ``GYROFORMER_OFFLINE=1`` does.
        loopback_http: allow plain http to this machine itself, for tests.
        context: the TLS settings; the default verifies against the system's certificates.
        patience: time limit and tries.
        progress: called with the number of bytes that each block added.
    """
    if target.exists():
        return False
    if offline or is_offline():
        raise DataError(
            f"{target}: not found, and the network is switched off; copy the file there, "
            f"or leave out --offline and unset {OFFLINE_VARIABLE}"
        )
    make_folder(target.parent)
    opener = _make_opener(context or ssl.create_default_context(), loopback_http=loopback_http)
    with only_one(target.with_name(f"{target.name}.lock")):
        if target.exists():  # another process brought it while this one waited
            return False
        # the checksum is in the name: bytes of another version are never taken up
        part = target.with_name(f"{target.name}.{sha256[:12]}.part")
        transfer = _Transfer(opener, part, sha256, size, patience or Patience(), progress or (lambda _: None))
        reasons = []
        for url in urls:
            try:
                _check_address(url, loopback_http=loopback_http)
                transfer.run(url)
                move_into_place(part, target)
            except _Refused as refusal:
                reasons.append(f"{url}: {refusal}")
                continue
            except OSError as error:  # the usual errors of a network are refusals by now
                raise DataError(
                    f"{part}: {error.strerror or error}; check the disk, then try again"
                ) from None
            return True
    raise DataError(f"{target}: not downloaded; " + "; ".join(reasons or ["no address is known"]))


@dc.dataclass
class _Transfer:
    """One file on its way: where its bytes go and what they must be."""

    opener: urllib.request.OpenerDirector
    part: Path
    sha256: str
    size: int
    patience: Patience
    progress: Progress

    def run(self, url: str) -> None:
        """Fill the part file from ``url`` and check it, trying again after what may pass."""
        for attempt in range(self.patience.attempts):
            if attempt:
                self.patience.sleep(min(2.0 ** (attempt - 1), 30.0))
            resumed = self._have() > 0
            try:
                self._receive(url)
            except _Broken as trouble:
                reason = str(trouble)
                continue
            found = sha256_of(self.part)
            if found == self.sha256:
                return
            self.part.unlink()
            reason = f"wrong sha256: expected {self.sha256}, found {found}"
            if not resumed:
                raise _Refused(reason)
        raise _Refused(f"{reason} (tried {self.patience.attempts} times)")

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _receive(self, url: str) -> None:
        have = self._have()
        if have == self.size:
            return
        if have > self.size:
            self.part.unlink()
            have = 0
        # identity: a compressed transfer would have another length than the file
        request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            with self.opener.open(request, timeout=self.patience.timeout) as answer:
                self._store(answer, have)
        except urllib.error.HTTPError as error:
            error.close()
            self._explain(error.code, error.reason)
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise _Refused(f"certificate not accepted: {error.reason.verify_message}") from None
            raise _Broken(f"no connection: {error.reason}") from None
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            raise _Broken(f"connection lost: {error or type(error).__name__}") from None

    def _explain(self, code: int, reason: str) -> None:
        if code == _RANGE_NOT_SATISFIABLE:  # what we have is no beginning of what is there
            self.part.unlink(missing_ok=True)
        if code in _PASSING or code == _RANGE_NOT_SATISFIABLE:
            raise _Broken(f"the server answered {code} {reason}")
        raise _Refused(f"the server answered {code} {reason}")

    def _store(self, answer: http.client.HTTPResponse, have: int) -> None:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise _Refused("the server sent the file re-encoded")
        start = have if answer.status == http.client.PARTIAL_CONTENT else 0
        if start and not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            self.part.unlink()
            raise _Broken("the server continued at another offset than asked")
        announced = answer.headers.get("Content-Length", "")
        if announced.isdecimal() and start + int(announced) != self.size:
            raise _Refused(f"wrong length: expected {self.size} bytes, announced {start + int(announced)}")
        with self.part.open("ab" if start else "wb") as file:
            length = start
            # read1: what came is kept at once, so that a kill loses little
            while block := answer.read1(min(CHUNK, self.size + 1 - length)):
                length += len(block)
                if length > self.size:
                    file.truncate(0)
                    raise _Refused(f"wrong length: more than the expected {self.size} bytes came")
                file.write(block)
                self.progress(len(block))
        if length < self.size:
            raise _Broken(f"cut off after {length} of {self.size} bytes")


def _check_address(url: str, *, loopback_http: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    if not (parts.scheme == "http" and loopback_http and _is_loopback(parts.hostname or "")):
        raise _Refused("not an https address")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow a redirect only to an address that could have been asked for, and never from https to http."""

    def __init__(self, *, loopback_http: bool) -> None:
        self.loopback_http = loopback_http

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        secure = urlsplit(req.full_url).scheme == "https"
        try:
            _check_address(newurl, loopback_http=self.loopback_http and not secure)
        except _Refused:
            raise _Refused(f"redirected to {newurl}, which is not an https address") from None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _make_opener(context: ssl.SSLContext, *, loopback_http: bool) -> urllib.request.OpenerDirector:
    # built by hand: the ready-made opener would also follow file: and ftp: addresses
    opener = urllib.request.OpenerDirector()
    # a proxy cannot reach this machine's own loopback
    proxies = urllib.request.ProxyHandler({} if loopback_http else None)
    for handler in (
        proxies,
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SafeRedirects(loopback_http=loopback_http),
    ):
        opener.add_handler(handler)
    return opener
