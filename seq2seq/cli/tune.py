"""`seq2seq tune`: choose beam size and penalties on the validation set."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seq2seq.cli.decoding import add_model_arguments, bar_of, batch_size, beam_width, penalty
from seq2seq.cli.translate import refuse_nonsense

if TYPE_CHECKING:
    from seq2seq.config.schema import DecodingConfig
    from seq2seq.evaluation.tuning import Trial
    from seq2seq.runs import RunFolder
    from seq2seq.translation.translator import Translator

SUMMARY = "Finds beam size, length and coverage penalty by the validation set's BLEU."
EXAMPLES = """
seq2seq tune runs/en-de
seq2seq tune runs/en-de --write                       (translate and evaluate then search so)
seq2seq tune runs/en-de --beams 5,10 --length-penalties 0.6,1,1.4 --coverage-penalties 0
"""

Value = TypeVar("Value", int, float)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("run_folder", metavar="RUN", help="the folder of a run, or RUN/best or RUN/last")
    parser.add_argument(
        "--write", action="store_true", help="keep the best in the run (decoding.json): it then searches so"
    )
    parser.add_argument("--beams", type=_list_of(beam_width), metavar="N,N", help="beam sizes (default: 1,3,5,8,12)")
    parser.add_argument("--length-penalties", type=_list_of(penalty), metavar="X,X", help="(default: 0,0.2,... to 2)")
    parser.add_argument(
        "--coverage-penalties", type=_list_of(penalty), metavar="X,X", help="(default: 0,0.01,0.02,0.05,0.1,0.2,0.4)"
    )
    parser.add_argument("--batch-size", type=batch_size, metavar="N", help="sentences translated together")
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every combination")


def _list_of(number: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    def read(text: str) -> list[Value]:
        return sorted({number(part) for part in text.split(",")})

    return read


def run(args: argparse.Namespace) -> int:
    """Translates the validation set once for each beam size, ranks, scores and prints."""
    from seq2seq.evaluation.scores import default_tokenizer, missing_tokenizer
    from seq2seq.evaluation.tuning import Grid, best, gains_on_other_lines, present_way, trials
    from seq2seq.model.device import keep_freed_memory
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.translator import Translator
    from seq2seq.translation.tuned import write_tuned

    folder = RunFolder.open(run_of(Path(args.run_folder))[0])
    sources, references = _validation_set(folder)
    keep_freed_memory()
    translator = Translator.load(
        Path(args.run_folder), device=args.device, precision=args.precision, shortlist=args.shortlist
    )
    now = translator.decoding
    default = Grid()
    grid = Grid(
        args.beams or default.beams,
        args.length_penalties or default.length_penalties,
        args.coverage_penalties or default.coverage_penalties,
    ).with_present(now)
    refuse_nonsense(_without_numbers(translator, sources), args.run_folder)
    began = time.monotonic()

    def told(beam: int) -> None:
        print(f"seq2seq: {time.monotonic() - began:.0f} s: searching with a beam of {beam}", file=sys.stderr)

    with bar_of(translator, "translated"):
        tried = trials(translator, sources, references, grid, batch_size=args.batch_size, began=told)
    chosen, present = best(tried, now), present_way(tried, now)
    elsewhere = gains_on_other_lines(tried, now)
    worth = sum(elsewhere) / len(elsewhere) if elsewhere else None
    if note := missing_tokenizer(translator.target_language):
        print(f"seq2seq: {note}", file=sys.stderr)
    if args.write:
        facts = {"bleu": chosen.bleu, "bleu_before": present.bleu, "lines": len(sources)}
        write_tuned(folder, now.model_copy(update=_settings(chosen)), facts)
    if args.json:
        found = {"lines": len(sources), "before": present.as_dict(), "best": chosen.as_dict(), "written": args.write}
        found["gain_on_other_lines"] = worth
        print(json.dumps({**found, "trials": [trial.as_dict() for trial in tried]}))
        return 0
    print(f"{len(sources):,} validation sentences, BLEU tok:{default_tokenizer(translator.target_language)}", end="")
    print(f", {len(tried):,} combinations")
    print(*_table(tried, chosen, now), sep="\n")
    if worth is not None:
        span = f"{len(elsewhere)} halves, from {min(elsewhere):+.2f} to {max(elsewhere):+.2f}"
        print(f"Chosen on half of the lines and measured on the other half, it is worth {worth:+.2f} BLEU ({span}).")
    if worth is not None and worth <= 0 and not chosen.is_way_of(now):
        print("That is no gain: what is best here is so by chance.")
    if args.write:
        print(f"{folder.path} now searches so; delete decoding.json in it to go back to its config.yaml.")
    elif not chosen.is_way_of(now):
        print("Keep it with --write; the test set has had no say in it.")
    return 0


def _validation_set(folder: RunFolder) -> tuple[list[str], list[str]]:
    from seq2seq.corpus.splits import open_corpora
    from seq2seq.errors import CorpusError
    from seq2seq.translation.opening import run_config

    config = run_config(folder)
    pairs = list(open_corpora(config.data, config.seed).validation)
    if not pairs:
        raise CorpusError("The validation set has no pairs (data.validation), so there is nothing to tune on.")
    return [source for source, _ in pairs], [target for _, target in pairs]


def _without_numbers(translator: Translator, sources: Sequence[str]) -> int:
    """How many of the first sentences a model that has diverged gives no finite score."""
    some = sources[: translator.decoding.batch_size]
    return sum(not translation.is_finite for translation in translator.translate(some, beam_size=1))


def _settings(trial: Trial) -> dict[str, int | float]:
    return {name: value for name, value in trial.as_dict().items() if name != "bleu"}


def _table(tried: Sequence[Trial], chosen: Trial, now: DecodingConfig) -> Iterator[str]:
    """For each beam size: with the present penalties, with the best ones, and the best ones without coverage."""
    from seq2seq.evaluation.tuning import best

    yield "beam  length  coverage    BLEU"
    for beam in sorted({trial.beam_size for trial in tried}):
        own = [trial for trial in tried if trial.beam_size == beam]
        present = next(trial for trial in own if trial.is_way_of(now.model_copy(update={"beam_size": beam})))
        shown = {present, best([trial for trial in own if not trial.coverage_penalty] or own, now), best(own, now)}
        for trial in sorted(shown, key=lambda trial: trial.bleu):
            notes = ["as it is now"] * trial.is_way_of(now) + ["best"] * (trial == chosen)
            numbers = f"{beam:>4}  {trial.length_penalty:>6g}  {trial.coverage_penalty:>8g}  {trial.bleu:>6.2f}"
            yield f"{numbers}  {', '.join(notes)}".rstrip()
