"""Claims about resuming: a training that was stopped and goes on is the training that was never stopped.

A name with c218 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import Finished, in_process, numbered_pairs, write_lines

from seq2seq.training import gradients as training
from seq2seq.training.validation import Stopped, ValidationResult, Validator

TIMES = ("elapsed_seconds", "target_tokens_per_second", "peak_memory_mb")


def told(run: Path) -> list[dict]:
    """The metrics without what a clock says."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]


def train(folder: Path, run: str, *settings: str, more: Sequence[str] = ()) -> Finished:
    overrides = [word for setting in settings for word in ("--set", f"training.{setting}")]
    # Without a test set, whose translation at the end of each of many small trainings would take most of the time.
    done = in_process(
        "train", folder / "tiny.yaml", "--run", folder / run, "--set", "data.test=null", *overrides, *more
    )
    assert done.status == 0, done.err
    return done


def assert_same_run(first: Path, second: Path) -> None:
    """The same weights to the last bit, the same moments and generators, the same story."""
    for name in ("best/weights.safetensors", "last/weights.safetensors", "last/training.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert told(first) == told(second)
    facts = [json.loads((run / "last" / "checkpoint.json").read_text(encoding="utf-8")) for run in (first, second)]
    for timed in facts:
        for name in ("elapsed_seconds", "interval_seconds"):
            del timed["progress"][name]
        del timed["sha256"]
    assert facts[0] == facts[1]


def test_two_epochs_and_two_more_are_four_c218(tiny: Path) -> None:
    train(tiny, "whole", "schedule=constant", "epochs=4")
    train(tiny, "parts", "schedule=constant", "epochs=2")
    assert told(tiny / "parts")[-1]["reason"] == "epochs"
    train(tiny, "parts", "schedule=constant", "epochs=4", more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")


# The second: everything that a schedule and a choice remember. The rate is far too high, so that there are plateaus.
@pytest.mark.parametrize(
    "settings",
    [
        ("epochs=2", "accumulate=2", "batch_tokens=200", "clip_norm=0.5"),
        (
            "epochs=2",
            "schedule=plateau",
            "plateau_patience=0",
            "choose_by=loss",
            "validate_every=2",
            "learning_rate=0.5",
        ),
        ("epochs=2", "optimizer=adamw", "weight_decay=0.01", "schedule=inverse_sqrt", "batch_sentences=48"),
    ],
    ids=["cosine_accumulated", "plateau", "inverse_sqrt_adamw"],
)
def test_stopping_after_every_update_changes_nothing_c218(tiny: Path, settings: tuple[str, ...]) -> None:
    train(tiny, "whole", *settings)
    steps = told(tiny / "whole")[-1]["step"]
    train(tiny, "parts", *settings, "max_steps=1")
    for step in range(2, steps + 1):
        train(tiny, "parts", *settings, f"max_steps={step}", more=["--resume"])
    train(tiny, "parts", *settings, more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")
    if "schedule=plateau" in settings:
        rates = {event["learning_rate"] for event in told(tiny / "whole") if event["event"] == "train"}
        assert min(rates) < 0.5 / 2  # there has been more than one plateau


def test_a_stop_in_the_middle_of_a_validation_only_delays_it_c218(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tiny, "whole")
    measure = Validator.measure

    def stopped(self: Validator, should_stop: object, told: object) -> ValidationResult:
        monkeypatch.setattr(Validator, "measure", measure)
        raise Stopped

    monkeypatch.setattr(Validator, "measure", stopped)
    train(tiny, "parts")
    assert told(tiny / "parts")[-1]["reason"] == "stopped"
    assert not [event for event in told(tiny / "parts") if event["event"] == "validation"]
    train(tiny, "parts", more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")


def test_a_crash_after_the_last_checkpoint_is_told_once_c218(tiny: Path) -> None:
    train(tiny, "whole")
    train(tiny, "parts", "max_steps=8")
    with (tiny / "parts" / "metrics.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"event": "train", "step": 9, "epoch": 2, "loss": 1.0}\n{"event": "tra')  # what a crash leaves
    train(tiny, "parts", more=["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")


def test_the_best_stays_the_best_when_resuming_makes_it_worse_c221(tiny: Path) -> None:
    settings = ("schedule=constant", "choose_by=loss", "patience=null")
    train(tiny, "run", *settings)
    best, last = (tiny / "run" / name / "weights.safetensors" for name in ("best", "last"))
    before = best.read_bytes(), last.read_bytes()
    train(tiny, "run", *settings, "epochs=3", "learning_rate=1.0", "clip_norm=null", more=["--resume"])
    validations = [event for event in told(tiny / "run") if event["event"] == "validation"]
    assert validations[-1]["loss"] > validations[-2]["loss"]
    assert told(tiny / "run")[-1]["best_step"] == validations[-2]["step"]
    assert best.read_bytes() == before[0]
    assert last.read_bytes() != before[1]


def test_a_resumed_epoch_has_an_order_of_its_own_c224(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    collate = training.collate

    def recorded(corpus: object, indices: np.ndarray) -> object:
        seen.extend(int(index) for index in indices)
        return collate(corpus, indices)

    monkeypatch.setattr(training, "collate", recorded)
    train(tiny, "whole")
    unbroken = list(seen)
    seen.clear()
    train(tiny, "parts", "epochs=1")
    train(tiny, "parts", more=["--resume"])
    assert seen == unbroken
    first, second = seen[:160], seen[160:]
    assert sorted(first) == sorted(second) == list(range(160))
    assert first != second


def test_a_finished_run_trains_no_further(tiny: Path) -> None:
    train(tiny, "run")
    before = told(tiny / "run"), (tiny / "run" / "last" / "weights.safetensors").read_bytes()
    train(tiny, "run", more=["--resume"])
    assert (told(tiny / "run"), (tiny / "run" / "last" / "weights.safetensors").read_bytes()) == before


def test_patience_ends_a_training_and_its_resumption(tiny: Path) -> None:
    settings = ("epochs=50", "patience=2", "choose_by=loss", "learning_rate=0.5", "schedule=constant")
    train(tiny, "run", *settings)
    *_, end = story = told(tiny / "run")
    assert end["reason"] == "patience"
    validations = [event for event in story if event["event"] == "validation"]
    best = min(validations, key=lambda event: event["loss"])
    assert end["best_step"] == best["step"] == validations[-3]["step"]
    train(tiny, "run", *settings, more=["--resume"])
    assert told(tiny / "run") == story
    train(tiny, "run", *settings, "patience=3", "max_steps=999", more=["--resume"])
    assert told(tiny / "run")[-1]["step"] > end["step"]


def test_without_a_config_a_run_goes_on_with_its_own(tiny: Path) -> None:
    train(tiny, "whole", "learning_rate=3e-3")
    train(tiny, "run", "learning_rate=3e-3", "max_steps=5")
    (tiny / "tiny.yaml").unlink()
    done = in_process("train", "--run", tiny / "run", "--resume", "--set", "training.max_steps=null")
    assert done.status == 0, done.err
    assert_same_run(tiny / "whole", tiny / "run")
    assert "learning_rate: 0.003" in (tiny / "run" / "config.yaml").read_text(encoding="utf-8")


def test_the_same_corpus_may_lie_elsewhere(tiny: Path) -> None:
    train(tiny, "run", "max_steps=5")
    (tiny / "train.en").rename(tiny / "moved.en")
    done = in_process("train", tiny / "tiny.yaml", "--resume", "--set", f"data.train.source={tiny / 'moved.en'}")
    assert done.status == 0, done.err
    assert told(tiny / "run")[-1]["reason"] == "epochs"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("model.hidden_size=64", ("model.hidden_size", "32", "64")),
        ("model.attention.kind=additive", ("model.attention.kind", "multi_head", "additive")),
        ("tokenizer.model_type=char", ("tokenizer.model_type", "bpe", "char")),
        ("training.batch_tokens=300", ("training.batch_tokens", "400", "300")),
        ("seed=2", ("seed", "1", "2")),
        ("tokenizer.vocab_size=140", ("vocabulary", "150", "140", "tokenizer.vocab_size")),
    ],
)
def test_what_would_make_another_training_is_refused_by_name_c211(
    trained: Path, setting: str, words: tuple[str, ...]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*")}
    in_process("train", trained.parent / "tiny.yaml", "--resume", "--set", setting).refused(*words)
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*")} == before


def test_another_tokenizer_in_the_folder_is_refused_in_words_of_vocabularies_c211(tiny: Path, trained: Path) -> None:
    shutil.copytree(trained, tiny / "run")
    done = in_process("train", tiny / "tiny.yaml", "--run", tiny / "other", "--set", "tokenizer.vocab_size=140")
    assert done.status == 0
    shutil.copy(tiny / "other" / "tokenizer.model", tiny / "run" / "tokenizer.model")
    for command in (("train", tiny / "tiny.yaml", "--resume"), ("translate", tiny / "run", tiny / "test.en")):
        in_process(*command).refused("vocabular", "150", "140")


@pytest.mark.parametrize("change", ["word", "order", "count"])
def test_another_corpus_is_refused(tiny: Path, trained: Path, change: str) -> None:
    shutil.copytree(trained, tiny / "run")
    pairs = numbered_pairs()
    if change == "word":
        pairs[50] = (pairs[50][0].replace(" ", " the ", 1), pairs[50][1])
    elif change == "order":
        pairs[0], pairs[1] = pairs[1], pairs[0]
    else:
        pairs.pop()
    write_lines(tiny / "train.en", [source for source, _ in pairs])
    write_lines(tiny / "train.de", [target for _, target in pairs])
    weights = (tiny / "run" / "last" / "weights.safetensors").read_bytes()
    in_process("train", tiny / "tiny.yaml", "--resume").refused("training pairs", str(tiny / "run"))
    assert (tiny / "run" / "last" / "weights.safetensors").read_bytes() == weights


def test_there_is_nothing_to_resume_in_an_empty_place(tiny: Path) -> None:
    in_process("train", tiny / "tiny.yaml", "--resume").refused(str(tiny / "run"))
    in_process("train", "--run", tiny / "none", "--resume").refused(str(tiny / "none"))


def test_a_resume_without_its_last_checkpoint_says_what_to_do(tiny: Path, trained: Path) -> None:
    shutil.copytree(trained, tiny / "run")
    shutil.rmtree(tiny / "run" / "last")
    done = in_process("train", "--run", tiny / "run", "--resume")
    done.refused(str(tiny / "run" / "last"), "Restore it", "--overwrite")


def test_a_resume_looks_at_the_best_and_goes_on_without_one(tiny: Path, trained: Path) -> None:
    shutil.copytree(trained, tiny / "run")
    best = tiny / "run" / "best"
    (best / "weights.safetensors").unlink()
    more = ("--resume", "--set", "training.epochs=3")
    in_process("train", tiny / "tiny.yaml", *more).refused(str(best), "Restore it", "remove")
    shutil.rmtree(best)
    done = in_process("train", tiny / "tiny.yaml", *more)
    assert (done.status, done.err) == (0, "")
    assert "the best checkpoint is gone" in done.out
    assert told(tiny / "run")[-1]["best_step"] == 21
    assert in_process("translate", tiny / "run", stdin=b"the dog").status == 0


@pytest.mark.parametrize("setting", ["training.max_steps=9", "training.epochs=2", "training.epochs=1"])
def test_a_resume_that_has_nothing_to_do_says_so(tiny: Path, trained: Path, setting: str) -> None:
    shutil.copytree(trained, tiny / "run")
    done = in_process("train", "--run", tiny / "run", "--resume", "--set", "training.epochs=4", "--set", setting)
    assert (done.status, done.err) == (0, "")
    assert f"nothing is left to train: {setting} is reached at step 14; raise it" in done.out
    done = in_process(
        "train", "--run", tiny / "run", "--resume", "--set", "training.epochs=3", "--set", "training.max_steps=null"
    )
    assert "nothing is left" not in done.out
    assert "all epochs done" in done.out
