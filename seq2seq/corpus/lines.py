"""Lines of text: the one reader through which every text enters, be it for training, translation or scoring.

Line i of one file belongs to line i of another, so everything here serves one promise: what a line is never depends
on what is inside it. Only LF ends a line, and one CR before it goes with it. The bytes are UTF-8 whatever the
locale; bytes that are not are refused with file and line, or handled as `data.bad_lines` asks, and then counted.
"""

from __future__ import annotations

import io
import shlex
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Literal

from seq2seq.corpus.archives import MAGIC, Unpacked
from seq2seq.errors import CorpusError

BadLines = Literal["refuse", "drop", "repair"]

LONGEST_LINE = 16 << 20  # bytes; a small archive can unpack to one endless line, which must not eat the memory
ADVICE = "Convert the file to UTF-8 text, or set data.bad_lines to drop or repair."
_NUL_ADVICE = "Remove it, or set data.bad_lines to drop or repair."

PUBLIC = ("multi30k", "tatoeba")  # what `seq2seq download` fetches into data/NAME, where configs/ look for it

_LONG = 2_000  # characters of a line that is cleaned with care; see `_marks_in_order`
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = (  # the UTF-32 marks first, because one of them begins with a UTF-16 mark
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def clean(text: str) -> str:
    """The documented normalisation, the same in training and translation: blanks made plain, letters composed.

    Every run of white space becomes one blank and the ends are trimmed. White space is what Unicode says it is (tab,
    CR, VT, FF, NEL, no-break and ideographic spaces, U+2028 and U+2029) and the four separators U+001C to U+001F.
    Then Unicode normalisation form C, so that a letter typed with a combining accent equals the composed letter.
    Nothing else changes: case, quotes, zero-width characters and direction marks stay.
    """
    text = " ".join(text.split())
    if len(text) > _LONG and not unicodedata.is_normalized("NFC", text):
        text = _marks_in_order(text)
    return unicodedata.normalize("NFC", text)


def _marks_in_order(text: str) -> str:
    """The text decomposed, the marks that follow a letter in canonical order (Unicode Standard, D109).

    `normalize` does the same, but in a time that grows with the square of the marks in a row: a line of a megabyte of
    them would take it an hour.
    """
    decomposed = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(decomposed, key=lambda character: unicodedata.combining(character) > 0)
    return "".join("".join(sorted(run, key=unicodedata.combining) if marks else run) for marks, run in runs)


class Lines(Iterator["str | None"]):
    """The lines of one text, one at a time, as soon as each is complete. Made by `read_lines`.

    `number` is the line last given, from 1; `bad` and `repaired` count what was dropped and repaired so far, and
    `problem` says what was wrong with the last such line. `marked` tells of a byte order mark at the start, and
    `carriage_returns` how many lines ended with CR and LF; `encoding` is another than UTF-8 where a mark says so.
    """

    def __init__(self, stream: BinaryIO, name: str, bad_lines: BadLines, advice: str) -> None:
        self.name, self.number, self.bad, self.repaired = name, 0, 0, 0
        self.problem, self.marked, self.carriage_returns, self.encoding = "", False, 0, "UTF-8"
        self._stream, self._bad_lines, self._advice = stream, bad_lines, advice
        self._ended = False

    def __next__(self) -> str | None:
        line = self._next_bytes()
        if line is None:
            raise StopIteration
        if b"\0" not in line:
            try:
                return line.decode("utf-8")
            except UnicodeDecodeError as error:
                problem = f"is not UTF-8 (byte 0x{line[error.start]:02X}, number {error.start + 1} of the line)"
        else:
            problem = f"holds a NUL byte (number {line.index(0) + 1} of the line)"
        return self._bad_line(line, problem)

    def _bad_line(self, line: bytes, problem: str) -> str | None:
        self.problem = problem
        advice = self._advice
        if b"\0" in line:  # it may well be UTF-8
            advice = _NUL_ADVICE if advice == ADVICE else "Remove it."
        if self._bad_lines == "refuse":
            self.close()
            raise CorpusError(f"{self.name} line {self.number:,} {problem}. {advice}")
        if self._bad_lines == "drop":
            self.bad += 1
            return None
        self.repaired += 1
        return line.replace(b"\0", b"").decode("utf-8", errors="replace")

    def _next_bytes(self) -> bytes | None:
        """The next line without its end, or None after the last."""
        if self._ended:
            return None
        try:
            line = self._stream.readline(LONGEST_LINE + 2)
        except OSError as error:
            self.close()
            raise CorpusError(f"{self.name} cannot be read: {error.strerror or error}.") from None
        except CorpusError:  # a damaged archive
            self.close()
            raise
        if self.number == 0:
            line = self._without_mark(line)
        if not line:
            self.close()
            return None
        self.number += 1
        if line.endswith(b"\n"):
            if line.endswith(b"\r\n"):
                self.carriage_returns += 1
                line = line[:-2]
            else:
                line = line[:-1]
        if len(line) > LONGEST_LINE:
            self.close()
            raise CorpusError(
                f"{self.name} line {self.number:,} is longer than {LONGEST_LINE >> 20} MiB, which no sentence is. "
                f"Check that the file is text with one sentence a line."
            )
        return line

    def _without_mark(self, line: bytes) -> bytes:
        """The first line without a UTF-8 byte order mark; a mark of another encoding is refused by name."""
        for mark, encoding in _OTHER_ENCODINGS:
            if line.startswith(mark):
                self.close()
                self.encoding = encoding
                raise CorpusError(f"{self.name} is {encoding} text; UTF-8 is expected. Convert the file to UTF-8.")
        self.marked = line.startswith(_BYTE_ORDER_MARK)
        return line.removeprefix(_BYTE_ORDER_MARK)

    def count_rest(self) -> int:
        """Read to the end without decoding, and return how many lines the text has in all."""
        while self._next_bytes() is not None:
            pass
        return self.number

    def close(self) -> None:
        self._ended = True
        self._stream.close()


def read_lines(
    path: str | Path | BinaryIO, *, name: str | None = None, bad_lines: BadLines = "refuse", advice: str = ADVICE
) -> Lines:
    """Open a text and give its lines one by one, without their ends and otherwise as they stand (see `clean`).

    `path` may also be an open binary stream, such as standard input; it need not be seekable and is left open. gzip
    and xz are known by their first bytes, whatever the name. With bad_lines="drop" a bad line (not UTF-8, or with a
    NUL byte) is given as None, so that the lines after it keep their numbers; with "repair" undecodable bytes become
    U+FFFD and NUL bytes go. `advice` ends the refusal of a bad line, for callers to whom the setting means nothing.

    Raises CorpusError, which names the file by `name` or else by its path.
    """
    if isinstance(path, (str, Path)):
        name = name or str(path)
        stream, suffix = _open(path), Path(path).suffix.lower()
    else:
        name = name or str(getattr(path, "name", "the input"))
        stream, suffix = path, ""
    text = _unpack(stream, suffix, name, owned=stream is not path)
    return Lines(text, name, bad_lines, advice)


def _open(path: str | Path) -> BinaryIO:
    full = Path(path).absolute()
    try:
        return full.open("rb", buffering=0)
    except FileNotFoundError:
        raise CorpusError(f"There is no file {full}. {way_to(full)}") from None
    except IsADirectoryError:
        raise CorpusError(f"{full} is a folder; a text file is expected.") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise CorpusError(f"{full} cannot be opened: {getattr(error, 'strerror', None) or error}.") from None


def way_to(missing: Path) -> str:
    """What to do about a file that is not there: where it would be a public corpus's, how to fetch that."""
    folder = missing.parent
    if folder.name not in PUBLIC or folder.parent.name != "data":
        return "Check the path."
    fetch = ["seq2seq", "download", folder.name]
    if folder != Path.cwd() / "data" / folder.name:  # where it goes by itself
        fetch += ["--output", str(folder)]
    return f"Check the path, or fetch the corpus with: {shlex.join(fetch)}"


class _Joined(io.RawIOBase):
    """A stream with the few bytes put back that were read to see what it is. Closes the stream only if it owns it."""

    def __init__(self, head: bytes, stream: BinaryIO, owned: bool) -> None:
        super().__init__()
        self._head, self._stream, self._owned = head, stream, owned
        # read1 gives what has arrived; read(n) on a buffered stream would wait for n bytes at a terminal or a pipe.
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        room = memoryview(buffer)  # type: ignore[arg-type]  # the buffer protocol has no name before Python 3.12
        data = self._head or self._read(len(room)) or b""
        size = min(len(room), len(data))
        room[:size] = data[:size]
        self._head = self._head[size:]
        return size

    def close(self) -> None:
        if self._owned:
            self._stream.close()
        super().close()


def _unpack(stream: BinaryIO, suffix: str, name: str, owned: bool) -> BinaryIO:
    """The stream as plain text: unpacked if its first bytes say so, refused if only its name says so."""
    head = b""
    # Byte by byte and no further than the bytes are those of an archive: a live stream must not be waited for.
    while any(magic.startswith(head) and magic != head for magic in MAGIC.values()):
        try:
            byte = stream.read(1)
        except OSError as error:
            raise CorpusError(f"{name} cannot be read: {error.strerror or error}.") from None
        if not byte:
            break
        head += byte
    found = next((form for form, magic in MAGIC.items() if head == magic), None)
    expected = {".gz": "gzip", ".xz": "xz"}.get(suffix)
    if expected and found != expected:
        stream.close()
        raise CorpusError(
            f"{name} is named {suffix} but holds no {expected} data. "
            f"Make the file again, or rename it if it is plain text."
        )
    joined = io.BufferedReader(_Joined(head, stream, owned), 1 << 16)
    return joined if found is None else _Owning(Unpacked(joined, found, name), joined)


class _Owning(io.BufferedReader):
    """A buffered reader that closes what it unpacks along with itself."""

    def __init__(self, text: Unpacked, packed: BinaryIO) -> None:
        super().__init__(text, 1 << 16)
        self._packed = packed

    def close(self) -> None:
        self._packed.close()
        super().close()
