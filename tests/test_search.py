"""Claims about search, with models whose answers are known: tables and hash values instead of weights.

Letters: B sentences, K beam size, R = B·K rows, V vocabulary. Sentences are told apart by their source ids.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2seq.model import kernels
from seq2seq.model.places import Places
from seq2seq.translation import beam as beams
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.search import Hypothesis, search

PAD, EOS, BOS = 0, 1, 2
WORDS = (3, 4, 5)
V = 6
Ids = tuple[int, ...]
Table = Callable[[Ids, Ids], Sequence[float]]  # next token's log-probabilities, from source and what is written


@pytest.fixture(scope="module", autouse=True, params=["compiled", "by PyTorch's operations"])
def kept(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every claim holds of both ways in which the slots of a beam are kept."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "compiled":
            patch.setattr(beams, "beams_for", lambda *_: None)
        elif kernels.load() is None:
            pytest.skip("no C compiler here, or SEQ2SEQ_KERNELS=0")
        yield request.param


@dataclass(frozen=True)
class Written:
    """A decoder state with a known content: the sources of the sentences, and what each row has written so far."""

    sources_B: list[Ids]
    rows_R: list[tuple[Ids, Ids]]  # each with the source it belongs to

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> Written:
        sources = self.sources_B if sentences_b is None else [self.sources_B[b] for b in sentences_b.tolist()]
        rows = [self.rows_R[r] for r in rows_r.tolist()]
        assert places is not None, "not every slot is open"
        assert [source for source, _ in rows] == [sources[b] for b in places.sentence_r.tolist()]
        assert sorted(set(places.place_r.tolist())) == places.place_r.tolist(), "no place is taken twice"
        return Written(sources, rows)


@dataclass
class Fake:
    """A model that answers from a table, and counts the rows it was asked for in each step."""

    table: Table
    rows_seen: list[int] = field(default_factory=list)
    never: Sequence[int] = (PAD, BOS)

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> Written:
        sources = [tuple(row[mask].tolist()) for row, mask in zip(src_BS, mask_BS, strict=True)]
        return Written(sources, [(source, ()) for source in sources])

    def step(self, previous_R: Tensor, state: Written, count: int) -> tuple[Tensor, Tensor, Written]:
        self.rows_seen.append(len(previous_R))
        first = len(self.rows_seen) == 1
        assert not first or (previous_R == BOS).all(), "a translation begins with the begin mark"
        rows = [
            (source, () if first else (*written, previous))
            for previous, (source, written) in zip(previous_R.tolist(), state.rows_R, strict=True)
        ]
        log_probability_RV = torch.tensor([list(self.table(*row)) for row in rows])
        log_probability_RV[:, list(self.never)] = -torch.inf
        best = log_probability_RV.topk(min(count, log_probability_RV.shape[1]), dim=1)
        return best.values, best.indices, Written(state.sources_B, rows)


def hashed(source: Ids, written: Ids, words: int = V) -> list[float]:
    """Log-probabilities that look random and depend on nothing but the sentence and what is written."""
    digest = hashlib.sha256(repr((source, written)).encode()).digest()
    logits = torch.tensor([digest[i] * 256 + digest[i + 1] for i in range(0, 2 * words, 2)]) / 16_384.0
    return logits.log_softmax(0).tolist()


def table(rules: dict[Ids, dict[int, float]]) -> Table:
    """A table from probabilities: what is written gives the next token's; a prefix without a rule ends for certain."""

    def look_up(_source: Ids, written: Ids) -> list[float]:
        rule = rules.get(written, {EOS: 1.0})
        return [math.log(rule[token]) if token in rule else -math.inf for token in range(V)]

    return look_up


def find(
    model: Table | Fake,
    sources: Sequence[Ids] = ((7,),),
    limits: int | Sequence[int] = 8,
    *,
    beam: int = 1,
    penalty: float = 1.0,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    longest = max(map(len, sources))
    src_BS = torch.tensor([[*source, *[PAD] * (longest - len(source))] for source in sources])
    mask_BS = torch.tensor([[True] * len(source) + [False] * (longest - len(source)) for source in sources])
    how = SearchSettings(BOS, EOS, beam, penalty, n_best)
    most = [limits] * len(sources) if isinstance(limits, int) else limits
    return search(model if isinstance(model, Fake) else Fake(model), src_BS, mask_BS, most, how)


def total_of(model: Table, source: Ids, tokens: Ids) -> float:
    """What the model says of a whole sequence."""
    return sum(model(source, tokens[:place])[token] for place, token in enumerate(tokens))


def complete_translations(model: Table, source: Ids, limit: int, penalty: float) -> list[tuple[float, Ids]]:
    """Every translation of at most `limit` tokens, the end mark counted, with its score; the best first."""
    scored = []
    for length in range(limit):
        for words in itertools.product(WORDS, repeat=length):
            scored.append((total_of(model, source, (*words, EOS)) / (length + 1) ** penalty, words))
    return sorted(scored, reverse=True)


def plain_beam(model: Table, source: Ids, limit: int, K: int, penalty: float) -> list[Ids]:
    """Beam search as one would write it on paper: K slots, and a finished hypothesis keeps its slot."""
    open_ones: list[tuple[float, Ids]] = [(0.0, ())]
    closed: list[tuple[float, Ids]] = []
    for _ in range(limit):
        following = [
            (total + model(source, written)[token], (*written, token))
            for total, written in open_ones
            for token in (EOS, *WORDS)
        ]
        best = sorted(following, reverse=True)[: K - len(closed)]
        closed += [(total / len(written) ** penalty, written[:-1]) for total, written in best if written[-1] == EOS]
        open_ones = [(total, written) for total, written in best if written[-1] != EOS]
        if not open_ones or len(closed) == K:
            break
    rest = [(total / len(written) ** penalty, written) for total, written in open_ones]
    return [words for _, words in sorted(closed, reverse=True) + sorted(rest, reverse=True)]


def ids_of(hypotheses: list[Hypothesis]) -> list[Ids]:
    return [tuple(hypothesis.ids) for hypothesis in hypotheses]


some_sources = st.lists(st.lists(st.integers(6, 20), min_size=1, max_size=4).map(tuple), min_size=1, max_size=5)
how_to_search = st.tuples(st.integers(1, 5), st.sampled_from([0.0, 0.6, 1.0, 2.0]), st.integers(1, 4))

# ---- what is found


@settings(max_examples=30, deadline=None)
@given(source=st.lists(st.integers(6, 99), min_size=1, max_size=3).map(tuple), limit=st.integers(1, 7))
def test_a_beam_of_one_is_greedy(source: Ids, limit: int) -> None:
    written: Ids = ()
    while len(written) < limit and written[-1:] != (EOS,):
        answers = hashed(source, written)
        written = (*written, max((EOS, *WORDS), key=answers.__getitem__))
    ((hypothesis,),) = find(hashed, [source], limit)
    assert tuple(hypothesis.ids) == (written[:-1] if written[-1] == EOS else written)
    assert hypothesis.log_probability == pytest.approx(total_of(hashed, source, written), rel=1e-5)
    assert hypothesis.score == pytest.approx(hypothesis.log_probability / len(written), rel=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("source", [(7,), (8, 9), (10, 11, 12)])
def test_a_beam_wide_enough_finds_the_best_of_all_translations(source: Ids, penalty: float) -> None:
    limit = 4
    everything = complete_translations(hashed, source, limit, penalty)
    room = len(everything) + 3**limit  # closed ones, and all that may be open beside them
    ((best,),) = find(hashed, [source], limit, beam=room, penalty=penalty)
    assert tuple(best.ids) == everything[0][1]
    assert best.score == pytest.approx(everything[0][0], rel=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_wide_enough_lists_all_translations_in_their_order(penalty: float) -> None:
    limit, source = 4, (7, 8)
    everything = complete_translations(hashed, source, limit, penalty)
    room = len(everything) + 3**limit
    (found,) = find(hashed, [source], limit, beam=room, n_best=len(everything), penalty=penalty)
    assert ids_of(found) == [words for _, words in everything]
    assert [one.score for one in found] == pytest.approx([score for score, _ in everything], rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    source=st.lists(st.integers(6, 99), min_size=1, max_size=3).map(tuple),
    limit=st.integers(1, 6),
    beam=st.integers(1, 9),
    penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
)
def test_beam_search_finds_what_the_search_on_paper_finds(source: Ids, limit: int, beam: int, penalty: float) -> None:
    """It stops earlier, when no open slot can win any more, and must lose nothing by it."""
    ((best,),) = find(hashed, [source], limit, beam=beam, penalty=penalty)
    assert tuple(best.ids) == plain_beam(hashed, source, limit, beam, penalty)[0]


TEMPTING = table({(): {3: 0.6, 4: 0.4}, (3,): {3: 0.35, 4: 0.25, EOS: 0.4}, (4,): {5: 1.0}, (4, 5): {EOS: 1.0}})


def test_a_beam_finds_what_greedy_search_misses() -> None:
    ((greedy,),) = find(TEMPTING, beam=1)
    ((beam,),) = find(TEMPTING, beam=2)
    assert (greedy.ids, beam.ids) == ([3], [4, 5])
    assert beam.log_probability == pytest.approx(math.log(0.4))
    assert greedy.log_probability == pytest.approx(math.log(0.24))


def test_the_length_penalty_decides_between_short_and_long() -> None:
    either = table({(): {EOS: 0.4, 3: 0.6}, (3,): {4: 0.55, 5: 0.45}})
    for penalty, expected in ((0.0, []), (1.0, [3, 4])):
        ((best,),) = find(either, beam=3, penalty=penalty)
        assert best.ids == expected
        assert best.score == pytest.approx(best.log_probability / (len(expected) + 1) ** penalty)


def test_a_translation_may_be_empty() -> None:
    silent = table({(): {EOS: 0.9, 3: 0.1}})
    for beam in (1, 2, 5):
        ((best, *_),) = find(silent, beam=beam)
        assert best.ids == []
        assert best.log_probability == pytest.approx(math.log(0.9))


# ---- n best


@settings(max_examples=40, deadline=None)
@given(sources=some_sources, limit=st.integers(1, 5), how=how_to_search)
def test_the_n_best_are_sorted_distinct_and_scored_as_the_model_says(
    sources: list[Ids], limit: int, how: tuple[int, float, int]
) -> None:
    beam, penalty, n_best = how
    for source, found in zip(
        sources, find(hashed, sources, limit, beam=beam, penalty=penalty, n_best=n_best), strict=True
    ):
        assert 1 <= len(found) <= n_best
        assert len(set(ids_of(found))) == len(found)
        complete = []
        for one in found:
            assert len(one.ids) <= limit
            assert set(one.ids) <= set(WORDS), "no padding, begin mark or end mark"
            said, ended = (total_of(hashed, source, (*one.ids, *end)) for end in ((), (EOS,)))
            complete.append(one.log_probability == pytest.approx(ended, rel=1e-5))
            assert complete[-1] or (len(one.ids) == limit and one.log_probability == pytest.approx(said, rel=1e-5))
            assert one.score == pytest.approx(one.log_probability / (len(one.ids) + complete[-1]) ** penalty, rel=1e-5)
        for finished in (True, False):
            scores = [one.score for one, is_complete in zip(found, complete, strict=True) if is_complete == finished]
            assert scores == sorted(scores, reverse=True)
        assert complete == sorted(complete, reverse=True), "what the limit cut off comes last"


def test_more_are_asked_for_than_the_beam_is_wide() -> None:
    (found,) = find(hashed, limits=5, beam=1, n_best=4)
    assert len(found) == 4
    assert ids_of(found) == ids_of(find(hashed, limits=5, beam=4, n_best=4)[0])


def test_fewer_come_back_where_the_model_knows_no_more() -> None:
    (found,) = find(TEMPTING, beam=5, n_best=5, limits=3)
    assert ids_of(found) == [(4, 5), (3, 3), (3, 4), (3,)]


def test_a_beam_wider_than_the_vocabulary_grows_as_soon_as_it_can() -> None:
    """After one step there are four hypotheses, after two thirteen: ten slots are all used from the second on."""
    (found,) = find(hashed, limits=3, beam=10, n_best=10)
    assert len(found) == 10
    assert ids_of(found)[0] == plain_beam(hashed, (7,), 3, 10, 1.0)[0]
    assert set(ids_of(found)) == set(plain_beam(hashed, (7,), 3, 10, 1.0))


# ---- limits, neighbours and leaving the batch


@pytest.mark.parametrize("beam", [1, 3])
def test_each_sentence_has_its_own_limit(beam: int) -> None:
    model = Fake(lambda source, _: table({(): {3: 0.9, 4: 0.1}})(source, ()))  # whatever is written: never an end
    found = find(model, [(7,), (8, 9), (10,)], [2, 5, 1], beam=beam)
    assert [len(hypotheses[0].ids) for hypotheses in found] == [2, 5, 1]
    assert len(model.rows_seen) == 5


def test_the_end_mark_counts_as_a_token() -> None:
    three = table({(): {3: 1.0}, (3,): {4: 1.0}, (3, 4): {EOS: 1.0}})
    for limit, log_probability in ((3, 0.0), (2, 0.0)):
        ((best,),) = find(three, limits=limit, beam=2)
        assert best.ids == [3, 4]
        assert best.log_probability == log_probability


@settings(max_examples=50, deadline=None)
@given(sources=some_sources, how=how_to_search, data=st.data())
def test_a_translation_never_depends_on_its_neighbours(
    sources: list[Ids], how: tuple[int, float, int], data: st.DataObject
) -> None:
    beam, penalty, n_best = how
    limits = data.draw(st.lists(st.integers(1, 6), min_size=len(sources), max_size=len(sources)))
    order = data.draw(st.permutations(range(len(sources))))
    together = find(hashed, sources, limits, beam=beam, penalty=penalty, n_best=n_best)
    shuffled = find(
        hashed, [sources[i] for i in order], [limits[i] for i in order], beam=beam, penalty=penalty, n_best=n_best
    )
    for place, i in enumerate(order):
        (alone,) = find(hashed, [sources[i]], [limits[i]], beam=beam, penalty=penalty, n_best=n_best)
        assert together[i] == alone
        assert shuffled[place] == alone


def counts_down(source: Ids, written: Ids) -> list[float]:
    """As many words as the source's id is more than 7."""
    return table({})(source, written) if len(written) >= source[0] - 7 else [-9.0, -9.0, -9.0, 0.0, -9.0, -9.0]


def test_a_sentence_that_is_done_leaves_the_batch() -> None:
    sources = [(9,), (7,), (8,), (10,)]
    model = Fake(counts_down)
    found = find(model, sources, beam=1)
    assert [hypotheses[0].ids for hypotheses in found] == [[3, 3], [], [3], [3, 3, 3]]
    assert model.rows_seen == [4, 3, 2, 1]
    model = Fake(counts_down)
    assert ids_of([one[0] for one in find(model, sources, beam=3)]) == [(3, 3), (), (3,), (3, 3, 3)]
    assert model.rows_seen[0] == 4, "all slots begin alike, so one of each speaks for all"
    assert max(model.rows_seen) <= 4 * 3
    assert model.rows_seen[-1] < max(model.rows_seen)


def test_a_hypothesis_that_has_ended_is_not_computed_any_more() -> None:
    """Two of three end at once, the third goes on alone and may still win."""
    goes_on = table({(): {EOS: 0.4, 3: 0.35, 4: 0.25}, (3,): {5: 1.0}, (3, 5): {5: 1.0}})
    model = Fake(goes_on)
    (found,) = find(model, limits=8, beam=3, n_best=3)
    assert ids_of(found) == [(3, 5, 5), (4,), ()]
    assert model.rows_seen == [1, 2, 1, 1]


def test_the_search_ends_when_all_hypotheses_have() -> None:
    model = Fake(table({(): {3: 0.5, 4: 0.3, 5: 0.2}}))
    (found,) = find(model, limits=50, beam=3, n_best=3)
    assert ids_of(found) == [(3,), (4,), (5,)]
    assert model.rows_seen == [1, 3]


def test_the_search_ends_when_no_open_hypothesis_can_win() -> None:
    """At best a hypothesis of probability 0.001 becomes 50 tokens long without losing more; it still loses."""
    drags = table({(): {EOS: 0.999, 3: 0.001}} | {(3,) * n: {3: 1.0} for n in range(1, 50)})
    model = Fake(drags)
    ((best,),) = find(model, limits=50, beam=2)
    assert best.ids == []
    assert len(model.rows_seen) == 1


def test_an_open_hypothesis_that_can_still_win_is_waited_for() -> None:
    """After one step the empty translation scores -0.5; the other holds -1.2 and ends at -1.2 / 6."""
    patient = table({(): {EOS: math.exp(-0.5), 3: math.exp(-1.2)}} | {(3,) * n: {3: 1.0} for n in range(1, 5)})
    ((best,),) = find(patient, limits=8, beam=2)
    assert best.ids == [3] * 5
    assert best.score == pytest.approx(-1.2 / 6)


# ---- what must never be written, and probabilities of zero


@settings(max_examples=30, deadline=None)
@given(never=st.sets(st.sampled_from([PAD, BOS, *WORDS])), beam=st.integers(1, 5))
def test_forbidden_ids_never_appear(never: set[int], beam: int) -> None:
    for found in find(Fake(hashed, never=sorted(never)), [(7,), (8, 9), (10,)], 5, beam=beam, n_best=3):
        for hypothesis in found:
            assert not never & set(hypothesis.ids)


def test_the_answers_of_the_model_are_left_as_they_are() -> None:
    answers, words = torch.tensor([[-1.0, -2.0]]), torch.tensor([[4, 5]])

    class Kept(Fake):
        def step(self, previous_R: Tensor, state: Written, count: int) -> tuple[Tensor, Tensor, Written]:
            return (
                answers.expand(len(previous_R), 2),
                words.expand(len(previous_R), 2),
                super().step(previous_R, state, count)[2],
            )

    find(Kept(hashed), limits=2, beam=2)
    assert (answers.tolist(), words.tolist()) == ([[-1.0, -2.0]], [[4, 5]])


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_word_of_probability_zero_is_never_chosen(beam: int) -> None:
    certain = table({(): {4: 1.0}, (4,): {5: 1.0}})
    (found,) = find(certain, beam=beam, n_best=beam)
    assert ids_of(found) == [(4, 5)]
    assert found[0].log_probability == 0.0


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_model_that_excludes_everything_gives_the_empty_translation(beam: int) -> None:
    sources: list[Ids] = [(7,), (8,)]

    def excludes(source: Ids, written: Ids) -> list[float]:
        return [-math.inf] * V if source == (7,) else hashed(source, written)

    model = Fake(excludes)
    found = find(model, sources, 4, beam=beam, n_best=beam)
    assert found[0] == [Hypothesis([], -math.inf, -math.inf)]
    assert found[1] == find(hashed, [(8,)], 4, beam=beam, n_best=beam)[0]
    assert all(rows <= beam for rows in model.rows_seen[1:]), "it left the batch at once"


@settings(max_examples=100, deadline=None)
@given(sources=some_sources, limit=st.integers(1, 6), how=how_to_search)
def test_both_ways_to_keep_a_beam_find_the_same(sources: list[Ids], limit: int, how: tuple[int, float, int]) -> None:
    (beam, penalty, n_best), found = how, []
    for way in (kernels.beams_for, lambda *_: None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(beams, "beams_for", way)
            asked = Fake(hashed)
            found.append((find(asked, sources, limit, beam=beam, n_best=n_best, penalty=penalty), asked.rows_seen))
    assert found[0] == found[1]


def test_a_beam_of_more_slots_than_are_compiled_for_is_searched_as_well() -> None:
    most = getattr(kernels.load(), "beams", None)
    wide = 257 if most is None else most.most_slots + 1
    hypotheses = find(hashed, ((7,),), 5, beam=wide, n_best=wide)[0]
    narrower = find(hashed, ((7,),), 5, beam=200, n_best=20)[0]
    assert len(hypotheses) > 200
    assert ids_of(hypotheses[:20]) == ids_of(narrower)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_model_that_answers_nonsense_still_gives_one_translation(beam: int) -> None:
    found = find(lambda *_: [math.nan] * V, [(7,), (8,)], 4, beam=beam)
    assert [len(hypotheses) for hypotheses in found] == [1, 1]


def test_equal_probabilities_give_the_same_choice_alone_and_in_company() -> None:
    def undecided(_source: Ids, _written: Ids) -> list[float]:
        return [-math.log(V)] * V

    sources: list[Ids] = [(7,), (8, 9), (10,), (11,)]
    for beam in (1, 2, 5):
        together = find(undecided, sources, 4, beam=beam, n_best=beam)
        assert all(found == find(undecided, [(7,)], 4, beam=beam, n_best=beam)[0] for found in together)
