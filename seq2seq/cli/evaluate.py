"""`seq2seq evaluate`: translate a test set and score it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from seq2seq.cli.translate import (
    add_model_arguments,
    batch_size,
    beam_width,
    check_output,
    in_parts,
    load_translator,
    refuse_nonsense,
)

SUMMARY = "Translates a test set and scores it: BLEU and chrF with their signatures."
EXAMPLES = """
seq2seq evaluate runs/en-de
seq2seq evaluate runs/en-de --source test.en --reference test.de --json
seq2seq evaluate runs/en-zh --beam 1 --output translations.zh
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("run_folder", metavar="RUN", help="the folder of a run, or RUN/best or RUN/last")
    parser.add_argument("--source", metavar="FILE", help="sentences to translate (default: data.test of the run)")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="FILE",
        help="their translations; again for further references",
    )
    parser.add_argument("--beam", type=beam_width, metavar="N", help="hypotheses kept side by side; 1 is greedy search")
    parser.add_argument("--batch-size", type=batch_size, metavar="N", help="sentences translated together")
    add_model_arguments(parser)
    parser.add_argument(
        "--tokenize", metavar="NAME", help="BLEU's tokenizer (default: chosen from the target language)"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the translations to this file")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with unrounded scores")


def run(args: argparse.Namespace) -> int:
    """Reads the test set, translates, scores, prints."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.scores import check_tokenizer, cut_into_words, missing_tokenizer, score
    from seq2seq.evaluation.test_set import configured_test_set, test_set_from_files
    from seq2seq.files import write_file
    from seq2seq.model.device import keep_freed_memory
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.translator import run_config

    if (args.source is None) != (not args.reference):
        raise ScoringError("A test set is a --source and at least one --reference; one of them is missing.")
    if args.tokenize is not None:
        check_tokenizer(args.tokenize)
    if args.output is not None and not Path(args.output).absolute().parent.is_dir():
        raise ScoringError(f"There is no folder for --output {args.output}; make it, or choose another place.")
    check_output(args.output, [args.source, *args.reference, args.dictionary])
    folder, _ = run_of(Path(args.run_folder))
    config = run_config(RunFolder.open(folder))
    test = configured_test_set(config) if args.source is None else test_set_from_files(args.source, args.reference)
    keep_freed_memory()
    translator = load_translator(args)
    found = list(translator.translate(test.sources, beam_size=args.beam, batch_size=args.batch_size))
    refuse_nonsense(sum(not translation.is_finite for translation in found), args.run_folder)
    texts = [translation.text for translation in found]
    if args.output is not None:
        write_file(Path(args.output), "".join(text + "\n" for text in texts))
    language = translator.target_language
    names = ["the translations", *test.names[1:]]
    scores = score(texts, test.references, target_language=language, tokenize=args.tokenize, names=names)
    split = [number for number, translation in enumerate(found, start=1) if translation.parts > 1]
    notes = [
        *test.messages,
        in_parts(len(split), split, translator.longest_source) if split else None,
        missing_tokenizer(language) if args.tokenize is None else None,
        cut_into_words(texts),
    ]
    for note in filter(None, notes):
        print(f"seq2seq: {note}", file=sys.stderr)
    beam = args.beam or translator.decoding.beam_size
    if args.json:
        print(json.dumps({"lines": len(texts), "beam_size": beam, **scores.as_dict()}, ensure_ascii=False))
    else:
        print(f"{len(texts):,} sentences, beam {beam}", *scores.lines(), sep="\n")
    return 0
