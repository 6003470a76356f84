"""Claims about fetching one file: it arrives whole and as it is, or is refused in words, whatever a server does."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seq2seq.download import transfer
from seq2seq.download.transfer import Patience, fetch, sha256_of
from seq2seq.errors import DownloadError

CONTENT = bytes(range(256)) * 1000 + b"the end"
LARGEST = 1_000_000
QUICK = Patience(seconds=0.3, fewest=512, pauses=(0.0, 0.0))

Act = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Does what the server's script says: one act for each request, the last one for all that follow."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        act = self.server.script.pop(0) if len(self.server.script) > 1 else self.server.script[0]
        self.close_connection = True
        act(self)

    def answer(self, status: int, body: bytes = b"", **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Act] = [whole]
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/corpus.gz"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.ended.set()
    made.shutdown()
    made.server_close()


# ---- what a server may do


def whole(handler: Handler) -> None:
    """Everything, or the part that is asked for if it is still the same file."""
    wanted, etag = handler.headers.get("Range"), '"v1"'
    if wanted and handler.headers.get("If-Range") == etag:
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        rest = CONTENT[start:]
        handler.answer(206, rest, Content_Length=len(rest), Content_Range=span, ETag=etag)
    else:
        handler.answer(200, CONTENT, Content_Length=len(CONTENT), ETag=etag)


def breaks_off(at: int, **headers: object) -> Act:
    def act(handler: Handler) -> None:
        handler.answer(200, CONTENT[:at], **{"Content_Length": len(CONTENT), "ETag": '"v1"', **headers})

    return act


def stalls(handler: Handler) -> None:
    handler.answer(200, CONTENT[:1000], Content_Length=len(CONTENT), ETag='"v1"')
    handler.wfile.flush()
    handler.server.ended.wait(5)


def trickles(handler: Handler) -> None:
    handler.answer(200, b"", Content_Length=len(CONTENT))
    while not handler.server.ended.wait(0.05):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def ignores_range(handler: Handler) -> None:
    handler.answer(200, CONTENT, Content_Length=len(CONTENT), ETag='"v1"')


def says(status: int) -> Act:
    return lambda handler: handler.answer(status, b"no", Content_Length=2)


def leads_to(address: str) -> Act:
    return lambda handler: handler.answer(302, b"", Location=address, Content_Length=0)


def got(server: Server, tmp_path: Path, *, largest: int = LARGEST) -> bytes:
    file = tmp_path / "corpus.gz"
    assert fetch([server.url], file, largest=largest, patience=QUICK) == server.url
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.gz"]
    return file.read_bytes()


def refused(server: Server, tmp_path: Path, *words: str, largest: int = LARGEST) -> None:
    before = time.monotonic()
    with pytest.raises(DownloadError) as error:
        fetch([server.url], tmp_path / "corpus.gz", largest=largest, patience=QUICK)
    assert time.monotonic() - before < 4
    for word in (server.url, *words):
        assert word in str(error.value), word
    assert not (tmp_path / "corpus.gz").exists()


# ---- what arrives


def test_a_file_arrives_as_it_is_and_every_byte_is_told(server: Server, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    fetch([server.url], tmp_path / "corpus.gz", largest=LARGEST, told=lambda *what: told.append(what), patience=QUICK)
    assert (tmp_path / "corpus.gz").read_bytes() == CONTENT
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert sha256_of(tmp_path / "corpus.gz") == hashlib.sha256(CONTENT).hexdigest()
    [(_, headers)] = server.asked
    assert headers["User-Agent"].startswith("seq2seq")
    assert headers["Accept-Encoding"] == "identity"
    assert "Range" not in headers


def test_after_a_break_only_the_rest_is_asked_for(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(70_000), whole]
    assert got(server, tmp_path) == CONTENT
    second = server.asked[1][1]
    assert (second["Range"], second["If-Range"]) == ("bytes=70000-", '"v1"')


def test_another_start_of_the_program_goes_on_where_the_last_one_ended(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(50_000), says(404)]
    refused(server, tmp_path, "HTTP 404")
    server.script, server.asked = [whole], []
    assert got(server, tmp_path) == CONTENT
    assert server.asked[0][1]["Range"] == "bytes=50000-"


def test_a_server_without_ranges_sends_all_of_it_once_more(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(70_000), ignores_range]
    assert got(server, tmp_path) == CONTENT


def test_a_file_that_has_changed_meanwhile_is_fetched_from_its_beginning(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(70_000, ETag='"v0"'), whole]
    assert got(server, tmp_path) == CONTENT


@pytest.mark.parametrize("validator", [{"ETag": 'W/"v1"'}, {"ETag": ""}])
def test_without_a_strong_validator_nothing_is_joined(
    server: Server, tmp_path: Path, validator: dict[str, str]
) -> None:
    server.script = [breaks_off(70_000, **validator), whole]
    assert got(server, tmp_path) == CONTENT
    assert "Range" not in server.asked[1][1]


def test_a_date_will_do_in_place_of_an_etag(server: Server, tmp_path: Path) -> None:
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    server.script = [breaks_off(9, ETag="", Last_Modified=date), whole]
    assert got(server, tmp_path) == CONTENT
    assert server.asked[1][1]["If-Range"] == date


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Range": f"bytes 5-{len(CONTENT) - 1}/{len(CONTENT)}"},
        {"Content_Range": "nonsense"},
        {"Content_Range": f"bytes 70000-{len(CONTENT) - 1}/{len(CONTENT)}", "ETag": '"v2"'},
    ],
)
def test_a_part_that_is_not_the_one_asked_for_is_not_joined(
    server: Server, tmp_path: Path, headers: dict[str, str]
) -> None:
    rest = CONTENT[70_000:]
    server.script = [
        breaks_off(70_000),
        lambda handler: handler.answer(206, rest, Content_Length=len(rest), **headers),
        whole,
    ]
    assert got(server, tmp_path) == CONTENT
    assert "Range" not in server.asked[2][1]


def test_a_range_that_is_refused_begins_anew(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(70_000), says(416), whole]
    assert got(server, tmp_path) == CONTENT


def test_a_part_unasked_is_no_answer(server: Server, tmp_path: Path) -> None:
    server.script = [lambda handler: handler.answer(206, b"x", Content_Length=1, Content_Range="bytes 0-0/9")]
    refused(server, tmp_path, "a part where all was asked for")


@pytest.mark.parametrize("note", [b"", b"[]", b"{", b'{"address": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_note_of_an_earlier_try_is_worth_nothing(server: Server, tmp_path: Path, note: bytes) -> None:
    (tmp_path / "corpus.gz.part").write_bytes(b"something else")
    (tmp_path / "corpus.gz.part.json").write_bytes(note)
    assert got(server, tmp_path) == CONTENT


# ---- what does not


def test_a_server_that_stalls_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.script = [stalls, whole]
    assert got(server, tmp_path) == CONTENT
    assert server.asked[1][1]["Range"] == "bytes=1000-"


def test_a_server_that_only_trickles_is_given_up(server: Server, tmp_path: Path) -> None:
    server.script = [trickles]
    refused(server, tmp_path, "bytes came in 0.3 seconds")


def test_a_server_that_breaks_off_each_time_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [breaks_off(0)]
    refused(server, tmp_path, f"broke off after 0 of {len(CONTENT):,} bytes")
    assert len(server.asked) == 3
    monkeypatch.setattr(transfer, "_MOST_TRIES", 4)
    server.script, server.asked = [whole_but_one], []
    refused(server, tmp_path, "4 times in a row")
    assert len(server.asked) == 4


def whole_but_one(handler: Handler) -> None:
    """One more byte each time."""
    wanted = handler.headers.get("Range")
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
    span = {"Content_Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"} if wanted else {}
    length = len(CONTENT) - start
    handler.answer(206 if wanted else 200, CONTENT[start : start + 1], Content_Length=length, ETag='"v1"', **span)


def test_a_length_that_is_too_small_cuts_and_is_caught_by_the_checksum_above(server: Server, tmp_path: Path) -> None:
    server.script = [lambda handler: handler.answer(200, CONTENT, Content_Length=100)]
    assert got(server, tmp_path) == CONTENT[:100]  # the announced size is all that HTTP can tell


def test_a_length_that_is_no_number_is_not_believed(server: Server, tmp_path: Path) -> None:
    server.script = [lambda handler: handler.answer(200, CONTENT, Content_Length="-5")]
    assert got(server, tmp_path) == CONTENT


@pytest.mark.parametrize("announced", [True, False])
def test_more_than_the_limit_is_not_taken(server: Server, tmp_path: Path, announced: bool) -> None:
    length = {"Content_Length": len(CONTENT)} if announced else {}
    server.script = [lambda handler: handler.answer(200, CONTENT, **length)]
    refused(server, tmp_path, "more than 70,000 bytes", largest=70_000)
    left = tmp_path / "corpus.gz.part"
    assert not left.exists() or left.stat().st_size <= 70_000


def test_chunks_that_stop_are_a_break(server: Server, tmp_path: Path) -> None:
    server.script = [lambda handler: handler.answer(200, b"5\r\nhello\r\n", Transfer_Encoding="chunked"), whole]
    assert got(server, tmp_path) == CONTENT


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (403, 1), (410, 1), (500, 3), (503, 3), (204, 1)])
def test_a_status_says_whether_another_try_makes_sense(server: Server, tmp_path: Path, status: int, tries: int) -> None:
    server.script = [says(status)]
    refused(server, tmp_path, f"HTTP {status}")
    assert len(server.asked) == tries


def test_one_bad_moment_of_a_server_is_forgiven(server: Server, tmp_path: Path) -> None:
    server.script = [says(503), whole]
    assert got(server, tmp_path) == CONTENT


def test_a_redirection_is_followed_and_a_circle_is_not(server: Server, tmp_path: Path) -> None:
    server.script = [leads_to("/elsewhere"), whole]
    assert got(server, tmp_path) == CONTENT
    assert server.asked[1][0] == "/elsewhere"
    (tmp_path / "corpus.gz").unlink()
    server.script = [leads_to(server.url)]
    refused(server, tmp_path, "HTTP 302, redirected too often")


@pytest.mark.parametrize(
    "address", ["http://example.org/x", "file:///etc/passwd", "ftp://example.org/x", "http://[", "//", "data:,x"]
)
def test_a_redirection_leads_nowhere_but_to_https(server: Server, tmp_path: Path, address: str) -> None:
    server.script = [leads_to(address)]
    refused(server, tmp_path)
    assert len(server.asked) <= 3


@pytest.mark.parametrize("address", ["http://example.org/corpus.gz", "file:///etc/passwd", "corpus.gz"])
def test_no_address_but_https_is_asked(tmp_path: Path, address: str) -> None:
    with pytest.raises(DownloadError, match="only https is asked"):
        fetch([address], tmp_path / "corpus.gz", largest=LARGEST, patience=QUICK)


def test_an_encoding_that_was_not_asked_for_is_refused_but_for_the_gzip_of_a_gz(server: Server, tmp_path: Path) -> None:
    server.script = [lambda handler: handler.answer(200, b"x", Content_Length=1, Content_Encoding="br")]
    refused(server, tmp_path, "encoding that was not asked for (br)")
    server.script = [
        lambda handler: handler.answer(200, CONTENT, Content_Length=len(CONTENT), Content_Encoding="x-gzip")
    ]
    assert got(server, tmp_path) == CONTENT


def test_the_next_address_is_asked_where_one_fails_and_both_are_named_where_all_do(
    server: Server, tmp_path: Path
) -> None:
    server.script = [says(404), whole]
    other = server.url.replace("corpus.gz", "mirror.gz")
    assert fetch([server.url, other], tmp_path / "corpus.gz", largest=LARGEST, patience=QUICK) == other
    server.script = [says(404)]
    with pytest.raises(DownloadError, match=r"corpus\.gz: HTTP 404; .*mirror\.gz: HTTP 404"):
        fetch([server.url, other], tmp_path / "other.gz", largest=LARGEST, patience=QUICK)


def test_an_address_that_cannot_be_reached_costs_nothing_of_what_has_come(server: Server, tmp_path: Path) -> None:
    server.script = [breaks_off(50_000), says(404)]
    refused(server, tmp_path)
    nobody = "http://127.0.0.1:9/corpus.gz"
    with pytest.raises(DownloadError, match="no way there"):
        fetch([nobody], tmp_path / "corpus.gz", largest=LARGEST, patience=QUICK)
    assert (tmp_path / "corpus.gz.part").stat().st_size == 50_000
