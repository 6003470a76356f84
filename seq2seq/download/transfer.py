"""Transfer: one file over HTTP, from servers that break off, stall, forget, move and say what is not so.

What has come is kept beside the file as NAME.part, and what the server said of it as NAME.part.json: an interrupted
download goes on where it stopped. It asks for the rest of the same file only (`Range` with `If-Range` and the server's
strong ETag or date, RFC 9110, sections 13.1.5 and 14.2); a server that has another file by now, or knows no ranges,
sends all of it, and what has come before is dropped.

Nothing here believes a length: what comes is counted against a limit, and its SHA-256 taken from the disk in the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seq2seq import __version__
from seq2seq.download.part import Part
from seq2seq.errors import DownloadError

_CHUNK = 1 << 16
_AGENT = f"seq2seq-gru/{__version__}"
_HERE = ("127.0.0.1", "localhost", "::1")
_MOST_TRIES = 20  # of one address in all; a server that breaks off after every byte would go on for ever
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)

Told = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Patience:
    """How long to wait: seconds without a byte, the fewest bytes in that time, and pauses before new tries."""

    seconds: float = 30.0
    fewest: int = 512
    pauses: Sequence[float] = (1.0, 4.0, 10.0)


class _Permanent(Exception):  # noqa: N818
    """This address will not give the file, however often it is asked."""


class _Passing(Exception):  # noqa: N818
    """It may give it when it is asked again."""


def fetch(
    addresses: Sequence[str],
    file: Path,
    *,
    largest: int,
    told: Told = lambda have, size: None,
    patience: Patience | None = None,
) -> str:
    """Bring a file from the first address that gives it; returns that address. `told` hears of each piece that came.

    DownloadError, with each address and its reason, where none of them does; what has come stays for the next time.
    """
    patience = patience or Patience()
    reasons = []
    for address in addresses:
        try:
            _from_one(address, file, largest, told, patience)
            return address
        except _Permanent as reason:
            reasons.append(f"{address}: {reason}")
    raise DownloadError("; ".join(reasons))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _from_one(address: str, file: Path, largest: int, told: Told, patience: Patience) -> None:
    """All tries at one address. A try that brought something does not count among those that brought nothing."""
    part = Part(file, address)
    in_vain = 0
    for _ in range(_MOST_TRIES):
        before = part.size
        try:
            _try(part, largest, told, patience)
            part.finish()
            return
        except _Passing as reason:
            in_vain = 0 if part.size > before else in_vain + 1
            if in_vain > len(patience.pauses):
                raise _Permanent(str(reason)) from None
            time.sleep(patience.pauses[max(0, in_vain - 1)] if patience.pauses else 0.0)
            last = reason
    raise _Permanent(f"{last}, {_MOST_TRIES} times in a row")


def _try(part: Part, largest: int, told: Told, patience: Patience) -> None:
    """One request, and all that comes of it."""
    have = part.size
    headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    if have and part.validator is not None:
        headers |= {"Range": f"bytes={have}-", "If-Range": part.validator}
    with _network(patience), _ask(part, headers, patience.seconds) as answer:
        size = _expected(part, answer, have)
        if size is not None and size > largest:
            raise _too_large(largest)
        _receive(part, answer, size, largest, told, patience)


@contextlib.contextmanager
def _network(patience: Patience) -> Iterator[None]:
    """What a network does wrong, in words. What the disk does wrong has a file name and passes."""
    try:
        yield
    except (http.client.HTTPException, EOFError) as error:
        raise _Passing(f"the answer broke off ({type(error).__name__})") from None
    except TimeoutError:
        raise _Passing(f"nothing came for {patience.seconds:g} seconds") from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise _Passing(error.strerror or "the connection was lost") from None


def _ask(part: Part, headers: dict[str, str], seconds: float) -> Any:
    """The answer to a request, once it is no refusal."""
    if not _is_safe(part.address):
        raise _Permanent("only https is asked")
    try:
        return _opener().open(urllib.request.Request(part.address, headers=headers), timeout=seconds)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # there is nothing after what has come: it is another file, or was all of it
            part.drop()
            raise _Passing("it has no such part") from None
        reason = f"HTTP {error.code}" + (", redirected too often" if "redirect" in str(error.msg).lower() else "")
        raise (_Passing if error.code in _TRY_AGAIN else _Permanent)(reason) from None
    except urllib.error.URLError as error:
        cause = error.reason
        if isinstance(cause, (TimeoutError, ConnectionResetError)):
            raise cause from None
        raise _Permanent(f"no way there: {getattr(cause, 'strerror', None) or cause}") from None
    except ValueError as error:  # what a server redirects to may be no address
        raise _Permanent(f"it leads to no address ({error})") from None


def _expected(part: Part, answer: Any, have: int) -> int | None:
    """The whole size that the answer promises, if it does; begins anew where the answer is not the rest of the part."""
    encoding = answer.headers.get("Content-Encoding", "identity").lower()
    # Some servers say of a .gz that it is text in an encoding; it comes as the file that it is all the same.
    if encoding not in ("", "identity") and not (part.file.suffix == ".gz" and encoding.removeprefix("x-") == "gzip"):
        raise _Permanent(f"it answers in an encoding that was not asked for ({encoding[:20]})")
    length = answer.headers.get("Content-Length", "")
    size = int(length) if re.fullmatch("[0-9]{1,15}", length) else None
    if answer.status == 206:
        if not have:
            raise _Permanent("it sends a part where all was asked for")
        found = re.fullmatch(
            r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15}|\*)", answer.headers.get("Content-Range", "")
        )
        other = part.is_other(answer.headers)
        if found is None or int(found[1]) != have or other:
            part.drop()
            raise _Passing("it sent another part than it was asked for")
        return int(found[3]) if found[3] != "*" else None if size is None else have + size
    if answer.status != 200:
        raise _Permanent(f"HTTP {answer.status}")
    part.begin(answer.headers)
    return size


def _receive(part: Part, answer: Any, size: int | None, largest: int, told: Told, patience: Patience) -> None:
    """Write what comes to the part; _Passing where it ends early or trickles."""
    have, since, at = part.size, 0, time.monotonic()
    told(have, size)
    with part.open() as stream:
        while chunk := answer.read1(_CHUNK):
            have += len(chunk)
            if have > largest:
                raise _too_large(largest)
            _write(stream, chunk, part.path)
            told(have, size)
            since += len(chunk)
            if (now := time.monotonic()) - at > patience.seconds:
                if since < patience.fewest:
                    raise _Passing(f"only {since} bytes came in {patience.seconds:g} seconds")
                since, at = 0, now
    if size is not None and have != size:
        if have > size:
            part.drop()
        raise _Passing(f"the answer broke off after {have:,} of {size:,} bytes")
    if not have:
        raise _Passing("the answer was empty")


def _write(stream: io.FileIO, chunk: bytes, path: Path) -> None:
    try:
        stream.write(chunk)
    except OSError as error:  # one that comes from a write knows no name
        raise OSError(error.errno, error.strerror, str(path)) from error


def _too_large(largest: int) -> _Permanent:
    return _Permanent(f"it has more than {largest:,} bytes, which this corpus has not")


def _is_safe(address: str) -> bool:
    """https, or plain http to this very machine."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(address)
        return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
    return False


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows a server that says "over there", but never out of https, nor from another machine to this one."""

    max_redirections = 5
    max_repeats = 2

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        here = urlsplit(newurl).hostname in _HERE and urlsplit(req.full_url).hostname not in _HERE
        if here or not _is_safe(newurl):
            raise _Permanent(f"it leads to {newurl[:100]}, and only https is followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Knows http, https and proxies; urllib's own would also open files of this machine for a server that says so."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirect(),
    ):
        opener.add_handler(handler)
    return opener
