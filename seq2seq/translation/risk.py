"""Minimum Bayes risk: of several candidates, the translation that is expected to be the most like a good one.

Letters: N candidates, L letters of all of them, F features (a run of letters and which of its occurrences it is).

The most probable sentence is not always a safe choice. Here each candidate is scored against all others as if they were
references, weighted by how good the model finds them, and the one with the highest expected score wins (Kumar & Byrne
2004 for n-best lists; Eikema & Aziz 2020 for samples, which weigh by being drawn often). The score is chrF (Popović
2015), sentence by sentence as sacreBLEU computes it with its defaults: runs of one to six letters without blanks,
recall weighing twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seq2seq.translation.ranking import Finished
from seq2seq.translation.search import Hypothesis

_ORDER, _BETA = 6, 2.0
# What Kumar & Byrne call the scaling of the distribution. Weighed by plain probability short candidates outweigh the
# others, and evenly the last of a beam count as its first; of 1, 3, 6 and 10 this was the best for the bundled corpus.
_SHARPNESS = 3.0
# Numbers in a matrix of features at a time.
_MOST_AT_ONCE = 4_000_000

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LeastRisk:
    """How to choose: among so many candidates, of the beam or drawn at random."""

    candidates: int = 20
    sampled: bool = False
    seed: int = 1

    def __str__(self) -> str:
        return f"mbr chrf of {self.candidates}" + (" samples" if self.sampled else "")

    def ranked(
        self, found: Sequence[Finished], text_of: Callable[[Finished], str], length_penalty: float
    ) -> list[Hypothesis]:
        """The candidates with the highest expected chrF first, which becomes their score; one for each text.

        Samples weigh 1 each; others e^(3·score), where the score is divided by length as in search. Where the model's
        numbers are not finite there is nothing to expect, and the candidates stay as they are.
        """
        if not all(math.isfinite(one.log_probability) for one in found):
            return [Hypothesis(one.ids, one.log_probability, one.log_probability) for one in found]
        sharpness = 0.0 if self.sampled else _SHARPNESS
        log_weights = np.array([sharpness * one.score(length_penalty, 0.0) for one in found])
        weights = np.exp(log_weights - log_weights.max())
        # Texts can be equal though their pieces differ; a sample can be drawn again.
        place: dict[str, int] = {}
        which = [place.setdefault(text_of(one), len(place)) for one in found]
        weight_N = np.bincount(which, weights) / weights.sum()
        expected_N = chrf_matrix(list(place)) @ weight_N
        chosen = [found[which.index(number)] for number in range(len(place))]
        best_first = np.argsort(-expected_N, kind="stable").tolist()
        return [
            Hypothesis(chosen[number].ids, chosen[number].log_probability, float(expected_N[number]))
            for number in best_first
        ]


def chrf_matrix(texts: Sequence[str]) -> Floats:
    """chrF of each text as a hypothesis (row) with each as the reference (column), 0 to 100, (N,N)."""
    N = len(texts)
    letters = ["".join(text.split()) for text in texts]
    sizes_N = np.array([len(text) for text in letters], dtype=np.int64)
    text_L = np.repeat(np.arange(N), sizes_N)
    left_L = np.repeat(np.cumsum(sizes_N), sizes_N) - np.arange(len(text_L))  # letters up to the end of the text
    codes_L = np.frombuffer("".join(letters).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    letter_L = _numbered(codes_L.astype(np.int64))
    run_L = letter_L  # the run of n letters that begins at each place, as a number
    precision_NN, recall_NN, orders_NN = (np.zeros((N, N)) for _ in range(3))
    for n in range(1, _ORDER + 1):
        start = np.flatnonzero(left_L >= n)
        if n > 1:
            longer = run_L[start] * (letter_L.max(initial=0) + 1) + letter_L[start + n - 1]
            run_L = np.zeros_like(letter_L)
            run_L[start] = _numbered(longer)
        runs_N = np.maximum(sizes_N - n + 1, 0)
        both_NN = (runs_N[:, None] > 0) & (runs_N[None, :] > 0)
        matches_NN = _matches(run_L[start], text_L[start], N)
        precision_NN += np.where(both_NN, matches_NN / np.maximum(runs_N[:, None], 1), 0.0)
        recall_NN += np.where(both_NN, matches_NN / np.maximum(runs_N[None, :], 1), 0.0)
        orders_NN += both_NN
    # Orders that one of the two is too short for do not count.
    precision_NN /= np.maximum(orders_NN, 1)
    recall_NN /= np.maximum(orders_NN, 1)
    below_NN = _BETA**2 * precision_NN + recall_NN
    score_NN: Floats = 100 * (1 + _BETA**2) * precision_NN * recall_NN / np.where(below_NN > 0, below_NN, 1.0)
    return score_NN


def _matches(run_L: Integers, text_L: Integers, N: int) -> Floats:
    """How many runs of letters each two texts share, each as often as both have it, (N,N).

    A run that a text has for the second time is a feature of its own, so that the smaller of two counts is the number
    of features that both texts have: one product of a matrix of zeros and ones.
    """
    order = np.lexsort((text_L, run_L))
    run, text = run_L[order], text_L[order]
    first = np.flatnonzero(np.r_[True, (run[1:] != run[:-1]) | (text[1:] != text[:-1])]) if len(run) else order
    occurrence = np.arange(len(run)) - np.repeat(first, np.diff(np.r_[first, len(run)]))
    feature = _numbered(run * (occurrence.max(initial=0) + 1) + occurrence)
    F = int(feature.max(initial=-1)) + 1
    matches_NN = np.zeros((N, N))
    width = max(1, _MOST_AT_ONCE // max(N, 1))
    for low in range(0, F, width):
        here = (feature >= low) & (feature < low + width)
        has_NF = np.zeros((N, min(width, F - low)), dtype=np.float32)
        has_NF[text[here], feature[here] - low] = 1.0
        matches_NN += has_NF @ has_NF.T
    return matches_NN


def _numbered(values: Integers) -> Integers:
    """Equal values get equal numbers, from 0 without gaps."""
    numbers: Integers = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers
