"""Updates: gradients become steps, and what became of each step is looked at.

A number that is not finite would spoil all weights: such an update is left out, and after a few of them in a row the
training has failed. In fp16 a gradient that overflows is expected now and then, and lowers the scale of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.errors import TrainingError
from seq2seq.model.regularisation import Regularisation
from seq2seq.model.translation_model import TranslationModel
from seq2seq.training.gradients import Gradients, Indices, wide
from seq2seq.training.optimizer import HIGHEST_RATE, build_optimizer
from seq2seq.training.progress import Progress
from seq2seq.training.team import Team

if TYPE_CHECKING:
    from seq2seq.config.schema import TrainingConfig

# A mean loss beyond this, in nats a token, is infinite in all but name: e^-50 beside 1 is 0 in every precision. A blind
# guess among a million pieces costs 14.
HIGHEST_LOSS = 50.0
# So many updates in a row without a usable loss and gradient, and the training has failed: a batch may be bad, but here
# the weights are.
MOST_SKIPPED_IN_A_ROW = 3

# In fp16 the scale of the loss begins here, is halved when a gradient overflows, and doubled after so many good updates
# (Micikevicius et al. 2018, section 3.2).
_FIRST_SCALE, _HIGHEST_SCALE, _UPDATES_AT_SCALE = 2.0**14, 2.0**24, 1000


@dataclass(frozen=True)
class Outcome:
    """What became of an update: its summed loss and whether the step was taken, perhaps still on the way from a GPU."""

    step: int
    tokens: int
    numbers_2: Tensor
    sent: torch.cuda.Event | None = None

    def on_its_way(self) -> Outcome:
        """The same, its numbers being fetched without waiting for them."""
        numbers = self.numbers_2.to("cpu", non_blocking=True)
        sent = torch.cuda.Event() if self.numbers_2.is_cuda else None  # type: ignore[no-untyped-call]
        if sent is not None:
            sent.record()
        return Outcome(self.step, self.tokens, numbers, sent)

    def numbers(self) -> tuple[float, bool]:
        if self.sent is not None:
            self.sent.synchronize()
        loss_sum, usable = self.numbers_2.tolist()
        return loss_sum, bool(usable)


class Updates:
    """Makes one update after the other. `said` is told of those that are left out.

    `loss_sum` is the summed loss since it was last set to zero, `gradient_norm` that of the last update, unclipped.
    """

    def __init__(
        self,
        settings: TrainingConfig,
        model: TranslationModel,
        optimizer: torch.optim.Optimizer,
        gradients: Gradients,
        said: Callable[[str], None],
    ) -> None:
        self.settings, self.model, self.optimizer, self.gradients = settings, model, optimizer, gradients
        device = gradients.device
        self.loss_sum = torch.zeros((), dtype=wide(device), device=device)
        self.gradient_norm = torch.zeros(())
        self._scales = gradients.precision == torch.float16
        self.first_scale = _FIRST_SCALE if self._scales else 1.0
        self._waits = device.type != "cuda"
        self._pending: Outcome | None = None
        self._said = said

    @classmethod
    def configured(
        cls,
        settings: TrainingConfig,
        model: TranslationModel,
        corpus: EncodedCorpus,
        device: torch.device,
        precision: torch.dtype,
        team: Team,
        said: Callable[[str], None],
        said_of_memory: Callable[[str], None],
    ) -> Updates:
        """The updates of a model that are asked for, on the pairs of a corpus."""
        harder = Regularisation(settings.source_word_dropout, settings.target_word_dropout, settings.r_drop)
        place = (device, precision, team)
        gradients = Gradients(model, corpus, settings.label_smoothing, *place, said_of_memory, harder)
        return cls(settings, model, build_optimizer(model, settings), gradients, said)

    def make(self, progress: Progress, rate: float, group: Sequence[Indices], following: Sequence[Indices]) -> int:
        """One update from one or more batches: the mean gradient over all their real target tokens, which it returns.

        A GPU is never waited for in here: it decides itself whether to take the step, and what became of an update is
        looked at when the next one has been sent off.
        """
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = min(rate, HIGHEST_RATE)
        progress.step += 1
        loss_sum, tokens = self.gradients.compute(group, following, progress.loss_scale)
        limit = math.inf if self.settings.clip_norm is None else self.settings.clip_norm
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        usable = torch.isfinite(norm) & (loss_sum <= HIGHEST_LOSS * tokens)  # NaN is not; nor is an update of nothing
        usable &= tokens > 0
        self.loss_sum += torch.where(usable, loss_sum, 0.0)
        self.gradient_norm = norm
        outcome = Outcome(progress.step, tokens, torch.stack([loss_sum, usable.to(loss_sum.dtype)]))
        if self._waits:
            if bool(usable):
                self.optimizer.step()
            self._settle(outcome, progress)
        else:
            self.optimizer.found_inf = (~usable).float()  # type: ignore[attr-defined]
            self.optimizer.step()
            before, self._pending = self._pending, outcome.on_its_way()
            self._settle(before, progress)
        return tokens

    def _settle(self, outcome: Outcome | None, progress: Progress) -> None:
        """Look at what became of an update, and count it."""
        if outcome is None:
            return
        loss_sum, usable = outcome.numbers()
        if not usable:
            self._skip(outcome, loss_sum / outcome.tokens if outcome.tokens else math.nan, progress)
            return
        progress.skipped_in_a_row = 0
        progress.interval_tokens += outcome.tokens
        progress.updates_at_scale += 1
        if self._scales and progress.updates_at_scale >= _UPDATES_AT_SCALE:
            progress.loss_scale, progress.updates_at_scale = min(2.0 * progress.loss_scale, _HIGHEST_SCALE), 0

    def settle(self, progress: Progress) -> None:
        """Look at what became of the last update, if that is still open."""
        outcome, self._pending = self._pending, None
        self._settle(outcome, progress)

    def _skip(self, outcome: Outcome, loss: float, progress: Progress) -> None:
        """The weights were left alone: one number that is not finite would spoil all of them."""
        progress.skipped += 1
        if progress.loss_scale > 1.0 and not loss > HIGHEST_LOSS:
            # In fp16 the scaled gradient was too large, which is no fault of the training.
            progress.loss_scale, progress.updates_at_scale = progress.loss_scale / 2.0, 0
            self._said(f"update {outcome.step} skipped: the loss scale is lowered to {progress.loss_scale:g}")
            return
        progress.skipped_in_a_row += 1
        last = progress.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW
        if not outcome.tokens:  # and that has been said
            if last:
                raise TrainingError(
                    "Memory does not suffice for single pairs; lower data.max_length or the model's sizes."
                )
            return
        cause = f"a loss of {loss:.3g} nats a token" if loss > HIGHEST_LOSS else "its loss or gradient is not finite"
        self._said(f"update {outcome.step} skipped: {cause}")
        if last:
            count = f"for {progress.skipped_in_a_row} updates in a row, the last at step {outcome.step}"
            raise TrainingError(f"The loss or its gradient has been non-finite {count}; {advice(self.settings)}.")


def finite(tensors: Mapping[str, Tensor], step: int, settings: TrainingConfig) -> dict[str, Tensor]:
    """The tensors, for a checkpoint. TrainingError where one is not finite, since a step was too long for fp32."""
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise TrainingError(
                f"The weights are non-finite at step {step} ({name}) and have not been saved; {advice(settings)}."
            )
    return {name: tensor.detach() for name, tensor in tensors.items()}


def advice(settings: TrainingConfig) -> str:
    """What to do about numbers that are not finite."""
    limit = "off" if settings.clip_norm is None else f"{settings.clip_norm:g}"
    return (
        f"lower training.learning_rate ({settings.learning_rate:g}), set training.clip_norm (now {limit}), "
        "or use precision fp32"
    )
