"""What a person reads beneath a score: the likeliest causes, and in detail what they were found in."""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seq2seq.evaluation.causes import Cause
    from seq2seq.evaluation.diagnosis import Diagnosis, Example
    from seq2seq.evaluation.report import Explained
    from seq2seq.evaluation.training_text import TrainingText

_WIDTH = 100  # columns
_BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def add_explaining_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares how much a verb that scores is to tell beside the scores."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="more about the score: TER, BLEU by length, repetitions, copies, best and worst sentences",
    )
    parser.add_argument("--report", metavar="FILE", help="write all of it to an HTML page as well")


def check_report(report: str | None, others: Iterable[str | None]) -> None:
    """ScoringError or RunError where the page has no folder, or would take the place of something else."""
    from seq2seq.cli.outputs import check_output
    from seq2seq.errors import ScoringError

    if report is None:
        return
    others = list(others)
    if any(other is not None and Path(other).absolute() == Path(report).absolute() for other in others):
        raise ScoringError(f"--report {report} is named for something else as well; give another name.")
    check_output(report, others, option="--report")


def write_report(report: str, explained: Explained) -> None:
    """Write the page."""
    from seq2seq.evaluation.report import page
    from seq2seq.files import write_file

    write_file(Path(report), page(explained))


def cause_lines(causes: Sequence[Cause]) -> Iterator[str]:
    """The causes in words, each with the setting to try."""
    if not causes:
        yield "Nothing stands out; more pairs of the kind that is tested are the surest gain."
        return
    yield "Likeliest causes:" if len(causes) > 1 else "Likeliest cause:"
    for number, cause in enumerate(causes, start=1):
        yield from wrap(
            f"{cause.what[:1].upper()}{cause.what[1:]}.",
            _WIDTH,
            initial_indent=f"  {number}. ",
            subsequent_indent="     ",
        )
        try_it = cause.advice if cause.setting is None else f"{cause.setting}: {cause.advice}"
        yield from wrap(try_it, _WIDTH, initial_indent="     → ", subsequent_indent="       ")


def detail_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Numbers, the chart and the sentences; the causes are said elsewhere."""
    yield f"  {'precisions':<14} " + " / ".join(f"{value:.1f}" for value in diagnosis.precisions) + "  (1 to 4 tokens)"
    yield (
        f"  {'length':<14} {diagnosis.length_ratio:.1%} of the references; brevity penalty "
        f"{diagnosis.brevity_penalty:.3f}"
    )
    yield f"  {'lower case':<14} BLEU {diagnosis.bleu_lowercase:.2f}"
    for name, numbers in (
        ("repetitions", diagnosis.repeated),
        ("source copied", diagnosis.copied),
        ("empty", diagnosis.empty),
    ):
        yield f"  {name:<14} {_count(numbers, diagnosis.lines)}"
    if diagnosis.training is not None:
        yield from _training_lines(diagnosis.training, diagnosis.unit)
    if len(diagnosis.groups) > 1:
        yield ""
        yield f"BLEU by length of the {diagnosis.grouped_by} ({diagnosis.unit}):"
        yield from chart_lines(diagnosis)
    for title, examples in (("Worst", diagnosis.worst), ("Best", diagnosis.best)):
        if examples:
            yield ""
            yield f"{title} sentences by chrF2:"
            for example in examples:
                yield from _example_lines(example)


def chart_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """A bar for each group, in eighths of a column."""
    labels = [length_label(group.shortest, group.longest) for group in diagnosis.groups]
    for label, group in zip(labels, diagnosis.groups, strict=True):
        bar = _bar(group.bleu / 100)
        yield f"  {label:>{max(map(len, labels))}}  {bar:<{_BAR}} {group.bleu:6.2f}   {group.sentences:,} sentences"


def length_label(shortest: int, longest: int) -> str:
    """`7` or `7–9`."""
    return f"{shortest}" if shortest == longest else f"{shortest}–{longest}"


def _bar(share: float) -> str:
    eighths = round(max(0.0, min(1.0, share)) * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _count(numbers: Sequence[int], lines: int) -> str:
    if not numbers:
        return "none"
    places = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f"{len(numbers):,} ({len(numbers) / lines:.1%}), line {places}"


def _training_lines(training: TrainingText, unit: str) -> Iterator[str]:
    of = "the" if training.complete else "the first"
    yield f"  {'seen':<14} {training.seen:.1%} of the sentences stand in {of} {training.pairs:,} training pairs"
    yield (
        f"  {'unknown':<14} {training.unknown_words:.2%} of the {unit}, {training.unknown_pieces:.2%} of the pieces "
        "of the source never came up in training"
    )


def _example_lines(example: Example) -> Iterator[str]:
    rows = [("source", example.source), ("translation", example.hypothesis), ("reference", example.reference)]
    yield f"  line {example.line}, {example.chrf:.1f}"
    for name, text in rows:
        if text is not None:
            yield f"    {name:<12} {shown(text)}"


def shown(text: str) -> str:
    """A sentence for a person: on one line, and without the characters that a terminal takes for commands."""
    from seq2seq.corpus.lines import clean

    return "".join("\ufffd" if unicodedata.category(letter) == "Cc" else letter for letter in clean(text))
