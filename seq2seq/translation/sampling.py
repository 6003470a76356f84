"""Sampling: translations drawn at random, each as often as the model finds it probable.

Letters: B sentences still being translated, K samples of each, R = B·K rows, X words that may be said, U steps.

Word by word, each drawn from the model's own distribution (ancestral sampling): what a beam shows are the heights of
the distribution, what samples show is where its weight lies (Eikema & Aziz 2020). The random numbers of a sentence
follow from the seed and its own ids, so its samples do not depend on the rest of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from seq2seq.corpus.subwords import BOS, EOS
from seq2seq.translation.ranking import Finished
from seq2seq.translation.search import Selectable

State = TypeVar("State", bound=Selectable)


class Distributed(Protocol[State]):
    """A model that tells the probability of every word, as members of an ensemble and sampling need it."""

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> State:
        """Read B sentences: a state of B rows."""

    def log_probabilities(self, previous_R: Tensor, state: State) -> tuple[Tensor, State]:
        """The log-probability of each word after `previous_R` (R,X), -inf where it may not be said; the next state."""

    def words(self, place_RC: Tensor, state: State) -> Tensor:
        """The ids of the words at these places of X."""


def sample(
    model: Distributed[Any], src_BS: Tensor, mask_BS: Tensor, limits: Sequence[int], count: int, seed: int
) -> list[list[Finished]]:
    """`count` translations of each sentence, drawn with replacement, at most `limits[b]` tokens long."""
    device, K = src_BS.device, count
    chance_BKU = _chances(src_BS, mask_BS, limits, K, seed).to(device)
    number_B = torch.arange(len(src_BS), device=device)
    state = model.start(src_BS, mask_BS).select(number_B.repeat_interleave(K))
    previous_R = torch.full((len(src_BS) * K,), BOS, dtype=torch.long, device=device)
    total_R = torch.zeros(len(previous_R), device=device)
    closed_R = torch.zeros(len(previous_R), dtype=torch.bool, device=device)
    limit_B = torch.tensor(list(limits), device=device)
    # A row of the whole: its ids so far, its log-probability, whether it has ended.
    ids: list[list[int]] = [[] for _ in previous_R]
    totals, ended = [0.0] * len(ids), [False] * len(ids)
    for step in range(max(limits)):
        log_probability_RX, state = model.log_probabilities(previous_R, state)
        place_R1 = drawn(log_probability_RX, chance_BKU[number_B, :, step].reshape(-1, 1))
        total_R = torch.where(closed_R, total_R, total_R + log_probability_RX.gather(1, place_R1).squeeze(1))
        word_R = torch.where(closed_R, EOS, model.words(place_R1, state).squeeze(1))
        row_R = (number_B.unsqueeze(1) * K + torch.arange(K, device=device)).flatten()
        closed_R = closed_R | (word_R == EOS)
        for row, word, total, closed in zip(*(t.tolist() for t in (row_R, word_R, total_R, closed_R)), strict=True):
            if not closed:
                ids[row].append(word)
            totals[row], ended[row] = total, closed
        goes_on_B = ~(closed_R.view(-1, K).all(dim=1) | (limit_B[number_B] <= step + 1))
        if not goes_on_B.any():
            break
        kept_b = goes_on_B.nonzero().squeeze(1)
        kept_r = (kept_b.unsqueeze(1) * K + torch.arange(K, device=device)).flatten()
        state, number_B = state.select(kept_r, kept_b), number_B[kept_b]
        previous_R, total_R, closed_R = word_R[kept_r], total_R[kept_r], closed_R[kept_r]
    every = [Finished(*row) for row in zip(ids, totals, ended, strict=True)]
    return [every[first : first + K] for first in range(0, len(every), K)]


def drawn(log_probability_RX: Tensor, chance_R1: Tensor) -> Tensor:
    """The place (R,1) at which the summed probabilities exceed a number from 0 to 1; never one of probability 0."""
    summed_RX = log_probability_RX.exp().cumsum(dim=1)
    whole_R1 = summed_RX[:, -1:]
    # A number that rounds to the whole would lie beyond the last word.
    below_R1 = torch.nextafter(whole_R1, torch.zeros_like(whole_R1))
    place_R1 = torch.searchsorted(summed_RX, torch.minimum(chance_R1 * whole_R1, below_R1), right=True)
    return place_R1.clamp(max=summed_RX.shape[1] - 1)


def _chances(src_BS: Tensor, mask_BS: Tensor, limits: Sequence[int], K: int, seed: int) -> Tensor:
    """Numbers from 0 to 1 for every word of every sample, (B,K,U)."""
    chances = np.zeros((len(limits), K, max(limits)), dtype=np.float32)
    for b, (row, mask, limit) in enumerate(zip(src_BS.cpu(), mask_BS.cpu(), limits, strict=True)):
        random = np.random.default_rng([seed, *row[mask].tolist()])
        chances[b, :, :limit] = random.random((limit, K), dtype=np.float32).T
    return torch.from_numpy(chances)
