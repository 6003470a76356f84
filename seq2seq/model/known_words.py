"""What the first layer of a GRU makes of each word: computed when the word is first met, and looked up ever after.

Letters: V vocabulary, E embedding size, G the width of what is made.

The first layer multiplies a matrix with the embedding of a word and nothing else, so in search, where weights stay as
they are, a word always gives the same: a sixth of a translation's arithmetic, and a third of it when search is greedy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# A table of more bytes than this is not worth its memory; words that were never met take none of it.
_MOST_BYTES = 2**28


class KnownWords:
    """A table of products, row for row as the layers would compute them."""

    def __init__(self, vectors_VE: Tensor, scale: float, layers: Sequence[Callable[[Tensor], Tensor]]) -> None:
        self._vectors_VE, self._scale, self._layers = vectors_VE, scale, layers
        width = sum(layer(vectors_VE[:1]).shape[-1] for layer in layers)
        self._table_VG = torch.empty(len(vectors_VE), width, dtype=vectors_VE.dtype)
        self._known_V = torch.zeros(len(vectors_VE), dtype=torch.bool)

    @classmethod
    def worthwhile(
        cls, vectors_VE: Tensor, scale: float, layers: Sequence[Callable[[Tensor], Tensor]]
    ) -> KnownWords | None:
        """None where the table would be too large."""
        made = cls(vectors_VE, scale, layers)  # nothing has been written to its table yet, so it takes no memory
        return made if made._table_VG.nbytes <= _MOST_BYTES else None

    def of(self, ids: Tensor) -> Tensor:
        """What the layers make of these words, side by side: (..., G)."""
        flat = ids.reshape(-1)
        new = flat[~self._known_V[flat]]
        if len(new):
            words: Tensor = torch.unique(new)
            vectors = self._vectors_VE[words] * self._scale
            self._table_VG[words] = torch.cat([layer(vectors) for layer in self._layers], dim=-1)
            self._known_V[words] = True
        return self._table_VG.index_select(0, flat).view(*ids.shape, self._table_VG.shape[1])
