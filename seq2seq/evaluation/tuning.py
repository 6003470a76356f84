"""Tuning: which beam size, length penalty and coverage penalty translate a validation set best?

Letters: L lines, P parts of lines (a line is one part unless it is too long for the model), K hypotheses of each,
N = 10 counts that BLEU is made of, H halves of the lines.

The beam is searched once for each size. It grows by probability alone, so what it has finished can be ranked by any
penalties afterwards, and gives exactly what a search with them would have given. BLEU is made of counts that are
summed over sentences; those of a hypothesis are counted when it is first chosen.

The highest of some hundred figures is a little too high. How much of it is chance is found by cross-validation: each
way is measured on random halves of the lines as well, and what is best on one half is looked up on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
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
_HALVINGS = 20  # so often the lines are cut in two by chance


@dataclass(frozen=True)
class Trial:
    """One way to search, and the BLEU that it gives."""

    beam_size: int
    length_penalty: float
    coverage_penalty: float
    bleu: float
    halves: tuple[float, ...] = field(default=(), compare=False, repr=False)  # two and two make up all lines

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "halves"}

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
    tried, half_HL = [], _halves(len(sources))
    for beam in grid.beams:
        began(beam)
        lists = _Lists(translator, translator.finished(sources, beam, batch_size), references)
        for length in grid.length_penalties:
            for coverage in grid.coverage_penalties:
                counts_LN = lists.counts(length, coverage)
                halves = tuple(bleu_of_counts(counts_N) for counts_N in half_HL @ counts_LN)
                tried.append(Trial(beam, length, coverage, bleu_of_counts(counts_LN.sum(axis=0)), halves))
    return tried


def best(tried: Sequence[Trial], decoding: DecodingConfig, half: int | None = None) -> Trial:
    """The highest BLEU, of all lines or of a half of them; of equal ones the smallest beam, and then the penalties
    nearest to the present ones."""

    def rank(trial: Trial) -> tuple[float, ...]:
        changed = abs(trial.length_penalty - decoding.length_penalty)
        bleu = trial.bleu if half is None else trial.halves[half]
        return (-bleu, trial.beam_size, changed, abs(trial.coverage_penalty - decoding.coverage_penalty))

    return min(tried, key=rank)


def present_way(tried: Sequence[Trial], decoding: DecodingConfig) -> Trial:
    """The one that searches as these settings say; `Grid.with_present` sees to it that it is there."""
    return next(trial for trial in tried if trial.is_way_of(decoding))


def gains_on_other_lines(tried: Sequence[Trial], decoding: DecodingConfig) -> list[float]:
    """What choosing is worth where it had no say: for each half of the lines, the BLEU there of what is best on its
    other half, less that of the present way. Empty where there are too few lines to halve."""
    present = present_way(tried, decoding)
    return [best(tried, decoding, half ^ 1).halves[half] - present.halves[half] for half in range(len(present.halves))]


def _halves(lines: int) -> NDArray[np.int64]:
    """Which lines are in each half, (H,L) of ones and zeros: a half and the rest, again and again."""
    if lines < 2:
        return np.zeros((0, lines), dtype=np.int64)
    chance = np.random.default_rng(0)
    orders = [chance.permutation(lines) for _ in range(_HALVINGS)]
    firsts = [(order < lines // 2).astype(np.int64) for order in orders]
    return np.stack([half for first in firsts for half in (first, 1 - first)])


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

    def counts(self, length_penalty: float, coverage_penalty: float) -> NDArray[np.int64]:
        """What each line adds to BLEU, (L,N), of what these penalties choose."""
        score_PK = self.total_PK / self.length_PK**length_penalty + coverage_penalty * self.coverage_PK
        # The best of the closed ones; where none is closed, of the open ones. argmax takes the first of equals.
        closed_PK = np.where(self.open_PK, -np.inf, score_PK)
        none_P1 = np.isneginf(closed_PK).all(axis=1, keepdims=True)
        chosen = iter(np.where(none_P1, score_PK, closed_PK).argmax(axis=1).tolist())
        counts = [self._counts_of(number, tuple(next(chosen) for _ in line)) for number, line in enumerate(self.lines)]
        return np.array(counts, dtype=np.int64).reshape(-1, 10)

    def _counts_of(self, number: int, chosen: tuple[int, ...]) -> NDArray[np.int64]:
        if (number, chosen) not in self._counts:
            parts = [part[k] for part, k in zip(self.lines[number], chosen, strict=True)]
            text = self.translator.text_of(parts)
            self._counts[number, chosen] = bleu_counts(text, self.references[number], self.tokenizer)
        return self._counts[number, chosen]
