"""The slots of a beam, and what becomes of them in a step.

Letters: B sentences still being translated, K beam size (slots per sentence), R rows (the open slots), C the best next
tokens of a row (as many as the beam has slots), U steps so far.

What a step does is some sixty small operations, which for a single sentence take longer than a good part of the model;
on a processor one function of C does the same (kernels/beams.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.model.kernels import beams_for
from seq2seq.model.places import Places


@dataclass(frozen=True)
class SearchSettings:
    """How to search; `bos` begins a translation and `eos` ends it."""

    bos: int
    eos: int
    beam_size: int = 5
    length_penalty: float = 1.0
    n_best: int = 1

    @property
    def slots(self) -> int:
        """How many hypotheses of a sentence are held at once."""
        return max(self.beam_size, self.n_best)

    @property
    def greedy(self) -> bool:
        """Whether one hypothesis is all there is: nothing is ever waited for."""
        return self.slots == 1


@dataclass
class Beam:
    """The slots of the sentences still being translated. Open slots stand before closed ones."""

    number_B: Tensor  # which sentence of the input
    limit_B: Tensor  # most tokens it may get, end mark included
    total_BK: Tensor  # log-probability so far; -inf = an empty slot
    length_BK: Tensor  # tokens so far, end mark included
    closed_BK: Tensor
    tokens_BKU: Tensor
    collected_B: Tensor  # done and in the results already, but still in the batch

    @classmethod
    def first(cls, slots: int, limits: Sequence[int], device: torch.device) -> Beam:
        """The beam before the first step."""
        B, K = len(limits), slots
        # All slots begin alike, so only the first may continue: the others would repeat it.
        total_BK = torch.full((B, K), -torch.inf, device=device)
        total_BK[:, 0] = 0.0
        return cls(
            number_B=torch.arange(B, device=device),
            limit_B=torch.tensor(list(limits), device=device),
            total_BK=total_BK,
            length_BK=torch.zeros((B, K), dtype=torch.long, device=device),
            closed_BK=torch.zeros((B, K), dtype=torch.bool, device=device),
            tokens_BKU=torch.zeros((B, K, 0), dtype=torch.long, device=device),
            collected_B=torch.zeros(B, dtype=torch.bool, device=device),
        )

    def keep(self, sentences_b: Tensor) -> Beam:
        """The named sentences only."""
        return Beam(*(getattr(self, name).index_select(0, sentences_b) for name in self.__dataclass_fields__))


def normalised(total: Tensor, length: Tensor, penalty: float) -> Tensor:
    """log-probability / length^penalty (Wu et al. 2016, equation 14, in its plain form)."""
    return total / length.clamp(min=1).to(total.dtype) ** penalty


def extended(
    beam: Beam, answer_RC: Tensor, token_RC: Tensor, places: Places, step: int, settings: SearchSettings
) -> tuple[Beam, Tensor, Tensor]:
    """Every open slot takes one of the best continuations; closed slots keep what they hold.

    Also returns which old slot each new slot came from (B,K), and which sentences need no further step (B,).
    """
    beams = beams_for(answer_RC.device, answer_RC.dtype, settings.slots)
    if beams is None:
        longer, parent_BK = _extend(beam, *_in_slots(answer_RC, token_RC, places, len(beam.number_B)), settings.eos)
        return longer, parent_BK, _is_done(longer, step, settings)
    total_BK, length_BK, closed_BK, tokens_BKU, parent_BK, done_B = beams.extend(
        (beam.total_BK, beam.length_BK, beam.closed_BK, beam.tokens_BKU),
        (answer_RC, token_RC),
        places.place_r,
        beam.limit_B,
        *(settings.eos, settings.n_best, settings.greedy, step, settings.length_penalty),
    )
    longer = Beam(beam.number_B, beam.limit_B, total_BK, length_BK, closed_BK, tokens_BKU, beam.collected_B)
    return longer, parent_BK, done_B


def open_rows(beam: Beam, parent_BK: Tensor, staying_b: Tensor | None, before: Places) -> tuple[Tensor, Places, Tensor]:
    """The rows that go on: which of the old rows each continues (R,), where they stand now, and their last token (R,).

    `staying_b` are the sentences of the beam among the old ones; None: all of them.
    """
    K = before.slots
    beams = beams_for(beam.total_BK.device, beam.total_BK.dtype, K)
    if beams is not None:
        held = (beam.total_BK, beam.closed_BK, beam.collected_B, beam.tokens_BKU)
        row_R, place_R, last_R = beams.open_rows(held, parent_BK, staying_b, before.place_r)
        return row_R, Places(place_R, K), last_R
    B, device = len(parent_BK), parent_BK.device
    # In which row an old slot was.
    row_X = torch.zeros(B * K, dtype=torch.long, device=device)
    row_X[before.place_r] = torch.arange(len(before.place_r), device=device)
    old_BK = torch.arange(0, B * K, K, device=device).unsqueeze(1) + parent_BK
    if staying_b is not None:
        old_BK = old_BK.index_select(0, staying_b)
    open_BK = ~beam.closed_BK & (beam.total_BK != -torch.inf) & ~beam.collected_B.unsqueeze(1)
    place_R = open_BK.view(-1).nonzero().squeeze(1)
    last_R = beam.tokens_BKU[:, :, -1].reshape(-1).index_select(0, place_R)
    return row_X[old_BK.view(-1)[place_R]], Places(place_R, K), last_R


# -- in PyTorch's operations -----------------------------------------------------------------------------------------


def _in_slots(answer_RC: Tensor, token_RC: Tensor, places: Places, sentences: int) -> tuple[Tensor, Tensor]:
    """What the open slots were answered, for all B·K of them; nothing is to be expected of the others."""
    everywhere = sentences * places.slots
    if len(answer_RC) == everywhere:
        return answer_RC, token_RC
    answers = answer_RC.new_full((everywhere, answer_RC.shape[1]), -torch.inf)
    return answers.index_copy_(0, places.place_r, answer_RC), places.spread(token_RC, sentences)


def _extend(beam: Beam, log_probability_RC: Tensor, token_RC: Tensor, eos: int) -> tuple[Beam, Tensor]:
    B, K = beam.total_BK.shape
    C = log_probability_RC.shape[1]
    # No more than C of a row's continuations can be among the best K of its sentence, where C is K or all there are.
    continued_BKC = beam.total_BK.unsqueeze(2) + log_probability_RC.reshape(B, K, C)
    continued_BKC.masked_fill_(beam.closed_BK.unsqueeze(2), -torch.inf)
    total_BK, flat_BK = continued_BKC.view(B, K * C).topk(K, dim=1)
    slot_K = torch.arange(K, device=flat_BK.device)
    # Open slots stand first: the j-th best continuation goes to the j-th slot as long as that slot is open.
    parent_BK = torch.where(beam.closed_BK, slot_K, flat_BK // C)
    token_BK = torch.where(beam.closed_BK, eos, token_RC.reshape(B, K * C).gather(1, flat_BK))
    total_BK = torch.where(beam.closed_BK, beam.total_BK, total_BK)
    length_BK = beam.length_BK.gather(1, parent_BK) + (~beam.closed_BK).long()
    # A slot that nothing could fill (fewer continuations than slots) stays open and empty: the next step may fill it.
    closed_BK = beam.closed_BK | ((token_BK == eos) & (total_BK != -torch.inf))
    order_BK = closed_BK.long().argsort(dim=1, stable=True)
    parent_BK, token_BK = parent_BK.gather(1, order_BK), token_BK.gather(1, order_BK)
    U = beam.tokens_BKU.shape[2]
    past_BKU = beam.tokens_BKU.gather(1, parent_BK.unsqueeze(2).expand(B, K, U))
    longer = Beam(
        number_B=beam.number_B,
        limit_B=beam.limit_B,
        total_BK=total_BK.gather(1, order_BK),
        length_BK=length_BK.gather(1, order_BK),
        closed_BK=closed_BK.gather(1, order_BK),
        tokens_BKU=torch.cat([past_BKU, token_BK.unsqueeze(2)], dim=2),
        collected_B=beam.collected_B,
    )
    return longer, parent_BK


def _is_done(beam: Beam, step: int, settings: SearchSettings) -> Tensor:
    all_closed_B = (beam.closed_BK | (beam.total_BK == -torch.inf)).all(dim=1)
    at_limit_B = beam.limit_B <= step
    if settings.greedy:
        return all_closed_B | at_limit_B
    # The best an open slot can still reach: it loses nothing more and is divided by the longest length allowed.
    longest_B1 = beam.limit_B.unsqueeze(1)
    hope_BK = normalised(beam.total_BK, longest_B1, settings.length_penalty).masked_fill(beam.closed_BK, -torch.inf)
    closed_score_BK = normalised(beam.total_BK, beam.length_BK, settings.length_penalty)
    closed_score_BK = closed_score_BK.masked_fill(~beam.closed_BK, -torch.inf)
    worst_kept_B = closed_score_BK.topk(settings.n_best, dim=1).values[:, -1]
    return all_closed_B | at_limit_B | (hope_BK.amax(dim=1) < worst_kept_B)
