"""What a person sees of a training: a bar at a terminal, plain lines anywhere else, and a table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from seq2seq.training.log import clock, line_of, scores_in_words
from seq2seq.training.prepare import advice

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.runs import RunFolder
    from seq2seq.training.prepare import Prepared
    from seq2seq.training.progress import Progress, Summary
    from seq2seq.training.trainer import Trainer
    from seq2seq.training.validation import ValidationResult

_REASONS = {
    "epochs": "all epochs done",
    "max_steps": "training.max_steps reached",
    "max_minutes": "training.max_minutes reached",
    "patience": "no better score and no lower loss for training.patience validations",
    "stopped": "stopped on request",
}


_QUIET = 30.0  # seconds from one line to the next while a corpus is prepared


class Preparation:
    """How far the preparation of a corpus has come: a bar at a terminal, elsewhere a line now and then."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._terminal = say, sys.stderr.isatty()
        self._doing: str | None = None
        self._since = self._told = 0.0  # when that began, and when it was told last
        self._bar: Any = None

    def __call__(self, what: str, done: int, whole: int | None) -> None:
        """So many pairs are "read" or "encoded", of so many in all if that is known."""
        now = time.monotonic()
        if what != self._doing:
            self.end()
            self._doing, self._since, self._told = what, now, now
            if self._terminal:
                self._bar = tqdm(desc=what, total=whole, unit=" pairs", unit_scale=True, dynamic_ncols=True, delay=1)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif now - self._told >= _QUIET:
            self._told = now
            of = f" of {whole:,}" if whole is not None else ""
            self._say(f"{what} {done:,}{of} pairs, {done / (now - self._since):,.0f} a second")

    def end(self) -> None:
        """That is done, or all of it."""
        self._doing = None
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Display:
    """The listener of a training. At a terminal reports move a tqdm bar; everything also goes to train.log."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._bar: Any = None
        self._waiting: list[str] = []  # lines for train.log from before the folder was made
        self._terminal = sys.stderr.isatty()
        self.preparation = Preparation(self._say)

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_bar()
        self.preparation.end()

    # -- what the trainer calls ---------------------------------------------------------------------------------------

    def started(self, progress: Progress, total_updates: int) -> None:
        if self._terminal:
            self._bar = tqdm(
                total=total_updates,
                initial=progress.step,
                unit=" updates",
                dynamic_ncols=True,
                file=sys.stderr,
                smoothing=0.05,
            )

    def updated(self, progress: Progress, tokens: int) -> None:
        if self._bar is not None:
            self._bar.update()

    def validating(self, done: int, of: int) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"validation, {done:,} of {of:,} lines translated")

    def reported(self, event: Mapping[str, Any]) -> None:
        line = line_of(event)
        if event["event"] == "train" and self._bar is not None:
            loss = event["loss"]
            self._bar.set_postfix_str(
                f"loss {'-' if loss is None else f'{loss:.3f}'}, {event['target_tokens_per_second']:,.0f} tokens/s"
            )
            self._log(line)
        else:
            if self._bar is not None:
                self._bar.set_postfix_str("", refresh=False)
            self._say(line)

    def validated(self, step: int, result: ValidationResult) -> None:
        pass

    def said(self, message: str) -> None:
        self.preparation.end()
        self._say(message)

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    # -- what the verb calls ------------------------------------------------------------------------------------------

    def describe(self, config: Config, prepared: Prepared, trainer: Trainer) -> None:
        """Corpus, vocabulary, model and machine, each in a line."""
        from seq2seq.model.device import lacks_bf16

        train = prepared.train
        share = trainer.sampler.real_share(trainer.sampler.epoch(0))
        vocabulary = f"{prepared.tokenizer.source_size:,} pieces"
        if not prepared.tokenizer.shared:
            vocabulary += f" (source), {prepared.tokenizer.target_size:,} (target)"
        precision = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}.get(str(trainer.setup.precision), "fp32")
        self._say(
            f"corpus      {len(train):,} pairs for training, {len(prepared.validation.sources):,} for validation; "
            f"{share:.1%} of batch positions are real tokens"
        )
        self._say(f"vocabulary  {vocabulary}, {config.tokenizer.cut_by}")
        self._say(
            f"model       {trainer.model.parameter_count():,} parameters; {config.model.decoder.kind} decoder, "
            f"{config.model.attention.kind} attention"
        )
        updates, of_risk = trainer.schedule.planned()
        risky = f" and {of_risk:,} of minimum risk training" if of_risk else ""
        self._say(
            f"training    about {updates:,} updates{risky} on {trainer.setup.device} in {precision}; "
            f"run {self.folder.path}"
        )
        if precision == "bf16" and lacks_bf16(trainer.setup.device):
            self._say(
                "this processor has no products of bfloat16, so that bf16 is many times slower than fp32; leave "
                "training.precision at auto, or set it to fp32"
            )
        for message in advice(config.training, trainer.schedule.total_updates):
            self._say(message)

    def summary(self, summary: Summary, folder: RunFolder) -> None:
        """The table at the end."""
        self._close_bar()
        rows = [
            ("ended", _REASONS[summary.reason]),
            ("updates", f"{summary.step:,} in {summary.epochs:,} complete epochs"),
            ("time", f"{clock(summary.elapsed_seconds)}, {summary.target_tokens:,} target tokens"),
        ]
        if summary.peak_memory_mb is not None:
            rows.append(("memory", f"{summary.peak_memory_mb:,.0f} MiB at the most"))
        if summary.skipped:
            rows.append(("skipped", f"{summary.skipped:,} updates whose gradient was not finite"))
        if summary.best_scores is not None:
            rows.append(
                ("best", f"step {summary.best_step:,}: {scores_in_words(summary.best_scores)} (validation, greedy)")
            )
        rows.append(("run", str(folder.path)))
        for name, value in rows:
            self._say(f"  {name:<9} {value}")

    # -- one door for all lines ---------------------------------------------------------------------------------------

    def _say(self, line: str) -> None:
        if self._bar is not None:
            tqdm.write(line, file=sys.stdout)
        else:
            print(line, flush=True)
        self._log(line)

    def _log(self, line: str) -> None:
        self._waiting.append(f"{datetime.now().isoformat(' ', 'seconds')}  {line}")
        if self.folder.is_held():
            for waiting in self._waiting:
                self.folder.append_log(waiting)
            self._waiting.clear()
