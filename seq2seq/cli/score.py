"""`seq2seq score`: BLEU and chrF of a file of translations, as the sacrebleu command would print them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.cli.explanation import add_explaining_arguments, cause_lines, check_report, detail_lines, write_report

if TYPE_CHECKING:
    from seq2seq.evaluation.report import Explained
    from seq2seq.evaluation.scores import Scores

SUMMARY = "Scores a file of translations: BLEU and chrF with their signatures."
EXAMPLES = """
seq2seq score output.de --reference test.de --language de
seq2seq score output.zh --reference a.zh --reference b.zh --language zh --json
seq2seq score output.de --reference test.de --language de --source test.en --explain
seq2seq translate RUN test.en | seq2seq score - --reference test.de
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("hypothesis", metavar="HYPOTHESIS", help="the translations, one a line; - is standard input")
    parser.add_argument(
        "--reference",
        action="append",
        required=True,
        metavar="FILE",
        help="what a person wrote, line by line; give the option again for further references",
    )
    parser.add_argument(
        "--language",
        type=language_code,
        metavar="CODE",
        help="target language (zh, ja, de, ...): chooses BLEU's tokenizer (default: 13a, for words between blanks)",
    )
    parser.add_argument(
        "--tokenize", metavar="NAME", help="BLEU's tokenizer itself: 13a, intl, zh, char, none, ja-mecab or ko-mecab"
    )
    parser.add_argument("--source", metavar="FILE", help="what was translated, for --explain and --report")
    add_explaining_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with unrounded scores")


def language_code(text: str) -> str:
    """A language code, as an argument."""
    if not re.fullmatch("[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language code such as en, zh or pt_BR")
    return text


def run(args: argparse.Namespace) -> int:
    """Reads, scores and prints."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.scores import check_tokenizer, cut_into_words, missing_tokenizer, refuse_pieces, score

    if args.tokenize is not None:
        check_tokenizer(args.tokenize)  # before a long file is read
    paths = [args.hypothesis, *args.reference] + ([] if args.source is None else [args.source])
    check_report(args.report, paths)
    if paths.count("-") > 1:
        raise ScoringError("Standard input (-) can be read once; name a file for the other side.")
    names = ["standard input" if path == "-" else path for path in paths]
    hypotheses, *references = [text_lines(path, name) for path, name in zip(paths, names, strict=True)]
    sources = None if args.source is None else references.pop()
    for name, side in zip(names, [hypotheses, *references], strict=False):
        refuse_pieces(side, name)
    language = args.language or ""
    scores = score(hypotheses, references, target_language=language, tokenize=args.tokenize, names=names)
    note = None
    if args.tokenize is None:
        note = missing_tokenizer(language) if language else _note_without_blanks(references[0])
    for one in filter(None, (note, cut_into_words(hypotheses))):
        print(f"seq2seq: {one}", file=sys.stderr)
    explained = None
    if args.explain or args.report is not None:
        if sources is not None and len(sources) != len(hypotheses):
            raise ScoringError(f"{names[0]} has {len(hypotheses):,} lines and {args.source} has {len(sources):,}.")
        explained = _explained(args, names, hypotheses, references, sources, scores)
    if args.report is not None and explained is not None:
        write_report(args.report, explained)
    if args.json:
        more = {} if explained is None else explained.as_dict()
        print(json.dumps({"lines": len(hypotheses), **scores.as_dict(), **more}, ensure_ascii=False))
        return 0
    print(*scores.lines(), sep="\n")
    if explained is not None and explained.edits is not None:
        print(explained.edits.line())
    if args.explain and explained is not None:
        print("", *detail_lines(explained.diagnosis), "", *cause_lines(explained.causes), sep="\n")
    return 0


def _explained(
    args: argparse.Namespace,
    names: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
    scores: Scores,
) -> Explained:
    """What the lines themselves say of the score; of the model that wrote them nothing is known."""
    from seq2seq.evaluation.causes import Known, likely_causes
    from seq2seq.evaluation.diagnosis import diagnose
    from seq2seq.evaluation.report import Explained
    from seq2seq.evaluation.scores import edit_rate

    language = args.language or ""
    diagnosis = diagnose(hypotheses, references, target_language=language, tokenize=args.tokenize, sources=sources)
    files = [Path(name).name for name in names[1:]]
    return Explained(
        title=names[0],
        facts=[f"{len(hypotheses):,} sentences", *files],
        languages=("", language),
        scores=scores,
        edits=edit_rate(hypotheses, references, target_language=language),
        diagnosis=diagnosis,
        causes=likely_causes(Known(diagnosis)),
    )


def text_lines(path: str, name: str) -> list[str]:
    """The lines of a file, or of standard input for `-`; bad ones refuse."""
    from seq2seq.corpus.lines import read_lines

    stream = sys.stdin.buffer if path == "-" else path
    lines = read_lines(stream, name=name, advice="Convert the text to UTF-8.")
    # Bad lines are refused, so every line is text; None would be a line that was dropped.
    return [line or "" for line in lines]


def _note_without_blanks(lines: Sequence[str]) -> str | None:
    """A warning where words are not divided by blanks, so that 13a would count whole sentences as words."""
    from seq2seq.evaluation.words import is_unspaced

    if not is_unspaced(lines):
        return None
    return (
        "the text seems to be written without blanks between words, and BLEU counted words between blanks (tok:13a); "
        "give --language (zh, ja, ...) or --tokenize."
    )
