"""Claims about the training loop: schedules by hand, updates by hand, validations that are told and not made."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2seq.cli.main import Terminated
from seq2seq.cli.signals import StopRequest
from seq2seq.config.loading import load_config
from seq2seq.config.schema import TrainingConfig
from seq2seq.corpus.batches import collate
from seq2seq.errors import CheckpointError, TrainingError
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.runs import RunFolder
from seq2seq.training.gradients import Ahead
from seq2seq.training.log import clock, line_of
from seq2seq.training.optimizer import Schedule, build_optimizer
from seq2seq.training.prepare import Prepared, prepare
from seq2seq.training.progress import Progress, Silent
from seq2seq.training.trainer import Setup, Trainer
from seq2seq.training.updates import HIGHEST_LOSS, MOST_SKIPPED_IN_A_ROW
from seq2seq.training.validation import Stopped, ValidationResult, Validator
from seq2seq.translation.opening import vocabulary_facts
from seq2seq.translation.translator import Translator

CPU = torch.device("cpu")


class Recorder(Silent):
    """A listener that keeps everything."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        self.sentences: list[str] = []

    def reported(self, event: dict) -> None:  # type: ignore[override]
        self.events.append(event)

    def said(self, message: str) -> None:
        self.sentences.append(message)

    def losses(self) -> list[float]:
        return [event["loss"] for event in self.events if event["event"] == "train"]


class Told:
    """A validator that measures what it is told to."""

    def __init__(self, results: Sequence[ValidationResult]) -> None:
        self._results = iter(results)

    def measure(self, should_stop: Callable[[], bool], told: object) -> ValidationResult:
        return next(self._results)


@pytest.fixture(scope="module")
def prepared(trained: Path) -> Prepared:
    """The base corpus, read and encoded."""
    return prepare(load_config(trained.parent / "tiny.yaml"))


@pytest.fixture
def make(trained: Path, prepared: Prepared, tmp_path: Path) -> Iterator[Callable[..., Trainer]]:
    """`make(validator=..., precision=..., epochs=3, ...)`: a trainer of the tiny model, in a run folder of its own."""
    folders = []

    def build(
        validator: object = None,
        precision: torch.dtype = torch.float32,
        should_stop: Callable[[], bool] = lambda: False,
        dropout: float = 0.1,
        **settings: object,
    ) -> Trainer:
        overrides = [f"training.{key}={'null' if value is None else value}" for key, value in settings.items()]
        config = load_config(trained.parent / "tiny.yaml", [*overrides, f"model.dropout={dropout}"])
        tokenizer = prepared.tokenizer
        model = build_model(config.model, tokenizer.source_size, tokenizer.target_size, seed=config.seed)
        folder = RunFolder.vacant(tmp_path / f"run{len(folders)}", overwrite=False)
        folder.create("", tokenizer.files(), replace=False)
        folders.append(folder)
        if validator is None:
            translator = Translator(model, tokenizer, config.decoding, config.data, CPU)
            validator = Validator(prepared.validation, translator, 800, precision)
        setup = Setup(config.seed, CPU, precision, {"vocabulary": vocabulary_facts(tokenizer)})
        return Trainer(
            config.training,
            setup,
            model,
            prepared.train,
            validator,  # type: ignore[arg-type]
            folder,
            Recorder(),
            should_stop,
        )

    yield build
    for folder in folders:
        folder.release()


def weights(model: TranslationModel) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


# -- the learning rate -----------------------------------------------------------------------------------------------


def rates(steps: Sequence[int], total: int = 12, **settings: object) -> list[float]:
    schedule = Schedule(TrainingConfig(learning_rate=0.8, **settings), total)
    return [schedule.rate(step) for step in steps]


def test_the_rate_rises_in_a_line_from_the_first_update() -> None:
    for schedule in ("constant", "cosine", "inverse_sqrt", "plateau"):
        assert rates([1, 2, 3, 4], warmup_steps=4, schedule=schedule) == pytest.approx([0.2, 0.4, 0.6, 0.8])


def test_a_cosine_has_half_its_height_half_way_and_ends_at_nothing() -> None:
    root = math.sqrt(0.5)
    expected = [0.8, 0.4 * (1 + root), 0.4, 0.4 * (1 - root), 0.0, 0.0]
    assert rates([4, 6, 8, 10, 12, 13], warmup_steps=4, schedule="cosine") == pytest.approx(expected, abs=1e-12)
    assert rates([1], total=2, warmup_steps=0, schedule="cosine") == pytest.approx([0.4])
    assert rates([8, 12], warmup_steps=4, schedule="cosine", min_learning_rate=0.5) == [0.5, 0.5]


def test_other_schedules_by_hand() -> None:
    assert rates([4, 16, 64], warmup_steps=4, schedule="inverse_sqrt") == pytest.approx([0.8, 0.4, 0.2])
    assert rates([1, 4], warmup_steps=0, schedule="inverse_sqrt") == pytest.approx([0.8, 0.4])
    assert rates([5, 5000], warmup_steps=4, schedule="constant") == [0.8, 0.8]


def test_a_plateau_lowers_the_rate_after_its_patience_and_begins_to_wait_anew() -> None:
    settings = TrainingConfig(
        learning_rate=0.8, warmup_steps=0, schedule="plateau", plateau_patience=1, plateau_factor=0.5
    )
    schedule = Schedule(settings, 12)
    seen = []
    for better in (True, False, True, False, False, False, False, True):
        schedule.after_validation(better)
        seen.append(schedule.rate(9))
    assert seen == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2])


# -- one update ------------------------------------------------------------------------------------------------------


def test_two_batches_accumulated_are_one_batch_of_both(make: Callable[..., Trainer]) -> None:
    settings = {"dropout": 0.0, "optimizer": "adam", "warmup_steps": 0, "label_smoothing": 0.1}
    # Of different sizes and lengths, so that a mean of means would not do.
    first, second = np.arange(3, 16), np.arange(40, 45)
    parts, whole = make(**settings), make(**settings)
    parts._update([first, second])
    whole._update([np.concatenate([first, second])])
    for (name, one), other in zip(parts.model.named_parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-7, msg=name)
        # Adam's first step divides a gradient by its own size: of mere rounding it makes a whole step.
        clear = other.grad.abs() > 1e-4
        torch.testing.assert_close(one[clear], other[clear], rtol=0, atol=1e-6, msg=name)
    assert parts.progress.interval_tokens == whole.progress.interval_tokens
    assert parts._updates.loss_sum.item() == pytest.approx(whole._updates.loss_sum.item(), rel=1e-6)


def test_the_first_update_is_adam_s_by_hand(make: Callable[..., Trainer], prepared: Prepared) -> None:
    trainer = make(dropout=0.0, warmup_steps=0, schedule="constant", clip_norm=0.5, learning_rate=0.01)
    before = weights(trainer.model)
    indices = np.arange(20)
    batch = collate(prepared.train, indices)
    loss, _ = trainer.model.loss(batch, 0.1)
    (loss / batch.tokens).backward()
    gradients = {name: p.grad.clone() for name, p in trainer.model.named_parameters()}
    norm = math.sqrt(sum(float((gradient.double() ** 2).sum()) for gradient in gradients.values()))
    assert norm > 0.5  # so that it is shortened
    trainer._update([indices])
    for name, parameter in trainer.model.named_parameters():
        gradient = gradients[name] * (0.5 / norm)
        # At the first update both moments, corrected for their start at zero, are the gradient and its square.
        expected = before[name] - 0.01 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-4, atol=1e-5)


def test_biases_are_never_decayed(make: Callable[..., Trainer]) -> None:
    trainer = make(optimizer="adamw", weight_decay=0.3)
    optimizer = build_optimizer(trainer.model, trainer.settings)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert len(decay) == len(list(trainer.model.parameters()))
    for _, parameter in trainer.model.named_parameters():
        assert decay[id(parameter)] == (0.3 if parameter.dim() > 1 else 0.0)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_either_precision_learns(make: Callable[..., Trainer], precision: torch.dtype) -> None:
    trainer = make(precision=precision, epochs=6, log_every=7, validate_every=1000, schedule="constant")
    assert trainer.train().reason == "epochs"
    losses = trainer.listener.losses()  # type: ignore[attr-defined]
    assert losses[-1] < losses[0] - 1.0
    assert all(parameter.dtype == torch.float32 for parameter in trainer.model.parameters())


# -- numbers that are not finite -------------------------------------------------------------------------------------


def spoil(trainer: Trainer, calls: Sequence[int], factor: float) -> None:
    """Multiplies the loss of the given calls, counted from 1."""
    original, count = trainer.model.loss, iter(range(1, 1000))

    def spoilt(*arguments: object) -> tuple[torch.Tensor, torch.Tensor]:
        loss, nll = original(*arguments)
        return (loss * factor if next(count) in calls else loss), nll

    trainer.model.loss = spoilt  # type: ignore[method-assign]


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1000.0])
def test_an_update_without_a_finite_loss_changes_nothing_c513(make: Callable[..., Trainer], factor: float) -> None:
    trainer = make(dropout=0.0)
    trainer._update([np.arange(9)])
    before = weights(trainer.model)
    moments = {key: value.clone() for key, value in next(iter(trainer.optimizer.state.values())).items()}
    tokens = trainer.progress.interval_tokens
    spoil(trainer, [1], factor)
    trainer._update([np.arange(9, 20)])
    assert all(torch.equal(weight, before[name]) for name, weight in weights(trainer.model).items())
    for key, value in next(iter(trainer.optimizer.state.values())).items():
        assert torch.equal(value, moments[key])
    assert (trainer.progress.step, trainer.progress.skipped, trainer.progress.interval_tokens) == (2, 1, tokens)
    assert "update 2 skipped" in trainer.listener.sentences[0]  # type: ignore[attr-defined]
    trainer._update([np.arange(20, 30)])
    assert trainer.progress.skipped_in_a_row == 0
    assert not torch.equal(next(iter(weights(trainer.model).values())), next(iter(before.values())))


@pytest.mark.parametrize("factor", [1.0, math.nan])
def test_not_waiting_for_a_gpu_changes_nothing(make: Callable[..., Trainer], factor: float) -> None:
    """The way of a GPU, on a processor: the optimizer decides by itself, and outcomes are looked at an update late."""
    waiting, running = (make(epochs=2, log_every=5, validate_every=9, dropout=0.2) for _ in range(2))
    if not running.optimizer.param_groups[0]["fused"]:
        pytest.skip("PyTorch before 2.4 has no optimizer that decides by itself on a processor")
    running._waits = False
    for trainer in (waiting, running):
        spoil(trainer, [4, 9], factor)
        torch.manual_seed(5)  # for dropout
        trainer.train()
    assert all(torch.equal(weight, weights(running.model)[name]) for name, weight in weights(waiting.model).items())
    assert running.progress.skipped == waiting.progress.skipped == (0 if factor == 1.0 else 2)
    assert waiting.listener.losses() == running.listener.losses()  # type: ignore[attr-defined]


def test_an_overflow_in_fp16_lowers_the_scale_and_is_no_failure(make: Callable[..., Trainer]) -> None:
    trainer = make(dropout=0.0)
    trainer.progress.loss_scale = 8.0
    spoil(trainer, [1, 2, 3, 4], math.nan)
    for _ in range(4):
        trainer._update([np.arange(9)])
    assert (trainer.progress.loss_scale, trainer.progress.skipped) == (1.0, 4)
    assert trainer.progress.skipped_in_a_row == 1, "at a scale of one it is the training's own fault"


def test_a_scaled_loss_gives_the_same_gradients(make: Callable[..., Trainer]) -> None:
    plain, scaled = make(dropout=0.0), make(dropout=0.0)
    scaled.progress.loss_scale = 2.0**10
    for trainer in (plain, scaled):
        trainer._update([np.arange(9), np.arange(20, 25)])
    for one, other in zip(plain.model.parameters(), scaled.model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-8)


def test_the_batches_made_ahead_are_those_that_are_asked_for() -> None:
    made: list[list[int]] = []

    def make_one(indices: np.ndarray) -> np.ndarray:
        made.append(indices.tolist())
        return indices

    ahead = Ahead(make_one)  # type: ignore[arg-type]
    first, second, third = np.arange(3), np.arange(3, 5), np.arange(5, 9)
    for now, following in (([first], [second]), ([second], [first]), ([third], [])):
        assert [batch.tolist() for batch in ahead.take(now, following)] == [indices.tolist() for indices in now]
    assert made.count([3, 4]) == 1, "what was made ahead is not made again"


def test_many_of_them_in_a_row_end_the_training_with_advice_c513(make: Callable[..., Trainer]) -> None:
    trainer = make()
    spoil(trainer, [3, *range(5, 100)], math.nan)
    with pytest.raises(TrainingError, match=rf"non-finite.*step {4 + MOST_SKIPPED_IN_A_ROW}; lower training\.learning"):
        trainer.train()


def test_blind_guessing_is_far_from_the_highest_loss() -> None:
    assert math.log(1_000_000) * 3 < HIGHEST_LOSS


def test_weights_that_are_not_finite_are_not_saved_c513(make: Callable[..., Trainer]) -> None:
    trainer = make(validator=Told([result(bleu=1.0)]))
    trainer._began = 0.0
    trainer._save_last()
    before = (trainer.run.path / "last" / "weights.safetensors").read_bytes()
    with torch.no_grad():
        next(trainer.model.parameters())[0, 0] = math.inf
    for save in (trainer._save_last, trainer._validate):
        with pytest.raises(TrainingError, match="weights are non-finite at step 0"):
            save()
    assert (trainer.run.path / "last" / "weights.safetensors").read_bytes() == before
    assert not trainer.run.has("best")


# -- choosing the best -----------------------------------------------------------------------------------------------


def result(loss: float = 2.0, bleu: float = 0.0, chrf: float = 0.0) -> ValidationResult:
    return ValidationResult(loss, math.exp(loss) if math.isfinite(loss) else loss, bleu, chrf, [])


def validations(trainer: Trainer) -> list[dict]:
    return [event for event in trainer.listener.events if event["event"] == "validation"]  # type: ignore[attr-defined]


def test_a_validation_that_is_not_a_number_is_never_best_and_blocks_none_c514(make: Callable[..., Trainer]) -> None:
    nan = result(loss=math.nan, bleu=90.0, chrf=90.0)
    for choose_by in ("loss", "bleu", "chrf"):
        told = Told([nan, result(3.0, 5.0, 5.0), nan, result(2.0, 6.0, 6.0)])
        trainer = make(validator=told, epochs=4, choose_by=choose_by, patience=None)
        summary = trainer.train()
        assert (summary.reason, summary.best_step) == ("epochs", 28)
        assert summary.best_scores is not None
        assert summary.best_scores["loss"] == 2.0
        assert [event["loss"] for event in validations(trainer)] == [None, 3.0, None, 2.0]
        assert trainer.run.load("best").facts["step"] == 28
        assert trainer.run.load("last").facts["progress"]["best_score"] in (-2.0, 6.0)


def test_validations_that_are_never_a_number_end_by_patience_c514(make: Callable[..., Trainer]) -> None:
    trainer = make(validator=Told([result(math.nan)] * 9), epochs=9, patience=3)
    summary = trainer.train()
    assert (summary.reason, summary.step, summary.best_scores) == ("patience", 21, None)
    assert not trainer.run.has("best")
    assert trainer.run.has("last")


@pytest.mark.parametrize(("choose_by", "best_epoch"), [("loss", 1), ("bleu", 2), ("chrf", 3)])
def test_the_setting_chooses_the_best(make: Callable[..., Trainer], choose_by: str, best_epoch: int) -> None:
    told = Told([result(1.0, 5.0, 7.0), result(2.0, 6.0, 7.0), result(3.0, 4.0, 8.0)])
    summary = make(validator=told, epochs=3, choose_by=choose_by).train()
    assert summary.best_step == 7 * best_epoch


def test_an_equal_score_is_not_a_better_one(make: Callable[..., Trainer]) -> None:
    summary = make(validator=Told([result(bleu=5.0)] * 9), epochs=9, patience=2).train()
    assert (summary.reason, summary.best_step, summary.step) == ("patience", 7, 21)


def test_a_falling_loss_is_worth_waiting_for_whatever_bleu_does(make: Callable[..., Trainer]) -> None:
    told = Told([result(3.0, 5.0), result(2.9, 9.0), *(result(2.8 - step / 10, 8.0) for step in range(4))])
    summary = make(validator=told, epochs=6, patience=2).train()
    assert (summary.reason, summary.best_step, summary.step) == ("epochs", 14, 42)
    rising = Told([result(2.0, 5.0), result(2.1, 6.0), *([result(2.2, 6.0)] * 4)])
    summary = make(validator=rising, epochs=6, patience=2).train()
    assert (summary.reason, summary.best_step, summary.step) == ("patience", 14, 28)


def test_the_best_checkpoint_holds_the_weights_of_its_step(make: Callable[..., Trainer]) -> None:
    trainer = make(validator=Told([result(bleu=5.0), result(bleu=4.0)]), epochs=2)
    kept = {}
    measure = trainer.validator.measure

    def remembering(should_stop: Callable[[], bool], told: object) -> ValidationResult:
        kept[trainer.progress.step] = weights(trainer.model)
        return measure(should_stop, told)

    trainer.validator.measure = remembering  # type: ignore[misc, method-assign]
    trainer.train()
    for name, step in (("best", 7), ("last", 14)):
        saved = trainer.run.load(name).weights
        assert saved.keys() == kept[step].keys()
        assert all(torch.equal(saved[key], kept[step][key]) for key in saved)


# -- when a checkpoint is written, and how a training ends -----------------------------------------------------------


def record_saves(trainer: Trainer) -> list[tuple[str, int]]:
    """The list to which each checkpoint will be added, by name and step."""
    saved: list[tuple[str, int]] = []
    save = trainer.run.save

    def recording(name: str, *arguments: object) -> None:
        saved.append((name, trainer.progress.step))
        save(name, *arguments)  # type: ignore[arg-type]

    trainer.run.save = recording  # type: ignore[method-assign, assignment]
    return saved


def test_each_limit_ends_a_training(make: Callable[..., Trainer]) -> None:
    assert make(max_steps=2).train().reason == "max_steps"
    assert make(max_minutes=1e-9).train().reason == "max_minutes"
    summary = make(should_stop=lambda: True).train()
    assert (summary.reason, summary.step) == ("stopped", 0)


def test_a_checkpoint_is_written_as_often_as_asked(make: Callable[..., Trainer]) -> None:
    trainer = make(validator=Told([result()] * 3), checkpoint_every=3, validate_every=6, max_steps=8)
    saved = record_saves(trainer)
    trainer.train()
    assert saved == [("last", 3), ("best", 6), ("last", 6), ("last", 8)]


def test_a_checkpoint_may_be_asked_for_by_the_minute(
    make: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 10**6, 4))  # every look at the clock is four seconds after the one before
    monkeypatch.setattr("seq2seq.training.trainer.time.perf_counter", lambda: float(next(now)))
    trainer = make(validator=Told([result()] * 3), checkpoint_every="0.5 min", validate_every=100, max_steps=9)
    saved = record_saves(trainer)
    trainer.train()
    assert 3 <= len(saved) < 9
    assert saved[-1] == ("last", 9)


def test_there_is_something_to_resume_before_there_is_a_best(make: Callable[..., Trainer]) -> None:
    trainer = make(validator=Told([result()]), epochs=1)
    saved = record_saves(trainer)
    trainer.train()
    assert saved[:3] == [("last", 7), ("best", 7), ("last", 7)]


# -- validation ------------------------------------------------------------------------------------------------------


def test_validation_is_measured_per_real_token_and_leaves_no_trace(
    make: Callable[..., Trainer], prepared: Prepared
) -> None:
    trainer = make(dropout=0.4)
    trainer.model.train()
    state = torch.get_rng_state()
    measured = trainer.validator.measure(lambda: False)
    assert torch.equal(torch.get_rng_state(), state)
    assert trainer.model.training
    trainer.model.eval()
    encoded = prepared.validation.encoded
    total = tokens = 0.0
    for number in range(len(encoded)):  # one by one: no padding at all
        batch = collate(encoded, [number])
        total += trainer.model.loss(batch, 0.0)[1].item()
        tokens += batch.tokens
    assert measured.loss == pytest.approx(total / tokens, rel=1e-5)
    assert measured.perplexity == pytest.approx(math.exp(total / tokens), rel=1e-4)
    alone = [next(trainer.validator.translator.translate([s], beam_size=1)).text for s in prepared.validation.sources]
    assert measured.hypotheses == alone


def test_a_request_to_stop_is_heard_between_two_batches_of_a_validation(make: Callable[..., Trainer]) -> None:
    trainer = make()
    validator = trainer.validator
    validator.translator.decoding = validator.translator.decoding.model_copy(update={"batch_size": 5})
    asked = []

    def never() -> bool:
        asked.append(1)
        return False

    told: list[tuple[int, int]] = []
    validator.measure(never, lambda done, of: told.append((done, of)))
    assert told == [(0, 20), (5, 20), (10, 20), (15, 20)]
    assert len(asked) >= 1 + 20 // 5
    for limit in range(len(asked)):
        left = iter([False] * limit + [True])
        trainer.model.train()
        with pytest.raises(Stopped):
            validator.measure(lambda left=left: next(left))  # type: ignore[misc]
        assert trainer.model.training


# -- odds and ends ---------------------------------------------------------------------------------------------------


def test_progress_survives_a_file_and_misses_nothing() -> None:
    progress = Progress(step=7, best_score=-1.5, interval_loss=0.1 + 0.2, best_scores={"loss": None})
    assert Progress.from_dict(progress.as_dict()) == progress
    with pytest.raises(CheckpointError, match="validation_due"):
        Progress.from_dict({key: value for key, value in progress.as_dict().items() if key != "validation_due"})


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_the_first_signal_asks_and_the_second_one_ends_at_once(
    number: signal.Signals, error: type[BaseException]
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(error), StopRequest() as stop:
        stop.end_as_asked()
        assert not stop.asked()
        signal.raise_signal(number)
        assert stop.asked()
        with pytest.raises(error):
            stop.end_as_asked()
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_line_of_the_log_can_be_read_and_split() -> None:
    event = {
        "event": "train", "step": 250, "epoch": 3, "loss": 4.3119, "learning_rate": 8.3e-4, "target_tokens": 1,
        "target_tokens_per_second": 9120.4, "elapsed_seconds": 3723.9,
    }  # fmt: skip
    assert line_of(event) == "step 250  epoch 3  loss 4.312  rate 8.30e-04  9,120 tokens/s  1:02:03"
    assert "loss not finite" in line_of({**event, "loss": None})
    told = {"event": "validation", "step": 5, "loss": 2.0, "perplexity": None, "bleu": 1.0, "chrf": 0.0}
    assert line_of(told) == "step 5  validation  loss 2.000  perplexity -  BLEU 1.00  chrF2 0.00"
    assert [clock(seconds) for seconds in (0.9, 7, 750)] == ["0:00", "0:07", "12:30"]
