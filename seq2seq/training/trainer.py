"""The training loop: batches become updates, updates become checkpoints.

Everything that happens is decided by `Progress`, the weights, the optimizer's moments and the random generators; all of
them are in last/, so a training stopped between any two updates goes on as if it had never stopped.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2seq.corpus.batches import BatchSampler
from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.corpus.sampling import SampledCorpus
from seq2seq.errors import CheckpointError
from seq2seq.model.device import fast_products
from seq2seq.model.translation_model import TranslationModel
from seq2seq.runs import Checkpoint, RunFolder
from seq2seq.training.averaging import build_averaging
from seq2seq.training.candidates import CandidateSearch
from seq2seq.training.optimizer import Schedule, optimizer_tensors, restore_optimizer
from seq2seq.training.progress import Listener, Progress, Summary, gathered_states, restore_random_states
from seq2seq.training.team import ALONE, Team
from seq2seq.training.updates import Updates, finite
from seq2seq.training.validation import Stopped, ValidationResult, Validator, rank_of

if TYPE_CHECKING:
    from seq2seq.config.schema import TrainingConfig


@dataclass(frozen=True)
class Wishes:
    """What a process would like to do before the next update; a team does what its members want."""

    stop: bool = False
    over: bool = False  # training.max_minutes
    save: bool = False  # training.checkpoint_every, in minutes


@dataclass(frozen=True)
class Setup:
    """Where the training computes, and what its checkpoints say of the run beside its progress.

    `judge` names the validation set, so that scores of another one are never compared with its own.
    """

    seed: int
    device: torch.device
    precision: torch.dtype
    facts: dict[str, Any]
    team: Team = ALONE
    judge: str = ""


class Trainer:
    """Trains one model in one run folder. `listener` is told what happens; `should_stop` is asked between updates."""

    def __init__(
        self,
        settings: TrainingConfig,
        setup: Setup,
        model: TranslationModel,
        train: EncodedCorpus,
        validator: Validator,
        run: RunFolder,
        listener: Listener,
        should_stop: Callable[[], bool] = lambda: False,
        sampled: SampledCorpus | None = None,
    ) -> None:
        self.settings, self.setup, self.run = settings, setup, run
        self.model, self.train_corpus, self.validator = model, train, validator
        self._whole = train
        self.listener, self.should_stop, self.team = listener, should_stop, setup.team
        self.sampled = sampled
        if self.team.rank:  # the first one's generator is where the making of the weights has left it
            torch.manual_seed(setup.seed + 7919 * self.team.rank)
        self.averaging = build_averaging(model, settings)
        self.sampler = self._sampler(train)
        place = (setup.device, setup.precision, self.team)
        self._updates = Updates.configured(settings, model, train, *place, listener.said, self._said_of_update)
        self.optimizer = self._updates.optimizer
        self.progress = Progress(
            loss_scale=self._updates.first_scale, chosen_by=settings.choose_by, judged_on=setup.judge
        )
        self._saved_step, self._saved_at = -1, time.perf_counter()
        self._begin_epoch()
        # So many batches make an update; the last one of an epoch has what is left.
        self._group = settings.accumulate * self.team.size
        updates = -(-len(self._batches) // self._group)
        self.schedule = Schedule(settings, settings.epochs * updates, settings.risk_epochs * updates)

    # -- the loop -----------------------------------------------------------------------------------------------------

    def train(self) -> Summary:
        """Train until one of the limits is reached, patience is used up, or someone asks for an end."""
        self.model.train()
        self.listener.started(self.progress, sum(self.schedule.planned()))
        self._began = time.perf_counter() - self.progress.elapsed_seconds
        self._heard = self._wishes()
        try:
            with fast_products():
                reason = self._loop()
        finally:
            if self.sampled is not None:
                self.sampled.close()
        self._updates.settle(self.progress)
        self._tick()
        if self._saved_step != self.progress.step or self.progress.validation_due:
            self._save_last()
        summary = self._summary(reason)
        self._report(
            {
                "event": "end",
                "step": summary.step,
                "reason": reason,
                "best_step": summary.best_step,
                "elapsed_seconds": round(summary.elapsed_seconds, 3),
                "peak_memory_mb": summary.peak_memory_mb,
            }
        )
        return summary

    def _loop(self) -> str:
        progress, begun = self.progress, self.progress.step
        if progress.validation_due and not self._validate():
            return "stopped"
        while True:
            reason = self._reason_to_end()
            if reason in ("epochs", "patience") and self.settings.risk_epochs and progress.risk_epoch is None:
                self._begin_risk()
                continue
            if reason:
                self._say_what_is_left_out(reason, idle=begun > 0 and progress.step == begun)
                return reason
            group = self._batches[progress.position : progress.position + self._group]
            following = self._batches[progress.position + len(group) : progress.position + len(group) + self._group]
            self._update(group, following)
            progress.position += len(group)
            if progress.position >= len(self._batches):
                progress.epoch, progress.position = progress.epoch + 1, 0
                self._begin_epoch()
            if progress.step % self.settings.log_every == 0:
                self._report_interval()
            every = self.settings.validate_every
            progress.validation_due = progress.step % every == 0 if every else progress.position == 0
            if progress.validation_due and not self._validate():
                return "stopped"
            if self._is_checkpoint_due() and self._saved_step != progress.step:
                self._save_last()

    def _sampler(self, corpus: EncodedCorpus) -> BatchSampler:
        return BatchSampler(
            corpus.source.lengths,
            corpus.target.lengths,
            batch_tokens=self.settings.batch_tokens,
            seed=self.setup.seed,
            batch_sentences=self.settings.batch_sentences,
        )

    def _begin_epoch(self) -> None:
        """Plan the batches of the epoch that progress has come to; its sentences may be cut anew."""
        epoch = self.progress.epoch
        if self.progress.risk_epoch is not None:
            self._compare_candidates()
        elif self.sampled is not None and epoch < self.settings.epochs:
            self.train_corpus = self._updates.gradients.corpus = self.sampled.epoch(epoch)
            self.sampler = self._sampler(self.train_corpus)
        self._batches = self.sampler.epoch(epoch)

    def _begin_risk(self) -> None:
        """From the best weights so far, with moments and averages of its own; what is best is chosen anew."""
        progress = self.progress
        self.team.wait()  # the leader writes
        if self.run.has("best"):
            best = self.run.load("best").weights
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(best[name])
        self.listener.said(f"minimum risk training begins, from the best weights so far (step {progress.best_step})")
        self.optimizer.state.clear()
        self.averaging = build_averaging(self.model, self.settings)
        progress.risk_epoch, progress.risk_step, progress.position = progress.epoch, progress.step, 0
        progress.best_score, progress.validations_since_best = None, 0
        progress.loss_scale = self._updates.first_scale
        self._updates.loss_sum.zero_()
        progress.interval_tokens, progress.interval_seconds, progress.updates_at_scale = 0, 0.0, 0
        self._begin_epoch()
        self._save_last()  # or a resume would begin it from the best weights of then

    def _compare_candidates(self) -> None:
        """From here on the risk is minimised, on the sentences as they are always cut."""
        if self._updates.gradients.candidates is None:
            settings, setup = self.settings, self.setup
            self._updates.gradients.candidates = CandidateSearch(
                self.validator.translator, settings.risk_candidates, setup.precision
            )
            self.train_corpus = self._updates.gradients.corpus = self._whole
            self.sampler = self._sampler(self._whole)

    def _rate(self, step: int) -> float:
        """The learning rate of an update."""
        progress = self.progress
        if progress.risk_epoch is None or step <= progress.risk_step:
            return self.schedule.rate(step)
        return self.schedule.risk_rate(step - progress.risk_step)

    def _wishes(self) -> Wishes:
        """What all processes agree on: the leader's clock, and a stop that any of them was asked for."""
        minutes, most = self.settings.checkpoint_minutes, self.settings.max_minutes
        now = time.perf_counter()
        wishes = [
            self.should_stop(),
            self.team.leads and most is not None and now - self._began >= 60 * most,
            self.team.leads and minutes is not None and now - self._saved_at >= 60 * minutes,
        ]
        if self.team.size > 1:
            wanted = torch.tensor(wishes, dtype=torch.float32, device=self.setup.device)
            self.team.add_up(wanted)
            wishes = [bool(want) for want in wanted.tolist()]
        return Wishes(*wishes)

    def _is_checkpoint_due(self) -> bool:
        every = self.settings.checkpoint_every
        return self._heard.save or (isinstance(every, int) and self.progress.step % every == 0)

    def _reason_to_end(self) -> str | None:
        progress, settings = self.progress, self.settings
        self._tick()
        begun = progress.risk_epoch
        if progress.epoch >= (settings.epochs if begun is None else begun + settings.risk_epochs):
            return "epochs"
        if settings.max_steps is not None and progress.step >= settings.max_steps:
            return "max_steps"
        if self._heard.over:
            return "max_minutes"
        if begun is None and settings.patience is not None and progress.validations_since_best >= settings.patience:
            return "patience"
        return "stopped" if self._heard.stop else None

    def _say_what_is_left_out(self, reason: str, *, idle: bool) -> None:
        """What someone who asked for more would wonder about."""
        settings, progress = self.settings, self.progress
        limit = {
            "epochs": f"training.epochs={settings.epochs}",
            "max_steps": f"training.max_steps={settings.max_steps}",
        }
        if idle and reason in limit:
            self.listener.said(
                f"nothing is left to train: {limit[reason]} is reached at step {progress.step:,}; raise it"
            )
        elif reason in ("max_steps", "max_minutes") and settings.risk_epochs and progress.risk_epoch is None:
            self.listener.said(
                f"minimum risk training (training.risk_epochs) has not begun: training.{reason} came first"
            )

    # -- one update ---------------------------------------------------------------------------------------------------

    def _update(self, group: Sequence[NDArray[np.int64]], following: Sequence[NDArray[np.int64]] = ()) -> None:
        began = time.perf_counter()
        progress = self.progress
        tokens = self._updates.make(progress, self._rate(progress.step + 1), group, following)
        self.averaging.updated(progress.step)
        progress.target_tokens += tokens
        self._heard = self._wishes()
        progress.interval_seconds += time.perf_counter() - began
        self.listener.updated(progress, tokens)

    # -- reports, validation, checkpoints -----------------------------------------------------------------------------

    def _report_interval(self) -> None:
        progress = self.progress
        self._updates.settle(self.progress)
        self._tick()
        tokens = progress.interval_tokens
        loss = self._updates.loss_sum.item() / tokens if tokens else math.nan
        norm = self._updates.gradient_norm.item()  # of the last update, before it was clipped
        self._report(
            {
                "event": "train",
                "step": progress.step,
                "epoch": progress.epoch if progress.position == 0 else progress.epoch + 1,
                "loss": round(loss, 6) if math.isfinite(loss) else None,
                "learning_rate": self._rate(progress.step),
                "target_tokens": progress.target_tokens,
                "target_tokens_per_second": round(tokens / max(progress.interval_seconds, 1e-9), 1),
                "elapsed_seconds": round(progress.elapsed_seconds, 3),
                "gradient_norm": round(norm, 6) if math.isfinite(norm) else None,
            }
        )
        self._updates.loss_sum.zero_()
        progress.interval_tokens, progress.interval_seconds = 0, 0.0

    def _validate(self) -> bool:
        """Measure, choose the best, save. False when someone asked for an end before it was done: it is still due.

        What is measured, and kept as the best, is the average of the weights (averaging.py).
        """
        progress = self.progress
        if self._saved_step < 0:  # there must be something to go on from before there is a best
            self._save_last()
        with self.averaging.in_place():
            try:
                result = self.validator.measure(self.should_stop, self.listener.validating)
            except Stopped:
                return False
            self._heard = self._wishes()
            progress.validation_due = False
            self._tick()
            self._report({"event": "validation", "step": progress.step, **result.scores()})
            self.listener.validated(progress.step, result)
            better = self._choose(result)
        self.averaging.validated()
        self.schedule.after_validation(better)
        progress.plateau_scale, progress.plateau_waited = self.schedule.scale, self.schedule.waited
        self._save_last()
        return True

    def _choose(self, result: ValidationResult) -> bool:
        """Keep the weights as the best if they are. A rank that is not finite is never the best and blocks none."""
        progress = self.progress
        rank = result.rank(self.settings.choose_by)
        better = math.isfinite(rank) and (progress.best_score is None or rank > progress.best_score)
        lower = math.isfinite(result.loss) and (progress.lowest_loss is None or result.loss < progress.lowest_loss)
        if lower:
            progress.lowest_loss = result.loss
        # BLEU goes up and down by chance: while the loss still falls, something is still learnt.
        progress.validations_since_best = 0 if better or lower else progress.validations_since_best + 1
        if better:
            progress.best_score, progress.best_step, progress.best_scores = rank, progress.step, result.scores()
            weights = self._finite(dict(self.model.named_parameters()))
            if self.team.leads:
                self.run.save("best", weights, self._facts())
        return better

    def _finite(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return finite(tensors, self.progress.step, self.settings)

    def _facts(self) -> dict[str, Any]:
        return {**self.setup.facts, "step": self.progress.step, "scores": self.progress.best_scores}

    def _save_last(self) -> None:
        self._updates.settle(self.progress)
        self._tick()
        self.progress.interval_loss = self._updates.loss_sum.item()
        weights = self._finite(dict(self.model.named_parameters()))
        moments = self._finite(optimizer_tensors(self.model, self.optimizer))
        averages = self._finite(self.averaging.tensors())
        facts = {**self._facts(), "progress": self.progress.as_dict()}
        states = gathered_states(self.team, self.setup.device)
        if self.team.leads:
            self.run.save("last", weights, facts, {**moments, **averages, **states})
        self._saved_step, self._saved_at = self.progress.step, time.perf_counter()

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from last/: afterwards everything is as it was after that update. The model has its weights already."""
        try:
            self._restore(checkpoint)
        except CheckpointError as error:
            raise CheckpointError(f"{self.run.path / 'last'}: {error}") from None
        self._judge_anew()
        progress = self.progress
        if not self.team.leads:
            return
        self.run.clear_leftovers()
        damaged = self.run.forget_metrics_after(progress.step, validation_due=progress.validation_due)
        if damaged:
            self.listener.said(f"metrics.jsonl: {damaged} damaged lines could not be read and are left out")

    def _restore(self, checkpoint: Checkpoint) -> None:
        facts = checkpoint.facts.get("progress")
        if not isinstance(facts, dict) or "random.cpu" not in checkpoint.training:
            raise CheckpointError("The checkpoint holds weights only and cannot be resumed; resume from last/.")
        self.progress = progress = Progress.from_dict(facts)
        restore_optimizer(self.model, self.optimizer, checkpoint.training)
        self.averaging.restore(checkpoint.training)
        restore_random_states(self.team, self.setup.device, checkpoint.training)
        self._updates.loss_sum.fill_(progress.interval_loss)
        self.schedule.scale, self.schedule.waited = progress.plateau_scale, progress.plateau_waited
        self._begin_epoch()
        if not 0 <= progress.position < len(self._batches):
            raise CheckpointError("The checkpoint's position is beyond the end of its epoch; it cannot be resumed.")
        self._saved_step = progress.step

    def _judge_anew(self) -> None:
        """A best score is comparable with others of the same measure on the same validation set only."""
        progress, choose_by = self.progress, self.settings.choose_by
        if progress.best_scores is not None and not self.run.has("best"):
            progress.best_score, progress.best_scores, progress.best_step = None, None, 0
            self.listener.said("the best checkpoint is gone, so the next validation makes a new one")
        if progress.best_scores is not None and progress.judged_on != self.setup.judge:
            progress.best_score = progress.lowest_loss = None
            self.listener.said("the validation set is another one than before, so a new best is looked for")
        elif progress.best_scores is not None and progress.chosen_by != choose_by:
            progress.best_score = rank_of(progress.best_scores, choose_by)
            self.listener.said(f"the best is now chosen by {choose_by}; until now it was {progress.chosen_by}")
        if (progress.judged_on, progress.chosen_by) != (self.setup.judge, choose_by):
            progress.judged_on, progress.chosen_by = self.setup.judge, choose_by
            progress.validations_since_best = self.schedule.waited = progress.plateau_waited = 0

    # -- odds and ends ------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.progress.elapsed_seconds = time.perf_counter() - self._began

    def _report(self, event: dict[str, Any]) -> None:
        if self.team.leads:
            self.run.append_metrics(event)
        self.listener.reported(event)

    def _said_of_update(self, message: str) -> None:
        self.listener.said(f"update {self.progress.step}: {message}")

    def _summary(self, reason: str) -> Summary:
        progress = self.progress
        return Summary(
            reason=reason,
            step=progress.step,
            epochs=progress.epoch,
            best_step=progress.best_step,
            best_scores=progress.best_scores,
            elapsed_seconds=progress.elapsed_seconds,
            peak_memory_mb=peak_memory_mb(self.setup.device),
            target_tokens=progress.target_tokens,
            skipped=progress.skipped,
        )


def peak_memory_mb(device: torch.device) -> float | None:
    """The most memory used so far, in MiB: of the GPU, else of this process. None where the system does not tell."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    try:
        import resource
    except ImportError:  # Windows
        return None
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(usage / (2**20 if sys.platform == "darwin" else 2**10), 1)
