"""The scan: every line is read once and becomes a few numbers, 30 bytes of them for a pair, whatever its length.

Unlike a training, a scan does not stop at what it finds: lines that are not UTF-8 are repaired and marked, a side may
be longer than the other, and of a file that cannot be read to its end what can be read is examined.

Letters: N lines, X characters of a chunk of lines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seq2seq.corpus.lines import Lines, clean, read_lines
from seq2seq.diagnosis.characters import Kind, code_points, count_kinds, table
from seq2seq.diagnosis.languages import weight_of
from seq2seq.diagnosis.signs import Sign, signs_of
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles

CHUNK = 8_192  # lines that numpy looks at together
MOST_TEXT = 2_000_000  # or as many characters
CODE_POINTS = 0x110000

# What a line shares with its translation besides its length, in bits: see `alignment.py`.
HAS_DIGIT, HAS_QUESTION, HAS_MIDDLE_MARK = 1, 2, 4


@dataclass(frozen=True)
class Expectation:
    """What a side should be like: its scripts, and the weights of words, negative for those of this side."""

    scripts: frozenset[Kind] | None = None
    foreign: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Side:
    """One side of a text as numbers: signs, lengths in characters, hashes and cues of N lines.

    `codes` are the code points that occur, with how often and where first (counted from 0): a table of all of them
    would take 13 MB a side. `failure` says why reading ended early, `encoding` is that of a mark at the start.
    """

    file: str
    signs: NDArray[np.uint32]
    lengths: NDArray[np.int32]
    hashes: NDArray[np.int64]
    cues: NDArray[np.uint8]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    firsts: NDArray[np.int32]
    marked: bool = False
    carriage_returns: int = 0
    failure: str | None = None
    encoding: str = "UTF-8"

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def characters(self) -> NDArray[np.int64]:
        """How often each code point occurs."""
        characters = np.zeros(CODE_POINTS, dtype=np.int64)
        characters[self.codes] = self.counts
        return characters

    @property
    def first_line(self) -> NDArray[np.int32]:
        """Where each code point occurs first; -1: nowhere."""
        lines = np.full(CODE_POINTS, -1, dtype=np.int32)
        lines[self.codes] = self.firsts
        return lines

    def lines_with(self, sign: Sign) -> NDArray[np.int64]:
        """The lines that show a sign, counted from 0."""
        return np.flatnonzero(self.signs & np.uint32(sign))


class Collector:
    """A side in the making: lines go in one by one, numpy sees a chunk of them at a time."""

    def __init__(self, file: str, expected: Expectation) -> None:
        self._file, self._expected = file, expected
        self._texts: list[str] = []
        self._marks: list[tuple[int, Sign]] = []  # what the reader has said of lines of this chunk
        self._room = MOST_TEXT
        self._signs, self._lengths = array("I"), array("i")
        self._hashes, self._cues = array("q"), bytearray()
        self._characters = np.zeros(CODE_POINTS, dtype=np.int64)
        self._first_line = np.full(CODE_POINTS, -1, dtype=np.int32)

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._room -= len(text)
        if len(self._texts) >= CHUNK or self._room <= 0:
            self.flush()

    def mark(self, sign: Sign) -> None:
        """Say something of the line that comes next."""
        self._marks.append((len(self._texts), sign))

    def flush(self) -> None:
        texts = self._texts
        if not texts:
            return
        joined = "\n".join(texts) + "\n"
        code_X = code_points(joined)
        ends_N = np.flatnonzero(code_X == 0x0A)
        lengths_N = np.diff(ends_N, prepend=-1) - 1
        line_X = np.repeat(np.arange(len(texts)), lengths_N + 1)
        counts_NK = count_kinds(table()[code_X], line_X, len(texts))
        signs_N = signs_of(texts, joined, code_X, line_X, counts_NK, self._expected.scripts)
        for line, sign in self._marks:
            signs_N[line] |= np.uint32(sign)
            if sign in (Sign.NOT_UTF8, Sign.NUL):
                # The reader's own repair has put them there; no letter is lost in the file.
                signs_N[line] &= ~np.uint32(Sign.REPLACEMENT)
        self._count_characters(code_X, line_X)
        self._look_at_words(texts, signs_N)
        self._cues += self._cues_of(code_X, ends_N, lengths_N, counts_NK).tobytes()
        self._lengths.frombytes((lengths_N - counts_NK[:, Kind.SPACE]).astype(np.int32).tobytes())
        self._signs.frombytes(signs_N.tobytes())
        self._texts, self._marks, self._room = [], [], MOST_TEXT

    def _look_at_words(self, texts: list[str], signs_N: NDArray[np.uint32]) -> None:
        """Hashes of the cleaned lines, blank lines, and lines in the other side's language."""
        foreign = self._expected.foreign
        cleaned = [text if text.isascii() and _is_plain(text) else clean(text) for text in texts]
        # Python's own hash: fast, keyed anew in each process, and 64 bits: two of a million different lines meet in
        # it once in thirty million corpora.
        self._hashes.extend(map(hash, cleaned))
        for line, text in enumerate(cleaned):
            if not text:
                signs_N[line] |= np.uint32(Sign.BLANK)
        if foreign:
            for line, text in enumerate(cleaned):
                if weight_of(text.lower(), foreign) > 0:
                    signs_N[line] |= np.uint32(Sign.LANGUAGE)

    def _count_characters(self, code_X: NDArray[np.uint32], line_X: NDArray[np.int64]) -> None:
        counts = np.bincount(code_X)
        fresh = np.flatnonzero((counts > 0) & (self._first_line[: len(counts)] < 0))
        self._characters[: len(counts)] += counts
        if len(fresh):
            is_fresh = np.zeros(len(counts), dtype=bool)
            is_fresh[fresh] = True
            places = np.flatnonzero(is_fresh[code_X])[::-1]
            # From the last to the first: of several values for one place numpy keeps the last.
            self._first_line[code_X[places]] = line_X[places] + len(self._signs)

    @staticmethod
    def _cues_of(
        code_X: NDArray[np.uint32],
        ends_N: NDArray[np.int64],
        lengths_N: NDArray[np.int64],
        counts_NK: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        last_N = code_X[np.maximum(ends_N - 1, 0)]
        question_N = (lengths_N > 0) & np.isin(last_N, (0x3F, 0xFF1F, 0x37E, 0x61F))
        marks_N = counts_NK[:, Kind.CLOSING] > 1
        cues_N = (counts_NK[:, Kind.DIGIT] > 0) * HAS_DIGIT + question_N * HAS_QUESTION + marks_N * HAS_MIDDLE_MARK
        cues: NDArray[np.uint8] = cues_N.astype(np.uint8)
        return cues

    def finish(self, lines: Lines, failure: str | None) -> Side:
        self.flush()
        self._characters[0x0A] = 0  # the line ends are ours
        codes = np.flatnonzero(self._characters)
        return Side(
            self._file,
            np.asarray(self._signs, dtype=np.uint32),
            np.asarray(self._lengths, dtype=np.int32),
            np.asarray(self._hashes, dtype=np.int64),
            np.frombuffer(bytes(self._cues), dtype=np.uint8),
            codes,
            self._characters[codes],
            self._first_line[codes],
            lines.marked,
            lines.carriage_returns,
            failure,
            lines.encoding,
        )


def _is_plain(text: str) -> bool:
    """Whether cleaning leaves an ASCII text as it is; may be False for a text that it would leave."""
    return text.isprintable() and "  " not in text and text[:1] != " " and text[-1:] != " "


def scan(files: PairFiles, expected: tuple[Expectation, Expectation], most: int | None = None) -> tuple[Side, Side]:
    """Read both sides, or at most the first `most` lines of them. Raises CorpusError where a file cannot be opened."""
    if files.tsv is not None:
        return _scan_table(files, expected, most)
    assert files.source is not None
    assert files.target is not None
    return _scan_file(files.source, expected[0], most), _scan_file(files.target, expected[1], most)


def _scan_file(path: str, expected: Expectation, most: int | None) -> Side:
    collector = Collector(path, expected)

    def take(line: str, problem: Sign | None) -> None:
        if problem:
            collector.mark(problem)
        collector.add(line)

    with closing(read_lines(path, bad_lines="repair")) as lines:
        failure = _each(lines, take, most)
        return collector.finish(lines, failure)


def _scan_table(files: PairFiles, expected: tuple[Expectation, Expectation], most: int | None) -> tuple[Side, Side]:
    assert files.tsv is not None
    collectors = Collector(files.tsv, expected[0]), Collector(files.tsv, expected[1])

    def take(line: str, problem: Sign | None) -> None:
        cells = cells_of(line, files.columns)
        for collector, cell in zip(collectors, cells or ("", ""), strict=True):
            if cells is None:
                collector.mark(Sign.COLUMN)
            if problem:
                collector.mark(problem)
            collector.add(cell)

    with closing(read_lines(files.tsv, bad_lines="repair")) as lines:
        failure = _each(lines, take, most)
        source, target = (collector.finish(lines, failure) for collector in collectors)
    return source, target


def cells_of(row: str, columns: tuple[int, int]) -> tuple[str, str] | None:
    """The two cells of a row; both empty for a blank row, None where a column is missing."""
    cells = row.split("\t")
    if len(cells) >= max(columns):
        return cells[columns[0] - 1], cells[columns[1] - 1]
    return None if row.strip() else ("", "")


def _each(lines: Lines, take: Callable[[str, Sign | None], None], most: int | None) -> str | None:
    """Give every line to `take`, with what is wrong with its bytes; the reason where reading ends early."""
    repaired = 0
    try:
        for line in lines:
            problem = None
            if lines.repaired > repaired:
                repaired = lines.repaired
                problem = Sign.NUL if "NUL" in lines.problem else Sign.NOT_UTF8
            take(line or "", problem)
            if lines.number == most:
                break
    except CorpusError as error:
        return str(error)
    return None


def read_pairs(files: PairFiles) -> Iterator[tuple[str, str]]:
    """The pairs as they stand, up to the end of the shorter side or to where reading fails; bad bytes are repaired."""
    if files.tsv is not None:
        with closing(read_lines(files.tsv, bad_lines="repair")) as rows:
            for row in _until_it_fails(rows):
                yield cells_of(row, files.columns) or ("", "")
        return
    assert files.source is not None
    assert files.target is not None
    with (
        closing(read_lines(files.source, bad_lines="repair")) as sources,
        closing(read_lines(files.target, bad_lines="repair")) as targets,
    ):
        yield from zip(_until_it_fails(sources), _until_it_fails(targets), strict=False)


def _until_it_fails(lines: Lines) -> Iterator[str]:
    try:
        for line in lines:
            yield line or ""
    except CorpusError:
        return
