"""Tuning: which beam size, length penalty and coverage penalty translate a validation set best?

Letters: P parts of lines (a line is one part unless it is too long for the model), K hypotheses of each, N = 10 the
counts that BLEU is made of.

The beam is searched once for each size. It grows by probability alone, so what it has finished can be ranked by any
penalties afterwards, and gives exactly what a search with them would have given. BLEU is made of counts that are
summed over sentences; those of a hypothesis are counted when it is first chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.evaluation.scores import bleu_counts, bleu_of_counts, default_tokenizer

if TYPE_CHECKING:
    from seq2seq.config.schema import DecodingConfig
    from seq2seq.translation.translator import Parts, Translator

BEAMS = (1, 3, 5, 8, 12)
LENGTH_PENALTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
COVERAGE_PENALTIES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Trial:
    """One way to search, and the BLEU that it gives."""

    beam_size: int
    length_penalty: float
    coverage_penalty: float
    bleu: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def is_way_of(self, decoding: DecodingConfig) -> bool:
        """Whether these settings search so."""
        return all(
            getattr(self, name) == getattr(decoding, name)
            for name in ("beam_size", "length_penalty", "coverage_penalty")
        )


@dataclass(frozen=True)
class Grid:
    """All values that are tried, each with each."""

    beams: Sequence[int] = BEAMS
    length_penalties: Sequence[float] = LENGTH_PENALTIES
    coverage_penalties: Sequence[float] = COVERAGE_PENALTIES

    def with_present(self, decoding: DecodingConfig) -> Grid:
        """The grid with what the settings say now, so that it is among what is compared."""
        return Grid(
            sorted({*self.beams, decoding.beam_size}),
            sorted({*self.length_penalties, decoding.length_penalty}),
            sorted({*self.coverage_penalties, decoding.coverage_penalty}),
        )


def trials(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    grid: Grid,
    *,
    batch_size: int | None = None,
    began: Callable[[int], None] = lambda beam: None,
) -> list[Trial]:
    """Every way of the grid with its BLEU; `began` is told each beam size when it is searched."""
    tried = []
    for beam in grid.beams:
        began(beam)
        lists = _Lists(translator, translator.finished(sources, beam, batch_size), references)
        for length in grid.length_penalties:
            for coverage in grid.coverage_penalties:
                tried.append(Trial(beam, length, coverage, lists.bleu(length, coverage)))
    return tried


def best(tried: Sequence[Trial], decoding: DecodingConfig) -> Trial:
    """The highest BLEU; of equal ones the smallest beam, and then the penalties nearest to the present ones."""

    def rank(trial: Trial) -> tuple[float, ...]:
        changed = abs(trial.length_penalty - decoding.length_penalty)
        return (-trial.bleu, trial.beam_size, changed, abs(trial.coverage_penalty - decoding.coverage_penalty))

    return min(tried, key=rank)


class _Lists:
    """The hypotheses of all lines for one beam size."""

    def __init__(self, translator: Translator, lines: list[Parts], references: Sequence[str]) -> None:
        self.translator, self.lines, self.references = translator, lines, references
        self.tokenizer = default_tokenizer(translator.target_language)
        parts = [part for line in lines for part in line]
        P, K = len(parts), max(map(len, parts), default=0)
        self.total_PK = np.full((P, K), -np.inf)
        self.length_PK, self.coverage_PK, self.open_PK = np.ones((P, K)), np.zeros((P, K)), np.ones((P, K), dtype=bool)
        for p, part in enumerate(parts):
            for k, one in enumerate(part):
                self.total_PK[p, k], self.length_PK[p, k] = one.log_probability, one.length
                self.coverage_PK[p, k], self.open_PK[p, k] = one.coverage, not one.closed
        self._counts: dict[tuple[int, tuple[int, ...]], NDArray[np.int64]] = {}

    def bleu(self, length_penalty: float, coverage_penalty: float) -> float:
        """BLEU of what these penalties choose."""
        score_PK = self.total_PK / self.length_PK**length_penalty + coverage_penalty * self.coverage_PK
        # The best of the closed ones; where none is closed, of the open ones. argmax takes the first of equals.
        closed_PK = np.where(self.open_PK, -np.inf, score_PK)
        none_P1 = np.isneginf(closed_PK).all(axis=1, keepdims=True)
        chosen = iter(np.where(none_P1, score_PK, closed_PK).argmax(axis=1).tolist())
        counts_N = np.zeros(10, dtype=np.int64)
        for number, line in enumerate(self.lines):
            counts_N += self._counts_of(number, tuple(next(chosen) for _ in line))
        return bleu_of_counts(counts_N)

    def _counts_of(self, number: int, chosen: tuple[int, ...]) -> NDArray[np.int64]:
        if (number, chosen) not in self._counts:
            parts = [part[k] for part, k in zip(self.lines[number], chosen, strict=True)]
            text = self.translator.text_of(parts)
            self._counts[number, chosen] = bleu_counts(text, self.references[number], self.tokenizer)
        return self._counts[number, chosen]
