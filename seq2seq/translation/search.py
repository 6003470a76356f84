"""Search: which target sentence does the model find most probable?

Letters: B sentences still being translated, K beam size (slots per sentence), R rows (the open slots), C the best next
tokens of a row (as many as the beam has slots), U steps so far. What happens to the slots is in beam.py.

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
from seq2seq.translation.beam import Beam, SearchSettings, extended, normalised, open_rows

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
class Hypothesis:
    """One translation in ids, without the end mark; its total log-probability, and the score it is ranked by."""

    ids: list[int]
    log_probability: float
    score: float


def search(
    model: StepModel[State], src_BS: Tensor, mask_BS: Tensor, limits: Sequence[int], settings: SearchSettings
) -> list[list[Hypothesis]]:
    """The n best translations of each sentence, best first; at least one each, at most `limits[b]` tokens long.

    Fewer than n come back only when the beam or the vocabulary holds no more.
    """
    device, B, K = src_BS.device, len(src_BS), settings.slots
    state = model.start(src_BS, mask_BS)
    beam = Beam.first(K, limits, device)
    places = Places(torch.arange(0, B * K, K, device=device), K)
    previous_R = torch.full((B,), settings.bos, dtype=torch.long, device=device)
    results: list[list[Hypothesis]] = [[] for _ in range(B)]
    for step in range(1, max(limits) + 1):
        answer_RC, token_RC, state = model.step(previous_R, state, K)
        beam, parent_BK, done_B = extended(beam, answer_RC, token_RC, places, step, settings)
        done_B, staying = done_B & ~beam.collected_B, None
        if done_B.any():
            for number, hypotheses in _collect(beam.keep(done_B.nonzero().squeeze(1)), settings):
                results[number] = hypotheses
            beam.collected_B |= done_B
            going_on = (~beam.collected_B).nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            if _LEAVING * (len(beam.collected_B) - len(going_on)) >= len(beam.collected_B):
                staying, beam = going_on, beam.keep(going_on)
        rows_R, places, previous_R = open_rows(beam, parent_BK, staying, places)
        state = state.select(rows_R, staying, places)
    return results


def _collect(beam: Beam, settings: SearchSettings) -> list[tuple[int, list[Hypothesis]]]:
    """The n best of each sentence that is done. Closed slots go before open ones, which the limit cut off."""
    score_BK = normalised(beam.total_BK, beam.length_BK, settings.length_penalty)
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
