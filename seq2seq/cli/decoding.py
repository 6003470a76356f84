"""How the verbs that translate are told which models to use and how to search, and how they tell it again."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.translation.translator import Translator

_DEFAULT_CANDIDATES = 20


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares how a model is to compute, for each verb that translates."""
    parser.add_argument(
        "--precision",
        default="fp32",
        choices=("fp32", "bf16", "int8"),
        help="fp32 (default), or faster and nearly the same: bf16, or int8 on an x86 processor",
    )
    parser.add_argument(
        "--shortlist",
        action="store_true",
        help="choose among the words that the source makes likely: faster. For models well trained on enough text; "
        "others it changes much and makes worse",
    )
    parser.add_argument(
        "--replace-unknown",
        action="store_true",
        help="put the source's own word where a vocabulary of words (tokenizer.kind torchtext) has none",
    )
    parser.add_argument(
        "--dictionary",
        metavar="FILE",
        help="or what this file has for it (a word, a tab and its translation in each line)",
    )
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu, cuda, cuda:N or mps (default: auto)")


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares how to search, for the verbs that do not choose it themselves."""
    parser.add_argument("--beam", type=beam_width, metavar="N", help="hypotheses kept side by side; 1 is greedy search")
    parser.add_argument("--batch-size", type=batch_size, metavar="N", help="sentences translated together")
    parser.add_argument(
        "--length-penalty",
        type=penalty,
        metavar="X",
        help="power of the length that divides a score; higher favours longer output",
    )
    parser.add_argument(
        "--coverage-penalty",
        type=penalty,
        metavar="X",
        help="weight of source words that no target word attends to, in ranking; 0 is none",
    )
    parser.add_argument(
        "--mbr",
        choices=("chrf",),
        help="minimum Bayes risk: the candidate with the highest expected chrF, not the most probable one",
    )
    parser.add_argument(
        "--candidates",
        type=beam_width,
        metavar="N",
        help=f"candidates for --mbr, from a beam at least so wide (default: {_DEFAULT_CANDIDATES})",
    )
    parser.add_argument(
        "--sample", type=_seed, metavar="SEED", help="draw the candidates for --mbr at random, from this seed"
    )


def beam_width(text: str) -> int:
    """The range of decoding.beam_size."""
    return _whole_number(text, 1, 1024)


def batch_size(text: str) -> int:
    """The range of decoding.batch_size."""
    return _whole_number(text, 1, 1_000_000)


def penalty(text: str) -> float:
    """The range of decoding.length_penalty and decoding.coverage_penalty."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 100:  # so is NaN refused
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return number


def _seed(text: str) -> int:
    return _whole_number(text, 0, 2**31 - 1)


def _whole_number(text: str, least: int, most: int) -> int:
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most:,}")
    return int(text)


def runs_and_file(paths: Sequence[str]) -> tuple[list[str], str | None]:
    """Tells the runs of a command line from the file after them, if there is one.

    A run is a folder; so what comes last and is none, be it there or not, is a file to translate. The first is a run.
    """
    *before, last = paths
    names_a_run = not before or Path(last).is_dir()
    return (list(paths), None) if names_a_run else (before, last)


def open_runs(paths: Sequence[str]) -> None:
    """RunError for a path that leads to no run, before anything else is read."""
    from seq2seq.errors import RunError
    from seq2seq.runs import RunFolder, run_of

    seen: set[Path] = set()
    for number, path in enumerate(paths):
        if number and Path(path).is_file():
            raise RunError(f"{path} is a file and no run; the text to translate comes last, one file at the most.")
        RunFolder.open(run_of(Path(path))[0])
        if Path(path).resolve() in seen:
            raise RunError(f"{path} is named twice; the members of an ensemble are different models.")
        seen.add(Path(path).resolve())


def check_search_arguments(args: argparse.Namespace) -> None:
    """DecodingError for options that would change nothing beside the others."""
    from seq2seq.errors import DecodingError

    if args.mbr is None and (args.candidates, args.sample) != (None, None):
        option = "--sample" if args.candidates is None else "--candidates"
        raise DecodingError(f"{option} says among what --mbr chooses; give --mbr chrf as well, or leave it out.")
    if args.mbr is not None and args.coverage_penalty:
        raise DecodingError("--mbr ranks by expected chrF alone; leave --coverage-penalty out, or --mbr.")
    if args.sample is not None and (args.beam, args.length_penalty) != (None, None):
        option = "--beam" if args.length_penalty is None else "--length-penalty"
        raise DecodingError(f"--sample draws candidates without a beam; leave {option} out, or --sample.")


def load_translator(args: argparse.Namespace, runs: Sequence[str]) -> Translator:
    """The translator that the arguments of a verb describe: of one run, or an ensemble of several."""
    from seq2seq.model.device import lacks_bf16
    from seq2seq.translation.ensemble import load_ensemble
    from seq2seq.translation.risk import LeastRisk
    from seq2seq.translation.unknown_words import read_dictionary

    dictionary = {} if args.dictionary is None else read_dictionary(args.dictionary)
    translator = load_ensemble(
        [Path(run) for run in runs],
        device=args.device,
        precision=args.precision,
        shortlist=args.shortlist,
        replace_unknown=dictionary if args.replace_unknown or args.dictionary is not None else None,
    )
    if args.precision == "bf16" and lacks_bf16(translator.device):
        print(
            "seq2seq: this processor has no products of bfloat16, so that bf16 is many times slower than fp32; int8 is "
            "faster here",
            file=sys.stderr,
        )
    given = {
        "beam_size": args.beam,
        "length_penalty": args.length_penalty,
        "coverage_penalty": args.coverage_penalty,
    }
    told = {name: value for name, value in given.items() if value is not None}
    translator.decoding = translator.decoding.model_copy(update=told)
    if args.mbr is not None:
        translator.risk = LeastRisk(
            args.candidates or _DEFAULT_CANDIDATES, sampled=args.sample is not None, seed=args.sample or 0
        )
    return translator


@contextlib.contextmanager
def bar_of(translator: Translator, what: str) -> Iterator[None]:
    """Within it a terminal shows how far the translator has come with the lines that it was given; a file, nothing."""
    from tqdm import tqdm

    hidden = not sys.stderr.isatty()
    with tqdm(
        desc=what, unit=" lines", disable=hidden, delay=1, leave=False, dynamic_ncols=True, file=sys.stderr
    ) as bar:

        def told(done: int, of: int) -> None:
            if done < bar.n:  # other lines, or the same in another way
                bar.reset()
            bar.total = of
            bar.update(done - bar.n)

        before, translator.told = translator.told, told
        try:
            yield
        finally:
            translator.told = before


def described(translator: Translator, args: argparse.Namespace) -> str:
    """How translations are made, for a person who reads their score: "beam 5" and whatever is not as usual."""
    risk = translator.risk
    words = [f"ensemble of {len(translator.members)}"] if len(translator.members) > 1 else []
    width = beam_used(translator)
    words += [] if width is None else [f"beam {width}"]
    words += [] if risk is None else [str(risk)]
    words += [f"{name.replace('_', ' ')} {value:g}" for name, value in _penalties(translator).items()]
    words += [] if args.precision == "fp32" else [args.precision]
    return ", ".join(words + (["shortlist"] if args.shortlist else []))


def unusual(translator: Translator, args: argparse.Namespace) -> dict[str, Any]:
    """The same for programs: what is not as it is by default; nothing where all is."""
    risk = translator.risk
    facts: dict[str, Any] = {"ensemble": len(translator.members)} if len(translator.members) > 1 else {}
    if risk is not None:
        facts["mbr"] = {"utility": "chrf", "candidates": risk.candidates}
        facts["mbr"] |= {"sample": risk.seed} if risk.sampled else {}
    facts |= _penalties(translator)
    facts |= {} if args.precision == "fp32" else {"precision": args.precision}
    return facts | ({"shortlist": True} if args.shortlist else {})


def beam_used(translator: Translator) -> int | None:
    """The width of the beam; None where translations are drawn at random."""
    width, risk = translator.decoding.beam_size, translator.risk
    return width if risk is None else None if risk.sampled else max(width, risk.candidates)


def _penalties(translator: Translator) -> dict[str, float]:
    """Those that are used and are not as they are by default."""
    decoding, risk = translator.decoding, translator.risk
    usual = type(decoding)()
    return {
        name: getattr(decoding, name)
        for name in ("length_penalty", "coverage_penalty")
        if risk is None or (name == "length_penalty" and not risk.sampled)
        if getattr(decoding, name) != getattr(usual, name)
    }
