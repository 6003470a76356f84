"""Sampled segmentations: the same text cut into other pieces of the same vocabulary.

`BpeDropout` (Provilkov et al. 2020, algorithm 1) merges as BPE does, but each possible merge is left out with some
probability, at every step anew. `UnigramSampling` (Kudo 2018, section 3.3) draws a segmentation with its probability
under the unigram model, to some power.

SentencePiece can sample as well, but salts its generator anew in every process, and a training that is resumed must
see the samples that it would have seen. So this is done here, on ids alone: pieces are taken apart into characters,
and many words of one length are put together again at once.

Letters: W words, L characters of each of them, V pieces of the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
_BLANK = "\u2581"
_NONE = np.iinfo(np.int64).max


class Segmenter(ABC):
    """Cuts sentences of ids anew. `vocabulary` has for each id the piece and its score, None for bytes and marks."""

    def __init__(self, vocabulary: Sequence[tuple[str, float] | None], strength: float) -> None:
        self.strength = strength
        self.size = len(vocabulary)
        self.ids = {entry[0]: number for number, entry in enumerate(vocabulary) if entry is not None}
        self.scores = np.array([entry[1] if entry else 0.0 for entry in vocabulary])
        # What has no pieces for all of its characters stays whole.
        parts = [self._characters(entry[0]) if entry else None for entry in vocabulary]
        self.whole = np.array([part is None for part in parts])
        units = [[number] if part is None else part for number, part in enumerate(parts)]
        self.unit_lengths = np.array([len(unit) for unit in units], dtype=np.int64)
        self.unit_starts = np.cumsum(self.unit_lengths) - self.unit_lengths
        self.units = np.array([one for unit in units for one in unit], dtype=np.int64)
        # No piece reaches over a blank, unless this vocabulary was made otherwise.
        inner = any(_BLANK in piece[1:] for piece in self.ids)
        self.blank = -1 if inner else self.ids.get(_BLANK, -1)

    def _characters(self, piece: str) -> list[int] | None:
        found = [self.ids.get(character, -1) for character in piece]
        return None if -1 in found else found

    def sampled(self, rows: Sequence[Sequence[int]], random: np.random.Generator) -> list[list[int]]:
        """The same sentences in other pieces; they read the same."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        ids = np.array([one for row in rows for one in row], dtype=np.int64)
        characters, owners = self._taken_apart(ids, np.repeat(np.arange(len(rows)), lengths))
        begins = self._word_begins(characters, owners)
        word_lengths = np.diff(np.append(begins, len(characters)))
        counts = word_lengths.copy()
        made = characters.copy()  # each word's pieces from where it begins
        for length in np.unique(word_lengths[word_lengths > 1]).tolist():
            words = np.flatnonzero(word_lengths == length)
            places_WL = begins[words, None] + np.arange(length)
            made[places_WL], counts[words] = self.words(characters[places_WL], random)
        used = np.arange(len(made)) - np.repeat(begins, word_lengths) < np.repeat(counts, word_lengths)
        ends = np.cumsum(np.bincount(owners[used], minlength=len(rows))).tolist()
        pieces = made[used].tolist()
        return [pieces[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _taken_apart(self, ids: Ids, owners: Ids) -> tuple[Ids, Ids]:
        """The characters of pieces, as ids, and whose sentence each belongs to."""
        lengths = self.unit_lengths[ids]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.units[np.repeat(self.unit_starts[ids], lengths) + within], np.repeat(owners, lengths)

    def _word_begins(self, characters: Ids, owners: Ids) -> Ids:
        """Where words begin: with a sentence, with a blank, and before and after what stays whole."""
        whole = self.whole[characters]
        begin = (characters == self.blank) | whole
        begin[1:] |= (owners[1:] != owners[:-1]) | whole[:-1]
        begin[:1] = True
        return np.flatnonzero(begin)

    @abstractmethod
    def words(self, characters_WL: Ids, random: np.random.Generator) -> tuple[Ids, Ids]:
        """Pieces of words of one length (W,L), what is behind their end being anything, and how many there are (W)."""


class BpeDropout(Segmenter):
    """`strength` is the probability with which a merge is left out; without it this is BPE."""

    def __init__(self, vocabulary: Sequence[tuple[str, float] | None], strength: float) -> None:
        super().__init__(vocabulary, strength)
        self.rank = np.empty(self.size, dtype=np.int64)
        self.rank[np.argsort(-self.scores, kind="stable")] = np.arange(self.size)
        merges = {
            self.ids[piece[:cut]] * self.size + self.ids[piece[cut:]]: number
            for piece, number in self.ids.items()
            for cut in range(1, len(piece))
            if piece[:cut] in self.ids and piece[cut:] in self.ids
        }
        self.pairs = np.array([*sorted(merges), _NONE], dtype=np.int64)
        self.merged = np.array([*(merges[pair] for pair in sorted(merges)), -1], dtype=np.int64)

    def words(self, characters_WL: Ids, random: np.random.Generator) -> tuple[Ids, Ids]:
        pieces_WL, counts_W = characters_WL.copy(), np.full(len(characters_WL), characters_WL.shape[1])
        words_w, rows_wl = np.arange(len(characters_WL)), characters_WL  # those that still merge
        merged_wl = self._merge(rows_wl[:, :-1], rows_wl[:, 1:])
        while len(words_w):
            open_wl = (merged_wl >= 0) & (random.random(merged_wl.shape, dtype=np.float32) >= self.strength)
            ranks_wl = np.where(open_wl, self.rank[merged_wl], _NONE)
            at_w = ranks_wl.argmin(axis=1) if ranks_wl.shape[1] else np.zeros(len(words_w), dtype=np.int64)
            going_w = open_wl.any(axis=1)
            length = rows_wl.shape[1]
            pieces_WL[words_w[~going_w], :length], counts_W[words_w[~going_w]] = rows_wl[~going_w], length
            words_w, rows_wl, merged_wl, at_w = (some[going_w] for some in (words_w, rows_wl, merged_wl, at_w))
            rows_wl, merged_wl = self._merge_at(at_w, rows_wl, merged_wl)
        return pieces_WL, counts_W

    def _merge_at(self, at_w: Ids, rows_wl: Ids, merged_wl: Ids) -> tuple[Ids, Ids]:
        """Every word with one merge carried out, and what its neighbours then merge to."""
        number_w = np.arange(len(at_w))
        rows_wl[number_w, at_w] = merged_wl[number_w, at_w]
        rows_wl, merged_wl = _without(rows_wl, at_w + 1), _without(merged_wl, at_w)
        for beside_w, there_w in ((at_w - 1, at_w > 0), (at_w, at_w < merged_wl.shape[1])):
            number, beside = number_w[there_w], beside_w[there_w]
            merged_wl[number, beside] = self._merge(rows_wl[number, beside], rows_wl[number, beside + 1])
        return rows_wl, merged_wl

    def _merge(self, left: Ids, right: Ids) -> Ids:
        """The piece that two neighbours make together; -1 where there is none."""
        pair = left * self.size + right
        place = np.searchsorted(self.pairs, pair)
        return np.where(self.pairs[place] == pair, self.merged[place], -1)


def _without(rows_wl: Ids, at_w: Ids) -> Ids:
    """Each row without the element at its place."""
    w, length = rows_wl.shape
    rest: Ids = rows_wl[np.arange(length) != at_w[:, None]].reshape(w, max(0, length - 1))
    return rest


class UnigramSampling(Segmenter):
    """`strength` is the power of the probabilities: near 0 all segmentations are alike, at 1 they are the model's."""

    def __init__(self, vocabulary: Sequence[tuple[str, float] | None], strength: float) -> None:
        super().__init__(vocabulary, strength)
        # A tree of all pieces, character by character: from a node (0 is the root) and a character to the next node.
        following: dict[int, int] = {}
        ends = [-1]
        for piece, number in self.ids.items():
            node = 0
            for character in self._characters(piece) or ():
                node = following.setdefault(node * self.size + character, len(ends))
                ends += [-1] * (node == len(ends))
            if node:
                ends[node] = number
        self.longest = max(map(len, self.ids))
        self.steps = np.array([*sorted(following), _NONE], dtype=np.int64)
        self.nodes = np.array([*(following[step] for step in sorted(following)), -1], dtype=np.int64)
        self.ends = np.array([*ends, -1], dtype=np.int64)  # of node -1 as well, which leads nowhere

    def words(self, characters_WL: Ids, random: np.random.Generator) -> tuple[Ids, Ids]:
        kinds_UL, kind_W = np.unique(characters_WL, axis=0, return_inverse=True)
        pieces_ULK, reach_ULK = self._ways(kinds_UL)
        W, L = characters_WL.shape
        backwards_WL, counts_W = np.zeros((W, L), dtype=np.int64), np.zeros(W, dtype=np.int64)
        words_w, end_w, kind_W = np.arange(W), np.full(W, L), kind_W.reshape(-1)
        while len(words_w):
            ways_wK = reach_ULK[kind_W[words_w], end_w - 1]
            way_w = (ways_wK <= random.random((len(words_w), 1))).sum(axis=1)
            backwards_WL[words_w, counts_W[words_w]] = pieces_ULK[kind_W[words_w], end_w - 1, way_w]
            counts_W[words_w] += 1
            end_w = end_w - 1 - way_w
            words_w, end_w = words_w[end_w > 0], end_w[end_w > 0]
        turned_WL = np.abs(counts_W[:, None] - 1 - np.arange(L))
        return np.take_along_axis(backwards_WL, turned_WL, axis=1), counts_W

    def _ways(self, kinds_UL: Ids) -> tuple[Ids, NDArray[Any]]:
        """For each place where a piece may end the pieces that do, the shortest first (U,L,K), and the probabilities
        of each or a shorter one, given that a piece ends there: forward filtering, for sampling from the end."""
        U, L = kinds_UL.shape
        K = min(L, self.longest)
        pieces_ULK = np.full((U, L, K), -1, dtype=np.int64)
        for start in range(L):
            node_U = np.zeros(U, dtype=np.int64)
            for k in range(min(K, L - start)):
                step_U = np.where(node_U < 0, -1, node_U * self.size + kinds_UL[:, start + k])
                place_U = np.searchsorted(self.steps, step_U)
                node_U = np.where(self.steps[place_U] == step_U, self.nodes[place_U], -1)
                pieces_ULK[:, start + k, k] = self.ends[node_U]
        scores_ULK = np.where(pieces_ULK < 0, -np.inf, self.strength * self.scores[pieces_ULK])
        reach_ULK = np.zeros((U, L, K))
        forward_UL = np.zeros((U, L + 1))
        for end in range(L):
            shorter = np.arange(min(K, end + 1))
            ways_Uk = forward_UL[:, end - shorter] + scores_ULK[:, end, shorter]
            best_U1 = ways_Uk.max(axis=1, keepdims=True)
            sums_Uk = np.exp(ways_Uk - best_U1).cumsum(axis=1)
            forward_UL[:, end + 1] = best_U1[:, 0] + np.log(sums_Uk[:, -1])
            reach_ULK[:, end] = 1.0  # so that no way beyond the last is ever taken
            reach_ULK[:, end, shorter] = sums_Uk / sums_Uk[:, -1:]
        return pieces_ULK, reach_ULK


_Maker = Callable[[Sequence["tuple[str, float] | None"], float], Segmenter]
KINDS: dict[str, _Maker] = {"bpe": BpeDropout, "unigram": UnigramSampling}
