"""Is a GPU's training and translating right, and how fast is it? `python scripts/gpu_check.py`, in under five minutes.

It compares the GPU with the processor on the same model and batches (losses and gradients in fp32, then in the faster
precision), trains the bundled corpus for a few hundred updates on both and translates with both, checks that a GPU's
run folder translates on the processor, and prints the benchmark of the GPU. Status 0 only if everything agrees.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch

from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import Batch, collate
from seq2seq.model.attention import KINDS
from seq2seq.model.device import choose_device, choose_precision, precision_context
from seq2seq.model.translation_model import TranslationModel, build_model

CPU = torch.device("cpu")
UPDATES = 300


def main() -> int:
    """Runs all checks and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cuda")
    device = choose_device(parser.parse_args().device)
    if device.type == "cuda":
        print(f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}")
    failed = [name for name, passed in checks(device) if not report(name, passed)]
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "benchmark.py", "--device", str(device), "--parts", "training,translation"],
        check=False,
    )
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall checks passed")
    return 1 if failed else 0


def report(name: str, passed: bool) -> bool:
    print(f"{'ok' if passed else 'FAILED':<8}{name}", flush=True)
    return passed


def checks(device: torch.device):  # type: ignore[no-untyped-def]
    """Each check with its name, one after the other."""
    for kind in KINDS:
        for decoder in ("parallel", "step"):
            name = f"{kind} attention, {decoder} decoder"
            yield f"{name}: loss and gradients in fp32", same_gradients(kind, decoder, device, "fp32", 1e-3)
            if choose_precision("auto", device) != torch.float32:
                yield f"{name}: nearly the same in fewer bits", same_gradients(kind, decoder, device, "auto", 0.1)
    with tempfile.TemporaryDirectory() as folder:
        yield from trained(Path(folder), device)


def same_gradients(kind: str, decoder: str, device: torch.device, precision: str, tolerance: float) -> bool:
    """Whether loss and gradients on the device are those of the processor in fp32, relative to the gradient."""
    settings = {"embedding_size": 64, "hidden_size": 96, "dropout": 0.0, "tie_embeddings": "all", "lexical_model": True}
    settings |= {"attention": {"kind": kind}, "decoder": {"kind": decoder}}
    model = build_model(ModelConfig.model_validate(settings), 500, 500, seed=1)
    loss, gradient = gradients(model, random_batch(), CPU, torch.float32)
    other_loss, other = gradients(
        model.to(device), random_batch().to(device), device, choose_precision(precision, device)
    )
    return abs(loss - other_loss) < tolerance * loss and bool((gradient - other).norm() < tolerance * gradient.norm())


def random_batch() -> Batch:
    from benchmark import random_corpus

    return collate(random_corpus(500, 20), range(20))


def gradients(
    model: TranslationModel, batch: Batch, device: torch.device, precision: torch.dtype
) -> tuple[float, torch.Tensor]:
    model.zero_grad()
    with precision_context(device, precision):
        loss, _ = model.loss(batch, 0.1)
    loss.backward()
    flat = [parameter.grad.flatten().float().cpu() for parameter in model.parameters() if parameter.grad is not None]
    return loss.item(), torch.cat(flat)


def trained(folder: Path, device: torch.device):  # type: ignore[no-untyped-def]
    """A short training on both devices, from the command line."""
    short = [f"training.max_steps={UPDATES}", "training.validate_every=150", "training.checkpoint_every=100"]
    for name in (str(device), "cpu"):
        seq2seq("train", "--run", folder / name, *sets(*short, f"training.device={name}", "data.test=null"))
    scores = {name: validations(folder / name)[-1] for name in (str(device), "cpu")}
    losses = [scores[name]["loss"] for name in scores]
    yield (
        f"{UPDATES} updates learn as on the processor (loss {losses[0]:.3f}, {losses[1]:.3f})",
        abs(losses[0] - losses[1]) < 0.1 * losses[1],
    )
    text = ROOT / "data" / "english-chinese" / "test.en"
    here = seq2seq("translate", folder / str(device), text, "--device", str(device))
    there = seq2seq("translate", folder / str(device), text, "--device", "cpu")
    differing = sum(a != b for a, b in zip(here.splitlines(), there.splitlines(), strict=True))
    yield f"the processor translates with the GPU's run as the GPU does ({differing} lines differ)", differing <= 5
    seq2seq("train", "--run", folder / str(device), "--resume", *sets(f"training.max_steps={UPDATES + 50}"))
    yield "a run on the GPU goes on where it stopped", validations(folder / str(device))[-1]["step"] >= UPDATES


def sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def validations(run: Path) -> list[dict[str, float]]:
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [event for event in events if event["event"] == "validation"]


def seq2seq(*arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "seq2seq", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
