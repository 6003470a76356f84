"""Claims about encoded text and batches: every pair once, no batch over its budget, little padding, little memory.

A name with c064 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import numbered_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from seq2seq.config.schema import PairFiles, TokenizerConfig
from seq2seq.corpus.batches import BatchSampler, collate, collate_sources
from seq2seq.corpus.encoded import CHUNK, EncodedCorpus, EncodedSide, encode_corpus
from seq2seq.corpus.pairs import ParallelCorpus
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, Tokenizer

some_lengths = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=120)


class WordLengths:
    """A tokenizer with a known answer: one id a word, its length; source ids are odd and target ids even."""

    def __init__(self, source_size: int = 1000, target_size: int = 1000) -> None:
        self.source_size, self.target_size = source_size, target_size

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[2 * len(word) + 11 for word in text.split()] for text in texts]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return [[2 * len(word) + 10 for word in text.split()] for text in texts]


def side(*rows: Sequence[int] | NDArray[np.int64]) -> EncodedSide:
    ids = np.array([i for row in rows for i in row], dtype=np.uint16)
    return EncodedSide(ids, np.cumsum([0, *map(len, rows)], dtype=np.int64))


def rows_of(encoded: EncodedSide) -> list[list[int]]:
    return [encoded[i].tolist() for i in range(len(encoded))]


def random_corpus(pairs: int, seed: int = 1) -> EncodedCorpus:
    rng = np.random.default_rng(seed)
    sides = [side(*(rng.integers(4, 99, rng.integers(1, 12)) for _ in range(pairs))) for _ in range(2)]
    return EncodedCorpus(sides[0], sides[1])


# ---- encoding


def test_each_sentence_is_found_again_in_the_flat_array() -> None:
    pairs = [("a bb", "ccc"), ("dd", "e ff ggg"), ("h", "i")]
    encoded = encode_corpus(pairs, WordLengths(), max_length=100)
    assert len(encoded) == 3
    assert rows_of(encoded.source) == [[13, 15], [15], [13]]
    assert rows_of(encoded.target) == [[16], [12, 14, 16], [12]]
    assert encoded.target.lengths.tolist() == [1, 3, 1]
    assert encoded.source[-1].tolist() == [13]
    with pytest.raises(IndexError):
        encoded.source[3]


def test_ids_take_two_bytes_where_the_vocabulary_allows_it() -> None:
    encoded = encode_corpus([("a", "b")], WordLengths(1 << 16, (1 << 16) + 1), max_length=9)
    assert encoded.source.ids.dtype == np.uint16
    assert encoded.target.ids.dtype == np.int32
    assert encoded.source.offsets.dtype == np.int64


def test_a_pair_with_a_long_side_is_dropped_as_a_pair_and_counted_c046() -> None:
    pairs = [(source, target) for source, target in numbered_pairs()]
    pairs[70] = ("word " * 20_000, pairs[70][1])
    pairs[80] = (pairs[80][0], "Wort " * 101)
    pairs[90] = (pairs[90][0], "Wort " * 100)
    encoded = encode_corpus(pairs, WordLengths(), max_length=100)
    assert (len(encoded), encoded.too_long) == (158, 2)
    assert int(encoded.target.lengths.max()) == 100
    kept = [pair for number, pair in enumerate(pairs) if number not in (70, 80)]
    assert rows_of(encoded.source) == WordLengths().encode_source([source for source, _ in kept])
    assert rows_of(encoded.target) == WordLengths().encode_target([target for _, target in kept])


def test_progress_is_told_chunk_by_chunk() -> None:
    told: list[int] = []
    encoded = encode_corpus((("a", "b") for _ in range(2 * CHUNK + 7)), WordLengths(), 9, told.append)
    assert told == [CHUNK, 2 * CHUNK, 2 * CHUNK + 7]
    assert len(encoded) == 2 * CHUNK + 7


def test_nothing_encodes_to_nothing() -> None:
    encoded = encode_corpus([], WordLengths(), max_length=9)
    assert (len(encoded), encoded.source.lengths.tolist(), encoded.too_long) == (0, [], 0)


def test_a_million_pairs_would_fit_in_250_megabytes() -> None:
    """Measured on 60,000 pairs of 20 pieces; the working space of one chunk is the same for any number of pairs."""
    count, words = 60_000, " ".join("abcdefghijklmnopqrst")

    def stream() -> Iterator[tuple[str, str]]:
        for _ in range(count):
            yield words, words

    tracemalloc.start()
    try:
        encoded = encode_corpus(stream(), WordLengths(), max_length=100)
        peak = tracemalloc.get_traced_memory()[1]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(encoded) == count
    assert held / count * 1_000_000 < 150e6
    assert held / count * 1_000_000 + (peak - held) < 250e6


# ---- the plan of an epoch


@given(
    lengths=some_lengths,
    batch_tokens=st.integers(1, 400),
    batch_sentences=st.none() | st.integers(1, 9),
    seed=st.integers(0, 2**31 - 1),
    number=st.integers(0, 50),
)
@settings(max_examples=200, deadline=None)
def test_every_pair_comes_once_and_no_batch_is_over_its_budget_c064(
    lengths: list[tuple[int, int]], batch_tokens: int, batch_sentences: int | None, seed: int, number: int
) -> None:
    source, target = [s for s, _ in lengths], [t for _, t in lengths]
    sampler = BatchSampler(source, target, batch_tokens=batch_tokens, seed=seed, batch_sentences=batch_sentences)
    batches = sampler.epoch(number)
    assert sorted(int(i) for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = 1 + max(max(lengths[i]) for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= batch_tokens
        assert len(batch) <= (batch_sentences or len(batch))
    assert 0 < sampler.real_share(batches) <= 1


def test_the_last_small_batch_is_used_c064() -> None:
    sampler = BatchSampler([5] * 161, [4] * 161, batch_tokens=10_000, batch_sentences=32, seed=1)
    assert sorted(map(len, sampler.epoch(0))) == [1, 32, 32, 32, 32, 32]


def test_batches_of_one_sentence_can_be_asked_for_c066() -> None:
    sampler = BatchSampler([5, 2, 9], [4, 3, 8], batch_tokens=2000, batch_sentences=1, seed=1)
    assert [batch.shape for batch in sampler.epoch(0)] == [(1,)] * 3


def test_an_epoch_is_a_function_of_seed_and_number_c224() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, (2, 500))

    def plan(seed: int, number: int) -> list[list[int]]:
        sampler = BatchSampler(lengths[0], lengths[1], batch_tokens=200, seed=seed)
        if number == 2:
            sampler.epoch(1)  # what was asked for before is of no account
        return [batch.tolist() for batch in sampler.epoch(number)]

    assert plan(1, 2) == plan(1, 2)
    assert plan(1, 2) != plan(1, 3)
    assert plan(1, 2) != plan(2, 2)


def test_sentences_meet_others_in_the_next_epoch() -> None:
    rng = np.random.default_rng(4)
    source = rng.poisson(12, 3000) + 1
    sampler = BatchSampler(source, source + rng.integers(-1, 2, 3000), batch_tokens=300, seed=1)
    company: list[dict[int, frozenset[int]]] = []
    for number in range(2):
        batches = [frozenset(batch.tolist()) for batch in sampler.epoch(number)]
        company.append({i: batch for batch in batches for i in batch})
    again = [len(company[0][i] & company[1][i]) - 1 for i in range(3000)]
    others = [len(company[0][i]) - 1 for i in range(3000)]
    assert sum(again) / sum(others) < 0.35


def test_batches_come_in_no_order_of_length() -> None:
    lengths = np.random.default_rng(5).integers(1, 40, 2000)
    sampler = BatchSampler(lengths, lengths, batch_tokens=200, seed=1)
    means = [float(lengths[batch].mean()) for batch in sampler.epoch(0)]
    rises = sum(before < after for before, after in pairwise(means))
    assert 0.4 < rises / len(means) < 0.6


def test_a_million_pairs_are_planned_in_about_a_second() -> None:
    rng = np.random.default_rng(6)
    source = rng.poisson(14, 1_000_000) + 1
    sampler = BatchSampler(source, source + rng.integers(-3, 4, 1_000_000), batch_tokens=2000, seed=1)
    began = time.process_time()
    batches = sampler.epoch(0)
    assert time.process_time() - began < 3  # 0.4 s of the processor, whoever shares it
    assert sum(map(len, batches)) == 1_000_000


def test_real_share_counts_end_marks_as_real_and_padding_as_not() -> None:
    sampler = BatchSampler([1, 3], [4, 4], batch_tokens=100, seed=1)
    assert sampler.real_share([np.array([0, 1])]) == (2 + 4 + 5 + 5) / (4 + 4 + 5 + 5)
    assert sampler.real_share([np.array([0]), np.array([1])]) == 1
    assert sampler.real_share([]) == 1


# ---- padded tensors


def test_a_batch_is_padded_as_written_here() -> None:
    corpus = EncodedCorpus(side([7, 8, 9], [10], [11, 12]), side([20], [21, 22, 23, 24], []))
    batch = collate(corpus, np.array([2, 0]))
    assert batch.src_BS.tolist() == [[11, 12, EOS, PAD], [7, 8, 9, EOS]]
    assert batch.src_mask_BS.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.tgt_in_BT.tolist() == [[BOS, PAD], [BOS, 20]]
    assert batch.tgt_out_BT.tolist() == [[EOS, PAD], [20, EOS]]
    assert batch.tgt_mask_BT.tolist() == [[True, False], [True, True]]
    assert batch.tokens == 3
    assert batch.src_BS.dtype == batch.tgt_in_BT.dtype == batch.tgt_out_BT.dtype == torch.int64
    assert batch.src_mask_BS.dtype == batch.tgt_mask_BT.dtype == torch.bool


def test_a_batch_of_one_keeps_its_dimension_c066() -> None:
    batch = collate(random_corpus(5), [3])
    assert batch.src_BS.shape[0] == batch.tgt_in_BT.shape[0] == 1


@given(pairs=st.integers(1, 30), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_every_row_of_a_batch_holds_its_sentence(pairs: int, seed: int) -> None:
    corpus = random_corpus(pairs, seed)
    indices = np.random.default_rng(seed).permutation(pairs)
    batch = collate(corpus, indices)
    for row, index in enumerate(indices.tolist()):
        source, target = corpus.source[index].tolist(), corpus.target[index].tolist()
        assert batch.src_BS[row][batch.src_mask_BS[row]].tolist() == [*source, EOS]
        assert batch.tgt_in_BT[row][batch.tgt_mask_BT[row]].tolist() == [BOS, *target]
        assert batch.tgt_out_BT[row][batch.tgt_mask_BT[row]].tolist() == [*target, EOS]
    assert not batch.src_BS[~batch.src_mask_BS].any()
    assert not batch.tgt_in_BT[~batch.tgt_mask_BT].any()
    assert not batch.tgt_out_BT[~batch.tgt_mask_BT].any()
    assert batch.src_BS.shape[1] == int(corpus.source.lengths.max()) + 1
    assert batch.tokens == int(batch.tgt_mask_BT.sum()) == len(corpus.target.ids) + pairs


def test_a_batch_moves_as_one() -> None:
    batch = collate(random_corpus(4), range(4))
    moved = batch.to("meta", non_blocking=True)
    assert moved.src_BS.device.type == moved.tgt_mask_BT.device.type == "meta"
    assert moved.tokens == batch.tokens
    assert moved.src_BS.shape == batch.src_BS.shape
    assert moved.tgt_out_BT.shape == batch.tgt_out_BT.shape


def test_sources_to_translate_are_padded_like_those_of_training() -> None:
    corpus = random_corpus(6)
    src_BS, src_mask_BS = collate_sources(rows_of(corpus.source))
    batch = collate(corpus, range(6))
    assert torch.equal(src_BS, batch.src_BS)
    assert torch.equal(src_mask_BS, batch.src_mask_BS)
    src_BS, src_mask_BS = collate_sources([[], []])
    assert src_BS.tolist() == [[EOS], [EOS]]
    assert src_mask_BS.all()


# ---- a real corpus


def test_at_most_a_twentieth_of_multi30k_is_padding(corpora: Path) -> None:
    folder = corpora / "multi30k"
    files = PairFiles(source=str(folder / "train.en"), target=str(folder / "train.de"))
    corpus = ParallelCorpus([files], key="data.train")
    tokenizer = Tokenizer.train(corpus, TokenizerConfig(vocab_size=6000))
    encoded = encode_corpus(corpus, tokenizer, max_length=100)
    assert len(encoded) + encoded.too_long == 29_000
    assert 14 < encoded.target.lengths.mean() < 17
    sampler = BatchSampler(encoded.source.lengths, encoded.target.lengths, batch_tokens=2000, seed=1)
    for number in range(3):
        assert sampler.real_share(sampler.epoch(number)) >= 0.95
