"""Claims about sampled segmentations: other pieces of the same text, the same for the same seed and epoch."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import numbered_pairs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import TokenizerConfig
from seq2seq.corpus import sampling
from seq2seq.corpus.encoded import EncodedCorpus, EncodedSide, encode_corpus
from seq2seq.corpus.sampling import SampledCorpus, packed, unpacked
from seq2seq.corpus.segmentations import KINDS, Segmenter
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, Tokenizer
from seq2seq.errors import TokenizerError

PAIRS = numbered_pairs(60)
LONGEST = 40


def tokenizer(model_type: str = "bpe", byte_fallback: bool = False) -> Tokenizer:
    size = {"bpe": 150, "unigram": 90}[model_type] + 256 * byte_fallback
    return Tokenizer.train(PAIRS, TokenizerConfig(model_type=model_type, vocab_size=size, byte_fallback=byte_fallback))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def cut(request: pytest.FixtureRequest) -> tuple[Tokenizer, EncodedCorpus, str]:
    made = tokenizer(request.param)
    return made, encode_corpus(PAIRS, made, LONGEST), request.param


def sampled(
    cut: tuple[Tokenizer, EncodedCorpus, str], seed: int = 1, sides: str = "both", longest: int = LONGEST
) -> SampledCorpus:
    (model,) = cut[0].files().values()
    models = (model if sides != "target" else None, model if sides != "source" else None)
    return SampledCorpus(cut[1], models, cut[2], 0.3, longest=longest, seed=seed, epochs=2)


def rows(side: EncodedSide) -> list[list[int]]:
    return [side[number].tolist() for number in range(len(side))]


def test_every_epoch_has_other_pieces_of_the_same_text(cut: tuple[Tokenizer, EncodedCorpus, str]) -> None:
    made, corpus, _ = cut
    epochs = sampled(cut)
    first, second = epochs.epoch(0), epochs.epoch(1)
    for name, decode in (("source", made.decode_source), ("target", made.decode_target)):
        plain, one, other = (rows(getattr(some, name)) for some in (corpus, first, second))
        text = [pair[name == "target"] for pair in PAIRS]
        assert [decode(row) for row in one] == [decode(row) for row in other] == text
        different = [sum(map(list.__ne__, one, some)) for some in (plain, other)]
        assert min(different) > 0.8 * len(PAIRS)
        assert sum(map(len, one)) > sum(map(len, plain))
    assert rows(first.source) != rows(first.target)


def test_the_same_seed_and_epoch_give_the_same_pieces_and_others_give_others(
    cut: tuple[Tokenizer, EncodedCorpus, str],
) -> None:
    straight = sampled(cut)
    straight.epoch(0)
    second = straight.epoch(1)
    resumed, another = sampled(cut), sampled(cut, seed=2)
    for side in ("source", "target"):
        assert rows(getattr(resumed.epoch(1), side)) == rows(getattr(second, side))
        assert rows(getattr(another.epoch(1), side)) != rows(getattr(second, side))


def test_a_side_that_is_not_sampled_keeps_its_pieces(cut: tuple[Tokenizer, EncodedCorpus, str]) -> None:
    one = sampled(cut, sides="source").epoch(1)
    assert one.target is cut[1].target
    assert rows(one.source) != rows(cut[1].source)


def test_a_sample_that_is_too_long_gives_way_to_the_plain_pieces(cut: tuple[Tokenizer, EncodedCorpus, str]) -> None:
    plain = rows(cut[1].source)
    longest = max(map(len, plain))
    one = rows(sampled(cut, longest=longest).epoch(1).source)
    assert max(map(len, one)) <= longest
    kept = [row == other for row, other in zip(one, plain, strict=True)]
    assert any(kept) and not all(kept)


# -- one sentence ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[("bpe", True), ("bpe", False), ("unigram", True), ("unigram", False)], ids=str)
def made(request: pytest.FixtureRequest) -> tuple[Tokenizer, Segmenter]:
    kind, byte_fallback = request.param
    tokens = tokenizer(kind, byte_fallback)
    return tokens, KINDS[kind](tokens._source.vocabulary(), 0.4)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_whatever_the_text_a_sample_reads_as_its_plain_pieces_do(
    made: tuple[Tokenizer, Segmenter], texts: list[str], seed: int
) -> None:
    tokens, segmenter = made
    plain = tokens.encode_source(texts)
    others = segmenter.sampled(plain, np.random.default_rng(seed))
    assert [tokens.decode_source(row) for row in others] == [tokens.decode_source(row) for row in plain]
    assert not any({PAD, BOS, EOS} & set(row) for row in others)


def test_without_dropout_bpe_is_sentencepiece_s() -> None:
    tokens = tokenizer("bpe")
    plain = [row for pair in PAIRS for row in tokens.encode_source(pair)]
    assert KINDS["bpe"](tokens._source.vocabulary(), 0.0).sampled(plain, np.random.default_rng(1)) == plain


Ways = dict[tuple[str, ...], float]


def by_algorithm_1(word: tuple[str, ...], ranks: dict[str, int], dropout: float) -> Ways:
    """The probability of every outcome of BPE-dropout: the best merge that is not left out, until all are."""
    places = [i for i in range(len(word) - 1) if word[i] + word[i + 1] in ranks]
    places.sort(key=lambda i: (ranks[word[i] + word[i + 1]], i))
    ways = {word: dropout ** len(places)}
    for number, i in enumerate(places):
        rest = by_algorithm_1((*word[:i], word[i] + word[i + 1], *word[i + 2 :]), ranks, dropout)
        for outcome, probability in rest.items():
            ways[outcome] = ways.get(outcome, 0.0) + dropout**number * (1 - dropout) * probability
    return ways


def by_the_model(word: str, scores: dict[str, float], power: float) -> Ways:
    """The probability of every segmentation under the unigram model, to some power."""

    def cuts(rest: str) -> Iterator[tuple[str, ...]]:
        if not rest:
            yield ()
        for end in range(1, len(rest) + 1):
            if rest[:end] in scores:
                yield from ((rest[:end], *others) for others in cuts(rest[end:]))

    weights = {cut: math.exp(power * sum(scores[piece] for piece in cut)) for cut in cuts(word)}
    return {cut: weight / sum(weights.values()) for cut, weight in weights.items()}


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_samples_are_as_frequent_as_they_are_probable(kind: str) -> None:
    pieces = {"a": -9.0, "b": -8.5, "c": -8.0, "ab": -1.5, "bc": -0.5, "aa": -2.0, "abc": -3.0, "aab": -4.0}
    vocabulary = [None, None, None, None, *pieces.items()]
    names = ["", "", "", "", *pieces]
    if kind == "bpe":
        ranks = {piece: number for number, piece in enumerate(sorted(pieces, key=lambda piece: -pieces[piece]))}
        expected = by_algorithm_1(tuple("aabcb"), {p: r for p, r in ranks.items() if len(p) > 1}, 0.3)
    else:
        expected = by_the_model("aabcb", pieces, 0.3)
    assert sum(expected.values()) == pytest.approx(1.0)
    count = 20_000
    word = [names.index(letter) for letter in "aabcb"]
    rows = KINDS[kind](vocabulary, 0.3).sampled([word] * count, np.random.default_rng(1))
    found = Counter(tuple(names[number] for number in row) for row in rows)
    assert found.keys() <= expected.keys()
    for outcome, probability in expected.items():
        deviation = math.sqrt(probability * (1 - probability) / count)
        assert abs(found[outcome] / count - probability) < 5 * deviation + 1e-9, outcome


def test_what_has_no_characters_of_its_own_stays_whole() -> None:
    vocabulary = [None, None, None, None, None, ("a", -3.0), ("aa", -1.0), ("xy", -2.0)]
    for kind in KINDS.values():
        (row,) = kind(vocabulary, 0.9).sampled([[4, 6, 4, 7, 6, 4]], np.random.default_rng(1))
        assert [number for number in row if number in (4, 7)] == [4, 4, 7, 4]
        assert sum({5: 1, 6: 2}.get(number, 0) for number in row) == 4


def test_nothing_at_all_is_cut_into_nothing() -> None:
    segmenter = KINDS["bpe"]([None, None, None, None, ("a", -1.0)], 0.5)
    assert segmenter.sampled([[], [4], []], np.random.default_rng(1)) == [[], [4], []]
    assert segmenter.sampled([], np.random.default_rng(1)) == []


# -- the other process -----------------------------------------------------------------------------------------------


def test_what_is_sent_arrives() -> None:
    arrays = {"a.ids": np.array([3, 1], dtype=np.uint16), "b": np.array(0.5), "c": np.zeros(0, dtype=np.int64)}
    arrived = unpacked(packed(arrays))
    assert arrived.keys() == arrays.keys()
    for name, array in arrays.items():
        assert arrived[name].dtype == array.dtype and np.array_equal(arrived[name], array)


def test_a_process_that_fails_is_told_of(
    cut: tuple[Tokenizer, EncodedCorpus, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_CHILD", "raise MemoryError('no room')")
    with pytest.raises(TokenizerError, match=r"no room\); go on with --resume"):
        sampled(cut).epoch(0)


def test_work_that_nobody_waits_for_is_ended(
    cut: tuple[Tokenizer, EncodedCorpus, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = sampled(cut)
    epochs.epoch(0)
    (work,) = epochs._works.values()
    monkeypatch.setattr(sampling, "_CHILD", "import time; time.sleep(100)")
    began = time.perf_counter()
    epochs._works[7] = sleeper = sampling._Work({})
    epochs.close()
    assert time.perf_counter() - began < 50
    assert not epochs._works
    assert {work._process.poll() is None, sleeper._process.poll() is None} == {False}
