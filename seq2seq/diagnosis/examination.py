"""The examination: a corpus goes in, a diagnosis comes out.

The text is read once, a chunk at a time. What was found is kept as line numbers; the few lines that a person is shown
are looked up at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from seq2seq.corpus.lines import clean
from seq2seq.diagnosis import duplicates, lengths, line_findings, rare_characters
from seq2seq.diagnosis.characters import FIRST_SCRIPT, Kind, code_points, scripts_of, table
from seq2seq.diagnosis.findings import EXAMPLES, Diagnosis
from seq2seq.diagnosis.found import NO_LINES, Found, Text, as_findings
from seq2seq.diagnosis.languages import word_weights
from seq2seq.diagnosis.scan import Expectation, read_pairs, scan
from seq2seq.errors import CorpusError

if TYPE_CHECKING:
    from seq2seq.config.schema import DataConfig, PairFiles
    from seq2seq.diagnosis.vocabulary import VocabularyUse

SAMPLE = 20_000  # pairs at the head of the training text from which scripts and words are learnt
HEAD = 4_000  # of them, for the question which language a side is in

PART_NAMES = {"train": "training", "validation": "validation", "test": "test"}


@dataclass(frozen=True)
class Corpus:
    """What is to be examined: files by part (train, validation, test), and what the settings say of them."""

    parts: dict[str, tuple[PairFiles, ...]]
    languages: tuple[str | None, str | None] = (None, None)
    bad_lines: str = "refuse"

    @classmethod
    def of(cls, data: DataConfig) -> Corpus:
        """The files of the settings; what is split off from the training text is a part of it here."""
        from seq2seq.config.schema import Fraction

        parts = {"train": tuple(data.train)}
        for name, part in (("validation", data.validation), ("test", data.test)):
            if part is not None and not isinstance(part, Fraction):
                parts[name] = tuple(part) if isinstance(part, Sequence) else (part,)
        return cls(parts, (data.source_language, data.target_language), data.bad_lines)


@dataclass
class Examined:
    """A diagnosis and what it was made from: the scanned texts by part, and all lines that were found."""

    diagnosis: Diagnosis
    texts: dict[str, list[Text]]
    found: list[Found]
    vocabularies: list[VocabularyUse] = field(default_factory=list)


def examine(
    corpus: Corpus,
    *,
    shown: int = EXAMPLES,
    most: int | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> Examined:
    """Read all parts of a corpus, or the first `most` lines of each file, and tell what they show.

    Raises CorpusError only where a file cannot be opened at all.
    """
    for one in chain.from_iterable(corpus.parts.values()):
        for _, path in one.files():
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise CorpusError(
                    f"{path} is not a regular file; a text is read several times here. Write it to a file."
                )
    stage("looking at the first lines")
    head = list(islice(chain.from_iterable(map(read_pairs, corpus.parts["train"])), SAMPLE))
    sources, targets = [clean(source) for source, _ in head], [clean(target) for _, target in head]
    expected = _expectations(corpus.languages, sources, targets)
    texts: dict[str, list[Text]] = {}
    for part, files in corpus.parts.items():
        stage(f"reading the {PART_NAMES[part]} text")
        texts[part] = [Text(part, some, *scan(some, expected, most)) for some in files]
    stage("comparing")
    found: list[Found] = []
    for text in chain.from_iterable(texts.values()):
        found += _of_text(text, corpus)
    found += line_findings.of_languages(texts["train"][0], corpus.languages, (sources[:HEAD], targets[:HEAD]))
    for scanned in texts.values():
        found += duplicates.duplicates(scanned)
    for part in ("validation", "test"):
        found += duplicates.leaks(texts["train"], texts.get(part, []))
    if "test" in texts and "validation" in texts:
        found += [
            one for one in duplicates.leaks(texts["validation"], texts["test"], name="validation") if one.kind == "leak"
        ]
    found += rare_characters.rare(texts["train"])
    for part in ("validation", "test"):
        found += rare_characters.unseen(texts["train"], texts.get(part, []))
    diagnosis = Diagnosis(pairs={part: sum(map(len, some)) for part, some in texts.items()})
    diagnosis.add(as_findings(found, shown))
    return Examined(diagnosis, texts, found)


def _of_text(text: Text, corpus: Corpus) -> list[Found]:
    """All that a text shows by itself."""
    found = line_findings.of_files(text)
    step = lengths.in_step(text)
    found += step
    out_of_step = next((one.dirt for one in step if one.kind == "slip"), NO_LINES)
    found += line_findings.of_pairs(text)
    found += lengths.outliers(text, out_of_step)
    found += line_findings.of_lines(text, corpus.languages, corpus.bad_lines)
    found += line_findings.of_chinese(text, corpus.languages)
    return found


def _expectations(
    languages: tuple[str | None, str | None], sources: Sequence[str], targets: Sequence[str]
) -> tuple[Expectation, Expectation]:
    """The scripts of both sides, by their languages or by most of their letters; and, where they share a script,
    the words by which the sides are told apart."""
    scripts = [
        scripts_of(language) or _scripts_in(sample)
        for language, sample in zip(languages, (sources, targets), strict=True)
    ]
    weights: dict[str, float] = {}
    if scripts[0] is not None and scripts[1] is not None and scripts[0] & scripts[1]:
        weights = word_weights(sources, targets)
    return (
        Expectation(scripts[0], {word: -weight for word, weight in weights.items()}),
        Expectation(scripts[1], weights),
    )


def _scripts_in(sample: Sequence[str]) -> frozenset[Kind] | None:
    """The scripts that more than a tenth of the letters are of."""
    import numpy as np

    counts = np.bincount(table()[code_points("".join(sample))], minlength=len(Kind))
    counts[:FIRST_SCRIPT] = 0
    counts[Kind.HAN] += counts[Kind.SIMPLIFIED_HAN] + counts[Kind.TRADITIONAL_HAN]
    scripts = {Kind(code) for code in np.flatnonzero(counts * 10 > counts[: Kind.SIMPLIFIED_HAN].sum()).tolist()}
    if Kind.HAN in scripts:
        scripts |= {Kind.SIMPLIFIED_HAN, Kind.TRADITIONAL_HAN}
    return frozenset(scripts) or None
