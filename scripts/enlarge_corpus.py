"""A large corpus out of a small one, to measure with: python scripts/enlarge_corpus.py train.en train.de 1000000 DIR.

Every round takes all pairs in another order and puts the beginning of one sentence before the end of another, on both
sides alike, so that hardly a pair occurs twice and lengths and characters are those of real text.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from seq2seq.corpus.lines import clean, read_lines


def main() -> int:
    """Writes DIR/large.SUFFIX for both sides."""
    parser = argparse.ArgumentParser(description="A large corpus out of a small one, to measure with.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("pairs", type=int)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    sides = [[clean(line or "") for line in read_lines(path)] for path in (args.source, args.target)]
    pairs = [pair for pair in zip(*sides, strict=True) if all(pair)]
    generator = random.Random(1)
    args.folder.mkdir(parents=True, exist_ok=True)
    outputs = [args.folder / f"large{path.suffix}" for path in (args.source, args.target)]
    with outputs[0].open("w", encoding="utf-8") as sources, outputs[1].open("w", encoding="utf-8") as targets:
        written = 0
        while written < args.pairs:
            others = generator.sample(pairs, len(pairs))
            for pair, other in zip(pairs, others[: args.pairs - written], strict=False):
                for stream, ours, theirs in zip((sources, targets), pair, other, strict=True):
                    stream.write(_half(ours, 0) + _half(theirs, 1) + "\n")
                written += 1
    print(*outputs)
    return 0


def _half(text: str, which: int) -> str:
    """The first or the second half of a sentence, cut between words where there are any, else between characters."""
    middle = text.find(" ", len(text) // 2)
    middle = middle if middle >= 0 else len(text) // 2
    return text[middle:] if which else text[:middle]


if __name__ == "__main__":
    sys.exit(main())
