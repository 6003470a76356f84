"""Claims about least risk and sampling; the authority on chrF is sacreBLEU, on frequencies the model itself."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import in_process, numbered_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from test_ensemble import SOURCES, Sure, model

from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS, EOS
from seq2seq.model.shortlist import Shortlist, Shortlisted
from seq2seq.translation import risk
from seq2seq.translation.ensemble import Ensemble
from seq2seq.translation.ranking import Finished
from seq2seq.translation.risk import LeastRisk, chrf_matrix
from seq2seq.translation.sampling import drawn, sample


def by_sacrebleu(texts: list[str]) -> list[list[float]]:
    chrf = CHRF()
    return [[chrf.sentence_score(one, [other]).score for other in texts] for one in texts]


SENTENCES = ["Der Bär sieht drei grüne Häuser.", "Der Hund sieht 3 grüne Häuser", "aaaaaaaaaa", "aaa", "", " \t\u3000"]
SENTENCES += [
    "今天天气很好。",
    "今天 天气 很 好 。",
    "🐕🐕🐕",
    "Der Bär sieht drei grüne Häuser. Der Bär sieht.",
    "x\ud800y",
]


def test_chrf_of_all_pairs_equals_sacrebleu_s_sentence_by_sentence() -> None:
    np.testing.assert_allclose(chrf_matrix(SENTENCES), by_sacrebleu(SENTENCES), rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(st.sampled_from("ab c.äé\u3000日"), max_size=14), min_size=1, max_size=5))
def test_chrf_equals_sacrebleu_s_for_any_text(texts: list[str]) -> None:
    np.testing.assert_allclose(chrf_matrix(texts), by_sacrebleu(texts), rtol=1e-6, atol=1e-12)


def test_chrf_in_several_portions_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = chrf_matrix(SENTENCES)
    monkeypatch.setattr(risk, "_MOST_AT_ONCE", 33)
    np.testing.assert_array_equal(chrf_matrix(SENTENCES), whole)
    assert chrf_matrix([]).shape == (0, 0)


# -- the choice ------------------------------------------------------------------------------------------------------

TEXTS = {1: "the cat sat on the mat", 2: "the cat sat on a mat", 3: "a cat sat on the mat", 4: "dogs bark"}


def chosen(pool: list[tuple[int, float]], **how: bool) -> list[tuple[int, float]]:
    found = [Finished([number], log_probability / 3, True) for number, log_probability in pool]
    ranked = LeastRisk(len(pool), **how).ranked(found, lambda one: TEXTS[one.ids[0]], 0.0)
    return [(hypothesis.ids[0], hypothesis.score) for hypothesis in ranked]


def test_what_is_like_the_others_wins_over_what_is_a_little_more_probable() -> None:
    pool = [(4, math.log(0.28)), (1, math.log(0.24)), (2, math.log(0.24)), (3, math.log(0.24))]
    best, *_, worst = chosen(pool)
    assert (best[0], worst[0]) == (1, 4)
    weights = np.array([0.28, 0.24, 0.24, 0.24])
    matrix = by_sacrebleu([TEXTS[number] for number, _ in pool])
    assert best[1] == pytest.approx((matrix @ weights)[1])


def test_of_one_candidate_that_is_sure_the_others_change_nothing() -> None:
    assert chosen([(4, 0.0), (1, -50.0), (2, -50.0)])[0] == (4, pytest.approx(100.0))


def test_candidates_weigh_by_their_score_so_that_short_ones_have_no_start() -> None:
    short, long, like = Finished([4], -2.0, True), Finished([1] * 19, -8.0, True), Finished([2] * 19, -8.0, True)
    best = [LeastRisk(3).ranked([short, long, like], lambda one: TEXTS[one.ids[0]], p)[0].ids[0] for p in (0.0, 1.0)]
    assert best == [4, 1]


def test_samples_weigh_by_being_drawn_often() -> None:
    pool = [(4, -1.0)] * 8 + [(1, -9.0), (2, -9.0)]
    found = chosen(pool, sampled=True)
    assert found[0][0] == 4
    assert len(found) == 3, "each text comes once"
    assert chosen([(4, -1.0), (1, -9.0), (2, -9.0)], sampled=True)[0][0] in (1, 2)


@pytest.mark.parametrize("nonsense", [math.nan, -math.inf])
def test_numbers_that_are_not_finite_stay_visible(nonsense: float) -> None:
    assert not math.isfinite(chosen([(1, nonsense), (2, -1.0)])[0][1])


# -- samples ---------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def samples(searched: object, sources: list[list[int]], count: int, seed: int = 1, limit: int = 4) -> list[list]:
    src, mask = collate_sources(sources)
    return sample(searched, src, mask, [limit + b % 2 for b in range(len(sources))], count, seed)  # type: ignore


@torch.inference_mode()
def test_words_are_drawn_as_often_as_they_are_probable() -> None:
    searched = model(1)
    (found,) = samples(searched, SOURCES[:1], 4000)
    src, mask = collate_sources(SOURCES[:1])
    log_probabilities, _ = searched.log_probabilities(torch.tensor([BOS]), searched.start(src, mask))
    first = Counter([*one.ids, EOS][0] for one in found)
    for word, probability in enumerate(log_probabilities.exp()[0].tolist()):
        deviation = math.sqrt(max(probability, 1e-4) / 4000)
        assert first[word] / 4000 == pytest.approx(probability, abs=4 * deviation)


@torch.inference_mode()
def test_the_log_probability_of_a_sample_is_the_model_s() -> None:
    searched = Ensemble([model(1), model(2)])
    (found,) = samples(searched, SOURCES[:1], 6)
    src, mask = collate_sources(SOURCES[:1])
    for one in found:
        state, total = searched.start(src, mask), 0.0
        said = [*one.ids, EOS][: one.length]
        for previous, word in zip([BOS, *said], said, strict=False):
            log_probability, state = searched.log_probabilities(torch.tensor([previous]), state)
            total += log_probability[0, word].item()
        assert one.log_probability == pytest.approx(total, abs=1e-4)
    assert all(one.closed or one.length == 4 for one in found)


def test_samples_depend_on_sentence_and_seed_alone() -> None:
    everything = Shortlist(torch.full((20, 1), EOS), torch.arange(17))
    for searched in (model(1), Shortlisted(model(1), everything)):
        together = [[one.ids for one in these] for these in samples(searched, SOURCES, 5)]
        order = [2, 0, 3, 1]
        again = samples(searched, [SOURCES[b] for b in order], 5, limit=4)
        for place, b in enumerate(order):
            # Their limits differ from place to place; the words before them must not.
            assert [one.ids[:4] for one in again[place]] == [ids[:4] for ids in together[b]]
        assert [[one.ids for one in these] for these in samples(searched, SOURCES, 5, seed=2)] != together


def test_what_has_no_probability_is_never_drawn() -> None:
    log_probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).log().repeat(4, 1)
    chances = torch.tensor([[0.0], [0.4999], [0.5001], [1.0 - 2**-24]])
    assert drawn(log_probabilities, chances).flatten().tolist() == [1, 1, 3, 3]
    (found,) = samples(Sure(7, 0.5), [[5]], 50)
    assert {word for one in found for word in one.ids} == {7}
    assert {one.closed for one in found} == {True, False}


# -- on the command line ---------------------------------------------------------------------------------------------

TEXT = "".join(f"{source}\n" for source, _ in numbered_pairs(5, first=181)).encode()


@pytest.mark.parametrize("how", [(), ("--sample", "3")])
def test_translate_chooses_among_candidates_whatever_the_batch(trained: Path, how: tuple[str, ...]) -> None:
    options = ("--mbr", "chrf", "--candidates", 6, "--n-best", 3, *how)
    done = in_process("translate", trained, *options, stdin=TEXT)
    assert done.status == 0, done.err
    lines = [line.split(" ||| ") for line in done.out.splitlines()]
    alone = in_process("translate", trained, *options, "--batch-size", 1, stdin=TEXT).out.splitlines()
    assert [line.split(" ||| ")[:2] for line in alone] == [line[:2] for line in lines]
    for first, second in itertools.pairwise(lines):
        assert 0 <= float(second[2]) <= 100
        assert first[0] != second[0] or float(first[2]) >= float(second[2])


def test_a_blank_line_and_one_that_must_be_split_are_a_line_each(trained: Path) -> None:
    text = TEXT.splitlines()[0] + b"\n\n" + b" ".join(TEXT.splitlines() * 3) + b"\n"
    done = in_process("translate", trained, "--mbr", "chrf", "--candidates", 3, stdin=text)
    assert done.status == 0, done.err
    first, blank, long = done.out.split("\n")[:-1]
    assert blank == ""
    assert first
    assert len(long.split()) > 1
    assert "in parts (line 3)" in done.err


def test_evaluate_says_how_candidates_were_made(trained: Path) -> None:
    heading = in_process("evaluate", trained, "--mbr", "chrf", "--candidates", 4).out.splitlines()[0]
    assert heading == "20 sentences, beam 5, mbr chrf of 4"
    done = in_process("evaluate", trained, "--mbr", "chrf", "--candidates", 4, "--sample", 9, "--json")
    facts = json.loads(done.out)
    assert facts["beam_size"] is None
    assert facts["decoding"] == {"mbr": {"utility": "chrf", "candidates": 4, "sample": 9}}


def test_options_that_would_change_nothing_are_refused(trained: Path) -> None:
    for verb in ("translate", "evaluate"):
        in_process(verb, trained, "--candidates", 5).refused("--candidates", "--mbr")
        in_process(verb, trained, "--sample", 5).refused("--sample", "--mbr")
        in_process(verb, trained, "--mbr", "chrf", "--coverage-penalty", 1).refused("--coverage-penalty")
        in_process(verb, trained, "--mbr", "chrf", "--sample", 1, "--beam", 2).refused("--beam", "--sample")
    in_process("translate", trained, "--mbr", "bleu").refused("--mbr", "chrf")
