"""Claims about checkpoints: whole or not at all, and nothing that a stranger put there is run.

A name with c201 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import ROOT, Finished, in_process

from seq2seq import runs
from seq2seq.checkpoints import FACTS, FORMAT, TRAINING, WEIGHTS, read_facts, sealed
from seq2seq.errors import CheckpointError
from seq2seq.runs import RunFolder


@pytest.fixture
def run(tiny: Path, trained: Path) -> Path:
    """A finished run of one's own, to be damaged."""
    return Path(shutil.copytree(trained, tiny / "run"))


def translate(run: Path, checkpoint: str = "") -> Finished:
    return in_process("translate", run / checkpoint, run.parent / "test.en", "--beam", 1)


def resume(run: Path) -> Finished:
    return in_process("train", run.parent / "tiny.yaml", "--resume")


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def nothing(data: bytes) -> bytes:
    return b""


def a_bit_flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, damage) for name in (WEIGHTS, TRAINING, FACTS) for damage in (half, nothing, a_bit_flipped)),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_path_and_the_other_one_named_c201_c202(
    run: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    for checkpoint, other in (("best", "last"), ("last", "best")):
        path = run / checkpoint / name
        if not path.exists():  # best/ has no training state
            continue
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        if name != TRAINING:
            done = translate(run, checkpoint).refused(str(path), "damaged", str(run / other))
            assert done.out == ""
        if checkpoint == "last":
            resume(run).refused(str(path), "damaged", str(run / other))
        path.write_bytes(whole)
    assert translate(run).status == 0


@pytest.mark.parametrize("name", [WEIGHTS, FACTS])
def test_a_missing_part_is_refused_by_path_c201(run: Path, name: str) -> None:
    (run / "best" / name).unlink()
    translate(run).refused(str(run / "best"), "incomplete", str(run / "last"))
    translate(run, "best").refused(str(run / "best"), "incomplete", str(run / "last"))
    assert translate(run, "last").status == 0
    (run / "last" / name).unlink()
    resume(run).refused(str(run / "last"), "incomplete")
    assert (run / "best").exists()


def test_a_run_without_its_last_checkpoint_is_not_begun_anew_by_a_resume(run: Path) -> None:
    shutil.rmtree(run / "last")
    resume(run).refused(str(run / "last"), str(run / "best"))
    assert translate(run).status == 0


def test_before_the_first_validation_the_last_checkpoint_translates(run: Path) -> None:
    shutil.rmtree(run / "best")
    assert translate(run).out == translate(run, "last").out
    translate(run, "best").refused(str(run / "best"), str(run / "last"))


@pytest.mark.parametrize("damage", [half, nothing, a_bit_flipped])
@pytest.mark.parametrize("name", ["tokenizer.model", "config.yaml"])
def test_a_damaged_tokenizer_or_config_is_refused_by_path_c201_c202(
    run: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = run / name
    path.write_bytes(damage(path.read_bytes()))
    assert translate(run).refused(name).out == ""


class Payload:
    """A pickle that makes a folder when it is opened."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("CASE_PAYLOAD_RAN",)


@pytest.mark.parametrize("by", ["pickle", "torch"])
def test_a_pickle_is_never_opened_c205(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "model.pt"
    if by == "torch":
        torch.save(Payload(), bad)
    else:
        bad.write_bytes(pickle.dumps(Payload()))
    in_process("translate", bad, run.parent / "test.en").refused(str(bad), "not a run folder")
    # In the place of the weights, with its digest in the list.
    weights, facts = run / "best" / WEIGHTS, run / "best" / FACTS
    weights.write_bytes(bad.read_bytes())
    content = json.loads(facts.read_text(encoding="utf-8"))
    digest = hashlib.sha256(bad.read_bytes()).hexdigest()
    content["files"][WEIGHTS] = {"size": bad.stat().st_size, "sha256": digest}
    facts.write_text(json.dumps(sealed(content)), encoding="utf-8")
    translate(run).refused(str(weights), "safetensors")
    facts.write_bytes(bad.read_bytes())
    translate(run).refused(str(facts), "not a checkpoint")
    assert not (tmp_path / "CASE_PAYLOAD_RAN").exists()


def test_a_picture_or_a_text_is_no_checkpoint_c207(run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    for path in (picture, run.parent / "test.en", run / "best" / WEIGHTS):
        in_process("translate", path, run.parent / "test.en").refused(str(path), "not a run folder of this program")
    in_process("translate", ROOT / "tests", run.parent / "test.en").refused("tests", "not a run folder of this program")


def test_a_later_format_is_refused_with_both_numbers_c209(run: Path) -> None:
    for name in ("best", "last"):
        facts = run / name / FACTS
        content = json.loads(facts.read_text(encoding="utf-8"))
        assert content["format"] == FORMAT
        facts.write_text(json.dumps({**content, "format": FORMAT + 1}), encoding="utf-8")
    words = (f"format {FORMAT + 1}", f"format {FORMAT}")
    translate(run).refused(*words)
    resume(run).refused(*words)


def test_a_path_that_does_not_exist_is_named_c214(trained: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "none" / "best", trained / "first"):
        in_process("translate", path, trained.parent / "test.en").refused(str(path))


def test_settings_that_do_not_fit_the_weights_are_refused(run: Path) -> None:
    config = run / "config.yaml"
    written = config.read_text(encoding="utf-8")
    for old, new in (("hidden_size: 32", "hidden_size: 48"), ("heads: 4", "heads: 2")):
        changed = written.replace(old, new)
        assert changed != written
        config.write_text(changed, encoding="utf-8")
        translate(run).refused(str(config), "delete line 2")
        config.write_text("".join(changed.splitlines(keepends=True)[2:]), encoding="utf-8")
        translate(run).refused(str(run / "best"), "does not fit", old.split(": ")[1], new.split(": ")[1])


def test_settings_changed_by_hand_hold_once_their_digest_is_gone(run: Path) -> None:
    config = run / "config.yaml"
    heading, seal, rest = config.read_text(encoding="utf-8").split("\n", 2)
    assert "delete this line" in seal
    config.write_text(f"{heading}\n{rest.replace('beam_size: 5', 'beam_size: 2')}", encoding="utf-8")
    assert translate(run).status == 0


# -- what a crash can leave ------------------------------------------------------------------------------------------


def weights(value: float) -> dict[str, torch.Tensor]:
    return {"w": torch.full((2, 3), value)}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder that has saved 1 and then 2."""
    folder = RunFolder.vacant(tmp_path / "run", overwrite=False)
    folder.create("", {"tokenizer.model": b"x"}, replace=False)
    for value in (1.0, 2.0):
        folder.save("last", weights(value), {"step": int(value)})
    return folder


def loaded(folder: RunFolder) -> float:
    return folder.load("last").weights["w"].mean().item()


def test_a_save_leaves_one_checkpoint_and_nothing_else(folder: RunFolder) -> None:
    assert loaded(folder) == 2.0
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "config.yaml", "last", "tokenizer.model"]


@pytest.mark.parametrize("last_call", range(12))
def test_a_crash_at_any_step_of_a_save_leaves_the_old_or_the_new_one_c505(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, last_call: int
) -> None:
    class Crashed(BaseException):
        pass

    calls = 0

    def crashing(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls > last_call:
                raise Crashed
            return original(*arguments, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "replace", "open"):
            patch.setattr(Path, name, crashing(getattr(Path, name)))
        patch.setattr(shutil, "rmtree", crashing(shutil.rmtree))
        try:
            folder.save("last", weights(3.0), {"step": 3})
            finished = True
        except Crashed:
            finished = False
    assert loaded(folder) in ((3.0,) if finished else (2.0, 3.0))
    # And the next save finds its way through what was left.
    folder.save("last", weights(4.0), {"step": 4})
    assert loaded(folder) == 4.0
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "config.yaml", "last", "tokenizer.model"]


def test_the_newest_whole_checkpoint_stands_in_between_two_renames_c505(folder: RunFolder) -> None:
    last = folder.path / "last"
    last.rename(folder.path / "last.next")
    assert folder.has("last")
    assert loaded(folder) == 2.0
    (folder.path / "last.next").rename(folder.path / "last.before")
    (folder.path / "last.next").mkdir()
    (folder.path / "last.next" / WEIGHTS).write_bytes(b"half")
    assert loaded(folder) == 2.0


def test_reading_while_a_training_saves_gives_the_old_or_the_new_one(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved_meanwhile(path: Path, advice: str) -> dict:
        monkeypatch.setattr(runs, "read_facts", read_facts)
        read = read_facts(path, advice)
        folder.save("last", weights(3.0), {"step": 3})
        return read

    monkeypatch.setattr(runs, "read_facts", saved_meanwhile)
    assert loaded(folder) == 3.0


@pytest.mark.parametrize("content", ["[]", "{}", "null", '{"program": "seq2seq"}', "[" * 100_000, '{"program": 1}'])
def test_strange_facts_are_refused(folder: RunFolder, content: str) -> None:
    (folder.path / "last" / FACTS).write_text(content)
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
        folder.load("last")
