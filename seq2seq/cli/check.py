"""`seq2seq check`: read everything that a training would read, and say what it would cost; train nothing."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from seq2seq.config.schema import Config
    from seq2seq.corpus.batches import BatchSampler
    from seq2seq.training.optimizer import Schedule
    from seq2seq.training.prepare import Prepared

SUMMARY = "Reads a config and its corpora, trains nothing: counts, parameters, expected memory."
EXAMPLES = """
seq2seq check configs/multi30k_en_de.yaml
seq2seq check my.yaml --set model.hidden_size=1024
seq2seq check my.yaml --time
"""

_MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("config", metavar="CONFIG", help="a YAML file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting, such as training.epochs=1"
    )
    parser.add_argument(
        "--time", action="store_true", help="make some updates as well, to say how long training would take here"
    )


def run(args: argparse.Namespace) -> int:
    """Checks, and prints a table."""
    from pathlib import Path

    from seq2seq.config.loading import load_config

    config = load_config(Path(args.config), args.set)
    from seq2seq.cli.display import Preparation
    from seq2seq.cli.doctor import quick_warnings
    from seq2seq.model.device import choose_device
    from seq2seq.training.prepare import prepare

    device = choose_device(config.training.device)
    progress = Preparation(lambda line: print(line, file=sys.stderr, flush=True))
    prepared = prepare(config, progress=progress)
    progress.end()
    settings = [word for setting in args.set for word in ("--set", setting)]
    warnings, errors = quick_warnings(config.data, [args.config, *settings])
    for message in [*prepared.messages, *warnings]:
        print(message)
    sampler = _sampler(config, prepared)
    rows = [*_corpus_rows(config, prepared, sampler), *_model_rows(config, prepared), ("device", str(device))]
    if args.time:
        rows.append(("expected time", _expected_time(config, prepared, sampler, device)))
    for name, value in rows:
        print(f"  {name:<18} {value}")
    if errors:
        print(f"{args.config} can be trained with, but not well: mend the corpus first, where the doctor says error.")
        return 0
    train = ["seq2seq", "train", args.config, *settings]
    if config.run is None:
        train += ["--run", "DIR"]
    print(f"{args.config} is sound. Train with: {shlex.join(train)}")
    return 0


def _sampler(config: Config, prepared: Prepared) -> BatchSampler:
    from seq2seq.corpus.batches import BatchSampler

    train, settings = prepared.train, config.training
    return BatchSampler(
        train.source.lengths,
        train.target.lengths,
        batch_tokens=settings.batch_tokens,
        seed=config.seed,
        batch_sentences=settings.batch_sentences,
    )


def _schedule(config: Config, batches: int) -> Schedule:
    """Of a training whose epochs have so many batches."""
    from seq2seq.training.optimizer import Schedule

    settings = config.training
    updates = -(-batches // settings.accumulate)
    return Schedule(settings, settings.epochs * updates, settings.risk_epochs * updates)


def _corpus_rows(config: Config, prepared: Prepared, sampler: BatchSampler) -> list[tuple[str, str]]:
    from seq2seq.training.prepare import advice

    train, settings, batches = prepared.train, config.training, sampler.epoch(0)
    schedule = _schedule(config, len(batches))
    for message in advice(settings, schedule.total_updates):
        print(message)
    rows = [
        ("training pairs", f"{len(train):,}"),
        ("validation pairs", f"{len(prepared.validation.sources):,}"),
    ]
    if prepared.test is not None:
        rows.append(("test pairs", f"{len(prepared.test.sources):,}"))
    lengths = f"{len(train.source.ids) / len(train):.1f} source, {len(train.target.ids) / len(train):.1f} target"
    rows += [
        ("mean pieces", lengths),
        (
            "updates an epoch",
            f"{schedule.total_updates // settings.epochs:,}, about {sum(schedule.planned()):,} in all",
        ),
        ("real tokens", f"{sampler.real_share(batches):.1%} of batch positions"),
    ]
    return rows


def _model_rows(config: Config, prepared: Prepared) -> list[tuple[str, str]]:
    from seq2seq.model.translation_model import empty_model

    tokenizer = prepared.tokenizer
    parameters = empty_model(config.model, tokenizer.source_size, tokenizer.target_size).parameter_count()
    vocabulary = (
        f"{tokenizer.source_size:,}"
        if tokenizer.shared
        else f"{tokenizer.source_size:,} source, {tokenizer.target_size:,} target"
    )
    return [
        ("vocabulary", f"{vocabulary} pieces"),
        ("parameters", f"{parameters:,}"),
        ("expected memory", _expected_memory(config, prepared, parameters)),
    ]


def _expected_memory(config: Config, prepared: Prepared, parameters: int) -> str:
    """Weights, gradients and Adam's two moments in fp32; activations of the largest batch; the encoded corpus.

    The activations are estimated: a GRU layer keeps about eight numbers per position and unit for its gradient, and
    embedding, readout and attention about eight more of their own widths. PyTorch itself takes some 300 MiB on top.
    """
    model = config.model
    state = 16 * parameters
    layers = model.encoder.layers + model.decoder.layers
    positions = config.training.batch_tokens
    activations = 4 * positions * (8 * layers * model.hidden_size + 8 * (model.embedding_size + model.hidden_size))
    train = prepared.train
    # 8 bytes a pair for its lengths and its place in the epoch; ids and offsets, unless they lie in files.
    corpus = 8 * len(train)
    if train.folder is None:
        corpus += sum(side.ids.nbytes + side.offsets.nbytes for side in (train.source, train.target))
    total = state + activations + corpus
    return (
        f"about {total / _MIB:,.0f} MiB beside PyTorch itself: {state / _MIB:,.0f} weights and optimizer, "
        f"{activations / _MIB:,.0f} activations, {corpus / _MIB:,.0f} corpus"
    )


def _expected_time(config: Config, prepared: Prepared, sampler: BatchSampler, device: torch.device) -> str:
    """Of the updates alone, from the pace of some of them on this machine as busy as it is."""
    import torch

    from seq2seq.model.device import keep_freed_memory
    from seq2seq.training.timing import seconds_a_batch

    keep_freed_memory()
    settings, batches = config.training, sampler.epoch(0)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    pace = seconds_a_batch(config, prepared, batches, device)
    updates, of_risk = _schedule(config, len(batches)).planned()
    # An epoch's last update may have fewer batches.
    seconds = pace * min(updates * settings.accumulate, len(batches) * settings.epochs)
    beside = "validations and minimum risk training" if of_risk else "validations"
    words = f"about {_in_words(seconds)} ({1000 * pace:,.0f} ms a batch), {beside} not counted"
    if settings.max_minutes is not None and 60 * settings.max_minutes < seconds:
        words += f"; training.max_minutes ends it after {settings.max_minutes:g}"
    return words


def _in_words(seconds: float) -> str:
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{max(2.0, seconds):,.0f} seconds"
