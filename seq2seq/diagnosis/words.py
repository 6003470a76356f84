"""Words: which line exactly a slip is at, by the words that usually translate one another.

Lengths tell the place of a slip to a few lines. Around it the words decide: how often a source word and a target word
stand in the same pair is counted in the lines nearby (Dice's coefficient), and each line of the neighbourhood is tried
as the place. Where words are not divided by blanks, characters stand for words.

Letters: W lines of the neighbourhood.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.alignment import Slip
from seq2seq.diagnosis.found import Text, lines_at

AROUND = 150  # lines on either side of the place that are tried
LEARNT = 3_000  # lines on either side from which words are learnt
TRIES = 3  # neighbourhoods, where the place turns out to be at the edge of one
JUDGES = 300  # pairs that judge whether there is a slip at all
SEEN = 3  # times that two words must have met
SAME = 0.8  # for a word that is the same on both sides, such as a name or a number
SHORTEST_SAME = 3

# Thai, Lao, Myanmar, Khmer, kana and ideographs.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def sharpen(text: Text, slip: Slip) -> Slip:
    """The slip with its exact line, as far as words tell it: the first source line that has no partner or another.

    Unchanged where nothing is known of a side of it.
    """
    before, after = slip.before, slip.shift
    if before is None or after is None:
        return slip
    for _ in range(TRIES):
        found = _nearby(text, slip.line, before, after)
        is_near, slip = abs(found - slip.line) < AROUND // 2, Slip(found, before, after)
        if is_near:
            break
    return slip


def _nearby(text: Text, line: int, before: int, after: int) -> int:
    """The likeliest place of the slip in the neighbourhood of a line."""
    middle = line
    low, high = max(0, middle - AROUND), min(len(text.source), middle + AROUND)
    learnt = {
        **{line: line + before for line in range(max(0, low - LEARNT), low)},
        **{line: line + after for line in range(high, min(len(text.source), high + LEARNT))},
    }
    near = {line + shift for line in range(low, high) for shift in (before, after)}
    last = len(text.target)
    sources, targets = lines_at(
        text.files, {*learnt, *range(low, high)}, {line for line in (*learnt.values(), *near) if 0 <= line < last}
    )
    source_words = {line: set(_words(said)) for line, said in sources.items()}
    target_words = {line: set(_words(said)) for line, said in targets.items()}
    dice = _dice(
        [(source_words[line], target_words[other]) for line, other in learnt.items() if other in target_words],
        set().union(*(source_words[line] for line in range(low, high))),
        set().union(*(target_words[line] for line in near if line in target_words)),
    )

    def agreement(shift: int) -> NDArray[np.float64]:
        lines_W = [(source_words[line], target_words.get(line + shift, set())) for line in range(low, high)]
        return np.asarray([_agreement(ours, theirs, dice) for ours, theirs in lines_W])

    first_W, second_W = agreement(before), agreement(after)
    # Where the target lacks lines, as many source lines have no partner; they count for neither side.
    skipped = max(0, before - after)
    head, tail = np.concatenate([[0.0], np.cumsum(first_W)]), np.concatenate([[0.0], np.cumsum(second_W)])
    gains = head + tail[-1] - tail[np.minimum(np.arange(len(tail)) + skipped, len(tail) - 1)]
    best = np.flatnonzero(gains >= gains.max() - 1e-9) + low
    return int(best[np.abs(best - middle).argmin()])


def confirms(text: Text, slip: Slip, end: int) -> bool:
    """Whether from a slip to line `end` words translate one another more often under its shift than under none.

    Lengths alone may be deceived, as by verses or by tables that repeat themselves. Words are learnt from every other
    pair under each of the two hypotheses, and the pairs between judge.
    """
    shift, last = slip.shift or 0, len(text.target)
    lines = range(slip.line, min(slip.line + LEARNT, end))
    wanted = {line + by for line in lines for by in (0, shift)}
    sources, targets = lines_at(text.files, lines, {line for line in wanted if 0 <= line < last})
    source_words = {line: set(_words(said)) for line, said in sources.items()}
    target_words = {line: set(_words(said)) for line, said in targets.items()}

    def agreement(by: int) -> float:
        pairs = [(source_words[line], target_words[line + by]) for line in lines if line + by in target_words]
        judges = pairs[1 : 2 * JUDGES : 2]
        dice = _dice(
            pairs[::2], set().union(*(ours for ours, _ in judges)), set().union(*(theirs for _, theirs in judges))
        )
        return sum(_agreement(ours, theirs, dice) for ours, theirs in judges) / max(1, len(judges))

    return agreement(shift) > agreement(0)


def _words(text: str) -> list[str]:
    if _UNSPACED.search(text):
        text = _UNSPACED.sub(lambda found: f" {found[0]} ", text)
    words = (word.strip(".,!?\"'„“”»«():;。，！？") for word in text.lower().split())
    return [word for word in words if word]


def _dice(
    pairs: Sequence[tuple[set[str], set[str]]], sources: set[str], targets: set[str]
) -> Mapping[tuple[str, str], float]:
    """Dice's coefficient of those words that have met often enough; only for the words that are asked for."""
    alone: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    together: Counter[tuple[str, str]] = Counter()
    for ours, theirs in pairs:
        known_ours, known_theirs = ours & sources, theirs & targets
        alone[0].update(known_ours)
        alone[1].update(known_theirs)
        together.update((one, other) for one in known_ours for other in known_theirs)
    return {
        (one, other): 2 * count / (alone[0][one] + alone[1][other])
        for (one, other), count in together.items()
        if count >= SEEN
    }


def _agreement(ours: set[str], theirs: set[str], dice: Mapping[tuple[str, str], float]) -> float:
    """How much of a source line is explained by the words of a target line: the mean over its words of the best."""
    if not ours or not theirs:
        return 0.0
    best = [
        SAME
        if word in theirs and (len(word) >= SHORTEST_SAME or word.isdigit())
        else max(dice.get((word, other), 0.0) for other in theirs)
        for word in ours
    ]
    return sum(best) / len(best)
