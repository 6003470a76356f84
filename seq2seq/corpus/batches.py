"""Batches: which sentences are computed together, and the padded tensors that hold them.

Sentences of like length share a batch, because padding is computed at full price. Which ones share it changes from
epoch to epoch, and depends on the seed and the epoch's number only: an interrupted run asks for the same epoch again
and skips what it has done.

Letters: B sentences in the batch, S source positions, T target positions.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

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
# Pairs that are planned at a time: what this takes in memory on the way does not grow with the corpus.
BLOCK = 1 << 20


class Plan(Sequence["NDArray[np.int64]"]):
    """The batches of an epoch, each the indices of its pairs; held as three arrays, 4 bytes a pair.

    Batch i is what stands in `order` from bounds[k] to bounds[k + 1], where k is turns[i].
    """

    def __init__(self, order: NDArray[Any], bounds: NDArray[np.int64], turns: NDArray[Any]) -> None:
        self._order, self._bounds, self._turns = order, bounds, turns

    def __len__(self) -> int:
        return len(self._turns)

    @overload
    def __getitem__(self, index: int) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.int64]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        if isinstance(index, slice):
            return [self._batch(turn) for turn in self._turns[index]]
        return self._batch(self._turns[index])

    def _batch(self, number: int) -> NDArray[np.int64]:
        return self._order[self._bounds[number] : self._bounds[number + 1]].astype(np.int64)


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
        self._source, self._target = _small(source_lengths), _small(target_lengths)
        self._batch_tokens, self._seed = batch_tokens, seed
        self._batch_sentences = batch_sentences or len(self._source)
        self._planned: tuple[int, Plan] | None = None  # the last one: it is asked for more than once

    def epoch(self, number: int) -> Plan:
        """The batches of epoch `number` in their order, each the indices of its pairs; a pure function of both."""
        if self._planned is None or self._planned[0] != number:
            self._planned = None  # or two would be held while the next one is made
            self._planned = number, self._plan(number)
        return self._planned[1]

    def _plan(self, number: int) -> Plan:
        count = len(self._source)
        indices = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
        if not count:
            return Plan(indices, np.zeros(1, dtype=np.int64), indices)
        rng = np.random.Generator(np.random.PCG64([self._seed, number]))
        rng.shuffle(indices)
        self._sort_pools(indices)
        bounds = np.asarray([0, *self._cuts(indices), count], dtype=np.int64)
        return Plan(indices, bounds, rng.permutation(len(bounds) - 1))

    def _sort_pools(self, order: NDArray[Any]) -> None:
        """Sort each pool of the shuffled pairs by the longer side, then by how the other differs; in place.

        The longer side first, because it decides how many rows the budget allows. Every second pool runs from long to
        short, and so does the second key within every second length: lengths never jump, and no batch is left half
        full where a pool or a length ends. There are two pools at least, because what a pool holds is the chance of
        the epoch, and so is who meets whom.
        """
        count = len(order)
        positions, most = 0, 0
        for start in range(0, count, BLOCK):
            longer, _ = self._sizes(slice(start, start + BLOCK))
            positions, most = positions + int(longer.sum()), max(most, int(longer.max()))
        pools, span = max(2, round(positions / (POOL_BATCHES * self._batch_tokens))), most + 1
        start = 0
        while start < count:
            # Whole pools, so many that together they are about a block; each pair's pool is its place * pools // count.
            following = min(start + BLOCK, count) * pools // count
            end = min(count, -(-max(following, start * pools // count + 1) * count // pools))
            shuffled = order[start:end]
            longer, difference = self._sizes(shuffled)
            pool = np.arange(start, end) * pools // count
            longer = np.where(pool % 2, span - longer, longer)
            difference = np.where(longer % 2, difference, -difference) + span
            # One number instead of three keys: it sorts several times faster.
            order[start:end] = shuffled[np.argsort((pool * span + longer) * (2 * span) + difference, kind="stable")]
            start = end

    def _sizes(self, pairs: NDArray[Any] | slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The longer side of some pairs, and by how much the source is longer; each side with its end mark."""
        source, target = self._source[pairs].astype(np.int64), self._target[pairs].astype(np.int64)
        return np.maximum(source, target) + 1, source - target

    def _cuts(self, order: NDArray[Any]) -> array[int]:
        """Where a new batch begins when each takes as many rows as its budget allows, in whole steps of ROWS."""
        cuts = array("q")
        count, read = len(order), BLOCK
        begin = 0  # of the batch that is being filled, and so of the part that is looked at
        while begin < count:
            lengths = self._sizes(order[begin : begin + read])[0].tolist()
            start = longest = 0
            for index, length in enumerate(lengths):
                longest = max(longest, length)
                rows = index - start  # without this one
                if rows and rows == self._batch_sentences:
                    start, longest = index, length
                    cuts.append(begin + start)
                elif rows and (rows + 1) * longest > self._batch_tokens:
                    start = index - rows % ROWS if rows > ROWS else index
                    cuts.append(begin + start)
                    longest = max(lengths[start : index + 1])
            if begin + len(lengths) == count:
                break
            if not start:  # a batch of more rows than were looked at
                read *= 2
            begin += start
        return cuts

    def real_share(self, batches: Iterable[NDArray[np.int64]]) -> float:
        """Real positions, end marks included, among all positions of both sides; what is missing to 1 is padding."""
        real = positions = 0
        for batch in batches:
            for side in (self._source, self._target):
                lengths = side[batch]
                real += int(lengths.sum()) + len(batch)
                positions += len(batch) * (int(lengths.max()) + 1)
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
    tgt_in_BT = _read(tgt_BT, tgt_mask_BT)
    real_N = np.flatnonzero(tgt_mask_BT)
    arrays = (src_BS, src_mask_BS, tgt_in_BT, tgt_BT, tgt_mask_BT, real_N)
    src, src_mask, tgt_in, tgt_out, tgt_mask, real = map(torch.from_numpy, arrays)
    return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, len(real_N), real)


def collate_sources(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Sources to translate as (src_BS, src_mask_BS), each with its EOS."""
    import torch

    src_BS, src_mask_BS = _pad(*_joined(rows))
    return torch.from_numpy(src_BS), torch.from_numpy(src_mask_BS)


def collate_targets(rows: Sequence[Sequence[int] | None], step: int = 1) -> tuple[Tensor, Tensor]:
    """Translations as (tgt_in_BT, tgt_out_BT) of a `Batch`, T in whole steps; None makes a row of padding."""
    import torch

    tgt_BT, tgt_mask_BT = _pad(*_joined([() if row is None else row for row in rows]))
    wider = ((0, 0), (0, -tgt_BT.shape[1] % step))
    tgt_BT, tgt_mask_BT = np.pad(tgt_BT, wider, constant_values=PAD), np.pad(tgt_mask_BT, wider)
    none_B = np.array([row is None for row in rows])
    tgt_BT[none_B], tgt_mask_BT[none_B] = PAD, False
    return torch.from_numpy(_read(tgt_BT, tgt_mask_BT)), torch.from_numpy(tgt_BT)


def _read(tgt_BT: NDArray[np.int64], tgt_mask_BT: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What the decoder reads in order to say the targets: BOS first, and EOS never, which is only said."""
    tgt_in_BT = np.full_like(tgt_BT, PAD)
    tgt_in_BT[:, 0] = BOS
    tgt_in_BT[:, 1:] = tgt_BT[:, :-1]
    tgt_in_BT[~tgt_mask_BT] = PAD
    return tgt_in_BT


def _joined(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All ids one after the other, and where each row starts and ends in them."""
    ids = np.fromiter((i for row in rows for i in row), dtype=np.int64)
    bounds = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return ids, bounds[:-1], bounds[1:]


def _small(lengths: ArrayLike) -> NDArray[Any]:
    """The lengths in the fewest bytes that hold them, 2 for most corpora."""
    given = np.asarray(lengths)
    return given.astype(np.uint16 if int(given.max(initial=0)) < 1 << 16 else np.int32)


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
