"""Alignment: do the two sides keep step, and if not, where do they slip?

A long sentence has a long translation (Gale and Church 1993, https://aclanthology.org/J93-1004). How far source line i
and target line i + d differ from the lines around them is compared, for several shifts d: where a line is lost or one
too many, a shift other than 0 explains what follows much better. The evidence of a pair of lines is the logarithm of
how much likelier their lengths are for a sentence and its translation than for two sentences of no relation (normal
distributions with the correlation of the corpus, and none); whether both have digits, a question mark at the end and a
mark inside is evidence too. The likeliest course of shifts is found with Viterbi's algorithm. As the evidence is
a likelihood ratio, a change that is not there is believed with a probability of exp(-DOUBT) at the most.

Letters: N source lines, M target lines, B blocks of source lines, D shifts, S states (the shifts, and "unrelated").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DOUBT = 30.0  # nats of evidence that a change must bring
NEAR = 5  # shifts that are always tried
BLOCK = 16  # lines; changes are found by blocks first, then to the line
STRETCH = 512  # lines over which the correlation is measured
AROUND = 101  # lines whose mean length a line is compared with
WEAKEST = 0.1  # correlation below which lengths say nothing, as in a file that is sorted by length
LEAST_AGREEMENT = 0.01  # nats a line below which cues say nothing; more in short texts, where luck says more
LEAST_LINES = 40
CUE_NUMBERS = 49  # free numbers in a table of which cue of eight meets which

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Slip:
    """From source line `line` (from 0) on, target line i + shift faces source line i; None: no shift does."""

    line: int
    before: int | None
    shift: int | None


@dataclass(frozen=True)
class Course:
    """What was found: the correlation of lengths from line to line (0 to 1), the evidence of cues in nats a line, and
    all slips in order."""

    correlation: float
    agreement: float
    slips: list[Slip]

    @property
    def is_telling(self) -> bool:
        """Whether lengths or cues say anything about which lines belong together."""
        return self.correlation > 0 or self.agreement > 0


def follow(
    source_lengths: NDArray[np.int32],
    target_lengths: NDArray[np.int32],
    source_cues: NDArray[np.uint8],
    target_cues: NDArray[np.uint8],
    without: Collection[int] = (),
) -> Course:
    """Find where the sides slip. Lengths are in characters; cues are small numbers (below 8) that tend to agree.

    `without` are shifts that are known not to be.
    """
    n, m = len(source_lengths), len(target_lengths)
    if min(n, m) < LEAST_LINES:
        return Course(0.0, 0.0, [])
    shifts = sorted({*range(-NEAR, NEAR + 1), *range(m - n - NEAR, m - n + NEAR + 1)}, key=lambda d: (abs(d), d))
    shifts = [d for d in shifts if -n < d < m and d not in without]
    source_N, target_M = _standing_out(source_lengths), _standing_out(target_lengths)
    correlation = _correlation(source_N, target_M, shifts)
    if correlation < WEAKEST:
        correlation = 0.0
    evidence = Evidence(source_N, target_M, source_cues, target_cues, correlation)
    if correlation:
        # The first time without the cues, whose agreement is then measured along the course that was found.
        agreement = evidence.learn_cues(_course(evidence, shifts))
    else:
        _, best = max((evidence.learn_cues([Slip(0, 0, shift)]), -abs(shift), shift) for shift in shifts)[::2]
        agreement = evidence.learn_cues([Slip(0, 0, best)])
        if agreement < LEAST_AGREEMENT + CUE_NUMBERS / n:
            return Course(correlation, 0.0, [])
    return Course(correlation, agreement, _course(evidence, shifts))


def _standing_out(lengths: NDArray[np.int32]) -> Floats:
    """The logarithm of each length less the mean of those around, in standard deviations; no further than 3."""
    logs = np.log1p(lengths.astype(np.float64))
    half = AROUND // 2
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    low = np.maximum(np.arange(len(logs)) - half, 0)
    high = np.minimum(np.arange(len(logs)) + half + 1, len(logs))
    rest = logs - (sums[high] - sums[low]) / (high - low)
    deviation = float(rest.std()) or 1.0
    clipped: Floats = np.clip(rest / deviation, -3, 3).astype(np.float32)
    return clipped / np.float32(clipped.std() or 1.0)


def _overlap(n: int, m: int, shift: int) -> tuple[slice, slice]:
    """The source lines that face a target line under a shift, and those target lines."""
    low, high = max(0, -shift), min(n, m - shift)
    return slice(low, high), slice(low + shift, high + shift)


def _correlation(source_N: Floats, target_M: Floats, shifts: Sequence[int]) -> float:
    """The correlation of lengths in the median stretch of the text, each at the shift that suits it best."""
    n, m = len(source_N), len(target_M)
    edges = np.arange(0, min(n, m), STRETCH)
    best = np.zeros(len(edges))
    for shift in shifts:
        product_N = np.zeros(n, dtype=np.float32)
        ours, theirs = _overlap(n, m, shift)
        product_N[ours] = source_N[ours] * target_M[theirs]
        counts = np.diff(np.append(edges, min(n, m)))
        best = np.maximum(best, np.add.reduceat(product_N[: min(n, m)], edges) / counts)
    # The best of several chances is above zero by luck alone: about two standard errors.
    by_luck = 2 / np.sqrt(min(STRETCH, n, m))
    return float(np.clip(np.median(best) - by_luck * (1 - np.median(best)), 0, 0.98))


class Evidence:
    """How much likelier a pair of lines is as a sentence and its translation than as two strangers, in nats."""

    def __init__(
        self,
        source_N: Floats,
        target_M: Floats,
        source_cues: NDArray[np.uint8],
        target_cues: NDArray[np.uint8],
        correlation: float,
    ) -> None:
        self._source, self._target, self._cues = source_N, target_M, (source_cues, target_cues)
        rest = 1 - correlation**2
        self._base = np.float32(-0.5 * np.log(rest))
        self._squares = np.float32(correlation**2 / (2 * rest))
        self._product = np.float32(correlation / rest)
        self._agreement: Floats | None = None
        self.lines = len(source_N)

    def of(self, shift: int, first: int = 0, last: int | None = None) -> Floats:
        """The evidence that source line i faces target line i + shift, for the lines i from `first` to `last`; 0
        where there is no such line."""
        last = self.lines if last is None else last
        evidence = np.zeros(max(0, last - first), dtype=np.float32)
        low, high = max(first, -shift), min(last, len(self._target) - shift)
        if low >= high:
            return evidence
        s, t = self._source[low:high], self._target[low + shift : high + shift]
        found = self._base - self._squares * (s * s + t * t) + self._product * s * t
        if self._agreement is not None:
            found = found + self._agreement[self._cues[0][low:high], self._cues[1][low + shift : high + shift]]
        evidence[low - first : high - first] = found
        return evidence

    def learn_cues(self, slips: Sequence[Slip]) -> float:
        """Count which cues face one another along a course; gives back how much they tell in nats a line."""
        n, m = self.lines, len(self._target)
        counts = np.full((8, 8), 0.5)
        edges = [slip.line for slip in slips] + [n]
        first, shift = 0, 0 if not slips else slips[0].before
        for index, last in enumerate(edges):
            if shift is not None:
                low, high = max(first, -shift), min(last, m - shift)
                if low < high:
                    ours, theirs = self._cues[0][low:high], self._cues[1][low + shift : high + shift]
                    counts += np.bincount(ours * 8 + theirs, minlength=64).reshape(8, 8)
            if index < len(slips):
                first, shift = last, slips[index].shift
        together = counts / counts.sum()
        alone = together.sum(axis=1, keepdims=True) * together.sum(axis=0, keepdims=True)
        self._agreement = np.clip(np.log(together / alone), -3, 3).astype(np.float32)
        # What free numbers tell by luck is taken off.
        told = float((together * np.log(together / alone)).sum())
        return max(0.0, told - CUE_NUMBERS / (2 * float(counts.sum())))


def _course(evidence: Evidence, shifts: Sequence[int]) -> list[Slip]:
    """The likeliest course of shifts, changes found by blocks and then to the line."""
    n = evidence.lines
    edges = np.arange(0, n, BLOCK)
    blocks_BS = np.zeros((len(edges), len(shifts) + 1), dtype=np.float32)  # the last state: unrelated
    for column, shift in enumerate(shifts):
        blocks_BS[:, column] = np.add.reduceat(evidence.of(shift), edges)
    path = _viterbi(blocks_BS)
    states: list[int | None] = [*shifts, None]
    changes = np.flatnonzero(np.diff(path)) + 1
    slips = [] if not len(path) or states[path[0]] == 0 else [Slip(0, 0, states[path[0]])]
    for block in changes.tolist():
        before, after = states[path[block - 1]], states[path[block]]
        low, high = max(0, (block - 3) * BLOCK), min(n, (block + 3) * BLOCK)
        slips.append(Slip(_change_point(evidence, before, after, low, high), before, after))
    return slips


def _viterbi(blocks_BS: Floats) -> NDArray[np.int64]:
    """The best state of every block, where each change of state costs DOUBT and the text begins in state 0."""
    count, states = blocks_BS.shape
    came_from_BS = np.zeros((count, states), dtype=np.int16)
    score_S = np.full(states, -DOUBT)
    score_S[0] = 0.0
    stay_S = np.arange(states)
    for block in range(count):
        best = int(score_S.argmax())
        jump = score_S[best] - DOUBT
        stays_S = score_S >= jump
        came_from_BS[block] = np.where(stays_S, stay_S, best)
        score_S = np.where(stays_S, score_S, jump) + blocks_BS[block]
    path = np.zeros(count, dtype=np.int64)
    state = int(score_S.argmax())
    for block in range(count - 1, -1, -1):
        path[block] = state
        state = int(came_from_BS[block, state])
    return path


def _change_point(evidence: Evidence, before: int | None, after: int | None, low: int, high: int) -> int:
    """The line from `low` to `high` at which changing over explains most."""
    gains: Callable[[int | None], Floats] = lambda shift: (  # noqa: E731
        np.zeros(high - low, dtype=np.float32) if shift is None else evidence.of(shift, low, high)
    )
    first, second = np.cumsum(gains(before)), np.cumsum(gains(after))
    total = np.concatenate([[0.0], first]) + (second[-1] - np.concatenate([[0.0], second]))
    return low + int(total.argmax())
