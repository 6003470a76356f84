"""Claims about what TensorBoard is told; the authority is TensorBoard's own reader of its files."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from conftest import in_process

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from seq2seq.evaluation.training_record import number
from seq2seq.runs import RunFolder
from seq2seq.training.progress import Progress
from seq2seq.training.tensorboard import _CURVES, Board, attention_of
from seq2seq.translation.translator import Translator

ON = ("--set", "training.tensorboard=true", "--set", "data.test=null", "--set", "training.epochs=3")


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    return found.Reload()


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    found = read(folder)
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def recorded(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The same, by metrics.jsonl."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in RunFolder(folder).metrics():
        for name in _CURVES.get(event["event"], ()):
            if (value := number(event, name)) is not None:
                found.setdefault(f"{event['event']}/{name}", []).append((event["step"], value))
    return found


def assert_same(folder: Path) -> None:
    ours, theirs = recorded(folder), curves(folder)
    assert ours.keys() == theirs.keys()
    for tag, points in ours.items():
        assert [step for step, _ in theirs[tag]] == [step for step, _ in points], tag
        assert [value for _, value in theirs[tag]] == pytest.approx([value for _, value in points], rel=1e-6), tag


def test_the_board_holds_the_record_translations_and_attention_and_a_resume_tells_nothing_twice(tiny: Path) -> None:
    run = tiny / "run"
    stop = ("--set", "training.max_steps=20", "--set", "training.checkpoint_every=7")
    done = in_process("train", tiny / "tiny.yaml", *ON, *stop)
    assert done.status == 0, done.err
    assert_same(run)
    assert min(len(points) for points in curves(run).values()) >= 1
    assert "train/gradient_norm" in curves(run)
    # As after a crash: last/ is of an earlier step than what has been told since.
    facts = json.loads((run / "last" / "checkpoint.json").read_text(encoding="utf-8"))
    with Board(RunFolder(run)) as crashed:
        crashed.started(Progress(step=facts["step"]), 99)
        for step in range(facts["step"] + 1, facts["step"] + 5):
            crashed.reported({"event": "train", "step": step, "loss": 99.0})
    done = in_process("train", "--run", run, "--resume", *ON)
    assert done.status == 0, done.err
    assert_same(run)
    found = read(run)
    (table,) = {
        event.tensor_proto.string_val[0].decode()
        for event in found.Tensors("validation/translations/text_summary")[-1:]
    }
    assert "source" in table
    assert "The" in table
    if importlib.util.find_spec("matplotlib") is not None:
        assert found.Images("attention/1")[-1].width > 100


def test_a_validation_that_is_told_again_is_told_once_and_its_update_remains(tiny: Path) -> None:
    folder = RunFolder(tiny / "run")
    folder.path.mkdir()
    train, validation = {"event": "train", "step": 5, "loss": 2.0}, {"event": "validation", "step": 5, "loss": 3.0}
    with Board(folder) as board:
        board.started(Progress(), 9)
        for event in (train, validation):
            folder.append_metrics(event)
            board.reported(event)
    folder.forget_metrics_after(5, validation_due=True)
    with Board(folder) as board:
        board.started(Progress(step=5, validation_due=True), 9)
        folder.append_metrics(validation)
        board.reported(validation)
    assert curves(folder.path) == {"train/loss": [(5, 2.0)], "validation/loss": [(5, 3.0)]}


def test_a_run_that_had_no_board_before_gets_all_of_its_record(tiny: Path) -> None:
    folder = RunFolder(tiny / "run")
    folder.path.mkdir()
    for step in (2, 4):
        folder.append_metrics({"event": "train", "step": step, "loss": 1.0 * step})
    with Board(folder) as board:
        board.started(Progress(step=4), 9)
    assert curves(folder.path) == {"train/loss": [(2, 2.0), (4, 4.0)]}


def test_a_board_that_is_not_wanted_leaves_no_trace(trained: Path) -> None:
    assert not (trained / "tensorboard").exists()


def test_the_attention_of_a_translation_is_a_distribution_over_its_source(trained: Path) -> None:
    translator = Translator.load(trained, device="cpu")
    translator.model.train()
    before = torch.get_rng_state()
    weights_TS = attention_of(translator, [5, 6, 7, 8, 9], [10, 11, 12])
    assert weights_TS.shape == (3, 5 + 1)  # and the end of the source
    assert weights_TS.sum(1) == pytest.approx(torch.ones(3), abs=1e-5)
    assert translator.model.training
    assert torch.equal(before, torch.get_rng_state())


def test_without_tensorboard_a_training_that_wants_it_is_refused_before_it_begins(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "tensorboard" else spec(name, *rest)
    )
    in_process("train", tiny / "tiny.yaml", *ON).refused("training.tensorboard", ".[tensorboard]")
    assert not (tiny / "run").exists()


def test_overwriting_a_run_begins_its_board_anew(tiny: Path) -> None:
    short = ("--set", "training.max_steps=3", *ON)
    for more in ((), ("--overwrite",)):
        done = in_process("train", tiny / "tiny.yaml", *short, *more)
        assert done.status == 0, done.err
    assert len(list((tiny / "run" / "tensorboard").iterdir())) == 1
