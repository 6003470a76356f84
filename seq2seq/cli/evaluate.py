"""`seq2seq evaluate`: translate a test set, score it, and say what the score is due to."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.cli.decoding import (
    add_model_arguments,
    add_search_arguments,
    bar_of,
    beam_used,
    check_search_arguments,
    described,
    load_translator,
    open_runs,
    unusual,
)
from seq2seq.cli.explanation import add_explaining_arguments, cause_lines, check_report, detail_lines, write_report
from seq2seq.cli.outputs import check_output
from seq2seq.cli.translate import in_parts, refuse_nonsense

if TYPE_CHECKING:
    from seq2seq.evaluation.report import Explained
    from seq2seq.evaluation.scores import Scores
    from seq2seq.evaluation.test_set import TestSet
    from seq2seq.runs import RunFolder
    from seq2seq.translation.translator import Translator

SUMMARY = "Translates a test set, scores it (BLEU, chrF) and says what the score is due to."
EXAMPLES = """
seq2seq evaluate runs/en-de
seq2seq evaluate runs/en-de --explain --report report.html
seq2seq evaluate runs/en-de --source test.en --reference test.de --json
seq2seq evaluate runs/en-zh --beam 1 --output translations.zh
seq2seq evaluate runs/one runs/two runs/three                   (an ensemble)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="the folder of a run, or RUN/best or RUN/last; several make an ensemble, and the first names the test set",
    )
    parser.add_argument("--source", metavar="FILE", help="sentences to translate (default: data.test of the run)")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="FILE",
        help="their translations; again for further references",
    )
    add_search_arguments(parser)
    add_model_arguments(parser)
    parser.add_argument(
        "--tokenize", metavar="NAME", help="BLEU's tokenizer (default: chosen from the target language)"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the translations to this file, also .gz or .xz")
    add_explaining_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with unrounded scores")


def run(args: argparse.Namespace) -> int:
    """Reads the test set, translates, scores, prints."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.scores import score
    from seq2seq.evaluation.test_set import configured_test_set, test_set_from_files
    from seq2seq.model.device import keep_freed_memory
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.opening import run_config

    _check(args)
    folder, _ = run_of(Path(args.runs[0]))
    run = RunFolder.open(folder)
    config = run_config(run)
    test = configured_test_set(config) if args.source is None else test_set_from_files(args.source, args.reference)
    if not test.sources:
        raise ScoringError(f"{test.names[0]} has no lines, so there is nothing to translate.")
    keep_freed_memory()
    translator = load_translator(args, args.runs)
    texts = _translations(translator, test, args)
    language, names = translator.target_language, ["the translations", *test.names[1:]]
    scores = score(texts, test.references, target_language=language, tokenize=args.tokenize, names=names)
    explained = _explained(args, run, translator, test, texts, scores)
    if args.report is not None:
        write_report(args.report, explained)
    if args.json:
        facts: dict[str, Any] = {"lines": len(texts), "beam_size": beam_used(translator)}
        how = unusual(translator, args)
        facts |= {**({"decoding": how} if how else {}), **scores.as_dict(), **explained.as_dict()}
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    print(f"{len(texts):,} sentences, {described(translator, args)}", *scores.lines(), sep="\n")
    if explained.edits is not None:
        print(explained.edits.line())
    if args.explain or sys.stdout.isatty():
        print("", *detail_lines(explained.diagnosis), sep="\n")
    print("", *cause_lines(explained.causes), sep="\n")
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuses what cannot be done before anything is read or written."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.scores import check_tokenizer

    if (args.source is None) != (not args.reference):
        raise ScoringError("A test set is a --source and at least one --reference; one of them is missing.")
    if args.tokenize is not None:
        check_tokenizer(args.tokenize)
    check_output(args.output, [args.source, *args.reference, args.dictionary], packs=True)
    check_search_arguments(args)
    open_runs(args.runs)
    check_report(args.report, [args.source, *args.reference, args.output])


def _translations(translator: Translator, test: TestSet, args: argparse.Namespace) -> list[str]:
    """The test set translated, and written where it is to go; what is to be known of it is said."""
    from seq2seq.evaluation.scores import cut_into_words, missing_tokenizer
    from seq2seq.files import whole_file

    with bar_of(translator, "translated"):
        found = list(translator.translate(test.sources, batch_size=args.batch_size))
    refuse_nonsense(sum(not translation.is_finite for translation in found), args.runs[0])
    texts = [translation.text for translation in found]
    if args.output is not None:
        with whole_file(Path(args.output)) as output:
            output.writelines(text + "\n" for text in texts)
    split = [number for number, translation in enumerate(found, start=1) if translation.parts > 1]
    notes = [
        *test.messages,
        in_parts(len(split), split, translator.longest_source) if split else None,
        missing_tokenizer(translator.target_language) if args.tokenize is None else None,
        cut_into_words(texts),
    ]
    for note in filter(None, notes):
        print(f"seq2seq: {note}", file=sys.stderr)
    return texts


def _explained(
    args: argparse.Namespace,
    run: RunFolder,
    translator: Translator,
    test: TestSet,
    texts: list[str],
    scores: Scores,
) -> Explained:
    """What the translations, the training text and the record of the training say of the score."""
    from seq2seq.evaluation.causes import Known, likely_causes
    from seq2seq.evaluation.diagnosis import diagnose
    from seq2seq.evaluation.report import Explained
    from seq2seq.evaluation.scores import edit_rate
    from seq2seq.evaluation.training_record import training_record
    from seq2seq.evaluation.training_text import compare_with_training
    from seq2seq.translation.opening import run_config

    config, language, beam = run_config(run), translator.target_language, beam_used(translator)
    diagnosis = diagnose(
        texts,
        test.references,
        target_language=language,
        tokenize=args.tokenize,
        sources=test.sources,
        training=compare_with_training(test.sources, config, translator.tokenizer),
    )
    known = Known(diagnosis, beam, config, training_record(run.metrics()))
    thorough = args.explain or args.report is not None
    return Explained(
        title=str(run.path),
        facts=[f"{len(texts):,} sentences", f"beam {beam}", *(Path(name).name for name in test.names)],
        languages=(config.data.source_language, language),
        scores=scores,
        edits=edit_rate(texts, test.references, target_language=language) if thorough else None,
        diagnosis=diagnosis,
        causes=likely_causes(known),
    )
