"""What a corpus larger than memory costs: `python scripts/large_corpus.py --pairs 10000000`.

Makes so many pairs of sentences, trains on them twice, each time for a few updates and in a run folder of its own, and
prints how long the preparation took, when the second start was ready, and the most memory that the process had of its
own (RssAnon in /proc, so Linux only; pages of mapped files are the system's, which takes them back when it needs them).

    --pairs 200000       sentence pairs
    --folder FOLDER      where text, cache and runs go (default: a temporary folder, removed in the end)
    --updates 50         of each training
    --json FILE          all figures, for programs

A sentence has 3 to 11 words, as those of subtitles have, of a vocabulary of 30,000, drawn as the words of a language
are, a few very often and most of them seldom (Zipf); its translation has the same words in the other order, each spelt
another way.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
WORDS, BLOCK, VALIDATION = 30_000, 100_000, 100
SETTINGS = """\
data:
  source_language: en
  target_language: de
  train: {source: train.en, target: train.de}
  validation: {source: validation.en, target: validation.de}
  cache: cache
tokenizer: {vocab_size: 8000}
model: {embedding_size: 64, hidden_size: 64, attention: {kind: general}}
training: {device: cpu, precision: fp32, log_every: 10}
"""


def main() -> None:
    """Make, train, train again, print."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seq2seq-large-")))
        folder.mkdir(parents=True, exist_ok=True)
        make_corpus(folder, args.pairs)
        figures = {"pairs": args.pairs}
        for name in ("first", "second"):
            figures |= {f"{name}_{key}": value for key, value in train(folder, name, args.updates).items()}
    figures["first_pairs_per_second"] = round(args.pairs / figures["first_ready_seconds"])
    for key, value in figures.items():
        print(f"{key.replace('_', ' '):<36} {value:>12,}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def make_corpus(folder: Path, pairs: int) -> None:
    """The text, unless it lies there; and the settings."""
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    for name, count, seed in (("train", pairs, 1), ("validation", VALIDATION, 2)):
        done = folder / f"{name}.{count}.done"
        if done.exists():
            continue
        with (folder / f"{name}.en").open("w") as sources, (folder / f"{name}.de").open("w") as targets:
            for source, target in sentences(count, seed):
                sources.write(source)
                targets.write(target)
        done.touch()


def sentences(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Blocks of lines of both sides."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    names = np.random.default_rng(0)
    source = ["".join(names.choice(letters, 2 + i % 7)) for i in range(WORDS)]
    target = [word[::-1] + "en" for word in source]
    share = np.cumsum(1 / np.arange(1, WORDS + 1))
    share /= share[-1]
    for start in range(0, count, BLOCK):
        lengths = rng.integers(3, 12, size=min(BLOCK, count - start))
        ids = np.searchsorted(share, rng.random(int(lengths.sum()))).tolist()
        ends = np.cumsum(lengths).tolist()
        rows = [ids[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
        yield (
            "".join(" ".join([source[i] for i in row]) + ".\n" for row in rows),
            "".join(" ".join([target[i] for i in reversed(row)]) + ".\n" for row in rows),
        )


def train(folder: Path, name: str, updates: int) -> dict[str, float]:
    """One training: seconds until the first update could begin, in all, and of the processor; its own memory."""
    command = [sys.executable, "-m", "seq2seq", "train", str(folder / "settings.yaml"), "--run", str(folder / name)]
    for setting in (f"training.max_steps={updates}", f"training.validate_every={updates}"):
        command += ["--set", setting]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began, processor = time.perf_counter(), os.times()
    process = subprocess.Popen([*command, "--overwrite"], stdout=subprocess.PIPE, text=True, env=environment)
    memory = Memory(process.pid)
    figures: dict[str, float] = {}
    assert process.stdout is not None
    for line in process.stdout:
        print(f"  {time.perf_counter() - began:8.1f} s  {line}", end="", flush=True)
        if line.startswith("training "):
            figures["ready_seconds"] = round(time.perf_counter() - began, 1)
            figures["ready_own_memory_mb"] = memory.most()
    process.wait()
    memory.end()
    if process.returncode:
        raise SystemExit(f"the training has ended with status {process.returncode}")
    now = os.times()
    figures["seconds"] = round(time.perf_counter() - began, 1)
    used = now.children_user + now.children_system - processor.children_user - processor.children_system
    return figures | {"processor_seconds": round(used, 1), "own_memory_mb": memory.most()}


class Memory(threading.Thread):
    """Looks ten times a second at how much memory a process has of its own, its children left out."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._status, self._most, self._over = Path(f"/proc/{process}/status"), 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.1):
            with contextlib.suppress(OSError, ProcessLookupError):
                for line in self._status.read_text().splitlines():
                    if line.startswith("RssAnon:"):
                        self._most = max(self._most, int(line.split()[1]))

    def most(self) -> float:
        """In MB of a million bytes."""
        return round(self._most * 1024 / 1e6)

    def end(self) -> None:
        self._over.set()
        self.join()


if __name__ == "__main__":
    main()
