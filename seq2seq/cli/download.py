"""`seq2seq download`: bring a public corpus, with a config that trains on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.download.table import NAMES, public_corpus

if TYPE_CHECKING:
    from seq2seq.download.table import PublicCorpus, PublicFile

SUMMARY = "Brings a public corpus and a config that trains on it; shows its terms first."
EXAMPLES = """
seq2seq download multi30k --pair en-de
seq2seq download tatoeba --pair en-zh --output data/tatoeba
seq2seq download tatoeba --pair de-en --terms                  (shows terms and addresses, fetches nothing)
seq2seq download multi30k --from ~/Downloads                   (archives that were fetched otherwise)
seq2seq download multi30k --verify                             (whether the files are still what they were)
"""

_USUAL_PAIRS = {"multi30k": "en-de", "tatoeba": "en-zh"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("corpus", choices=NAMES, metavar="CORPUS", help=" or ".join(NAMES))
    parser.add_argument(
        "--pair",
        metavar="SRC-TGT",
        help="languages, source first (default: "
        + ", ".join(f"{pair} for {name}" for name, pair in _USUAL_PAIRS.items())
        + ")",
    )
    parser.add_argument("--output", metavar="DIR", help="the folder to fill (default: data/CORPUS)")
    parser.add_argument(
        "--from", dest="archives", metavar="DIR", help="take the archives from here, not from a network"
    )
    parser.add_argument("--terms", action="store_true", help="show terms and addresses, and fetch nothing")
    parser.add_argument("--verify", action="store_true", help="hold an earlier download against its SHA256SUMS")


def run(args: argparse.Namespace) -> int:
    """Shows the terms, fetches, checks, and says what to do next."""
    corpus = public_corpus(args.corpus, args.pair or _USUAL_PAIRS[args.corpus])
    folder = Path(args.output or Path("data") / args.corpus)
    if args.verify:
        from seq2seq.download.fetching import verify

        names = verify(folder)
        print(f"{folder}: {', '.join(names)}: all as they were downloaded.")
        return 0
    if not args.terms:
        from seq2seq.download.fetching import download, refuse_to_replace

        refuse_to_replace(corpus, folder)
    print(f"{corpus.terms}\n", flush=True)
    if args.terms:
        for file in corpus.files:
            print(f"{file.name:<20} {' or '.join(file.addresses)}")
        return 0
    archives = None if args.archives is None else Path(args.archives).expanduser()
    config = download(corpus, folder, archives=archives, begins=_Progress(quiet=archives is not None).begins)
    print(f"{folder} holds {_counted(corpus)}. Terms and origin are in ORIGIN.txt, checksums in SHA256SUMS.")
    print(f"Train with: seq2seq train {config}")
    return 0


def _counted(corpus: PublicCorpus) -> str:
    names = [file.name for file in corpus.files]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class _Progress:
    """A bar for each file at a terminal, a line for each anywhere else."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._close: Callable[[], None] = lambda: None

    def begins(self, file: PublicFile) -> Callable[[int, int | None], None]:
        self._close()
        if self._quiet:
            return lambda have, size: None
        if not sys.stderr.isatty():
            print(f"fetching {file.archive}", flush=True)
            return lambda have, size: None
        from tqdm import tqdm

        bar = tqdm(desc=file.archive, unit="B", unit_scale=True, unit_divisor=1024, dynamic_ncols=True, file=sys.stderr)
        self._close = bar.close

        def told(have: int, size: int | None) -> None:
            bar.total = size
            bar.update(have - bar.n)

        return told
