"""Claims about ensembles: the mean of the members' probabilities decides, and only equal vocabularies can be mixed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import in_process, numbered_pairs
from torch import Tensor

from seq2seq.cli.decoding import runs_and_file
from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS, EOS, PAD
from seq2seq.model.places import Places
from seq2seq.model.shortlist import Shortlist, Shortlisted
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.ensemble import Ensemble
from seq2seq.translation.search import search

S, V = 20, 17
SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [4, 4]]


def model(seed: int, **changes: Any) -> TranslationModel:
    settings = {"embedding_size": 12, "hidden_size": 8, "attention": {"heads": 2}, "tie_embeddings": "decoder"}
    made = build_model(ModelConfig.model_validate(settings | changes), S, V, seed=seed).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter *= 2.0  # an untrained model has hardly an opinion; this one has
    return made


def mixed() -> list[TranslationModel]:
    """Members of different kinds, whose states look nothing alike."""
    return [
        model(1),
        model(2, decoder={"kind": "step", "layers": 2}),
        model(3, attention={"kind": "additive"}, lexical_model=True),
    ]


@torch.inference_mode()
def found(searched: Any, sources: list[list[int]], beam: int = 3) -> list[tuple[list[int], float]]:
    src, mask = collate_sources(sources)
    best = search(searched, src, mask, [9] * len(sources), SearchSettings(BOS, EOS, beam))
    return [(hypotheses[0].ids, hypotheses[0].score) for hypotheses in best]


@torch.inference_mode()
def test_the_mean_is_that_of_probabilities_word_by_word() -> None:
    members = mixed()
    ensemble = Ensemble(members)
    src, mask = collate_sources(SOURCES)
    previous, state = torch.tensor([BOS] * 4), ensemble.start(src, mask)
    states = [member.start(src, mask) for member in members]
    for _ in range(3):
        best, words, state = ensemble.step(previous, state, 5)
        probabilities = []
        for number, member in enumerate(members):
            logits, states[number] = member.logits(previous, states[number])
            probabilities.append(logits.double().softmax(dim=1))
        mean = torch.stack(probabilities).mean(dim=0)
        mean[:, [PAD, BOS]] = 0.0
        expected = mean.topk(5, dim=1)
        torch.testing.assert_close(best.exp().double(), expected.values, rtol=1e-5, atol=1e-7)
        assert torch.equal(words, expected.indices)
        previous = words[:, 1]


def test_an_ensemble_of_one_model_with_itself_is_that_model() -> None:
    alone = model(1)
    for (ids, score), (expected, expected_score) in zip(
        found(Ensemble([alone, alone]), SOURCES), found(alone, SOURCES), strict=True
    ):
        assert ids == expected
        assert score == pytest.approx(expected_score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_of_an_ensemble_does_not_depend_on_its_batch(beam: int) -> None:
    ensemble = Ensemble(mixed())
    together = found(ensemble, SOURCES, beam)
    for source, (ids, score) in zip(SOURCES, together, strict=True):
        ((alone, alone_score),) = found(ensemble, [source], beam)
        assert alone == ids
        assert score == pytest.approx(alone_score, abs=1e-4)
    assert len({tuple(ids) for ids, _ in together}) > 1


class Sure:
    """A model that gives its one word a probability and the end mark the rest, whatever it reads."""

    def __init__(self, word: int, probability: float) -> None:
        self.word, self.probability = word, probability

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> Sure:
        return self

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> Sure:
        return self

    def log_probabilities(self, previous_R: Tensor, state: Sure) -> tuple[Tensor, Sure]:
        probability_RV = torch.zeros(len(previous_R), V)
        probability_RV[:, self.word], probability_RV[:, EOS] = self.probability, 1.0 - self.probability
        return probability_RV.log(), self

    def words(self, place_RC: Tensor, state: Sure) -> Tensor:
        return place_RC


def test_a_word_that_one_member_rules_out_can_still_be_said() -> None:
    ensemble = Ensemble([Sure(7, 1.0), Sure(8, 0.75), Sure(8, 0.75)])
    best, words, _ = ensemble.step(torch.tensor([BOS]), ensemble.start(torch.zeros(1, 1), torch.ones(1, 1)), 4)
    assert words[0, :3].tolist() == [8, 7, EOS]
    assert best.exp()[0].tolist() == pytest.approx([0.5, 1 / 3, 0.5 / 3, 0.0])


@torch.inference_mode()
def test_an_ensemble_with_a_shortlist_stays_within_it_and_is_the_mean_over_it() -> None:
    likely = torch.full((S, 2), EOS)
    likely[:, 0] = torch.arange(S).clamp(max=V - 1)
    words = Shortlist(likely, torch.tensor([EOS, 14]))
    members = [model(1), model(2)]
    ensemble = Ensemble([Shortlisted(member, words) for member in members])
    for source, (ids, _) in zip(SOURCES, found(ensemble, SOURCES), strict=True):
        assert set(ids) <= {*source, 14}
    src, mask = collate_sources(SOURCES)
    previous = torch.tensor([BOS] * 4)
    each = [member.log_probabilities(previous, member.start(src, mask))[0].exp() for member in ensemble.members]
    mean, _ = ensemble.log_probabilities(previous, ensemble.start(src, mask))
    torch.testing.assert_close(mean.exp(), (each[0] + each[1]) / 2)
    assert mean.shape[1] < V


# -- on the command line ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def second(trained: Path) -> Path:
    """Another run on the same text, from another seed."""
    run = trained.parent / "second"
    done = in_process(
        "train", trained.parent / "tiny.yaml", "--run", run, "--set", "seed=2", "--set", "training.max_steps=9"
    )
    assert done.status == 0, done.err
    return run


@pytest.fixture(scope="module")
def stranger(trained: Path) -> Path:
    """A run with another vocabulary."""
    run = trained.parent / "stranger"
    settings = ("tokenizer.vocab_size=140", "training.max_steps=1")
    words = [word for setting in settings for word in ("--set", setting)]
    done = in_process("train", trained.parent / "tiny.yaml", "--run", run, *words)
    assert done.status == 0, done.err
    return run


def test_runs_are_folders_and_the_file_comes_last(tmp_path: Path) -> None:
    one, two, text = (str(tmp_path / name) for name in ("one", "two", "text.en"))
    Path(one).mkdir()
    Path(two).mkdir()
    Path(text).write_text("x\n")
    none = str(tmp_path / "none")
    assert runs_and_file([one]) == ([one], None)
    assert runs_and_file([none]) == ([none], None)
    assert runs_and_file([one, text]) == ([one], text)
    assert runs_and_file([one, none]) == ([one], none)
    assert runs_and_file([one, two]) == ([one, two], None)
    assert runs_and_file([one, two, text]) == ([one, two], text)
    assert runs_and_file([one, "/dev/stdin"]) == ([one], "/dev/stdin")


def test_several_runs_translate_a_file_or_standard_input_together(trained: Path, second: Path) -> None:
    text = trained.parent / "test.en"
    by_file = in_process("translate", trained, second, text)
    by_pipe = in_process("translate", trained, second / "best", stdin=text.read_bytes())
    assert (by_file.status, by_file.err) == (0, "")
    assert by_file.out == by_pipe.out
    assert by_file.out.count("\n") == 20
    alone = [in_process("translate", run, text).out for run in (trained, second)]
    assert by_file.out not in alone


@pytest.mark.parametrize("how", [("--shortlist",), ("--precision", "bf16"), ("--coverage-penalty", "0.1")])
def test_an_ensemble_goes_with_the_other_ways_to_translate(trained: Path, second: Path, how: tuple[str, ...]) -> None:
    text = "".join(f"{source}\n" for source, _ in numbered_pairs(3, first=181))
    done = in_process("translate", trained, second, *how, stdin=text.encode())
    assert (done.status, done.out.count("\n")) == (0, 3), done.err


def test_evaluate_says_that_its_figures_are_an_ensemble_s(trained: Path, second: Path) -> None:
    done = in_process("evaluate", trained, second, "--beam", 2)
    assert done.out.splitlines()[0] == "20 sentences, ensemble of 2, beam 2"


def test_runs_of_different_vocabularies_are_refused(trained: Path, stranger: Path) -> None:
    for verb in ("translate", "evaluate"):
        done = in_process(verb, trained, stranger)
        done.refused(str(trained), str(stranger), "different vocabularies", "150", "140", "tokenizer")
        assert done.out == ""


def test_runs_into_different_languages_are_refused_though_they_share_a_vocabulary(
    trained: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained, tmp_path / "back")
    config = tmp_path / "back" / "config.yaml"
    lines = config.read_text(encoding="utf-8").replace("target_language: de", "target_language: en").split("\n")
    config.write_text("\n".join([lines[0], *lines[2:]]), encoding="utf-8")  # line 2 is the seal
    in_process("translate", trained, tmp_path / "back", stdin=b"x\n").refused("'de'", "'en'", str(tmp_path / "back"))


def test_what_is_no_run_or_named_twice_is_refused(trained: Path, tmp_path: Path) -> None:
    text = trained.parent / "test.en"
    in_process("translate", trained, text, text).refused(str(text), "comes last")
    in_process("translate", trained, tmp_path / "none", text).refused(str(tmp_path / "none"), "no run folder")
    in_process("translate", trained, trained, text).refused(str(trained), "twice")
    shutil.copytree(trained, tmp_path / "copy")
    (tmp_path / "copy" / "config.yaml").unlink()
    in_process("evaluate", trained, tmp_path / "copy").refused("config.yaml")
