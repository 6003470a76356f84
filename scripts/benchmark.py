"""How fast this machine trains and translates, and how much faster it could: `python scripts/benchmark.py`.

Speed on a shared machine means something only as a ratio. So every figure stands beside a limit that is measured in
the same run: all matrix products of the work are recorded with their shapes, each shape is timed by itself at its best,
and the sum is the time that the work would take if it were nothing but products. Decoders (and precisions) take turns,
update by update, and medians are compared.

    --parts training,translation,preparation,start                   and profile: where an update's time goes;
                                                                     products: how fast this machine multiplies
    --embedding 256 --hidden 512 --vocabulary 8000 --tokens 1000     sizes
    --attention general --decoders parallel,step                     kinds
    --precisions bf16,fp32 --threads 2 --device cpu                  how and where
    --updates 30                                                     of each, after as many to warm up
    --run RUN --source FILE      translate a file with a trained model, not random sentences with a random one
    --json FILE                  all figures, for programs

Without --run, sentences and weights are random, and every translation is made as long as its source: the length of the
output, and so the work, is that of a model that has learnt something.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from seq2seq.cli.main import VERBS, settle_threads

settle_threads()  # as the command itself does; it must come before torch

import numpy as np
import torch
from matrix_products import Products, rates

from seq2seq.config.schema import ModelConfig, TokenizerConfig, TrainingConfig
from seq2seq.corpus.batches import BatchSampler, collate, collate_sources
from seq2seq.corpus.encoded import EncodedCorpus, EncodedSide, encode_corpus
from seq2seq.corpus.subwords import BOS, EOS
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.model.compact import compact, computes_in_int8
from seq2seq.model.device import choose_device, choose_precision, keep_freed_memory, precision_context
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.training.gradients import Indices
from seq2seq.training.progress import Progress
from seq2seq.training.team import ALONE
from seq2seq.training.timing import timed
from seq2seq.training.trainer import peak_memory_mb
from seq2seq.training.updates import Updates
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.search import search
from seq2seq.translation.translator import Translator

PARTS = ("training", "translation", "preparation", "start")

SMOOTHING = 0.1
SENTENCES = 1000  # lengths like those of Multi30k: 8 to 24 pieces
Row = dict[str, Any]


def main() -> int:
    """Measures what was asked for and prints it as tables."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), metavar="PART,...")
    for name, size in (("embedding", 256), ("hidden", 512), ("vocabulary", 8000), ("tokens", 1000), ("updates", 30)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--attention", default="general")
    parser.add_argument("--decoders", default="parallel,step", metavar="KIND,...")
    parser.add_argument("--precisions", default=None, metavar="NAME,...", help="fp32,bf16 where the machine has both")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--run", metavar="RUN")
    parser.add_argument("--source", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    keep_freed_memory()
    device = choose_device(args.device)
    if args.precisions is None:
        args.precisions = "fp32" if choose_precision("auto", device) == torch.float32 else "bf16,fp32"
    head = (
        f"embedding {args.embedding}, hidden {args.hidden}, vocabulary {args.vocabulary:,}, {args.attention} attention,"
        f" {args.tokens:,} positions a batch; {device}, {torch.get_num_threads()} threads, PyTorch {torch.__version__},"
        f" load {os.getloadavg()[0]:.1f}"
    )
    print(head)
    measured = {"what": head}
    for part in args.parts.split(","):
        measured[part] = PART_OF[part](args, device)
        show(part, measured[part])
    if args.json:
        Path(args.json).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return 0


def show(title: str, rows: list[Row]) -> None:
    """One table; a list of figures is shown as its median and range."""
    cells = [[shown(value) for value in row.values()] for row in rows]
    names = [name.replace("_", " ") for name in rows[0]]
    widths = [max(len(line[column]) for line in [names, *cells]) for column in range(len(names))]
    print(f"\n{title}")
    for line in [names, *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def shown(value: object) -> str:
    if isinstance(value, list):
        return f"{statistics.median(value):,.4g} ({min(value):,.4g} to {max(value):,.4g})"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


# -- the parts -------------------------------------------------------------------------------------------------------


def make(kind: str, args: argparse.Namespace) -> TranslationModel:
    """A new model of one decoder kind and the given sizes."""
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


def random_corpus(vocabulary: int, pairs: int) -> EncodedCorpus:
    """Pairs of random ids whose target is about as long as the source."""
    random = np.random.default_rng(1)
    lengths = random.integers(8, 25, pairs)
    others = np.clip(lengths + random.integers(-2, 3, pairs), 1, None)
    sides = []
    for side in (lengths, others):
        ids = random.integers(4, vocabulary, int(side.sum())).astype(np.int32)
        sides.append(EncodedSide(ids, np.concatenate([[0], np.cumsum(side)])))
    return EncodedCorpus(sides[0], sides[1])


def training(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """Whole updates: forward, backward, clipping, Adam."""
    corpus = random_corpus(args.vocabulary, SENTENCES * 29)
    sampler = BatchSampler(corpus.source.lengths, corpus.target.lengths, batch_tokens=args.tokens, seed=1)
    plan = sampler.epoch(0)[: args.updates]
    forms = [(kind, name) for kind in args.decoders.split(",") for name in args.precisions.split(",")]
    models = {form: make(form[0], args).to(device).train() for form in forms}
    updates = {form: updating(model, corpus, form[1], device) for form, model in models.items()}
    speeds: dict[tuple[str, str], list[float]] = {form: [] for form in forms}
    for warm in (False, True):  # first all shapes of products are met, for which a library prepares itself
        for number, indices in enumerate(plan):
            for form in forms:
                work = functools.partial(updates[form], indices, plan[number + 1 : number + 2])
                seconds = timed(work, device)
                if warm:
                    speeds[form].append(real_tokens(corpus, indices) / seconds)
    rows = []
    for form in forms:
        products, tokens = Products(), sum(real_tokens(corpus, indices) for indices in plan[:3])
        for indices in plan[:3]:
            with products, precision_context(device, choose_precision(form[1], device)):
                models[form].loss(collate(corpus, indices).to(device), SMOOTHING)[0].backward()
        limit = tokens / products.seconds(device)
        rows.append(
            {
                "decoder": form[0],
                "precision": form[1],
                "target_tokens_per_second": speeds[form],
                "limit": limit,
                "of_limit": statistics.median(speeds[form]) / limit,
                "MFLOP_per_token": products.operations() / tokens / 1e6,
                "real_positions": sampler.real_share(plan),
                "parameters": models[form].parameter_count(),
                "process_MiB": peak_memory_mb(device),
            }
        )
    return rows


# What PyTorch's profiler calls things, and what they are to us. The first that fits counts.
SORTS = (
    ("matrix products", ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::_linear_pointwise")),
    ("laying out matrices", ("mkldnn::_reorder",)),
    ("GRU steps between the products", ("_Layer", "_Recurrence")),
    ("softmax, loss and their gradient", ("_OutputLoss", "aten::_softmax", "aten::_log_softmax")),
    ("optimizer", ("aten::_fused_adam_", "Optimizer")),
    ("clipping", ("aten::linalg_vector_norm", "aten::_foreach", "aten::mul_")),
    ("copies and casts", ("aten::copy_", "aten::clone", "aten::_to_copy", "aten::cat", "aten::fill_", "aten::zero_")),
    ("dropout", ("_ByBytes", "aten::random_", "aten::ge")),
    ("embeddings", ("_Whole", "_Lookup", "aten::embedding", "aten::index_select")),
)


def profiled(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """Where the time of an update goes, by the first decoder and precision that are asked for."""
    from torch.profiler import ProfilerActivity, profile

    corpus = random_corpus(args.vocabulary, SENTENCES * 29)
    sampler = BatchSampler(corpus.source.lengths, corpus.target.lengths, batch_tokens=args.tokens, seed=1)
    plan = sampler.epoch(0)[: args.updates]
    model = make(args.decoders.split(",")[0], args).to(device).train()
    update = updating(model, corpus, args.precisions.split(",")[0], device)
    for indices in plan:
        update(indices, [])
    cuda = [ProfilerActivity.CUDA] if device.type == "cuda" else []
    with profile(activities=[ProfilerActivity.CPU, *cuda]) as found:
        for indices in plan:
            update(indices, [])
    spent: Counter[str] = Counter()
    for event in found.key_averages():
        seconds = event.self_device_time_total if cuda else event.self_cpu_time_total
        sort = next((sort for sort, names in SORTS if event.key.startswith(names)), "all else")
        spent[sort] += seconds / 1000 / args.updates
    whole = sum(spent.values())
    return [
        {"what": sort, "ms_an_update": spent[sort], "share": spent[sort] / whole} for sort, _ in spent.most_common()
    ]


def updating(
    model: TranslationModel, corpus: EncodedCorpus, precision: str, device: torch.device
) -> Callable[[Indices, list[Indices]], None]:
    """What the trainer does in an update: forward, backward, clipping, Adam."""
    settings, chosen = TrainingConfig(), choose_precision(precision, device)
    updates = Updates.configured(settings, model, corpus, device, chosen, ALONE, print, print)
    progress = Progress(loss_scale=updates.first_scale)

    def work(indices: Indices, following: list[Indices]) -> None:
        updates.make(progress, settings.learning_rate, [indices], following)

    return work


def real_tokens(corpus: EncodedCorpus, indices: Indices) -> int:
    return int(corpus.target.lengths_of(indices).sum()) + len(indices)


def translation(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """Greedy and beam 5: in batches of 64, and one sentence at a time."""
    rows = []
    eight = ["int8"] if computes_in_int8(device) and "int8" not in args.precisions else []
    if eight and args.run and (Path(args.run) / "shortlist.safetensors").exists():
        eight.append("int8+shortlist")
    for name in [*args.precisions.split(","), *eight]:
        work = trained(args, name, device) if args.run else untrained(args, name, device)
        for beam, size in ((1, 64), (5, 64), (1, 1), (5, 1)):
            rows.append({"precision": name, "beam": beam, "batch": size, **measure(work, beam, size, device)})
    return rows


Work = Callable[[int, int, int], Iterator[int]]  # beam, batch size, sentences: words of each batch that is done


def measure(work: Work, beam: int, size: int, device: torch.device) -> Row:
    """Words (end marks included) a second, the limit, and of single sentences the time that each took."""
    count = SENTENCES if size > 1 else 100
    list(work(beam, size, min(count, 2 * size)))  # warm up
    times, words = [], 0
    batches = work(beam, size, count)
    began = time.perf_counter()
    for some in batches:
        times.append(time.perf_counter() - began)  # the words are on the processor by now, so a GPU is done
        words += some
        began = time.perf_counter()
    products, counted = Products(), 0
    with products:
        for some in work(beam, size, max(size, 20)):
            counted += some
    speed, limit = words / sum(times), counted / products.seconds(device)
    single = sorted(1000 * seconds for seconds in times) if size == 1 else None
    return {
        "words_per_second": speed,
        "limit": limit,
        "of_limit": speed / limit,
        "p50_ms": single[len(single) // 2] if single else "",
        "p95_ms": single[int(0.95 * len(single))] if single else "",
    }


def untrained(args: argparse.Namespace, precision: str, device: torch.device) -> Work:
    corpus = random_corpus(args.vocabulary, SENTENCES)
    rows = sorted((list(map(int, corpus.source[number])) for number in range(SENTENCES)), key=len)
    model = make("parallel", args).to(device).eval()
    with torch.no_grad():
        model.output_layer.bias[EOS] = -1e4  # the length is decided by the limit
    model = compact(model, precision)

    def work(beam: int, size: int, count: int) -> Iterator[int]:
        some = rows if count == len(rows) else rows[:: len(rows) // count]
        for first in range(0, len(some), size):
            chosen = some[first : first + size]
            src, mask = collate_sources(chosen)
            settings = SearchSettings(bos=BOS, eos=EOS, beam_size=beam)
            with torch.no_grad():  # in inference mode a recorder sees whole layers and not their products
                search(model, src.to(device), mask.to(device), [len(row) + 1 for row in chosen], settings)
            yield sum(len(row) + 1 for row in chosen)

    return work


def trained(args: argparse.Namespace, precision: str, device: torch.device) -> Work:
    name, _, shortlist = precision.partition("+")
    translator = Translator.load(Path(args.run), device=args.device, precision=name, shortlist=bool(shortlist))
    lines = Path(args.source).read_text(encoding="utf-8").splitlines()

    def work(beam: int, size: int, count: int) -> Iterator[int]:
        some = sorted(lines[:count], key=len)
        for first in range(0, len(some), size):
            found = list(translator.translate(some[first : first + size], beam_size=beam, batch_size=size))
            texts = translator.tokenizer.encode_target([one.text for one in found])
            yield sum(len(ids) + 1 for ids in texts)

    return work


def products(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """The products of a step of search, for few rows and many, by everything that can make them here."""
    E, H = args.embedding, args.hidden
    shapes = [(H, 3 * H), (E, args.vocabulary)]
    return [
        {"inputs": inputs, "outputs": outputs, "rows": rows, **rates(rows, inputs, outputs, device)}
        for inputs, outputs in shapes
        for rows in (1, 5, 64, 320)
    ]


def preparation(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """Text to ids: learning the vocabulary, and cutting the text into its pieces."""
    sides = [
        (ROOT / "data" / "english-chinese" / f"train.{code}").read_text(encoding="utf-8").splitlines()
        for code in ("en", "zh")
    ]
    pairs = list(zip(*sides, strict=True))
    began = time.perf_counter()
    tokenizer = Tokenizer.train(pairs, TokenizerConfig(vocab_size=3000))
    learning = time.perf_counter() - began
    speeds = []
    for _ in range(5):
        began = time.perf_counter()
        encode_corpus(pairs, tokenizer, 100)
        speeds.append(len(pairs) / (time.perf_counter() - began))
    return [{"pairs": len(pairs), "seconds_to_learn_3000_pieces": learning, "pairs_encoded_per_second": speeds}]


def start(args: argparse.Namespace, device: torch.device) -> list[Row]:
    """How long each verb takes to answer, and a translation from the command line, beside Python and torch alone."""
    commands = {"python -c pass": ["-c", "pass"], "python -c 'import torch'": ["-c", "import torch"]}
    commands["seq2seq --help"] = ["-m", "seq2seq", "--help"]
    commands |= {f"seq2seq {verb} --help": ["-m", "seq2seq", verb, "--help"] for verb in VERBS}
    if args.run:
        commands["seq2seq translate RUN (one sentence)"] = ["-m", "seq2seq", "translate", args.run]
    return [{"command": name, "seconds": launches(command)} for name, command in commands.items()]


def launches(command: Sequence[str], times: int = 5) -> list[float]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    seconds = []
    for _ in range(times):
        with tempfile.TemporaryFile() as typed:
            typed.write(b"A man sleeps on a couch.\n")
            typed.seek(0)
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *command], stdin=typed, capture_output=True, check=True, env=environment, cwd=ROOT
            )
            seconds.append(time.perf_counter() - began)
    return seconds


PART_OF: dict[str, Callable[[argparse.Namespace, torch.device], list[Row]]] = {
    "training": training,
    "profile": profiled,
    "products": products,
    "translation": translation,
    "preparation": preparation,
    "start": start,
}

if __name__ == "__main__":
    sys.exit(main())
