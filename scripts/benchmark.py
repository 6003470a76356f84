"""Training speed of the two decoders, side by side in one run: `python scripts/benchmark.py`.

Speed on a shared machine means something only as a ratio, so the models take turns, update by update, on the same
batches, and the medians are compared. Batches are random ids of random lengths; the text does not change the speed.

    --embedding 256 --hidden 512 --vocabulary 8000 --tokens 1000     sizes
    --attention general --threads 2 --device cpu --precision bf16    what and where
    --updates 30                                                     of each
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch

from seq2seq.config.schema import ModelConfig, TrainingConfig
from seq2seq.corpus.batches import Batch, collate
from seq2seq.corpus.encoded import EncodedCorpus, EncodedSide
from seq2seq.model.device import choose_device, choose_precision, keep_freed_memory, precision_context
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.training.optimizer import build_optimizer

KINDS = ("parallel", "step")
WARM_UP = 5


def main() -> int:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--embedding", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--tokens", type=int, default=1000, help="positions in a batch")
    parser.add_argument("--attention", default="general")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="auto", choices=("auto", "fp32", "bf16"))
    parser.add_argument("--updates", type=int, default=30)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    keep_freed_memory()
    device = choose_device(args.device)
    precision = choose_precision(args.precision, device)
    batches = [batch.to(device) for batch in random_batches(args.tokens, args.vocabulary, WARM_UP + args.updates)]
    models = {kind: make(kind, args).to(device).train() for kind in KINDS}
    optimizers = {kind: build_optimizer(model, TrainingConfig()) for kind, model in models.items()}
    speeds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number, batch in enumerate(batches):
        for kind in KINDS:
            seconds = update(models[kind], optimizers[kind], batch, precision)
            if number >= WARM_UP:
                speeds[kind].append(batch.tokens / seconds)
    print(
        f"embedding {args.embedding}, hidden {args.hidden}, vocabulary {args.vocabulary:,}, {args.attention} attention,"
        f" {args.tokens} positions a batch, {str(precision).removeprefix('torch.')} on {device}, "
        f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}"
    )
    print(f"{'decoder':<10}{'target tokens/s, median':>24}{'lowest':>10}{'highest':>10}{'parameters':>13}")
    for kind, values in speeds.items():
        middle, parameters = statistics.median(values), models[kind].parameter_count()
        print(f"{kind:<10}{middle:>24,.0f}{min(values):>10,.0f}{max(values):>10,.0f}{parameters:>13,}")
    ratio = statistics.median(speeds["parallel"]) / statistics.median(speeds["step"])
    print(f"parallel trains {ratio:.2f} times as fast as step")
    return 0


def make(kind: str, args: argparse.Namespace) -> TranslationModel:
    """A model of one decoder kind and the given sizes."""
    settings = ModelConfig.model_validate(
        {
            "embedding_size": args.embedding,
            "hidden_size": args.hidden,
            "decoder": {"kind": kind},
            "attention": {"kind": args.attention},
            "tie_embeddings": "all",
        }
    )
    return build_model(settings, args.vocabulary, args.vocabulary, seed=1)


def random_batches(tokens: int, vocabulary: int, count: int) -> list[Batch]:
    """Batches of sentences of one length, 8 to 24 pieces; the rows fill the budget in whole steps of eight."""
    random = np.random.default_rng(1)
    batches = []
    for _ in range(count):
        length = int(random.integers(8, 25))
        rows = max(8, tokens // (length + 1) // 8 * 8)
        ids = random.integers(4, vocabulary, rows * length).astype(np.int32)
        side = EncodedSide(ids, np.arange(rows + 1, dtype=np.int64) * length)
        batches.append(collate(EncodedCorpus(side, side, too_long=0), np.arange(rows)))
    return batches


def update(model: TranslationModel, optimizer: torch.optim.Optimizer, batch: Batch, precision: torch.dtype) -> float:
    """Seconds of one whole update: forward, backward, clipping, Adam."""
    device = batch.src_BS.device
    began = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with precision_context(device, precision):
        loss, _ = model.loss(batch, 0.1)
    (loss / batch.tokens).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
