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
    source_P, target_P, position_P = _positions(corpus)
    key_P = source_P * target_size + target_P
    link_L, number_P = np.unique(key_P, return_inverse=True)
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
    frequency_V = np.bincount(corpus.target.ids[: 10 * MOST_POSITIONS], minlength=target_size)
    frequent = np.argsort(-frequency_V, kind="stable")[:ALWAYS]
    return Shortlist(torch.from_numpy(likely_VN), always_said(torch.from_numpy(frequent)))


def _positions(corpus: EncodedCorpus) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every source word with every target word of its pair, and which target position that was."""
    counts = corpus.source.lengths * corpus.target.lengths
    step = max(1, -(-int(counts.sum()) // MOST_POSITIONS))
    sources, targets, positions, seen = [], [], [], 0
    for number in range(0, len(corpus), step):
        source, target = corpus.source[number], corpus.target[number]
        sources.append(np.tile(source, len(target)))
        targets.append(np.repeat(target, len(source)))
        positions.append(np.repeat(np.arange(seen, seen + len(target)), len(source)))
        seen += len(target)
    joined = (np.concatenate(part).astype(np.int64) for part in (sources, targets, positions))
    source_P, target_P, position_P = joined
    return source_P, target_P, position_P
