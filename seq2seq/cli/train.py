"""`seq2seq train`: settings become a run folder."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.cli.signals import StopRequest
    from seq2seq.config.schema import Config
    from seq2seq.corpus.tokenizer import Tokenizer
    from seq2seq.evaluation.test_set import TestSet
    from seq2seq.model.translation_model import TranslationModel
    from seq2seq.runs import Checkpoint, RunFolder
    from seq2seq.training.prepare import Prepared
    from seq2seq.training.progress import Listener
    from seq2seq.training.team import Team
    from seq2seq.training.trainer import Trainer

SUMMARY = "Trains a translation model; without CONFIG, on the bundled English-Chinese corpus."
EXAMPLES = """
seq2seq train
seq2seq train configs/multi30k_en_de.yaml --run runs/en-de
seq2seq train my.yaml --set training.epochs=10 --set model.attention.kind=additive
seq2seq train --run runs/en-de --resume
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "config", nargs="?", metavar="CONFIG", help="a YAML file (default: the bundled corpus and its config)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting, such as training.epochs=1"
    )
    parser.add_argument("--run", metavar="DIR", help="folder of the run (default: `run` in the config)")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="go on with the run in DIR where it stopped")
    begin.add_argument("--overwrite", action="store_true", help="replace the run in DIR")


def run(args: argparse.Namespace) -> int:
    """Prepares, trains, evaluates on the test set if there is one, and says what to do next."""
    config, run_path = _settings(args)
    from seq2seq.errors import Seq2SeqError
    from seq2seq.runs import RunFolder
    from seq2seq.training.team import joined

    with joined(config.training.device) as team:
        # torchrun begins anew when a process has died; what then goes on is the run that all of them have begun.
        resume = args.resume or (team.restarts > 0 and RunFolder(run_path).holds_run())
        if not team.leads:
            try:
                return _follow(config, RunFolder(run_path), team)
            except Seq2SeqError as error:
                raise type(error)(f"Process {team.rank}: {error}") from None
        folder = RunFolder.begun(run_path) if resume else RunFolder.vacant(run_path, overwrite=args.overwrite)
        try:
            return _train(config, folder, team, resume=resume, replace=resume or args.overwrite)
        finally:
            folder.release()


def _settings(args: argparse.Namespace) -> tuple[Config, Path]:
    from seq2seq.bundled import bundled_config
    from seq2seq.config.loading import load_config, refuse_bytes
    from seq2seq.errors import ConfigError, RunError

    path = Path(args.config) if args.config is not None else None
    if path is None and args.resume and args.run is not None:
        path = Path(args.run) / "config.yaml"
        if not path.is_file():
            raise RunError(f"There is no run in {Path(args.run).absolute()}: it has no config.yaml. Check --run.")
    config = load_config(path if path is not None else bundled_config(), args.set)
    run = args.run if args.run is not None else config.run
    if not run:
        raise ConfigError(f"Nothing says where the run goes; give --run DIR, or `run:` in {path}.")
    refuse_bytes(str(Path(run).absolute()))
    return config.model_copy(update={"run": run}), Path(run)


def _train(config: Config, folder: RunFolder, team: Team, *, resume: bool, replace: bool) -> int:
    from seq2seq.cli.display import Display
    from seq2seq.cli.doctor import quick_warnings
    from seq2seq.cli.signals import StopRequest
    from seq2seq.config.loading import dump_config
    from seq2seq.training.prepare import prepare
    from seq2seq.training.progress import Several
    from seq2seq.training.tensorboard import Board, require_tensorboard

    if config.training.tensorboard:
        require_tensorboard()
    _set_up(config, team)
    checkpoint, tokenizer = _last_checkpoint(config, folder) if resume else (None, None)
    with Display(folder) as display, Board(folder, wanted=config.training.tensorboard) as board:
        prepared = prepare(config, tokenizer, stage=display.said, progress=display.preparation)
        display.preparation.end()
        for message in prepared.messages:
            display.said(message)
        if checkpoint is None:
            for message in quick_warnings(config.data, [str(folder.path / "config.yaml")])[0]:
                display.said(message)
        with StopRequest() as stop:
            model = _model(config, prepared, checkpoint, folder.path)
            if checkpoint is None:
                folder.create(dump_config(config), prepared.tokenizer.files(), replace=replace)
                words = _shortlist(config, prepared, folder)
            else:
                folder.write_config(dump_config(config))
                words = checkpoint.facts.get("shortlist")
            team.wait()  # the others have waited for this
            team.collect(checkpoint is not None)  # and do the same
            listener = Several(display, board)
            trainer = _trainer(config, prepared, model, checkpoint, folder, team, listener, stop, words)
            board.show(prepared.validation, trainer.validator.translator)
            display.describe(config, prepared, trainer)
            summary = trainer.train()
        display.summary(summary, folder)
    if summary.reason == "stopped":
        print(
            f"stopped at step {summary.step}; go on with: seq2seq train --run {shlex.quote(str(folder.path))} --resume",
            flush=True,
        )
    stop.end_as_asked()
    _show_result(folder, prepared.test, config.training.device)
    return 0


def _follow(config: Config, folder: RunFolder, team: Team) -> int:
    """What a process that does not lead does: it reads what the leader has made, and computes its share."""
    from seq2seq.cli.signals import StopRequest
    from seq2seq.corpus.tokenizer import Tokenizer
    from seq2seq.training.prepare import prepare
    from seq2seq.training.progress import Silent

    _set_up(config, team)
    team.wait()
    resumed = team.collect(False)[0]
    checkpoint, tokenizer = _last_checkpoint(config, folder) if resumed else (None, None)
    prepared = prepare(config, tokenizer or Tokenizer.load(folder.path))
    with StopRequest() as stop:
        model = _model(config, prepared, checkpoint, folder.path)
        _trainer(config, prepared, model, checkpoint, folder, team, Silent(), stop).train()
    stop.end_as_asked()
    return 0


def _set_up(config: Config, team: Team) -> None:
    import torch

    from seq2seq.model.device import choose_device, keep_freed_memory

    choose_device(team.device(config.training.device))  # one that is not there is refused before anything is read
    keep_freed_memory()
    if config.training.threads is not None:
        torch.set_num_threads(config.training.threads)


def _last_checkpoint(config: Config, folder: RunFolder) -> tuple[Checkpoint, Tokenizer] | tuple[None, None]:
    """What a resume goes on from; None where the run ended before its first checkpoint and goes on from nothing."""
    from seq2seq.errors import CheckpointError
    from seq2seq.training.resuming import check_settings
    from seq2seq.translation.opening import open_checkpoint, run_config

    check_settings(run_config(folder), config)
    # The last one is the first to be written: where there is a best, a last one must be, or it has been lost.
    if not folder.has("last"):
        if not folder.has("best"):
            return None, None
        raise CheckpointError(
            f"There is {folder.path / 'best'} and no {folder.path / 'last'}, which a resume goes on from. Restore "
            "it from a copy of the run, or train anew with --overwrite; best still translates."
        )
    opened = open_checkpoint(folder, "last", config, with_training=True)
    if folder.has("best"):
        try:
            open_checkpoint(folder, "best", config)
        except CheckpointError as error:
            raise CheckpointError(
                f"{error} Restore it from a copy, or remove {folder.path / 'best'}: the next validation then makes a "
                "new one."
            ) from None
    return opened


def _model(config: Config, prepared: Prepared, checkpoint: Checkpoint | None, run: Path) -> TranslationModel:
    """A new model, or the one of the checkpoint, if it was trained on the same pairs."""
    from seq2seq.model.translation_model import build_model
    from seq2seq.training.resuming import check_corpus
    from seq2seq.translation.opening import model_from

    tokenizer = prepared.tokenizer
    if checkpoint is None:
        return build_model(config.model, tokenizer.source_size, tokenizer.target_size, seed=config.seed)
    check_corpus(checkpoint, prepared.fingerprint(), run)
    return model_from(checkpoint, config, tokenizer, run / "last")


def _shortlist(config: Config, prepared: Prepared, folder: RunFolder) -> dict[str, Any] | None:
    """Learn which words translate which, for a faster search; what checkpoints say of it."""
    from seq2seq.training.lexicon import shortlist

    if not config.decoding.shortlist:
        return None
    tokenizer = prepared.tokenizer
    words = shortlist(prepared.train, tokenizer.source_size, tokenizer.target_size, config.decoding.shortlist)
    return folder.write_shortlist(words.tensors())


def _trainer(
    config: Config,
    prepared: Prepared,
    model: TranslationModel,
    checkpoint: Checkpoint | None,
    folder: RunFolder,
    team: Team,
    listener: Listener,
    stop: StopRequest,
    words: dict[str, Any] | None = None,
) -> Trainer:
    """A trainer at the start, or where the checkpoint stood; `words` is what its checkpoints say of the shortlist."""
    from seq2seq.model.device import choose_device, choose_precision
    from seq2seq.training.prepare import sampled_corpus
    from seq2seq.training.trainer import Setup, Trainer
    from seq2seq.training.validation import Validator
    from seq2seq.translation.opening import vocabulary_facts
    from seq2seq.translation.translator import Translator

    device = choose_device(team.device(config.training.device))
    precision = choose_precision(config.training.precision, device)
    facts = {
        "vocabulary": vocabulary_facts(prepared.tokenizer),
        "model": config.model.model_dump(),
        "corpus": prepared.fingerprint(),
        "shortlist": words,
    }
    model = model.to(device)
    translator = Translator(model, prepared.tokenizer, config.decoding, config.data, device)
    validator = Validator(prepared.validation, translator, config.training.batch_tokens, precision, team)
    judge = prepared.validation.fingerprint(config.decoding.max_length_ratio)
    sampled = sampled_corpus(config, prepared)
    setup = Setup(config.seed, device, precision, facts, team, judge)
    trainer = Trainer(config.training, setup, model, prepared.train, validator, folder, listener, stop.asked, sampled)
    if checkpoint is not None:
        trainer.resume(checkpoint)
    return trainer


def _show_result(folder: RunFolder, test: TestSet | None, device: str) -> None:
    """Score the best checkpoint on the test set, show some of its translations, and say how to make more."""
    import json

    from seq2seq.cli.explanation import shown
    from seq2seq.cli.translate import in_parts
    from seq2seq.evaluation.scores import score
    from seq2seq.translation.translator import Translator

    if not folder.has("best"):
        print("No validation has chosen a best checkpoint; translating uses the last one.")
    if test is not None:
        translator = Translator.load(folder.path, device=device)
        sources, (targets,) = test.sources, test.references
        found = list(translator.translate(sources))
        texts = [translation.text for translation in found]
        scores = score(texts, test.references, target_language=translator.target_language)
        folder.write("test.json", json.dumps({"lines": len(texts), **scores.as_dict()}, ensure_ascii=False) + "\n")
        print(f"\nTest set, {len(texts):,} sentences, beam {translator.decoding.beam_size}:")
        print(*(f"  {line}" for line in scores.lines()), sep="\n")
        split = [number for number, translation in enumerate(found, start=1) if translation.parts > 1]
        if split:
            print(f"  {in_parts(len(split), split, translator.longest_source)}")
        print("\nSome of its translations:")
        step = max(1, len(sources) // 3)
        for index in range(0, min(len(sources), 3 * step), step):
            print(f"  source       {shown(sources[index])}")
            print(f"  translation  {shown(texts[index])}")
            print(f"  reference    {shown(targets[index])}\n")
    elif not sys.stdout.isatty():
        print()
    print(f"Translate your own sentences:  seq2seq translate {shlex.quote(str(folder.path))}", flush=True)
