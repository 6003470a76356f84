"""`seq2seq score`: BLEU and chrF of a file of translations, as the sacrebleu command would print them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence

SUMMARY = "Scores a file of translations: BLEU and chrF with their signatures."
EXAMPLES = """
seq2seq score output.de --reference test.de --language de
seq2seq score output.zh --reference a.zh --reference b.zh --language zh --json
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
        type=_language_code,
        metavar="CODE",
        help="target language (zh, ja, de, ...): chooses BLEU's tokenizer (default: 13a, for words between blanks)",
    )
    parser.add_argument(
        "--tokenize", metavar="NAME", help="BLEU's tokenizer itself: 13a, intl, zh, char, none, ja-mecab or ko-mecab"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with unrounded scores")


def _language_code(text: str) -> str:
    if not re.fullmatch("[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language code such as en, zh or pt_BR")
    return text


def run(args: argparse.Namespace) -> int:
    """Reads, scores and prints."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.scores import check_tokenizer, cut_into_words, missing_tokenizer, refuse_pieces, score

    if args.tokenize is not None:
        check_tokenizer(args.tokenize)  # before a long file is read
    paths = [args.hypothesis, *args.reference]
    if paths.count("-") > 1:
        raise ScoringError("Standard input (-) can be read once; name a file for the other side.")
    names = ["standard input" if path == "-" else path for path in paths]
    hypotheses, *references = [_lines(path, name) for path, name in zip(paths, names, strict=True)]
    for name, side in zip(names, [hypotheses, *references], strict=True):
        refuse_pieces(side, name)
    language = args.language or ""
    scores = score(hypotheses, references, target_language=language, tokenize=args.tokenize, names=names)
    note = None
    if args.tokenize is None:
        note = missing_tokenizer(language) if language else _note_without_blanks(references[0])
    for one in filter(None, (note, cut_into_words(hypotheses))):
        print(f"seq2seq: {one}", file=sys.stderr)
    if args.json:
        print(json.dumps({"lines": len(hypotheses), **scores.as_dict()}, ensure_ascii=False))
    else:
        print(*scores.lines(), sep="\n")
    return 0


def _lines(path: str, name: str) -> list[str]:
    from seq2seq.corpus.lines import read_lines

    stream = sys.stdin.buffer if path == "-" else path
    lines = read_lines(stream, name=name, advice="Convert the text to UTF-8.")
    # Bad lines are refused, so every line is text; None would be a line that was dropped.
    return [line or "" for line in lines]


def _note_without_blanks(lines: Sequence[str]) -> str | None:
    """A warning where words are not divided by blanks, so that 13a would count whole sentences as words."""
    text = "".join(lines)
    # Thai to Khmer, kana, Han (the planes beyond the first included); Hangul is written with blanks.
    unspaced = sum(1 for c in text if "\u0e00" <= c <= "\u109f" or "\u3040" <= c <= "\u9fff" or c >= "\U00020000")
    if unspaced * 2 <= len(text):
        return None
    return (
        "the text seems to be written without blanks between words, and BLEU counted words between blanks (tok:13a); "
        "give --language (zh, ja, ...) or --tokenize."
    )
