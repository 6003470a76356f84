"""Search: which target sentence does the model find most probable?

Letters: B sentences still being translated, K beam size (slots per sentence), R rows (the open slots), C the best next
tokens of a row (as many as the beam has slots), U steps so far.

The search talks to three things: `start` (read the source), `step` (the best next tokens and their log-probabilities)
and `select` on the state. It knows no torch module, so a fake with a known answer can test it. How a model finds its
best tokens, among all words or a few, is its own affair.

Beam search as in Sutskever et al. 2014 (section 3.2): each sentence has K slots. A slot whose hypothesis has written
the end of the sentence is closed and keeps it; the others go on with the best continuations of the open ones. A beam
of one is therefore greedy search. Finished hypotheses compare by log-probability / length^penalty (length with the end
mark). A sentence leaves the batch when its slots are closed, its length limit is reached, or no open slot can win any
more; all of these depend on the sentence alone, so a translation never depends on its neighbours.

The model steps open slots only, so that nothing is computed in vain. The memory of the sentences that stay is copied
when some leave, so they leave together, when there are enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from seq2seq.model.places import Places

State = TypeVar("State", bound="Selectable")

# Sentences that are done leave when they are one in so many.
_LEAVING = 8


class Selectable(Protocol):
    """A decoder state of R rows over B sentences."""

    def select(self: State, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> State:
        """Keep the named rows in that order, and the named sentences (None: all stay).

        `places` says which hypothesis of which sentence each row is then; None: every sentence has equally many.
        """


class StepModel(Protocol[State]):
    """What the search needs of a model."""

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> State:
        """Read B sentences: a state of B rows."""

    def step(self, previous_R: Tensor, state: State, count: int) -> tuple[Tensor, Tensor, State]:
        """The best next tokens of each row after `previous_R`, best first, as log-probabilities (R,C) and
        ids (R,C), and the state after it.

        C is `count`, or less where there are no more tokens; one that may not be said has the log-probability -inf.
        """


@dataclass(frozen=True)
class SearchSettings:
    """How to search; `bos` begins a translation and `eos` ends it."""

    bos: int
    eos: int
    beam_size: int = 5
    length_penalty: float = 1.0
    n_best: int = 1


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids, without the end mark; its total log-probability, and the score it is ranked by."""

    ids: list[int]
    log_probability: float
    score: float


@dataclass
class _Beam:
    """The slots of the sentences still being translated. Open slots stand before closed ones."""

    number_B: Tensor  # which sentence of the input
    limit_B: Tensor  # most tokens it may get, end mark included
    total_BK: Tensor  # log-probability so far; -inf = an empty slot
    length_BK: Tensor  # tokens so far, end mark included
    closed_BK: Tensor
    tokens_BKU: Tensor
    collected_B: Tensor  # done and in the results already, but still in the batch

    def keep(self, sentences_b: Tensor) -> _Beam:
        return _Beam(*(getattr(self, name).index_select(0, sentences_b) for name in self.__dataclass_fields__))


def search(
    model: StepModel[State], src_BS: Tensor, mask_BS: Tensor, limits: Sequence[int], settings: SearchSettings
) -> list[list[Hypothesis]]:
    """The n best translations of each sentence, best first; at least one each, at most `limits[b]` tokens long.

    Fewer than n come back only when the beam or the vocabulary holds no more.
    """
    device = src_BS.device
    B, K = src_BS.shape[0], max(settings.beam_size, settings.n_best)
    state = model.start(src_BS, mask_BS)
    beam = _first_beam(B, K, limits, device)
    places = Places(torch.arange(0, B * K, K, device=device), K)
    previous_R = torch.full((B,), settings.bos, dtype=torch.long, device=device)
    results: list[list[Hypothesis]] = [[] for _ in range(B)]
    for step in range(1, max(limits) + 1):
        answer_RC, token_RC, state = model.step(previous_R, state, K)
        beam, parent_BK = _extend(beam, *_in_slots(answer_RC, token_RC, places, len(beam.number_B)), settings.eos)
        done_B, staying = _is_done(beam, step, settings) & ~beam.collected_B, None
        if done_B.any():
            for number, hypotheses in _collect(beam.keep(done_B.nonzero().squeeze(1)), settings):
                results[number] = hypotheses
            beam.collected_B |= done_B
            going_on = (~beam.collected_B).nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            if _LEAVING * (len(beam.collected_B) - len(going_on)) >= len(beam.collected_B):
                staying, beam = going_on, beam.keep(going_on)
        rows_R, places = _open_rows(beam, parent_BK, staying, places)
        state = state.select(rows_R, staying, places)
        previous_R = beam.tokens_BKU[:, :, -1].reshape(-1).index_select(0, places.place_r)
    return results


def _first_beam(B: int, K: int, limits: Sequence[int], device: torch.device) -> _Beam:
    # All slots begin alike, so only the first may continue: the others would repeat it.
    total_BK = torch.full((B, K), -torch.inf, device=device)
    total_BK[:, 0] = 0.0
    return _Beam(
        number_B=torch.arange(B, device=device),
        limit_B=torch.tensor(list(limits), device=device),
        total_BK=total_BK,
        length_BK=torch.zeros((B, K), dtype=torch.long, device=device),
        closed_BK=torch.zeros((B, K), dtype=torch.bool, device=device),
        tokens_BKU=torch.zeros((B, K, 0), dtype=torch.long, device=device),
        collected_B=torch.zeros(B, dtype=torch.bool, device=device),
    )


def _extend(beam: _Beam, log_probability_RC: Tensor, token_RC: Tensor, eos: int) -> tuple[_Beam, Tensor]:
    """Every open slot takes one of the best continuations; closed slots keep what they hold.

    Also returns which old slot each new slot came from, (B,K).
    """
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
    extended = _Beam(
        number_B=beam.number_B,
        limit_B=beam.limit_B,
        total_BK=total_BK.gather(1, order_BK),
        length_BK=length_BK.gather(1, order_BK),
        closed_BK=closed_BK.gather(1, order_BK),
        tokens_BKU=torch.cat([past_BKU, token_BK.unsqueeze(2)], dim=2),
        collected_B=beam.collected_B,
    )
    return extended, parent_BK


def _in_slots(answer_RC: Tensor, token_RC: Tensor, places: Places, sentences: int) -> tuple[Tensor, Tensor]:
    """What the open slots were answered, for all B·K of them; nothing is to be expected of the others."""
    everywhere = sentences * places.slots
    if len(answer_RC) == everywhere:
        return answer_RC, token_RC
    answers = answer_RC.new_full((everywhere, answer_RC.shape[1]), -torch.inf)
    return answers.index_copy_(0, places.place_r, answer_RC), places.spread(token_RC, sentences)


def _open_rows(beam: _Beam, parent_BK: Tensor, staying_b: Tensor | None, before: Places) -> tuple[Tensor, Places]:
    """The rows that go on: which of the old rows each of them continues (R,), and where they stand now."""
    B, K = parent_BK.shape
    device = parent_BK.device
    # In which row an old slot was.
    row_X = torch.zeros(B * K, dtype=torch.long, device=device)
    row_X[before.place_r] = torch.arange(len(before.place_r), device=device)
    old_BK = torch.arange(0, B * K, K, device=device).unsqueeze(1) + parent_BK
    if staying_b is not None:
        old_BK = old_BK.index_select(0, staying_b)
    open_BK = ~beam.closed_BK & (beam.total_BK != -torch.inf) & ~beam.collected_B.unsqueeze(1)
    place_R = open_BK.view(-1).nonzero().squeeze(1)
    return row_X[old_BK.view(-1)[place_R]], Places(place_R, K)


def _normalised(total: Tensor, length: Tensor, penalty: float) -> Tensor:
    """log-probability / length^penalty (Wu et al. 2016, equation 14, in its plain form)."""
    return total / length.clamp(min=1).to(total.dtype) ** penalty


def _is_done(beam: _Beam, step: int, settings: SearchSettings) -> Tensor:
    """Sentences that need no further step, (B,)."""
    all_closed_B = (beam.closed_BK | (beam.total_BK == -torch.inf)).all(dim=1)
    at_limit_B = beam.limit_B <= step
    if settings.beam_size == 1 and settings.n_best == 1:
        return all_closed_B | at_limit_B
    # The best an open slot can still reach: it loses nothing more and is divided by the longest length allowed.
    longest_B1 = beam.limit_B.unsqueeze(1)
    hope_BK = _normalised(beam.total_BK, longest_B1, settings.length_penalty).masked_fill(beam.closed_BK, -torch.inf)
    closed_score_BK = _normalised(beam.total_BK, beam.length_BK, settings.length_penalty)
    closed_score_BK = closed_score_BK.masked_fill(~beam.closed_BK, -torch.inf)
    worst_kept_B = closed_score_BK.topk(settings.n_best, dim=1).values[:, -1]
    return all_closed_B | at_limit_B | (hope_BK.amax(dim=1) < worst_kept_B)


def _collect(beam: _Beam, settings: SearchSettings) -> list[tuple[int, list[Hypothesis]]]:
    """The n best of each sentence that is done. Closed slots go before open ones, which the limit cut off."""
    score_BK = _normalised(beam.total_BK, beam.length_BK, settings.length_penalty)
    rows = zip(
        beam.number_B.tolist(),
        beam.total_BK.tolist(),
        beam.length_BK.tolist(),
        score_BK.tolist(),
        beam.closed_BK.tolist(),
        beam.tokens_BKU.tolist(),
        strict=True,
    )
    collected = []
    for number, totals, lengths, scores, closed, tokens in rows:
        # sorted is stable: equal scores keep the order of the slots.
        slots = sorted(range(len(totals)), key=lambda slot: (not closed[slot], -scores[slot]))
        hypotheses = [
            Hypothesis(tokens[slot][: lengths[slot] - closed[slot]], totals[slot], scores[slot])
            for slot in slots
            if totals[slot] != -math.inf
        ]
        # Where every continuation had probability zero there is still a translation: the empty one.
        collected.append((number, hypotheses[: settings.n_best] or [Hypothesis([], -math.inf, -math.inf)]))
    return collected
