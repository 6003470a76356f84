"""An ensemble: several models of one vocabulary that write one translation together.

Letters: B sentences, R rows (hypotheses), X words that may be said, C best of them.

At each step every model says how probable each word is, and the mean of their probabilities decides: models that were
trained from different beginnings err in different places (Hansen & Salamon 1990; for translation Sutskever et al. 2014,
section 3.6). The mean is taken of probabilities, not of their logarithms, so one model that rules a word out does not
rule it out for all. To search an ensemble looks like any model: `start`, `step`, and `select` on the state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2seq.errors import CheckpointError
from seq2seq.model.places import Places
from seq2seq.model.shortlist import Shortlisted
from seq2seq.translation.sampling import Distributed
from seq2seq.translation.translator import Translator


@dataclass(frozen=True)
class EnsembleState:
    """The states of the members, whose rows are the same hypotheses."""

    states: tuple[Any, ...]

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> EnsembleState:
        return EnsembleState(tuple(state.select(rows_r, sentences_b, places) for state in self.states))


class Ensemble:
    """Models of one vocabulary as one model; place x must mean the same word to all of them."""

    def __init__(self, members: Sequence[Distributed[Any]]) -> None:
        assert members, "an ensemble has members"
        self.members = tuple(members)

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> EnsembleState:
        """Every member reads the source."""
        return EnsembleState(tuple(member.start(src_BS, mask_BS) for member in self.members))

    def log_probabilities(self, previous_R: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """The logarithm of the mean of the members' probabilities (R,X), and the next state."""
        sum_RX, states = None, []
        for member, own in zip(self.members, state.states, strict=True):
            log_probability_RX, after = member.log_probabilities(previous_R, own)
            # Added up one by one: no stack of all is held, and that is twice as fast.
            sum_RX = log_probability_RX if sum_RX is None else torch.logaddexp(sum_RX, log_probability_RX)
            states.append(after)
        assert sum_RX is not None
        return sum_RX - math.log(len(states)), EnsembleState(tuple(states))

    def words(self, place_RC: Tensor, state: EnsembleState) -> Tensor:
        """The ids of the words at these places."""
        return self.members[0].words(place_RC, state.states[0])

    def step(self, previous_R: Tensor, state: EnsembleState, count: int) -> tuple[Tensor, Tensor, EnsembleState]:
        """The best next words of each row by the mean probability; see StepModel of search."""
        mean_RX, state = self.log_probabilities(previous_R, state)
        best_RC, place_RC = mean_RX.topk(min(count, mean_RX.shape[1]), dim=1)
        return best_RC, self.words(place_RC, state), state


def load_ensemble(
    paths: Sequence[Path],
    *,
    device: str = "auto",
    precision: str = "fp32",
    shortlist: bool = False,
    replace_unknown: Mapping[str, str] | None = None,
) -> Translator:
    """One translator of several runs (or of one).

    Decoding settings, language, shortlist and what replaces unknown words are those of the first.

    CheckpointError where the runs do not share vocabularies and target language.
    """
    first = Translator.load(
        paths[0], device=device, precision=precision, shortlist=shortlist, replace_unknown=replace_unknown
    )
    others = [Translator.load(path, device=device, precision=precision) for path in paths[1:]]
    for path, other in zip(paths[1:], others, strict=True):
        _check_members(paths[0], first, path, other)
    if not others:
        return first
    members = [first.model, *(other.model for other in others)]
    # One shortlist for all: a place must mean the same word to every member.
    words = first.shortlist
    first.search_model = Ensemble(members if words is None else [Shortlisted(member, words) for member in members])
    first.members = members
    # None of the members must read more than it was trained on.
    first.longest_source = min(first.longest_source, *(other.longest_source for other in others))
    return first


def _check_members(path: Path, one: Translator, other_path: Path, other: Translator) -> None:
    languages = [each.target_language.lower().replace("_", "-").split("-")[0] for each in (one, other)]
    if languages[0] != languages[1]:
        raise CheckpointError(
            f"{path} translates into {one.target_language!r} and {other_path} into {other.target_language!r}; the "
            "members of an ensemble write one language."
        )
    if one.tokenizer.fingerprint() == other.tokenizer.fingerprint():
        return
    sizes = [f"{each.tokenizer.source_size:,} and {each.tokenizer.target_size:,}" for each in (one, other)]
    found = f"{sizes[0]} pieces against {sizes[1]}" if sizes[0] != sizes[1] else f"each of {sizes[0]} pieces"
    raise CheckpointError(
        f"{path} and {other_path} have different vocabularies (source and target: {found}), so their probabilities "
        "cannot be averaged; train the members of an ensemble on the same training text with the same tokenizer "
        "settings, and let only the seed or the model differ."
    )
