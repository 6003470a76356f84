"""Trains every kind of attention with every kind of decoder on the reversing task, and prints how many test sentences
each gets exactly right: `python scripts/compare_attention.py`. Each is one training of a minute or two on one core.

    --only my,additive      kinds of attention
    --decoders parallel,step
    --jobs 2                trainings side by side, one core each
    --set KEY=VALUE         for all trainings
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("general", "dot", "my", "additive", "tanh", "qkv", "multi_head", "none")
CLOCKED = (
    "import sys, time; from seq2seq.cli.main import main; status = main(); "
    "print(time.process_time(), file=sys.stderr); sys.exit(status)"
)
DECODERS = {
    "parallel": ["model.decoder.kind=parallel"],
    "between": ["model.decoder.kind=parallel", "model.decoder.layers=2", "model.decoder.attend=between"],
    "step": ["model.decoder.kind=step"],
}


def main() -> int:
    """Runs the trainings and prints a table as they end."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default=",".join(KINDS), metavar="KIND,...")
    parser.add_argument("--decoders", default=",".join(DECODERS), metavar="NAME,...")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    tasks = [(kind, decoder) for decoder in args.decoders.split(",") for kind in args.only.split(",")]
    print(f"{'attention':<12}{'decoder':<10}{'exact':>8}{'updates':>9}{'seconds':>9}{'of a core':>11}")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(lambda task: measure(*task, args.set, Path(folder)), tasks):
            print(line, flush=True)
    return 0


def measure(kind: str, decoder: str, settings: list[str], folder: Path) -> str:
    """One training and its line of the table.

    Seconds are those of the training, validation included, by the clock; and the core's own time of the whole command,
    which is the longer one on a quiet machine and the more telling one where other programs want the same core.
    """
    run = folder / f"{kind}-{decoder}"
    chosen = [f"model.attention.kind={kind}", *DECODERS[decoder], "training.threads=1", "training.device=cpu"]
    command = ["train", str(ROOT / "configs" / "reverse.yaml"), "--run", str(run)]
    for setting in [*chosen, *settings]:
        command += ["--set", setting]
    core = seq2seq(*command)
    source, target = (ROOT / "data" / "reverse" / name for name in ("test.source", "test.target"))
    output = run / "output.txt"
    seq2seq("translate", str(run), str(source), "--output", str(output), "--device", "cpu")
    found = output.read_text(encoding="utf-8").splitlines()
    expected = target.read_text(encoding="utf-8").splitlines()
    exact = sum(one == other for one, other in zip(found, expected, strict=True)) / len(expected)
    end = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    return f"{kind:<12}{decoder:<10}{exact:>8.1%}{end['step']:>9}{end['elapsed_seconds']:>9.0f}{core:>11.0f}"


def seq2seq(*arguments: str) -> float:
    """One command of the product on one core, its output shown only if it fails; the seconds that it kept the core."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CLOCKED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"seq2seq {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return float(done.stderr.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
