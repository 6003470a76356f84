"""Claims about `seq2seq check`: it reads what a training would read, says what it would cost, and makes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from shutil import copy

import pytest
from conftest import ROOT, in_process, numbered_pairs, write_lines
from safetensors.torch import load_file

from seq2seq.corpus.lines import PUBLIC
from seq2seq.download.table import NAMES

MISTAKES = [
    ("training.learnign_rate=1", ("training.learnign_rate", "learning_rate")),
    ("training.epochs=2.5", ("training.epochs",)),
    ("model.attention.kind=aditive", ("aditive", "additive", "general")),
    ("training.device=cuda:99", ("cuda:99", "cpu")),
    ("data.train.source=none.en", ("data.train", "none.en")),
    ("data.validation.target=none.de", ("data.validation", "none.de")),
    ("data.max_length=1", ("data.max_length",)),
]


def rows(out: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w[\w ]*?)  +(.+)$", out, flags=re.MULTILINE))


def test_a_sound_config_gets_its_counts_and_makes_nothing(tiny: Path, trained: Path) -> None:
    before = sorted(tiny.rglob("*"))
    done = in_process("check", tiny / "tiny.yaml")
    assert (done.status, done.err) == (0, "")
    assert sorted(tiny.rglob("*")) == before
    table = rows(done.out)
    assert [table[f"{kind} pairs"] for kind in ("training", "validation", "test")] == ["160", "20", "20"]
    weights = load_file(trained / "last" / "weights.safetensors")
    assert table["parameters"] == f"{sum(tensor.numel() for tensor in weights.values()):,}"
    assert table["vocabulary"] == "150 pieces"
    assert table["updates an epoch"] == "7, about 14 in all"  # as the finished run made
    assert "MiB" in table["expected memory"]
    assert table["device"] == "cpu"
    assert f"seq2seq train {tiny / 'tiny.yaml'}" in done.out


def test_what_is_left_out_is_counted_c021(tiny: Path) -> None:
    sources = [source for source, _ in numbered_pairs()]
    write_lines(tiny / "train.en", [*sources[:5], "", *sources[6:]])
    done = in_process("check", tiny / "tiny.yaml", "--set", "data.max_length=13")
    assert done.status == 0, done.err
    assert re.search(r"data\.train: .*\b1\b", done.out)
    for key in ("data.train", "data.validation"):
        assert re.search(rf"{key}: \d+ pairs .*\(data\.max_length\)", done.out)
    assert int(rows(done.out)["training pairs"]) < 159


@pytest.mark.parametrize(("setting", "words"), MISTAKES)
def test_every_mistake_of_a_config_is_refused_by_name(tiny: Path, setting: str, words: tuple[str, ...]) -> None:
    assert in_process("check", tiny / "tiny.yaml", "--set", setting).refused(*words).out == ""


def test_a_config_that_does_not_exist_is_named_c131(tmp_path: Path) -> None:
    in_process("check", tmp_path / "none.yaml").refused(str(tmp_path / "none.yaml"))


def test_two_vocabularies_are_told_apart(tiny: Path) -> None:
    done = in_process(
        "check", tiny / "tiny.yaml", "--set", "tokenizer.shared=false", "--set", "tokenizer.vocab_size=80"
    )
    assert done.status == 0, done.err
    assert rows(done.out)["vocabulary"] == "80 source, 80 target pieces"


@pytest.mark.parametrize("name", ["reverse", "english_chinese"])
def test_the_configs_that_come_with_the_program_are_sound(name: str) -> None:
    done = in_process("check", ROOT / "configs" / f"{name}.yaml")
    assert done.status == 0, done.err
    assert "is sound" in done.out


def test_a_validation_set_that_was_trained_on_is_not_called_sound(tiny: Path) -> None:
    same = [f"data.validation.{side}={tiny}/train.{code}" for side, code in (("source", "en"), ("target", "de"))]
    done = in_process("check", tiny / "tiny.yaml", "--set", same[0], "--set", same[1])
    said = [line for line in done.out.splitlines() if line.startswith("doctor ")]
    assert done.status == 0, done.err
    assert "error: 160 pairs that are also in the training text (validation" in said[0]
    assert f"seq2seq doctor {tiny / 'tiny.yaml'} --set {same[0]}" in said[-1]
    assert len(said) <= 5
    assert "is sound" not in done.out
    assert "mend the corpus first" in done.out.splitlines()[-1]


@pytest.mark.parametrize(("name", "corpus"), [("multi30k_de_en", "multi30k"), ("tatoeba_en_zh", "tatoeba")])
def test_a_corpus_that_was_not_fetched_yet_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, corpus: str
) -> None:
    (tmp_path / "configs").mkdir()
    config = copy(ROOT / "configs" / f"{name}.yaml", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    assert in_process("check", config).refused(corpus).err.endswith(f": seq2seq download {corpus}\n")
    monkeypatch.chdir(tmp_path / "configs")
    command = f"seq2seq download {corpus} --output {tmp_path / 'data' / corpus}"
    for verb in ("check", "doctor"):
        assert command in in_process(verb, config).refused(corpus).err


def test_the_corpora_that_can_be_fetched_are_those_of_the_download() -> None:
    assert PUBLIC == NAMES


def test_the_expected_time_is_that_of_the_batches(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs of seven updates, in which every batch takes as long as the clock of this test says."""
    from seq2seq.training import timing

    made = []

    def two_seconds(work: Callable[[], object], _device: object) -> float:
        work()
        made.append(work)
        return 2.0

    monkeypatch.setattr(timing, "timed", two_seconds)
    before = sorted(tiny.rglob("*"))
    for setting, count, time in (
        ("training.epochs=2", "14", "28 seconds (2,000 ms a batch), validations not counted"),
        ("training.epochs=100", "700", "23 minutes (2,000 ms a batch), validations not counted"),
        ("training.epochs=1000", "7,000", "3.9 hours (2,000 ms a batch), validations not counted"),
        ("training.accumulate=3", "6", "28 seconds (2,000 ms a batch), validations not counted"),
        ("training.max_steps=5", "5", "10 seconds (2,000 ms a batch), validations not counted"),
        (
            "training.risk_epochs=1",
            "21",
            "28 seconds (2,000 ms a batch), validations and minimum risk training not counted",
        ),
        (
            "training.max_minutes=0.25",
            "14",
            "28 seconds (2,000 ms a batch), validations not counted; training.max_minutes ends it after 0.25",
        ),
    ):
        done = in_process("check", tiny / "tiny.yaml", "--time", "--set", setting)
        assert (done.status, done.err) == (0, "")
        table = rows(done.out)
        assert table["updates an epoch"].split(", about ")[1] == f"{count} in all"
        assert table["expected time"] == f"about {time}"
        assert len(made) <= 3 + 10 // 2  # batches, and no more where they take long
        made.clear()
    assert sorted(tiny.rglob("*")) == before
