"""Batches: which sentences are computed together, and the padded tensors that hold them.

Sentences of like length share a batch, because padding is computed at full price. Which ones share it changes from
epoch to epoch, and depends on the seed and the epoch's number only: an interrupted run asks for the same epoch again
and skips what it has done.

Letters: B sentences in the batch, S source positions, T target positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.corpus.subwords import BOS, EOS, PAD

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Batches' worth of sentences that are sorted together. On Multi30k with 2,000 tokens a batch 80 leave 4 % padding, and
# two sentences of a batch meet again in the next epoch one time in five; sorting everything: 2 % and one time in two.
POOL_BATCHES = 80
# A batch of more rows than this has a multiple of it. Matrix libraries prepare themselves anew for every shape that
# they have not met, which can cost more than the product itself, so there should be few shapes.
ROWS = 8


class BatchSampler:
    """Plans each epoch: every pair once, and no batch over its budget.

    Lengths are in pieces, without begin and end marks. A batch has at most `batch_tokens` positions on either side,
    that is rows times the longest sentence with its end mark, padding included; a pair that is longer by itself makes
    a batch of its own. `batch_sentences` limits the rows as well.
    """

    def __init__(
        self,
        source_lengths: ArrayLike,
        target_lengths: ArrayLike,
        *,
        batch_tokens: int,
        seed: int,
        batch_sentences: int | None = None,
    ) -> None:
        self._source = np.asarray(source_lengths, dtype=np.int64) + 1  # the end mark takes a position on both sides
        self._target = np.asarray(target_lengths, dtype=np.int64) + 1
        self._batch_tokens, self._seed = batch_tokens, seed
        self._batch_sentences = batch_sentences or len(self._source)

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        """The batches of epoch `number` in their order, each the indices of its pairs; a pure function of both."""
        count = len(self._source)
        if not count:
            return []
        rng = np.random.Generator(np.random.PCG64([self._seed, number]))
        order = self._by_length_in_pools(rng.permutation(count))
        batches = np.split(order, self._cuts(order))
        return [batches[i] for i in rng.permutation(len(batches))]

    def _by_length_in_pools(self, shuffled: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sort each pool of the shuffled pairs by the longer side, then by how the other differs.

        The longer side first, because it decides how many rows the budget allows. Every second pool runs from long to
        short, and so does the second key within every second length: lengths never jump, and no batch is left half
        full where a pool or a length ends. There are two pools at least, because what a pool holds is the chance of
        the epoch, and so is who meets whom.
        """
        source, target = self._source[shuffled], self._target[shuffled]
        longer, difference = np.maximum(source, target), source - target
        pools = max(2, round(longer.sum() / (POOL_BATCHES * self._batch_tokens)))
        pool = np.arange(len(shuffled)) * pools // len(shuffled)
        span = int(longer.max()) + 1
        longer = np.where(pool % 2, span - longer, longer)
        difference = np.where(longer % 2, difference, -difference) + span
        # One number instead of three keys: it sorts several times faster.
        return shuffled[np.argsort((pool * span + longer) * (2 * span) + difference, kind="stable")]

    def _cuts(self, order: NDArray[np.int64]) -> list[int]:
        """Where a new batch begins when each takes as many rows as its budget allows, in whole steps of ROWS."""
        cuts: list[int] = []
        start = longest = 0
        lengths = np.maximum(self._source, self._target)[order].tolist()
        for index, length in enumerate(lengths):
            longest = max(longest, length)
            rows = index - start  # without this one
            if rows and rows == self._batch_sentences:
                start, longest = index, length
                cuts.append(start)
            elif rows and (rows + 1) * longest > self._batch_tokens:
                start = index - rows % ROWS if rows > ROWS else index
                cuts.append(start)
                longest = max(lengths[start : index + 1])
        return cuts

    def real_share(self, batches: Iterable[NDArray[np.int64]]) -> float:
        """Real positions, end marks included, among all positions of both sides; what is missing to 1 is padding."""
        real = positions = 0
        for batch in batches:
            for lengths in (self._source[batch], self._target[batch]):
                real += int(lengths.sum())
                positions += len(batch) * int(lengths.max())
        return real / positions if positions else 1.0


@dataclass(frozen=True)
class Batch:
    """Padded sentences. The source ends with EOS; the decoder reads `tgt_in` (BOS first) and is to say `tgt_out`.

    Ids are int64 and PAD where there is no sentence; masks are True for real positions. `tokens` counts the real
    target positions, EOS included; `tgt_real_N` are their places in the flattened target, where they have been looked
    up already (a GPU would have to be waited for).
    """

    src_BS: Tensor
    src_mask_BS: Tensor
    tgt_in_BT: Tensor
    tgt_out_BT: Tensor
    tgt_mask_BT: Tensor
    tokens: int
    tgt_real_N: Tensor | None = None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pinned(self) -> Batch:
        """In memory that a GPU can fetch from by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        tensors = (self.src_BS, self.src_mask_BS, self.tgt_in_BT, self.tgt_out_BT, self.tgt_mask_BT)
        real = None if self.tgt_real_N is None else change(self.tgt_real_N)
        src, src_mask, tgt_in, tgt_out, tgt_mask = map(change, tensors)
        return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, self.tokens, real)


def collate(corpus: EncodedCorpus, indices: ArrayLike) -> Batch:
    """The chosen pairs as one padded batch, in the order of `indices`."""
    import torch

    rows = np.asarray(indices, dtype=np.int64)
    source, target = corpus.source, corpus.target
    src_BS, src_mask_BS = _pad(source.ids, source.offsets[rows], source.offsets[rows + 1])
    tgt_BT, tgt_mask_BT = _pad(target.ids, target.offsets[rows], target.offsets[rows + 1])
    tgt_in_BT = np.full_like(tgt_BT, PAD)
    tgt_in_BT[:, 0] = BOS
    tgt_in_BT[:, 1:] = tgt_BT[:, :-1]
    tgt_in_BT[~tgt_mask_BT] = PAD  # EOS is never read, only said
    real_N = np.flatnonzero(tgt_mask_BT)
    arrays = (src_BS, src_mask_BS, tgt_in_BT, tgt_BT, tgt_mask_BT, real_N)
    src, src_mask, tgt_in, tgt_out, tgt_mask, real = map(torch.from_numpy, arrays)
    return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, len(real_N), real)


def collate_sources(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Sources to translate as (src_BS, src_mask_BS), each with its EOS."""
    import torch

    ids = np.fromiter((i for row in rows for i in row), dtype=np.int64)
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    src_BS, src_mask_BS = _pad(ids, ends[:-1], ends[1:])
    return torch.from_numpy(src_BS), torch.from_numpy(src_mask_BS)


def _pad(
    ids: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The slices ids[start:end] as rows, EOS after each and PAD after that, and the mask of all that is not PAD."""
    lengths = ends - starts
    positions = np.arange(int(lengths.max(initial=0)) + 1)
    padded = np.full((len(starts), len(positions)), PAD, dtype=np.int64)
    row, column = np.nonzero(positions < lengths[:, None])
    padded[row, column] = ids[starts[row] + column]
    padded[np.arange(len(starts)), lengths] = EOS
    return padded, positions <= lengths[:, None]
