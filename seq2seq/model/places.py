"""Which hypotheses of which sentences the rows of a decoder state are.

Letters: B sentences, K slots for the hypotheses of each, r rows that are there.

A hypothesis that has ended needs no further step, so a search asks for the others only, and the sentences of a batch
have unequally many. Attention compares all hypotheses of a sentence with its memory in one product, which wants equally
many: for it the rows are spread over all slots, and picked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Places:
    """Row i is in slot `place_r[i] % slots` of sentence `place_r[i] // slots`; places are in order."""

    place_r: Tensor
    slots: int

    @property
    def sentence_r(self) -> Tensor:
        """The sentence of each row."""
        return self.place_r // self.slots

    def spread(self, x: Tensor, sentences: int) -> Tensor:
        """Rows (r, ...) in all slots (B·K, ...), zeros in those that are empty."""
        if len(x) == sentences * self.slots:
            return x
        return x.new_zeros(sentences * self.slots, *x.shape[1:]).index_copy_(0, self.place_r, x)

    def pick(self, x: Tensor) -> Tensor:
        """The rows that are there (r, ...) out of all slots (B·K, ...)."""
        return x if len(x) == len(self.place_r) else x.index_select(0, self.place_r)


def sentences_of(places: Places | None, rows: int, sentences: int) -> Tensor:
    """The sentence of each row; without places every sentence has equally many, one sentence after the other."""
    return torch.arange(rows) // (rows // sentences) if places is None else places.sentence_r
