"""Claims about minimum risk training: its loss is the paper's, its gradient is right, and better translations gain.

Letters: B sentences, K candidates, T target steps, E embedding size, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
import torch
from test_resume import assert_same_run, told, train
from test_trainer import make, prepared, weights  # noqa: F401  (fixtures)
from torch import Tensor
from torch.nn import functional as F

from seq2seq.config.schema import TrainingConfig
from seq2seq.corpus.batches import collate, collate_targets
from seq2seq.corpus.subwords import BOS, EOS, PAD
from seq2seq.evaluation.scores import sentence_bleu
from seq2seq.model import loss, packed, risk
from seq2seq.model.risk import LIKELIHOOD, SHARPNESS, Candidates, risk_loss
from seq2seq.training.candidates import CandidateSearch
from seq2seq.training.optimizer import Schedule
from seq2seq.training.trainer import Trainer

B, K, T, E, V = 3, 4, 5, 6, 11


def candidates() -> Candidates:
    """References and candidates of 1 to 4 words; the second sentence lacks its last two."""
    generator = torch.Generator().manual_seed(5)
    rows: list[list[int] | None] = [
        torch.randint(4, V, (1 + number % 4,), generator=generator).tolist() for number in range(B * (1 + K))
    ]
    rows[1 * (1 + K) + 3] = rows[1 * (1 + K) + 4] = None
    there_BK = torch.ones(B, K, dtype=torch.bool)
    there_BK[1, 2:] = False
    quality_BK = torch.rand(B, K, generator=generator, dtype=torch.float64).masked_fill(~there_BK, 0.0)
    return Candidates(*collate_targets(rows), quality_BK, there_BK)


def given() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((B, K, T, E), (V, E), (V,))
    )
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def ours(x_BKTE: Tensor, weight_VE: Tensor, bias_V: Tensor, made: Candidates, weight_B: Tensor) -> Tensor:
    said_BKT = made.tgt_out_RT.view(B, 1 + K, T)[:, 1:]
    x_NE, said_N, place_N = risk._real(x_BKTE, said_BKT)
    result: Tensor = risk._ExpectedRisk.apply(  # type: ignore[no-untyped-call]
        x_NE, weight_VE, bias_V, said_N, place_N, made, weight_B, torch.float64
    )
    return result


def by_the_formula(x_BKTE: Tensor, weight_VE: Tensor, bias_V: Tensor, made: Candidates, weight_B: Tensor) -> Tensor:
    """Equations 10 to 12 of Shen et al., candidate by candidate, with PyTorch's own parts."""
    said_BKT = made.tgt_out_RT.view(B, 1 + K, T)[:, 1:]
    whole = torch.zeros((), dtype=torch.float64)
    for b in range(B):
        scores, missing = [], []
        for k in range(K):
            said = said_BKT[b, k][said_BKT[b, k] != PAD]
            if made.there_BK[b, k]:
                scores.append(-F.cross_entropy(F.linear(x_BKTE[b, k, : len(said)], weight_VE, bias_V), said))
                missing.append(1 - made.quality_BK[b, k])
        q = torch.softmax(SHARPNESS * torch.stack(scores), 0)
        whole = whole + weight_B[b] * (q * torch.stack(missing)).sum()
    return whole


@pytest.mark.parametrize(("chunk", "step"), [(2**22, 64), (1, 1), (10 * V, 1), (16 * V, 4)])
def test_loss_and_gradients_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch, chunk: int, step: int) -> None:
    monkeypatch.setitem(loss._CHUNK, "cpu", chunk)
    monkeypatch.setattr(packed, "_STEP", step)
    made, numbers = candidates(), given()
    weight_B = torch.tensor([2.0, 5.0, 1.0], dtype=torch.float64)
    found, expected = (way(*numbers, made, weight_B) for way in (ours, by_the_formula))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for one, other in zip(torch.autograd.grad(found, numbers), torch.autograd.grad(expected, numbers), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_the_gradient_is_that_of_small_changes() -> None:
    made, weight_B = candidates(), torch.ones(B, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *numbers: ours(*numbers, made, weight_B), given())


def test_candidates_that_are_equally_good_teach_nothing() -> None:
    made, numbers = candidates(), given()
    alike = Candidates(made.tgt_in_RT, made.tgt_out_RT, torch.full_like(made.quality_BK, 0.4), made.there_BK)
    found = ours(*numbers, alike, torch.ones(B, dtype=torch.float64))
    assert found.item() == pytest.approx(0.6 * B)
    for gradient in torch.autograd.grad(found, numbers):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


def test_what_is_missing_reads_and_says_nothing() -> None:
    tgt_in_RT, tgt_out_RT = collate_targets([[7, 8], None, []])
    assert tgt_in_RT.tolist() == [[BOS, 7, 8], [PAD] * 3, [BOS, PAD, PAD]]
    assert tgt_out_RT.tolist() == [[7, 8, EOS], [PAD] * 3, [EOS, PAD, PAD]]


def test_quality_is_the_smoothed_bleu_of_a_sentence() -> None:
    pairs = [("the cat sat", "the cat sat on the mat"), ("", "a word"), ("a b c d e", "a b c d e")]
    found = sentence_bleu(*zip(*pairs, strict=True), target_language="en")
    ours = [sacrebleu.sentence_bleu(one, [other], smooth_method="add-k", smooth_value=1).score for one, other in pairs]
    assert found == pytest.approx(ours)
    assert found[2] == pytest.approx(100.0)
    (chinese,) = sentence_bleu(["我喜欢猫。"], ["我喜欢狗。"], target_language="zh")
    assert chinese > 20, "Chinese is cut into characters"


# -- in a training ---------------------------------------------------------------------------------------------------


def found_by(trainer: Trainer) -> Candidates:
    """The candidates of the first nine training pairs."""
    search = CandidateSearch(trainer.validator.translator, 4, torch.float32)
    return search.of(collate(trainer.train_corpus, range(9)))


def test_candidates_are_the_beam_of_the_model_as_it_is_now(make: Callable[..., Trainer]) -> None:  # noqa: F811
    trainer = make()
    trainer.model.train()
    made = found_by(trainer)
    assert trainer.model.training
    translator, corpus = trainer.validator.translator, trainer.train_corpus
    trainer.model.eval()
    for number in range(9):
        rows = made.tgt_out_RT.view(9, 5, -1)[number].tolist()
        ids = [[token for token in row if token not in (PAD, EOS)] for row in rows]
        assert ids[0] == corpus.target[number].tolist()
        (beam,) = translator.candidates([corpus.source[number].tolist()], 4)
        assert ids[1:] == [one.ids for one in beam]
        reference = translator.tokenizer.decode_target(ids[0])
        expected = sentence_bleu([translator.text_of([one]) for one in beam], [reference] * 4, target_language="en")
        assert made.quality_BK[number].tolist() == pytest.approx([score / 100 for score in expected], abs=1e-6)


def test_the_reference_weighs_its_share_and_a_sentence_its_length(make: Callable[..., Trainer]) -> None:  # noqa: F811
    """The whole loss against the same from single rows, by the parts that likelihood trains with."""
    trainer = make(dropout=0.0)
    model, made, batch = trainer.model, found_by(trainer), collate(trainer.train_corpus, range(9))
    whole, gold = risk_loss(model, batch, made, 0.1)
    expected, _ = model.loss(batch, 0.1)
    torch.testing.assert_close(gold, expected.detach(), rtol=1e-5, atol=1e-4)
    state = model.decoder.start(model.encode(batch.src_BS, batch.src_mask_BS))
    rows = torch.arange(9).repeat_interleave(5)
    readout_RTE, _, _ = model.decode(made.tgt_in_RT, state.select(rows))
    real_RT = made.tgt_out_RT != PAD
    log_RT = model.output_layer(readout_RTE).log_softmax(-1).gather(2, made.tgt_out_RT.unsqueeze(2)).squeeze(2)
    score_BK = ((log_RT * real_RT).sum(1) / real_RT.sum(1)).view(9, 5)[:, 1:]
    risk_B = (torch.softmax(SHARPNESS * score_BK, 1) * (1 - made.quality_BK)).sum(1)
    torch.testing.assert_close(
        whole, (risk_B * batch.tgt_mask_BT.sum(1)).sum() + LIKELIHOOD * expected, rtol=1e-5, atol=1e-4
    )


def test_updates_lower_the_risk(make: Callable[..., Trainer]) -> None:  # noqa: F811
    trainer = make(epochs=4, risk_epochs=1, dropout=0.0)
    trainer.train()
    made, batch = found_by(trainer), collate(trainer.train_corpus, range(9))
    before, _ = risk_loss(trainer.model, batch, made, 0.1)
    for _ in range(5):
        trainer.optimizer.zero_grad()
        after, _ = risk_loss(trainer.model, batch, made, 0.1)
        after.backward()  # type: ignore[no-untyped-call]
        for parameters in trainer.optimizer.param_groups:
            parameters["lr"] = 1e-3
        trainer.optimizer.step()
    assert after < before


def test_it_begins_from_the_best_weights_with_moments_of_its_own(make: Callable[..., Trainer]) -> None:  # noqa: F811
    trainer = make(epochs=2, risk_epochs=1, learning_rate=0.05)
    seen = {}
    begin = trainer._begin_risk

    def begins() -> None:
        best = trainer.run.load("best").weights
        begin()
        seen.update(weights=weights(trainer.model), best=best, moments=len(trainer.optimizer.state))

    trainer._begin_risk = begins  # type: ignore[method-assign]
    trainer.progress.best_score = None
    summary = trainer.train()
    assert all(torch.equal(weight, seen["best"][name]) for name, weight in seen["weights"].items())
    assert (seen["moments"], summary.epochs, summary.best_step) == (0, 3, 21)
    rates = [event["learning_rate"] for event in trainer.listener.events if event["event"] == "train"]  # type: ignore[attr-defined]
    assert rates[-1] <= 1e-4


def test_patience_ends_likelihood_only(tiny: Path) -> None:
    settings = ("epochs=50", "patience=1", "choose_by=loss", "learning_rate=0.5", "schedule=constant", "risk_epochs=1")
    train(tiny, "run", *settings)
    story = told(tiny / "run")
    epochs = [event["epoch"] for event in story if event["event"] == "train"]
    assert story[-1]["reason"] == "epochs"
    assert epochs[-1] < 50
    assert story[-1]["best_step"] == story[-1]["step"], "the best is chosen anew"


def test_stopping_after_every_update_changes_nothing(tiny: Path) -> None:
    settings = ("epochs=1", "risk_epochs=1", "risk_candidates=3")
    train(tiny, "whole", *settings)
    steps = told(tiny / "whole")[-1]["step"]
    train(tiny, "parts", *settings, f"max_steps={steps // 2}")
    for step in range(steps // 2 + 1, steps + 1):
        train(tiny, "parts", *settings, f"max_steps={step}", more=["--resume"])
    train(tiny, "parts", *settings, more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")


def test_a_finished_training_can_have_it_afterwards(tiny: Path) -> None:
    train(tiny, "whole", "epochs=2", "risk_epochs=1")
    train(tiny, "parts", "epochs=2")
    train(tiny, "parts", "epochs=2", "risk_epochs=1", more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")


def test_sampled_sentences_are_compared_as_they_are_always_cut(tiny: Path) -> None:
    train(tiny, "run", "epochs=1", "risk_epochs=1", "subword_sampling=0.3")
    assert told(tiny / "run")[-1]["reason"] == "epochs"


def test_its_rate_rises_quickly_and_falls_to_nothing() -> None:
    schedule = Schedule(TrainingConfig(risk_epochs=1, risk_learning_rate=2e-4), 1000, 200)
    assert [schedule.risk_rate(step) for step in (5, 10, 100, 200)] == pytest.approx(
        [2e-4 * 0.5 * (1 + math.cos(math.pi * 5 / 200)) / 2, 2e-4 * 0.5 * (1 + math.cos(math.pi / 20)), 1e-4, 0.0]
    )
