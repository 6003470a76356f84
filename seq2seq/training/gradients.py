"""The gradients of one update, from one or more batches, on one or more processes, within the memory there is.

An update is the mean over all real target tokens of its batches, wherever they are computed and in however many pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2seq.corpus.batches import Batch, collate
from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.model.device import give_back_memory, is_out_of_memory, precision_context
from seq2seq.model.translation_model import TranslationModel
from seq2seq.training.team import Team


@dataclass(frozen=True)
class Gradients:
    """Computes them into `.grad` of a model's parameters; `said` is told where memory did not suffice."""

    model: TranslationModel
    corpus: EncodedCorpus
    label_smoothing: float
    device: torch.device
    precision: torch.dtype
    team: Team
    said: Callable[[str], None]

    def compute(self, group: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
        """The summed loss of an update and its real target tokens, both on the device, as numbers of wide type.

        A batch that the memory refuses is computed in halves, and the update is the same but for rounding. A pair that
        is refused alone is left out of the update.
        """
        planned = sum(int(self.corpus.target.lengths_of(indices).sum()) + len(indices) for indices in group)
        loss, tokens = self._own(self.team.share(list(group)), planned)
        counts = torch.tensor([0.0, tokens], dtype=wide(self.device), device=self.device)
        counts[0] += loss
        self._add_up(counts)
        if self.team.size > 1 or tokens != planned:
            # The divisor was what should have come; without the pairs that were left out there is less.
            scale = planned / counts[1].clamp(min=1.0)
            for gradient in self._gradients():
                gradient.mul_(scale.to(gradient.dtype))
        return counts[0], counts[1]

    def _own(self, parts: list[NDArray[np.int64]], planned: int) -> tuple[Tensor, int]:
        """This process's part: its summed loss and its real tokens."""
        while True:
            self.model.zero_grad(set_to_none=True)
            loss_sum, tokens = torch.zeros((), dtype=wide(self.device), device=self.device), 0
            try:
                for indices in parts:
                    batch = collate(self.corpus, indices)
                    loss_sum += self._backward(batch.to(self.device, non_blocking=True), planned)
                    tokens += batch.tokens
                return loss_sum, tokens
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            # Here the error is gone, and with it all that it held. What a broken backward has left must go as well.
            self.model.zero_grad(set_to_none=True)
            give_back_memory()
            parts = self._smaller(parts)

    def _backward(self, batch: Batch, planned: int) -> Tensor:
        with precision_context(self.device, self.precision):
            loss, _ = self.model.loss(batch, self.label_smoothing)
        (loss / planned).backward()  # type: ignore[no-untyped-call]
        return loss.detach().to(wide(self.device))

    def _smaller(self, parts: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The same pairs in smaller batches; where every batch is a single pair, without the longest of them."""
        largest = max(map(len, parts))
        if largest > 1:
            self.said(f"memory does not suffice for a batch of {largest} pairs; it is halved")
            halves = [np.array_split(part, 2) if len(part) > 1 else [part] for part in parts]
            return [half for pair in halves for half in pair]
        source, target = self.corpus.source, self.corpus.target
        sizes = [int((source.lengths_of(part) + target.lengths_of(part))[0]) for part in parts]
        longest = sizes.index(max(sizes))
        self.said(
            "1 pair left out, since memory does not suffice for it alone; lower data.max_length or the model's sizes"
        )
        return parts[:longest] + parts[longest + 1 :]

    def _add_up(self, counts: Tensor) -> None:
        """Sum gradients and counts over all processes: one message, since each costs the time of many numbers."""
        if self.team.size == 1:
            return
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:  # no batch was left for this process
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.flatten() for parameter in parameters if parameter.grad is not None])
        self.team.add_up(flat, counts)
        parts = torch.split(flat, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def _gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]


def wide(device: torch.device) -> torch.dtype:
    """The dtype of sums over many tokens; Metal has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64
