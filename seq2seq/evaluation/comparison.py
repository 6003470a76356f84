"""Comparison: is one set of translations better than another, or luckier with these sentences?

Two tests answer it, both sacreBLEU's own, so the numbers are those of its `--paired-bs` and `--paired-ar` (but for
texts that are the same, where p is 1): paired bootstrap resampling (Koehn 2004) draws test sets from the sentences,
approximate randomisation (Riezler and Maxwell 2005) swaps the systems' sentences at random. A p-value is the share of
such games that give a difference as large though there is none. Neither knows of the luck of a seed: for that several
trainings of one config are needed, and their mean and standard deviation.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from seq2seq.errors import ScoringError
from seq2seq.evaluation.scores import bleu_metric, refuse_what_does_not_pair, sentence_chrf

if TYPE_CHECKING:
    from sacrebleu.significance import Result

BOOTSTRAP_SAMPLES, RANDOMISATION_TRIALS = 1000, 10_000  # sacreBLEU's own numbers
METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class System:
    """Translations under a name. Systems of one `config` (whatever names it) that differ by seed are one group."""

    name: str
    hypotheses: list[str]
    config: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Measured:
    """One metric of one system; the baseline has no difference and no p-values."""

    score: float
    mean: float  # of the resampled test sets
    interval: float  # half of the width that holds 95 % of them
    difference: float | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None


@dataclass(frozen=True)
class Standing:
    """One system and what it scored, by metric (bleu, chrf)."""

    name: str
    seed: int | None
    scores: dict[str, Measured]


@dataclass(frozen=True)
class Group:
    """Trainings of one config: the mean of their scores and the standard deviation of a single one (n - 1)."""

    names: list[str]
    seeds: list[int]
    means: dict[str, float]
    deviations: dict[str, float]


@dataclass(frozen=True)
class Change:
    """One sentence of the baseline beside another system's; the gain is in sentence chrF2, and lines count from 1."""

    line: int
    gain: float
    source: str | None
    baseline: str
    other: str
    reference: str


@dataclass(frozen=True)
class Comparison:
    """Everything about systems on one test set; the first is the baseline of the others."""

    lines: int
    standings: list[Standing]
    groups: list[Group]
    wins: dict[str, list[Change]]  # by the name of the other system, the largest first
    losses: dict[str, list[Change]]
    signatures: dict[str, dict[str, str]]  # by metric, then test

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def compare(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    *,
    target_language: str,
    tokenize: str | None = None,
    sources: Sequence[str] | None = None,
    samples: int = BOOTSTRAP_SAMPLES,
    trials: int = RANDOMISATION_TRIALS,
    shown: int = 5,
) -> Comparison:
    """Test every system against the first one. ScoringError where lines do not pair up.

    The games of chance begin with the number in SACREBLEU_SEED, as sacreBLEU's do; without one with 12345.
    """
    seed = os.environ.get("SACREBLEU_SEED", "none")
    if seed.lower() != "none" and not seed.isdecimal():
        raise ScoringError(f"SACREBLEU_SEED is {seed!r} in the environment; give a whole number or none, or unset it.")
    for system in systems:
        names = [system.name, *(f"reference {number}" for number in range(1, len(references) + 1))]
        refuse_what_does_not_pair(system.hypotheses, references, names)
    sides = [[line.rstrip() for line in side] for side in references]
    tests, signatures = _paired_tests(systems, sides, target_language, tokenize, samples, trials)
    standings = [
        Standing(system.name, system.seed, {metric: _measured(tests[metric], place) for metric in METRICS})
        if place == 0 or not _same_text(systems[0], system)
        else Standing(system.name, system.seed, {metric: _unchanged(tests[metric], place) for metric in METRICS})
        for place, system in enumerate(systems)
    ]
    changes = {system.name: _changes(systems[0], system, references, sources) for system in systems[1:]}
    return Comparison(
        lines=len(references[0]),
        standings=standings,
        groups=_groups(systems, standings),
        wins={name: [change for change in found[::-1][:shown] if change.gain > 0] for name, found in changes.items()},
        losses={name: [change for change in found[:shown] if change.gain < 0] for name, found in changes.items()},
        signatures=signatures,
    )


def _paired_tests(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    target_language: str,
    tokenize: str | None,
    samples: int,
    trials: int,
) -> tuple[dict[str, Mapping[str, list[Result]]], dict[str, dict[str, str]]]:
    """sacreBLEU's results by metric and test (bs, ar), in the order of the systems; and its signatures."""
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.significance import PairedTest

    named: list[tuple[str, Sequence[str]]] = [
        (system.name, [line.rstrip() for line in system.hypotheses]) for system in systems
    ]
    results: dict[str, dict[str, list[Result]]] = {metric: {} for metric in METRICS}
    signatures: dict[str, dict[str, str]] = {metric: {} for metric in METRICS}
    for test, count in (("bs", samples), ("ar", trials)):
        metrics = {"BLEU": bleu_metric(target_language, tokenize), "chrF": CHRF()}
        signed, scores = PairedTest(named, metrics, references, test_type=test, n_samples=count)()
        # The names of the scores carry settings (chrF2); their order is that of the metrics.
        for metric, (name, found) in zip(METRICS, list(scores.items())[1:], strict=True):
            results[metric][test] = found  # type: ignore[assignment]
            signatures[metric][test] = signed[name].format()
    return dict(results), signatures


def _measured(tests: Mapping[str, list[Result]], place: int) -> Measured:
    resampled, swapped = tests["bs"][place], tests["ar"][place]
    difference = None if place == 0 else float(resampled.score) - float(tests["bs"][0].score)
    return Measured(
        score=float(resampled.score),
        mean=float(resampled.mean or 0.0),
        interval=float(resampled.ci or 0.0),
        difference=difference,
        p_bootstrap=resampled.p_value,
        p_randomisation=swapped.p_value,
    )


def _same_text(one: System, other: System) -> bool:
    """Whether two systems say the same, but for the blanks at line ends, which no score counts."""
    pairs = zip(one.hypotheses, other.hypotheses, strict=True)
    return all(first.rstrip() == second.rstrip() for first, second in pairs)


def _unchanged(tests: Mapping[str, list[Result]], place: int) -> Measured:
    """The same text as the baseline's: every game of chance gives as large a difference, none, so p is 1.

    sacreBLEU compares with `>` and counts one game more than there was, which gives the lowest p-value there is.
    """
    return replace(_measured(tests, place), p_bootstrap=1.0, p_randomisation=1.0)


def _groups(systems: Sequence[System], standings: Sequence[Standing]) -> list[Group]:
    members: dict[str, list[int]] = {}
    for place, system in enumerate(systems):
        seeds = {systems[other].seed for other in members.get(system.config or "", [])}
        if system.config is not None and system.seed is not None and system.seed not in seeds:
            members.setdefault(system.config, []).append(place)
    groups = []
    for places in members.values():
        if len(places) < 2:
            continue
        scores = {metric: [standings[place].scores[metric].score for place in places] for metric in METRICS}
        groups.append(
            Group(
                names=[systems[place].name for place in places],
                seeds=[systems[place].seed or 0 for place in places],
                means={metric: statistics.fmean(found) for metric, found in scores.items()},
                deviations={metric: statistics.stdev(found) for metric, found in scores.items()},
            )
        )
    return groups


def _changes(
    baseline: System, other: System, references: Sequence[Sequence[str]], sources: Sequence[str] | None
) -> list[Change]:
    """All sentences, what was lost most first."""
    before, after = (sentence_chrf(system.hypotheses, references) for system in (baseline, other))
    gains = [new - old for old, new in zip(before, after, strict=True)]
    order = sorted(range(len(gains)), key=lambda index: (gains[index], index))
    return [
        Change(
            index + 1,
            gains[index],
            None if sources is None else sources[index],
            baseline.hypotheses[index],
            other.hypotheses[index],
            references[0][index],
        )
        for index in order
    ]


def is_significant(measured: Measured, level: float = 0.05) -> bool:
    """Whether both tests find so large a difference in less than one of twenty games of chance.

    No difference at all is never one, though sacreBLEU gives it the lowest p-value where the texts are not the same.
    """
    values = (measured.p_bootstrap, measured.p_randomisation)
    return bool(measured.difference) and all(value is not None and value < level for value in values)
