"""Claims about ranking: coverage is what attention has covered, and any penalties can be tried on one search."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import in_process, numbered_pairs
from test_ensemble import SOURCES, model

from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS, EOS
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.ranking import Finished, finished, log_coverage, ranked, with_coverage
from seq2seq.translation.search import Hypothesis, search

LIMITS = [7, 5, 9, 6]


@torch.inference_mode()
def hypotheses(searched: Any, penalty: float = 1.0, beam: int = 4, n_best: int = 4) -> list[list[Hypothesis]]:
    src, mask = collate_sources(SOURCES)
    return search(searched, src, mask, LIMITS, SearchSettings(BOS, EOS, beam, penalty, n_best))


def everything(searched: Any) -> list[list[Finished]]:
    return [finished(these, limit) for these, limit in zip(hypotheses(searched), LIMITS, strict=True)]


def test_coverage_is_the_sum_of_logarithms_of_what_was_attended_to_at_most_once() -> None:
    covered = torch.tensor([[0.5, 1.7, 0.2, 9.0], [1.0, 1.0, 2.0, 0.1]])
    mask = torch.tensor([[True, True, True, False], [True, True, True, False]])
    expected = [math.log(0.5) + math.log(0.2), 0.0]
    assert log_coverage(covered, mask).tolist() == pytest.approx(expected)


def test_a_source_word_without_any_attention_costs_much_and_not_infinitely() -> None:
    (cost,) = log_coverage(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)).tolist()
    assert -100 < cost < -80


@pytest.mark.parametrize("kind", ["parallel", "step"])
@torch.inference_mode()
def test_coverage_equals_that_of_each_hypothesis_said_alone_step_by_step(kind: str) -> None:
    members = [model(seed, decoder={"kind": kind}) for seed in (1, 2)]
    src, mask = collate_sources(SOURCES)
    found = with_coverage(everything(members[0]), members, src, mask)
    assert len({one.length for these in found for one in these}) > 2
    for source, these in zip(SOURCES, found, strict=True):
        src, mask = collate_sources([source])
        for one in these:
            covered = torch.zeros(1, src.shape[1])
            for member in members:
                state = member.start(src, mask)
                for word in [BOS, *one.ids][: one.length]:
                    _, weights, state = member.decode(torch.tensor([[word]]), state)
                    covered += weights[:, 0] / 2
            assert one.coverage == pytest.approx(log_coverage(covered, mask).item(), abs=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 1.7])
def test_ranking_one_search_again_is_searching_again(seed: int, penalty: float) -> None:
    searched = model(seed)
    expected = hypotheses(searched, penalty, n_best=1)
    for found, (best,) in zip(everything(searched), expected, strict=True):
        again = ranked(found, penalty, 0.0)[0]
        assert again.ids == best.ids
        assert again.score == pytest.approx(best.score, rel=1e-5)


def test_what_the_limit_cut_off_comes_last_and_equals_keep_their_order() -> None:
    cut, low, high, same = (
        Finished([4] * 5, -0.1, closed=False),
        Finished([4, 5], -6.0, closed=True),
        Finished([4, 6], -3.0, closed=True),
        Finished([4, 7], -3.0, closed=True),
    )
    assert [one.ids for one in ranked([cut, low, high, same], 1.0, 0.0)] == [high.ids, same.ids, low.ids, cut.ids]
    assert [one.length for one in (cut, low)] == [5, 3]


def test_coverage_can_turn_the_order() -> None:
    probable, complete = Finished([4], -1.0, True, coverage=-9.0), Finished([5], -1.2, True, coverage=-0.5)
    assert ranked([probable, complete], 0.0, 0.01)[0].ids == [4]
    best = ranked([probable, complete], 0.0, 0.1)[0]
    assert (best.ids, best.score) == ([5], pytest.approx(-1.25))


# -- on the command line ---------------------------------------------------------------------------------------------

TEXT = "".join(f"{source}\n" for source, _ in numbered_pairs(12, first=181)).encode()


def n_best(run: Path, *how: object) -> list[list[str]]:
    done = in_process("translate", run, "--n-best", 4, *how, stdin=TEXT)
    assert done.status == 0, done.err
    return [line.split(" ||| ") for line in done.out.splitlines()]


def test_a_coverage_penalty_of_zero_changes_nothing_and_a_high_one_does(trained: Path) -> None:
    plain = n_best(trained, "--beam", 4)
    assert n_best(trained, "--beam", 4, "--coverage-penalty", 0) == plain
    covered = n_best(trained, "--beam", 4, "--coverage-penalty", 3)
    assert covered != plain
    assert sorted(line[:2] for line in covered) == sorted(line[:2] for line in plain), "the same in another order"


def test_penalties_are_settings_as_well(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    lines = (run / "config.yaml").read_text(encoding="utf-8").replace("length_penalty: 1.0", "length_penalty: 0.5")
    lines = lines.replace("coverage_penalty: 0.0", "coverage_penalty: 0.3").split("\n")
    (run / "config.yaml").write_text("\n".join([lines[0], *lines[2:]]), encoding="utf-8")  # line 2 is the seal
    heading = in_process("evaluate", run).out.splitlines()[0]
    assert heading == "20 sentences, beam 5, length penalty 0.5, coverage penalty 0.3"
    heading = in_process("evaluate", run, "--coverage-penalty", 0, "--length-penalty", 1).out.splitlines()[0]
    assert heading == "20 sentences, beam 5"


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "101", "much"])
def test_a_penalty_is_a_number_from_0_to_100(trained: Path, value: str) -> None:
    in_process("translate", trained, f"--coverage-penalty={value}").refused("--coverage-penalty", value, "0 to 100")
