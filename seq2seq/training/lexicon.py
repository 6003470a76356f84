"""Which target words a source word is translated with: IBM Model 1 (Brown et al. 1993) over the training pairs.

Letters: P pairs of a source and a target position in one sentence pair, L different (source word, target word) links,
T target positions, V vocabulary, N words kept.

Every target word is assumed to come from some word of its source sentence, or from nothing. A few rounds of
expectation maximisation turn "they stand in one sentence pair" into "the one translates the other".
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.corpus.subwords import EOS
from seq2seq.model.shortlist import Shortlist, always_said

# Of a large corpus an even sample is enough: these are pairs of positions, some 200 to a sentence pair.
MOST_POSITIONS = 6_000_000
ROUNDS = 4
ALWAYS = 100  # most frequent target words


def shortlist(corpus: EncodedCorpus, source_size: int, target_size: int, count: int) -> Shortlist:
    """The `count` likeliest translations of each source word, learnt from the pairs."""
    key_P, position_P = _positions(corpus, target_size)
    link_L, number_P = np.unique(key_P, return_inverse=True)
    del key_P
    source_L = (link_L // target_size).astype(np.int64)
    probability_L = np.ones(len(link_L))
    for _ in range(ROUNDS):
        share_P = probability_L[number_P]
        share_P /= np.bincount(position_P, share_P)[position_P]
        expected_L = np.bincount(number_P, share_P, minlength=len(link_L))
        probability_L = expected_L / np.bincount(source_L, expected_L)[source_L]
    likely_VN = np.full((source_size, count), EOS, dtype=np.int32)
    order_L = np.lexsort((-expected_L, source_L))
    source_sorted = source_L[order_L]
    place_L = np.arange(len(order_L)) - np.searchsorted(source_sorted, source_sorted)
    kept = place_L < count
    likely_VN[source_sorted[kept], place_L[kept]] = link_L[order_L][kept] % target_size
    frequency_V = np.zeros(target_size, dtype=np.int64)
    for start in range(0, 10 * MOST_POSITIONS, MOST_POSITIONS):  # bincount makes 8 bytes of every id
        ids = corpus.target.ids[start : start + MOST_POSITIONS]
        frequency_V += np.bincount(ids, minlength=target_size)
    frequent = np.argsort(-frequency_V, kind="stable")[:ALWAYS]
    return Shortlist(torch.from_numpy(likely_VN), always_said(torch.from_numpy(frequent)))


def _positions(corpus: EncodedCorpus, target_size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every source word with every target word of its pair, as source * target_size + target, and the place of the
    latter."""
    count = int(np.einsum("i,i->", corpus.source.lengths, corpus.target.lengths, dtype=np.int64, casting="safe"))
    step = max(1, -(-count // MOST_POSITIONS))
    keys, positions, seen = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int32)], 0
    for number in range(0, len(corpus), step):
        source_S, target_T = corpus.source[number].astype(np.int64), corpus.target[number].astype(np.int64)
        keys.append((source_S * target_size + target_T[:, None]).ravel())
        positions.append(np.repeat(np.arange(seen, seen + len(target_T), dtype=np.int32), len(source_S)))
        seen += len(target_T)
    return np.concatenate(keys), np.concatenate(positions)
