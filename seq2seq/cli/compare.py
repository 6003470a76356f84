"""`seq2seq compare`: runs or files of translations side by side, and whether the difference is more than chance."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.cli.decoding import add_model_arguments, bar_of, batch_size, beam_width
from seq2seq.cli.explanation import shown
from seq2seq.cli.score import language_code, text_lines
from seq2seq.cli.translate import refuse_nonsense

if TYPE_CHECKING:
    from seq2seq.evaluation.comparison import Change, Comparison, Group, Standing, System
    from seq2seq.evaluation.test_set import TestSet

SUMMARY = "Compares runs or files of translations: differences, p-values, wins and losses."
EXAMPLES = """
seq2seq compare runs/baseline runs/wider
seq2seq compare a.de b.de --source test.en --reference test.de --language de
seq2seq compare runs/a-seed1 runs/a-seed2 runs/b-seed1 runs/b-seed2 --json
"""

_NO_MATTER = ("device", "threads", "checkpoint_every", "log_every", "tensorboard")
_NAMES = {"bleu": "BLEU", "chrf": "chrF2"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "systems",
        nargs="+",
        metavar="RUN_OR_FILE",
        help="two or more: run folders, which translate the source, or translations; the first is the baseline",
    )
    parser.add_argument("--source", metavar="FILE", help="the test set's source (default: data.test of the first run)")
    parser.add_argument(
        "--reference", action="append", default=[], metavar="FILE", help="its translation; again for further references"
    )
    parser.add_argument(
        "--language", type=language_code, metavar="CODE", help="target language (default: that of the first run)"
    )
    parser.add_argument("--tokenize", metavar="NAME", help="BLEU's tokenizer (default: chosen from the language)")
    parser.add_argument("--beam", type=beam_width, metavar="N", help="hypotheses kept side by side, for runs")
    parser.add_argument("--batch-size", type=batch_size, metavar="N", help="sentences translated together")
    add_model_arguments(parser)
    parser.add_argument("--samples", type=batch_size, default=1000, metavar="N", help="bootstrap samples (1000)")
    parser.add_argument("--trials", type=batch_size, default=10_000, metavar="N", help="randomisation trials (10000)")
    parser.add_argument("--show", type=beam_width, default=3, metavar="N", help="sentences won and lost (default: 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with unrounded numbers")


def run(args: argparse.Namespace) -> int:
    """Reads or translates, tests, prints."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.comparison import compare
    from seq2seq.evaluation.scores import check_tokenizer, missing_tokenizer

    if len(args.systems) < 2:
        raise ScoringError("A comparison needs two runs or files at the least; the first of them is the baseline.")
    if args.tokenize is not None:
        check_tokenizer(args.tokenize)
    test, language = _test_set(args)
    if not test.references[0]:
        raise ScoringError(f"{test.names[1]} has no lines, so there is nothing to compare with.")
    systems = [_system(path, test, args) for path in args.systems]
    comparison = compare(
        systems,
        test.references,
        target_language=language,
        tokenize=args.tokenize,
        sources=test.sources or None,
        samples=args.samples,
        trials=args.trials,
        shown=args.show,
    )
    note = missing_tokenizer(language) if language and args.tokenize is None else None
    for message in filter(None, [*test.messages, note]):
        print(f"seq2seq: {message}", file=sys.stderr)
    if args.json:
        print(json.dumps({"baseline": args.systems[0], **comparison.as_dict()}, ensure_ascii=False))
    else:
        print(*_lines(comparison), sep="\n")
    return 0


def _is_run(path: str) -> bool:
    return Path(path).is_dir()


def _test_set(args: argparse.Namespace) -> tuple[TestSet, str]:
    """The sentences and references that all systems are compared on, and the target language."""
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.test_set import TestSet, configured_test_set, test_set_from_files
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.opening import run_config

    runs = [path for path in args.systems if _is_run(path)]
    configs = [run_config(RunFolder.open(run_of(Path(path))[0])) for path in runs]
    language = args.language or (configs[0].data.target_language if configs else "")
    if args.source is not None and not args.reference:
        raise ScoringError("A test set is a --source and at least one --reference; the reference is missing.")
    if args.source is None and args.reference and runs:
        raise ScoringError(f"{runs[0]} is a run, and has to translate the test set first; give its --source as well.")
    if args.source is not None:
        return test_set_from_files(args.source, args.reference), language
    if args.reference:
        references = [text_lines(path, path) for path in args.reference]
        return TestSet([], references, ["", *args.reference]), language
    if not runs:
        raise ScoringError("Nothing says what the translations should be; give at least one --reference file.")
    return configured_test_set(configs[0]), language


def _system(path: str, test: TestSet, args: argparse.Namespace) -> System:
    """One run or file as translations; a run also says by which settings it was trained."""
    from seq2seq.config.loading import dump_config
    from seq2seq.errors import ScoringError
    from seq2seq.evaluation.comparison import System
    from seq2seq.evaluation.scores import refuse_pieces
    from seq2seq.model.device import keep_freed_memory
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.ensemble import load_ensemble
    from seq2seq.translation.opening import run_config

    if not _is_run(path):
        lines = text_lines(path, path)
        if len(lines) != len(test.references[0]):
            name = test.names[1]
            raise ScoringError(f"{path} has {len(lines):,} lines and {name} has {len(test.references[0]):,}.")
        refuse_pieces(lines, path)
        return System(path, lines)
    keep_freed_memory()
    translator = load_ensemble([Path(path)], device=args.device, precision=args.precision, shortlist=args.shortlist)
    with bar_of(translator, "translated"):
        found = list(translator.translate(test.sources, beam_size=args.beam, batch_size=args.batch_size))
    refuse_nonsense(sum(not translation.is_finite for translation in found), path)
    folder, checkpoint = run_of(Path(path))
    config = run_config(RunFolder.open(folder))
    tuned = {
        name: getattr(translator.decoding, name)
        for name in ("beam_size", "length_penalty", "coverage_penalty")
        if getattr(translator.decoding, name) != getattr(config.decoding, name)
        if name != "beam_size" or args.beam is None
    }
    if tuned:
        how = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in tuned.items())
        print(f"seq2seq: {path} searches as its decoding.json says: {how}", file=sys.stderr)
    # What neither the weights nor the search depend on may differ within a group.
    training = config.training.model_copy(update=dict.fromkeys(_NO_MATTER))
    alike = dump_config(config.model_copy(update={"seed": 0, "run": None, "training": training}))
    return System(path, [translation.text for translation in found], f"{checkpoint} {alike}", config.seed)


# -- for people --------------------------------------------------------------------------------------------------------


def _lines(comparison: Comparison) -> Iterator[str]:
    width = max(len(standing.name) for standing in comparison.standings)
    yield f"{comparison.lines:,} sentences; the baseline is {comparison.standings[0].name}"
    for metric, name in _NAMES.items():
        yield ""
        heading = f"{'score':>7}   {'95 %':>6}  {'change':>7}  {'p bootstrap':>11}  {'p randomised':>12}"
        yield f"{name:<{width + 2}} {heading}"
        for standing in comparison.standings:
            yield _row(standing, metric, width)
        yield from (f"  {signature}" for signature in comparison.signatures[metric].values())
    yield ""
    yield from _verdicts(comparison.standings)
    if comparison.groups:
        yield ""
        yield from _group_lines(comparison.groups)
    for standing in comparison.standings[1:]:
        yield from _changes("Won most", comparison.wins[standing.name], standing.name)
        yield from _changes("Lost most", comparison.losses[standing.name], standing.name)


def _row(standing: Standing, metric: str, width: int) -> str:
    found = standing.scores[metric]
    start = f"  {standing.name:<{width}} {found.score:>7.2f}  ±{found.interval:>6.2f}"
    if found.difference is None or found.p_bootstrap is None or found.p_randomisation is None:
        return start
    return f"{start}  {found.difference:>+7.2f}  {found.p_bootstrap:>11.4f}  {found.p_randomisation:>12.4f}"


def _verdicts(standings: Sequence[Standing]) -> Iterator[str]:
    from seq2seq.evaluation.comparison import is_significant

    for standing in standings[1:]:
        found = standing.scores["bleu"]
        way = "better than" if (found.difference or 0) > 0 else "worse than"
        if not found.difference:
            yield f"{standing.name} scores exactly as the baseline does (BLEU)."
        elif is_significant(found):
            yield f"{standing.name} is {way} the baseline on this test set: both tests give p < 0.05 (BLEU)."
        else:
            yield f"{standing.name} may differ from the baseline by chance: a test gives p of 0.05 or more (BLEU)."


def _group_lines(groups: Sequence[Group]) -> Iterator[str]:
    yield "Trainings that differ by their seed, mean ± standard deviation of one:"
    for group in groups:
        scores = "   ".join(
            f"{name} {group.means[metric]:.2f} ± {group.deviations[metric]:.2f}" for metric, name in _NAMES.items()
        )
        yield f"  {', '.join(group.names)}"
        yield f"    {scores}   ({len(group.seeds)} seeds: {', '.join(map(str, group.seeds))})"


def _changes(title: str, changes: Sequence[Change], name: str) -> Iterator[str]:
    if not changes:
        return
    yield ""
    yield f"{title} by {name}, in sentence chrF2:"
    for change in changes:
        yield f"  line {change.line}, {change.gain:+.1f}"
        rows = [("source", change.source), ("baseline", change.baseline), ("this", change.other)]
        for label, text in [*rows, ("reference", change.reference)]:
            if text is not None:
                yield f"    {label:<10} {shown(text)}"
