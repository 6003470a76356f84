"""How well attention finds the words that belong together: `python scripts/alignment_error.py RUN...`

Each run is made to write the references (forced decoding), every target word is linked with the source word that it
looked at most, and the links are compared with those that a person made for 50 pairs of Multi30k's validation set,
English to German (tests/data/multi30k_val_links.tsv). Printed are the alignment error rate (Och & Ney 2003; 0 is
perfect), precision and recall, for the mean of the heads and, with --heads, for each head.

    --source FILE --target FILE   the validation set (default: data.validation of the first run)
    --gold FILE                   other links, in the same form
    --json                        an object a line
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from torch import Tensor

    from seq2seq.evaluation.attention_report.links import AlignmentError, Link
    from seq2seq.translation.translator import Translator

GOLD = ROOT / "tests" / "data" / "multi30k_val_links.tsv"


@dataclass(frozen=True)
class Pair:
    """A pair of sentences and the links that a person made between its words."""

    source: str
    target: str
    sure: set[Link]
    possible: set[Link]


def main() -> int:
    """Prints a line for each run, after one for the diagonal, which knows no words."""
    from seq2seq.errors import Seq2SeqError

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--source", metavar="FILE")
    parser.add_argument("--target", metavar="FILE")
    parser.add_argument("--gold", default=str(GOLD), metavar="FILE")
    parser.add_argument("--heads", action="store_true", help="each head by itself as well")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        files = (args.source, args.target) if args.source and args.target else validation_files(args.runs[0])
        pairs = read_pairs(Path(args.gold), *map(Path, files))
        if not args.json:
            print(f"{len(pairs)} pairs")
            print(f"{'run':<28}{'attention':<12}{'decoder':<10}{'AER':>7}{'precision':>11}{'recall':>8}")
        tell({"run": "diagonal", "attention": "-", "decoder": "-"}, diagonal(pairs), args.json)
        for run in args.runs:
            for names, counted in measure(run, pairs, args.heads):
                tell(names, counted, args.json)
    except Seq2SeqError as error:
        sys.exit(f"alignment_error: {error}")
    return 0


def tell(names: dict[str, str], counted: AlignmentError, as_json: bool) -> None:
    if as_json:
        scores = {"aer": counted.rate, "precision": counted.precision, "recall": counted.recall}
        print(json.dumps({**names, **scores}), flush=True)
        return
    texts = f"{names['run']:<28}{names['attention']:<12}{names['decoder']:<10}"
    print(f"{texts}{counted.rate:>7.1%}{counted.precision:>11.1%}{counted.recall:>8.1%}", flush=True)


def validation_files(run: str) -> tuple[str, str]:
    """The two files of data.validation of a run. ConfigError where it is anything else."""
    from seq2seq.config.schema import Fraction
    from seq2seq.errors import ConfigError
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.opening import run_config

    validation = run_config(RunFolder.open(run_of(Path(run))[0])).data.validation
    entries = validation if isinstance(validation, tuple) else (validation,)
    if isinstance(validation, Fraction) or len(entries) != 1 or entries[0].source is None:
        raise ConfigError(f"data.validation of {run} is not one pair of files; give --source and --target.")
    return str(entries[0].source), str(entries[0].target)


def read_pairs(gold: Path, source: Path, target: Path) -> list[Pair]:
    """The pairs that the gold links name, from the corpus. CorpusError where it is another corpus."""
    from seq2seq.corpus.lines import read_lines
    from seq2seq.errors import CorpusError
    from seq2seq.evaluation.attention_report.links import read

    sources, targets = ([line or "" for line in read_lines(path)] for path in (source, target))
    pairs = []
    for row in gold.read_text(encoding="utf-8").splitlines():
        if row.startswith("#"):
            continue
        line, digest, sure, possible = row.split("\t")
        place = int(line) - 1
        both = (sources[place], targets[place]) if place < min(len(sources), len(targets)) else ("", "")
        if not hashlib.sha256("\t".join(both).encode()).hexdigest().startswith(digest):
            raise CorpusError(
                f"Line {line} of {source} and {target} is not the pair that {gold.name} has links for; "
                "give Multi30k's val.en and val.de."
            )
        pairs.append(Pair(*both, read(sure), read(possible)))
    return pairs


def diagonal(pairs: Sequence[Pair]) -> AlignmentError:
    """Links along the diagonal: what the order of words alone gives."""
    from seq2seq.evaluation.attention_report.links import AlignmentError

    counted = AlignmentError()
    for pair in pairs:
        S, T = len(pair.source.split()), len(pair.target.split())
        counted.add([(min(S - 1, int((t + 0.5) * S / T)), t) for t in range(T)], pair.sure, pair.possible)
    return counted


def measure(run: str, pairs: Sequence[Pair], each_head: bool) -> list[tuple[dict[str, str], AlignmentError]]:
    """Names and counts of a run, and of each of its heads if they are asked for."""
    from seq2seq.evaluation.attention_report.links import AlignmentError, strongest_links
    from seq2seq.runs import RunFolder, run_of
    from seq2seq.translation.opening import run_config
    from seq2seq.translation.translator import Translator

    folder, _ = run_of(Path(run))
    model = run_config(RunFolder.open(folder)).model
    translator = Translator.load(Path(run), device="cpu")
    names = {"run": folder.name[-26:], "attention": model.attention.kind, "decoder": model.decoder.kind}
    found = [({**names}, AlignmentError())]
    for pair in pairs:
        weights_NTS = forced_weights(translator, pair)
        views = [weights_NTS.mean(dim=0), *(weights_NTS if each_head and len(weights_NTS) > 1 else [])]
        for number, weights_TS in enumerate(views):
            if number == len(found):
                found.append(({**names, "run": f"  head {number}"}, AlignmentError()))
            found[number][1].add(strongest_links(weights_TS), pair.sure, pair.possible)
    return found


def forced_weights(translator: Translator, pair: Pair) -> Tensor:
    """The weights between words, end marks included, while the model writes the reference."""
    from seq2seq.evaluation.attention_report.sentences import look_at

    (source,), (target,) = (
        translator.tokenizer.encode_source([pair.source]),
        translator.tokenizer.encode_target([pair.target]),
    )
    return look_at(translator, source, target).weights("words")


if __name__ == "__main__":
    sys.exit(main())
