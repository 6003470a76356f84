"""Pairs: two aligned texts, or a table of two columns, as one stream of cleaned (source, target) sentences.

The stream is read anew on every pass and never held in memory. What is left out on the way is counted, with the
first few places, so that nothing goes missing in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq.corpus.lines import BadLines, clean, read_lines
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles

PLACES_SHOWN = 5

_WHAT_WAS_DONE = {
    "blank": "{} dropped: one side is blank",
    "bad": "{} dropped: a line is not UTF-8, holds a NUL byte or lacks a column",
    "repaired": "{} repaired: bytes that are not UTF-8 became U+FFFD and NUL bytes were removed",
}


@dataclass
class PairReport:
    """What one pass over a corpus met: pairs read and kept, pairs dropped as blank or bad, and lines repaired.

    read = kept + blank + bad.
    """

    read: int = 0
    kept: int = 0
    blank: int = 0
    bad: int = 0
    repaired: int = 0
    notes: list[str] = field(default_factory=list)
    places: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def add(self, what: str, where: str, line: int) -> None:
        """Count one case of `what` (blank, bad or repaired) and remember its place if it is among the first."""
        setattr(self, what, getattr(self, what) + 1)
        seen = self.places.setdefault(what, {})
        if sum(map(len, seen.values())) < PLACES_SHOWN:
            seen.setdefault(where, []).append(line)

    def messages(self) -> list[str]:
        """One sentence for each kind of loss, with its count and first places; empty when all was well."""
        said = list(self.notes)
        for what, sentence in _WHAT_WAS_DONE.items():
            count: int = getattr(self, what)
            if not count:
                continue
            thing = ("line" if what == "repaired" else "pair") + ("s" if count > 1 else "")
            places = [
                f"{where} line{'s' if len(lines) > 1 else ''} {', '.join(f'{line:,}' for line in lines)}"
                for where, lines in self.places[what].items()
            ]
            more = ", ..." if count > PLACES_SHOWN else ""
            said.append(f"{sentence.format(f'{count:,} {thing}')} ({'; '.join(places)}{more})")
        return said


def report_facts(report: PairReport) -> dict[str, Any]:
    """A report as JSON, without what it says of the files' names."""
    return {**asdict(report), "notes": []}


def report_from(facts: Mapping[str, Any]) -> PairReport:
    """The report that `report_facts` has written."""
    return PairReport(**facts)


class _Row(NamedTuple):
    """Line `number` of both sides as read, None for a bad one, and whether each was repaired."""

    source: str | None
    target: str | None
    number: int
    repaired: tuple[bool, bool]


class ParallelCorpus:
    """The aligned pairs of one or more `PairFiles`, cleaned; iterate as often as needed.

    Line i of the source belongs to line i of the target. A pair with a blank side is dropped as a pair and counted;
    repeated pairs are kept. `key` names the setting in messages ("data.train"), or is empty where none does. `keep`
    chooses pairs by their cleaned source, which is how a corpus is split; the setting that names the files is then
    `files_key`. `report` describes the last full pass, or what is `known` of the text beforehand. A pass raises
    CorpusError when the two sides differ in length, when a line is bad (with bad_lines="refuse"), and when no pair
    remains.

    In a table (`tsv`) only tabs separate columns, nothing quotes them, and columns not asked for are ignored. A row
    without the columns is a bad line; since it cannot be repaired, "repair" drops it too.
    """

    def __init__(
        self,
        files: Sequence[PairFiles],
        *,
        key: str,
        bad_lines: BadLines = "refuse",
        keep: Callable[[str], bool] | None = None,
        files_key: str | None = None,
        known: PairReport | None = None,
    ) -> None:
        self.files, self.key, self.report = tuple(files), key, known or PairReport()
        self._known = known
        self._file_keys = file_keys(files_key or key, self.files)
        self._bad_lines, self._keep = bad_lines, keep

    def __iter__(self) -> Iterator[tuple[str, str]]:
        report = PairReport(notes=self._notes())
        for files, key in zip(self.files, self._file_keys, strict=True):
            sides = list(named_paths(files, key))
            source_key, target_key = sides[0], sides[-1]
            for row in self._rows(files):
                source = None if row.source is None else clean(row.source)
                target = None if row.target is None else clean(row.target)
                # A source that could not be read is filed as the empty one, so that of the corpora split from one
                # text exactly one counts it.
                if self._keep is not None and not self._keep(source or ""):
                    continue
                report.read += 1
                for side, repaired in zip((source_key, target_key), row.repaired, strict=True):
                    if repaired:
                        report.add("repaired", side, row.number)
                if source is None or target is None:
                    report.add("bad", source_key if source is None else target_key, row.number)
                elif not source or not target:
                    report.add("blank", target_key if source else source_key, row.number)
                else:
                    report.kept += 1
                    yield source, target
        self.report = self._known or report
        if not report.kept:
            raise CorpusError(self._nothing_left(report))

    def _rows(self, files: PairFiles) -> Iterator[_Row]:
        return self._two_files(files) if files.tsv is None else self._table(files)

    def _two_files(self, files: PairFiles) -> Iterator[_Row]:
        """The lines of two files side by side; raises CorpusError with both counts when one ends before the other."""
        assert files.source is not None
        assert files.target is not None
        with (
            closing(read_lines(files.source, bad_lines=self._bad_lines)) as sources,
            closing(read_lines(files.target, bad_lines=self._bad_lines)) as targets,
        ):
            while True:
                repaired_before = sources.repaired, targets.repaired
                try:
                    source, target = next(sources), next(targets)
                except StopIteration:
                    break
                repaired = sources.repaired > repaired_before[0], targets.repaired > repaired_before[1]
                yield _Row(source, target, sources.number, repaired)
            source_lines, target_lines = sources.count_rest(), targets.count_rest()
        if source_lines != target_lines:
            raise CorpusError(
                f"{files.source} has {source_lines:,} lines and {files.target} has {target_lines:,}; "
                f"a parallel corpus pairs line with line. `seq2seq doctor` finds where they part."
            )

    def _table(self, files: PairFiles) -> Iterator[_Row]:
        """Two columns of a table; raises CorpusError naming the row that lacks one, if bad lines are refused."""
        assert files.tsv is not None
        source_column, target_column = files.columns
        with closing(read_lines(files.tsv, bad_lines=self._bad_lines)) as lines:
            repaired_before = 0
            for line in lines:
                repaired, repaired_before = lines.repaired > repaired_before, lines.repaired
                source: str | None = None
                target: str | None = None
                if line is not None:
                    cells = line.split("\t")
                    if len(cells) >= max(source_column, target_column):
                        source, target = cells[source_column - 1], cells[target_column - 1]
                    elif not line.strip():
                        source = target = ""
                    elif self._bad_lines == "refuse":
                        raise CorpusError(
                            f"{files.tsv} line {lines.number:,} has no column {max(source_column, target_column)}: "
                            f"tabs separate columns, and {len(cells) - 1} stand in this row. "
                            f"Mend the row, or set data.bad_lines to drop."
                        )
                yield _Row(source, target, lines.number, (repaired, False))

    def _notes(self) -> list[str]:
        """What is odd about the files themselves, though it may be meant."""
        return [
            f"{' and '.join(named_paths(files, key))} are the same file: {files.source}"
            for files, key in zip(self.files, self._file_keys, strict=True)
            if files.source is not None and files.target is not None and _same_file(files.source, files.target)
        ]

    def part(self, key: str, keep: Callable[[str], bool]) -> ParallelCorpus:
        """The pairs of the same files whose sources `keep` chooses, under a key of their own."""
        return ParallelCorpus(self.files, key=key, bad_lines=self._bad_lines, keep=keep, files_key=self.key)

    def read_before(self, report: PairReport) -> None:
        """Take over what an earlier pass over the same text has met; the files may have other names by now."""
        self.report = replace(report, notes=self._notes())

    def _nothing_left(self, report: PairReport) -> str:
        paths = [path for files in self.files for path in named_paths(files, "").values()]
        found = "; ".join(report.messages()) if report.read else "they hold no lines"
        part = f"{self.key.removeprefix('data.').replace('train', 'training')} " if self.key else ""
        return f"There are no {part}pairs in {' and '.join(paths)}: {found}. Check {self.key or 'them'}."


def file_keys(key: str, files: Sequence[PairFiles]) -> list[str]:
    """The setting that named each of the files: the key itself, or key[0], key[1] and so on for a list of several."""
    return [key] if len(files) == 1 else [f"{key}[{number}]" for number in range(len(files))]


def named_paths(files: PairFiles, key: str) -> dict[str, str]:
    """The paths of a pair of files by the setting that named each, the source's first; without a key by what it is."""
    if files.tsv is not None:
        return {f"{key}.tsv" if key else "table": files.tsv}
    assert files.source is not None
    assert files.target is not None
    key = f"{key}." if key else ""
    return {f"{key}source": files.source, f"{key}target": files.target}


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
