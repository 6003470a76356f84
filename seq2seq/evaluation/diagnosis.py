"""Diagnosis: where a score was won and lost, in numbers. What they mean is said in causes.py.

Every number follows from the lines themselves; only `TrainingText` needs the training corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from seq2seq.evaluation.scores import bleu_metric, sentence_chrf
from seq2seq.evaluation.training_text import TrainingText
from seq2seq.evaluation.words import cut, is_unspaced, spoken

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

MOST_GROUPS, FEWEST_SENTENCES = 5, 10  # groups by length, and sentences in each of them
SHOWN = 5  # sentences, of the worst and of the best
# Said at least so often in a row, a word or a run of up to six words counts as repeated.
_LONGEST_UNIT, _TIMES_A_WORD, _TIMES_A_RUN = 6, 3, 2
# A copy: so much of the translation stands in the source, and not more than so much of it in any reference.
_COPIED, _MEANT = 0.8, 0.5

Cut = Callable[[str], list[str]]


@dataclass(frozen=True)
class LengthGroup:
    """Sentences of about one length, with a score of their own; lengths in words or characters, ends included."""

    shortest: int
    longest: int
    sentences: int
    bleu: float
    length_ratio: float  # tokens of the translations for each of the references


@dataclass(frozen=True)
class Example:
    """One sentence to look at; lines are counted from 1."""

    line: int
    chrf: float
    source: str | None
    hypothesis: str
    reference: str


@dataclass(frozen=True)
class Diagnosis:
    """What can be counted of a set of translations. Lists hold the numbers of lines, from 1."""

    lines: int
    grouped_by: str  # "source" or, where there is none, "reference"
    unit: str  # "words" or "characters"
    groups: list[LengthGroup]
    length_ratio: float
    brevity_penalty: float
    precisions: list[float]  # share of right runs of 1, 2, 3 and 4 tokens, in percent
    bleu: float
    bleu_lowercase: float
    bleu_off_by_one: float  # against the reference of the line before or after, whichever is better
    repeated: list[int]
    copied: list[int]
    empty: list[int]
    worst: list[Example]
    best: list[Example]
    training: TrainingText | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def diagnose(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    target_language: str,
    tokenize: str | None = None,
    sources: Sequence[str] | None = None,
    training: TrainingText | None = None,
) -> Diagnosis:
    """Count what explains a score. The lines pair up: `score` has been asked before.

    Without `sources` the groups go by the length of the first reference, and copies cannot be seen.
    """
    metric = bleu_metric(target_language, tokenize)
    measured = references[0] if sources is None else sources
    unspaced = is_unspaced(measured)
    lengths = [len(cut(line, unspaced)) for line in measured]
    whole = metric.corpus_score(list(hypotheses), [list(side) for side in references])
    tokens = metric.tokenizer
    rows = list(zip(hypotheses, zip(*references, strict=True), strict=True))
    chrf = sentence_chrf(hypotheses, references)
    order = sorted(range(len(chrf)), key=lambda index: chrf[index])
    examples = [
        Example(i + 1, chrf[i], None if sources is None else sources[i], hypotheses[i], references[0][i]) for i in order
    ]
    shown = min(SHOWN, len(examples) // 2)
    return Diagnosis(
        lines=len(hypotheses),
        grouped_by="reference" if sources is None else "source",
        unit="characters" if unspaced else "words",
        groups=[_score_group(metric, group, lengths, rows) for group in _groups(lengths)],
        length_ratio=whole.sys_len / max(1, whole.ref_len),
        brevity_penalty=whole.bp,
        precisions=list(whole.precisions),
        bleu=whole.score,
        bleu_lowercase=_lowercase(metric, hypotheses, references),
        bleu_off_by_one=_off_by_one(metric, hypotheses, references),
        repeated=_numbers(
            repeats(tokens(line).split()) and not any(repeats(tokens(meant).split()) for meant in sides)
            for line, sides in rows
        ),
        copied=[]
        if sources is None
        else _numbers(_is_copy(s, h, sides) for s, (h, sides) in zip(sources, rows, strict=True)),
        empty=_numbers(not line.strip() and any(meant.strip() for meant in sides) for line, sides in rows),
        worst=examples[:shown],
        best=sorted(examples, key=lambda one: (-one.chrf, -len(one.reference)))[
            :shown
        ],  # the longest of the right ones
        training=training,
    )


def repeats(words: Sequence[str]) -> bool:
    """Whether a word stands three times in a row, or a run of two to six words twice: `on the on the`.

    Numbers and marks such as ... may repeat; what has a letter in it seldom does.
    """
    for size in range(1, _LONGEST_UNIT + 1):
        times = _TIMES_A_WORD if size == 1 else _TIMES_A_RUN
        for start in range(len(words) - size * times + 1):
            unit = words[start : start + size]
            if not any(letter.isalpha() for word in unit for letter in word):
                continue
            if all(words[start + size * n : start + size * (n + 1)] == unit for n in range(1, times)):
                return True
    return False


def _is_copy(source: str, hypothesis: str, references: Sequence[str]) -> bool:
    """Whether a translation is the source said again, where no reference is so."""
    bags = [Counter(spoken(line, is_unspaced([line]))) for line in (hypothesis, source, *references)]
    size = bags[0].total()
    if not size:
        return False
    same, *meant = [(bags[0] & other).total() / size for other in bags[1:]]
    return same >= _COPIED and max(meant) <= _MEANT


def _numbers(signs: Any) -> list[int]:
    return [number for number, sign in enumerate(signs, start=1) if sign]


def _groups(lengths: Sequence[int]) -> list[list[int]]:
    """Indices by length, in about equal shares; sentences of one length stay together."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    count = max(1, min(MOST_GROUPS, len(order) // FEWEST_SENTENCES))
    groups: list[list[int]] = []
    for place, index in enumerate(order):
        share = place * count // len(order)
        begins = not groups or (share >= len(groups) and lengths[index] != lengths[groups[-1][-1]])
        if begins:
            groups.append([])
        groups[-1].append(index)
    return groups


def _score_group(
    metric: BLEU, group: Sequence[int], lengths: Sequence[int], rows: Sequence[tuple[str, Sequence[str]]]
) -> LengthGroup:
    sides = zip(*(rows[index][1] for index in group), strict=True)
    result = metric.corpus_score([rows[index][0] for index in group], [list(side) for side in sides])
    ratio = result.sys_len / max(1, result.ref_len)
    return LengthGroup(lengths[group[0]], lengths[group[-1]], len(group), result.score, ratio)


def _lowercase(metric: BLEU, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    sides = [[line.lower() for line in side] for side in references]
    return float(metric.corpus_score([line.lower() for line in hypotheses], sides).score)


def _off_by_one(metric: BLEU, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """A file that lacks a line, or has one more, gives good translations of the wrong sentences."""
    if len(hypotheses) < FEWEST_SENTENCES:
        return 0.0
    later = metric.corpus_score(list(hypotheses[1:]), [list(side[:-1]) for side in references])
    earlier = metric.corpus_score(list(hypotheses[:-1]), [list(side[1:]) for side in references])
    return float(max(later.score, earlier.score))
