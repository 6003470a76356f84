"""The gradients of one update, from one or more batches, on one or more processes, within the memory there is.

An update is the mean over all real target tokens of its batches, wherever they are computed and in however many pieces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2seq.corpus.batches import Batch, collate
from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.model.device import give_back_memory, is_out_of_memory, precision_context
from seq2seq.model.regularisation import NONE, Regularisation
from seq2seq.model.risk import risk_loss
from seq2seq.model.translation_model import TranslationModel
from seq2seq.training.candidates import CandidateSearch
from seq2seq.training.shared_memory import shared_sums
from seq2seq.training.team import Team

Indices = NDArray[np.int64]


class Gradients:
    """Computes them into `.grad` of a model's parameters; `said` is told where memory did not suffice."""

    def __init__(
        self,
        model: TranslationModel,
        corpus: EncodedCorpus,
        label_smoothing: float,
        device: torch.device,
        precision: torch.dtype,
        team: Team,
        said: Callable[[str], None],
        harder: Regularisation = NONE,
    ) -> None:
        self.model, self.corpus, self.label_smoothing = model, corpus, label_smoothing
        self.device, self.precision, self.team, self.said = device, precision, team, said
        self.harder = harder
        self.candidates: CandidateSearch | None = None  # with one it is the risk that is minimised
        self._ahead = Ahead(self._batch)
        count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        self._shared = shared_sums(team, count) if device.type == "cpu" else None

    def compute(
        self, group: Sequence[Indices], following: Sequence[Indices] = (), scale: float = 1.0
    ) -> tuple[Tensor, int]:
        """The summed loss of an update, on the device, and its real target tokens.

        A batch that the memory refuses is computed in halves, and the update is the same but for rounding. A pair that
        is refused alone is left out of the update. The batches of `following` are made meanwhile. On its way back
        through the model the loss is multiplied by `scale`, so that small gradients survive fp16; then it is taken out.
        """
        planned = sum(int(self.corpus.target.lengths_of(indices).sum()) + len(indices) for indices in group)
        own, next_own = (self._pieces(self.team.share(list(batches))) for batches in (group, following))
        loss, tokens = self._own(own, next_own, scale / planned)
        correction = 1.0 / scale
        if self.team.size > 1:
            counts = torch.zeros(2, dtype=wide(self.device), device=self.device)
            counts[0] += loss
            counts[1].fill_(tokens)
            self._add_up(counts)
            # The divisor was what should have come; without pairs that were left out somewhere there is less.
            torch._foreach_mul_(self._gradients(), (correction * planned / counts[1].clamp(min=1.0)).float())
            return counts[0], planned
        if tokens and tokens != planned:
            correction *= planned / tokens
        if correction != 1.0:
            torch._foreach_mul_(self._gradients(), correction)
        return loss, tokens

    def _own(self, parts: list[Indices], following: list[Indices], factor: float) -> tuple[Tensor, int]:
        """This process's part: its summed loss and its real tokens."""
        while True:
            self.model.zero_grad(set_to_none=True)
            if self.candidates is not None:
                self.candidates.renew()
            loss_sum, tokens = torch.zeros((), dtype=wide(self.device), device=self.device), 0
            try:
                for batch in self._ahead.take(parts, following):
                    loss_sum += self._backward(batch.to(self.device, non_blocking=True), factor)
                    tokens += batch.tokens
                return loss_sum, tokens
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            # Here the error is gone, and with it all that it held. What a broken backward has left must go as well.
            self.model.zero_grad(set_to_none=True)
            give_back_memory()
            parts = self._smaller(parts)

    def _pieces(self, parts: list[Indices]) -> list[Indices]:
        """The batches in pieces whose candidates take no more memory than a batch's two readings by R-Drop."""
        if self.candidates is None:
            return parts
        count = self.candidates.pieces
        return [piece for part in parts for piece in np.array_split(part, min(count, len(part)))]

    def _batch(self, indices: Indices) -> Batch:
        batch = collate(self.corpus, indices)
        return batch.pinned() if self.device.type == "cuda" else batch

    def _backward(self, batch: Batch, factor: float) -> Tensor:
        """Gradients of a batch, and the loss of its references."""
        candidates = None if self.candidates is None else self.candidates.of(batch)
        with precision_context(self.device, self.precision):
            if candidates is None:
                loss, _ = self.model.loss(batch, self.label_smoothing, self.harder)
                told = loss.detach()
            else:
                loss, told = risk_loss(self.model, batch, candidates, self.label_smoothing)
        (loss * factor).backward()  # type: ignore[no-untyped-call]
        return told.to(wide(self.device))

    def _smaller(self, parts: list[Indices]) -> list[Indices]:
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
        """Sum gradients and counts over all processes, as one row: each message costs the time of many numbers."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:  # no batch was left for this process
                parameter.grad = torch.zeros_like(parameter)
        gradients = self._gradients()
        if self._shared is not None:
            flat = self._shared.add_up(gradients, counts)
        else:
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            self.team.add_up(flat, counts)
        parts = torch.split(flat, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def _gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]


class Ahead:
    """Makes the batches of the next update in a thread of its own, while this one is computed."""

    def __init__(self, make: Callable[[Indices], Batch]) -> None:
        self._make = make
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="seq2seq-batches")
        self._expected: list[Indices] = []
        self._made: Future[list[Batch]] | None = None

    def take(self, now: list[Indices], following: list[Indices]) -> list[Batch]:
        """The batches of `now`; those of `following` are begun."""
        foreseen = self._made is not None and len(now) == len(self._expected)
        if foreseen and all(map(np.array_equal, now, self._expected)):
            assert self._made is not None
            batches = self._made.result()
        else:
            batches = self._all(now)
        self._expected, self._made = following, None
        if following:
            with contextlib.suppress(RuntimeError):  # no memory for another thread: then they are made when needed
                self._made = self._pool.submit(self._all, following)
        return batches

    def _all(self, group: list[Indices]) -> list[Batch]:
        return [self._make(indices) for indices in group]


def wide(device: torch.device) -> torch.dtype:
    """The dtype of sums over many tokens; Metal has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64
