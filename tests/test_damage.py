"""Claims about damage: a bad byte, a full disk, a folder that goes away, a file from someone who means harm, no memory.

Whatever it is, it is refused in one line that names it, or it is overcome and told with a count; nothing is loaded that
is not what was saved.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from conftest import Finished, in_process, run_python, write_base_corpus, write_lines
from safetensors.torch import load_file, save
from test_resume import assert_same_run, told
from torch import Tensor

from seq2seq.checkpoints import FACTS, MOST_FACTS, TRAINING, WEIGHTS, sealed
from seq2seq.corpus.batches import Batch
from seq2seq.errors import Seq2SeqError
from seq2seq.model.device import in_halves
from seq2seq.model.translation_model import TranslationModel
from seq2seq.runs import RunFolder
from seq2seq.training.progress import Progress
from seq2seq.training.trainer import Trainer
from seq2seq.translation.opening import run_config

Command = Callable[[Path], Finished]
posix_only = pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def translate(run: Path) -> Finished:
    return in_process("translate", run, run.parent / "test.en", "--beam", 1)


def translate_last(run: Path) -> Finished:
    return in_process("translate", run / "last", run.parent / "test.en", "--beam", 1)


def evaluate(run: Path) -> Finished:
    return in_process("evaluate", run, "--beam", 1)


def resume(run: Path) -> Finished:
    """With the settings of the run itself; the test set's translation at the end would take most of the time."""
    return in_process("train", "--run", run, "--resume", *settings("data.test=null"))


def resume_by_config(run: Path) -> Finished:
    return in_process("train", run.parent / "tiny.yaml", "--run", run, "--resume", *settings("data.test=null"))


@pytest.fixture
def run(tiny: Path, trained: Path) -> Path:
    """A finished run of one's own, to be damaged."""
    return Path(shutil.copytree(trained, tiny / "run"))


@pytest.fixture(scope="module")
def two_vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose languages have a tokenizer each; to be copied."""
    folder = write_base_corpus(tmp_path_factory.mktemp("two"))
    separate = settings("tokenizer.shared=false", "tokenizer.vocab_size=90", "training.max_steps=3")
    done = in_process("train", folder / "tiny.yaml", *separate, *settings("training.validate_every=3"))
    assert done.status == 0, done.err
    return folder / "run"


# -- bytes at random -------------------------------------------------------------------------------------------------


def damaged(data: bytes, times: int, rng: random.Random) -> Iterator[bytes]:
    """Ways to damage a file: nothing left, a byte too many, cut short, or one byte changed, the last two anywhere."""
    yield b""
    yield data + rng.randbytes(1)
    yield data[:-1]
    for number in range(times - 3):
        position = rng.randrange(len(data))
        if number % 5 == 4:
            yield data[:position]
        else:
            yield data[:position] + bytes([data[position] ^ rng.randrange(1, 256)]) + data[position + 1 :]


ALL: tuple[Command, ...] = (translate, translate_last, evaluate, resume, resume_by_config)
READ_BY: dict[str, tuple[Command, ...]] = {
    "config.yaml": ALL,
    "tokenizer.model": ALL,
    f"best/{FACTS}": (translate, evaluate),
    f"best/{WEIGHTS}": (translate, evaluate),
    f"last/{FACTS}": (translate_last, resume, resume_by_config),
    f"last/{WEIGHTS}": (translate_last, resume, resume_by_config),
    f"last/{TRAINING}": (resume, resume_by_config),
}


def says_the_same(path: Path, whole: bytes) -> bool:
    """Whether a damaged file of facts still says what it said: between the facts may be any blanks."""
    try:
        return path.name == FACTS and json.loads(path.read_bytes()) == json.loads(whole)
    except (ValueError, RecursionError):
        return False


def refuses_damage(run: Path, name: str, commands: Sequence[Command], times: int, seed: int) -> int:
    """Damages a file in many ways and holds that each is refused by name; how many were."""
    rng = random.Random(f"{name} {seed}")
    path = run / name
    whole = path.read_bytes()
    refused = 0
    for number, data in enumerate(damaged(whole, times, rng)):
        path.write_bytes(data)
        if data == whole or says_the_same(path, whole):
            continue
        done = commands[number % len(commands)](run).refused(str(path))
        assert done.out == "", (number, done.out)
        assert done.err.count("\n") == 1, (number, done.err)
        refused += 1
    path.write_bytes(whole)
    return refused


@pytest.mark.parametrize("name", READ_BY)
def test_a_damaged_byte_anywhere_is_refused_by_the_name_of_its_file(run: Path, name: str) -> None:
    assert refuses_damage(run, name, READ_BY[name], 40, seed=1) > 35


@pytest.mark.parametrize("name", ["tokenizer.source.model", "tokenizer.target.model"])
def test_a_damaged_byte_is_refused_in_either_of_two_vocabularies(tiny: Path, two_vocabularies: Path, name: str) -> None:
    run = Path(shutil.copytree(two_vocabularies, tiny / "run"))
    assert refuses_damage(run, name, (translate, translate_last, resume), 40, seed=1) == 40


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_thousands_of_damaged_bytes_are_refused(
    run: Path, two_vocabularies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began, refused = time.monotonic(), 0
    other = Path(shutil.copytree(two_vocabularies.parent, tmp_path / "two")) / "run"
    for name, commands in READ_BY.items():
        refused += refuses_damage(run, name, commands, 600, seed=2)
    for name in ("tokenizer.source.model", "tokenizer.target.model"):
        refused += refuses_damage(other, name, (translate, resume), 300, seed=2)
    with capsys.disabled():
        print(f"\n{refused} kinds of damage refused in {time.monotonic() - began:.0f} seconds")


def test_no_line_break_can_hide_the_seal_of_the_settings(run: Path) -> None:
    path = run / "config.yaml"
    whole = path.read_bytes()
    for position in range(whole.index(b"\n", whole.index(b"\n") + 1) + 1):
        if whole[position : position + 1] != b"\n":
            path.write_bytes(whole[:position] + b"\n" + whole[position + 1 :])
            with pytest.raises(Seq2SeqError, match=re.escape(str(path))):
                run_config(RunFolder(run))


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.log"])
def test_a_damaged_record_stops_neither_a_resume_nor_a_translation(run: Path, name: str) -> None:
    path = run / name
    whole, weights = path.read_bytes(), (run / "last" / WEIGHTS).read_bytes()
    for data in damaged(whole, 7, random.Random(name)):
        path.write_bytes(data)
        assert translate(run).status == 0
        done = resume(run)
        assert (done.status, done.err) == (0, "")
        assert (run / "last" / WEIGHTS).read_bytes() == weights
    path.unlink()
    assert resume(run).status == 0


def test_damaged_lines_of_the_record_are_counted(run: Path) -> None:
    path = run / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"step": "x"}\n', b'{"step": 1' + b"0" * 5000 + b"}\n", b"\0\n"]
    path.write_bytes(b"".join([lines[0], *bad, *lines[1:]]))
    done = resume(run)
    assert "metrics.jsonl: 5 damaged lines" in done.out
    assert path.read_bytes().splitlines(keepends=True)[:-1] == lines[:-1]


# -- disks that fill up ----------------------------------------------------------------------------------------------

SAVED_OFTEN = settings(
    "data.test=null", "training.checkpoint_every=3", "training.validate_every=5", "training.log_every=2"
)


@pytest.fixture(scope="module")
def whole_and_half(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that nothing disturbed, and the same one stopped in its middle."""
    folder = write_base_corpus(tmp_path_factory.mktemp("full"))
    for name, more in (("whole", []), ("half", settings("training.max_steps=7"))):
        done = in_process("train", folder / "tiny.yaml", "--run", folder / name, *SAVED_OFTEN, *more)
        assert done.status == 0, done.err
    return folder / "whole", folder / "half"


def go_on(half: Path, run: Path) -> Finished:
    return in_process("train", half.parent / "tiny.yaml", "--run", run, "--resume", *SAVED_OFTEN)


class FullDisk:
    """Files that are opened to write share so many bytes of room; of a write that does not fit, a part is written."""

    def __init__(self, room: int) -> None:
        self.room = room

    def opener(self) -> Callable[..., Any]:
        """What to put in the place of Path.open."""
        usual = Path.open

        def opened(path: Path, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            stream = usual(path, mode, *arguments, **named)
            return stream if mode.startswith("r") else _Filling(stream, self)

        return opened


class _Filling:
    def __init__(self, stream: IO[Any], disk: FullDisk) -> None:
        self._stream, self._disk = stream, disk

    def __enter__(self) -> _Filling:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: str | bytes) -> None:
        size = len(data)  # an ASCII text where it is one
        self._stream.write(data[: self._disk.room])
        self._stream.flush()
        self._disk.room -= size
        if self._disk.room < 0:
            self._disk.room = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def assert_told_and_overcome(done: Finished, cause: str, run: Path, whole: Path, half: Path) -> None:
    """The refusal is one line with path and cause; the checkpoints load; with room again the training ends as ever."""
    done.refused(str(run), cause)
    assert done.err.count("\n") == 1
    assert not list(run.glob("*.next"))  # the room is needed
    for name in ("best", "last"):
        RunFolder(run).load(name, with_training=name == "last")
    again = go_on(half, run)
    assert again.status == 0, again.err
    assert_same_run(whole, run)


def fills_up(rooms: Sequence[int], whole: Path, half: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in rooms:
        run, disk = folder / f"room{room}", FullDisk(room)
        shutil.copytree(half, run)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", disk.opener())
            done = go_on(half, run)
        assert_told_and_overcome(done, "No space left on device", run, whole, half)


def bytes_of_the_second_half(half: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    shutil.copytree(half, run)
    disk = FullDisk(2**40)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", disk.opener())
        assert go_on(half, run).status == 0
    return 2**40 - disk.room


def test_a_disk_that_is_full_after_any_byte_costs_nothing_but_time(
    whole_and_half: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, half = whole_and_half
    total = bytes_of_the_second_half(half, tmp_path / "counted", monkeypatch)
    rooms = [0, 100, *random.Random(1).sample(range(total), 3)]
    fills_up(rooms, whole, half, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_disk_that_is_full_after_any_of_many_bytes_costs_nothing_but_time(
    whole_and_half: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    whole, half = whole_and_half
    total = bytes_of_the_second_half(half, tmp_path / "counted", monkeypatch)
    rooms = random.Random(2).sample(range(total), 100)
    fills_up(rooms, whole, half, tmp_path, monkeypatch)
    with capsys.disabled():
        print(f"\n{len(rooms)} places of {total:,} for a disk to be full in {time.monotonic() - began:.0f} seconds")


@pytest.mark.parametrize("call", range(1, 9))
def test_a_disk_that_refuses_what_it_took_is_told_with_path_and_cause(
    whole_and_half: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    # A network file system takes everything and says at the flush that there was no room; a folder is flushed as well.
    whole, half = whole_and_half
    run, fsync, calls = Path(shutil.copytree(half, tmp_path / "run")), os.fsync, iter(range(1, 1000))

    def refusing(descriptor: int) -> None:
        if next(calls) == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refusing)
        done = go_on(half, run)
    assert_told_and_overcome(done, "Input/output error", run, whole, half)


@posix_only
@pytest.mark.parametrize("size", [10, 1500, 5_000, 30_000, 90_000])
def test_a_largest_file_of_the_system_is_told_with_path_and_cause(
    whole_and_half: tuple[Path, Path], tmp_path: Path, size: int
) -> None:
    import resource

    whole, half = whole_and_half
    run = Path(shutil.copytree(half, tmp_path / "run"))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
        done = go_on(half, run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert_told_and_overcome(done, "File too large", run, whole, half)


@contextlib.contextmanager
def small_file_system(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many KiB, where a test may mount one."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts a small file system")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=False)


@pytest.mark.parametrize("spare", [0, 20, 60, 100])
def test_a_small_file_system_that_fills_up_costs_nothing_but_time_c507(
    whole_and_half: tuple[Path, Path], tmp_path: Path, spare: int
) -> None:
    whole, half = whole_and_half
    pages = sum(-(-path.stat().st_size // 4096) for path in half.rglob("*")) + 4
    with small_file_system(tmp_path / "small", 4 * pages + spare) as small:
        run = Path(shutil.copytree(half, small / "run"))
        done = go_on(half, run)
        subprocess.run(["mount", "-o", "remount,size=32m", small], check=True)
        assert_told_and_overcome(done, "No space left on device", run, whole, half)


# -- folders that go away --------------------------------------------------------------------------------------------


def deleted(run: Path) -> None:
    shutil.rmtree(run)


def replaced_by_a_file(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("mine")


def made_read_only(run: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    for folder in (run / "best", run / "last", run):
        folder.chmod(0o555)


@pytest.mark.parametrize("log_every", [1, 1000])
@pytest.mark.parametrize("act", [deleted, replaced_by_a_file, made_read_only])
def test_a_run_folder_that_goes_away_is_named(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], log_every: int
) -> None:
    update, run = Trainer._update, tiny / "run"

    def updated(self: Trainer, *batches: Sequence[Any]) -> None:
        update(self, *batches)
        if self.progress.step == 9:  # after a validation, so that there are checkpoints
            act(run)

    monkeypatch.setattr(Trainer, "_update", updated)
    done = in_process("train", tiny / "tiny.yaml", *settings(f"training.log_every={log_every}"))
    done.refused(str(run))
    assert done.err.count("\n") == 1
    if act is deleted:
        assert not run.exists()  # it is not made again, half


# -- files from someone who means harm -------------------------------------------------------------------------------


def peak_memory() -> float:
    """The most memory of this process since the peak was last forgotten, in MiB."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


@contextlib.contextmanager
def modestly() -> Iterator[None]:
    """Holds that what is done within takes less than 200 MiB and five seconds."""
    measured = sys.platform == "linux" and os.access("/proc/self/clear_refs", os.W_OK)
    if measured:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, began = peak_memory() if measured else 0.0, time.monotonic()
    yield
    assert time.monotonic() - began < 5
    assert not measured or peak_memory() - before < 200, peak_memory() - before


def refused_modestly(command: Command, run: Path, *words: str) -> None:
    """Holds that a command is refused in one short and harmless line, with little memory and in little time."""
    with modestly():
        done = command(run).refused(*words)
    # A resume may have begun to read the corpora, and no more.
    assert done.out.replace("reading the corpora\nencoding the training pairs\n", "") == ""
    assert done.err.count("\n") == 1
    assert len(done.err) < 2500
    assert done.err.rstrip("\n").isprintable(), done.err


def forge(folder: Path, files: dict[str, bytes] | None = None, change: Callable[[Any], None] | None = None) -> None:
    """Change a checkpoint as somebody can who knows how it is sealed: all sizes and digests fit."""
    content = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    for name, data in (files or {}).items():
        (folder / name).write_bytes(data)
        content["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if change is not None:
        change(content)
    (folder / FACTS).write_text(json.dumps(sealed(content)), encoding="utf-8")


def forge_weights(folder: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights)
    forge(folder, {WEIGHTS: save(weights)})


def safetensors(header: object, data: bytes = b"", size: int | None = None) -> bytes:
    """A safetensors file with any header, which may lie about its own size."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def one_tensor(dtype: str, shape: list[int], size: int) -> dict[str, object]:
    return {"output_layer.bias": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}


@pytest.mark.parametrize(
    "data",
    [
        safetensors(one_tensor("F32", [10**12], 4 * 10**12), b"\0" * 64),
        safetensors(one_tensor("F32", [2**32, 2**32], 2**64 - 4), b"\0" * 64),
        safetensors(one_tensor("F32", [2**62, 4], 64), b"\0" * 64),
        safetensors(one_tensor("F32", [16], 64), b"\0" * 64, size=10**13),
        safetensors(one_tensor("F32", [16], 64), b"\0" * 64, size=2**64 - 1),
        safetensors(one_tensor("F32", [-1], 64), b"\0" * 64),
        safetensors([[[]]]),
        b"\0" * 8,
    ],
    ids=["terabytes", "overflow", "more_than_there_is", "header", "largest_header", "negative", "list", "nothing"],
)
def test_a_header_that_lies_is_refused(run: Path, data: bytes) -> None:
    forge(run / "best", {WEIGHTS: data})
    refused_modestly(translate, run, str(run / "best" / WEIGHTS), "safetensors")
    forge(run / "last", {TRAINING: data})
    refused_modestly(resume, run, str(run / "last" / TRAINING), "safetensors")


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F8_E8M0", "U128", "", "f32"])
def test_a_type_of_number_that_is_not_known_is_refused(run: Path, dtype: str) -> None:
    forge(run / "best", {WEIGHTS: safetensors(one_tensor(dtype, [16], 16), b"\0" * 16)})
    refused_modestly(translate, run, str(run / "best"))


def transposed(weights: dict[str, Tensor]) -> None:
    weights["source_embedding.weight"] = weights["source_embedding.weight"].t().contiguous()


def emptied(weights: dict[str, Tensor]) -> None:
    weights["output_layer.bias"] = torch.zeros(0)


def one_less(weights: dict[str, Tensor]) -> None:
    del weights["output_layer.bias"]


def one_more(weights: dict[str, Tensor]) -> None:
    weights["output_layer.extra"] = torch.zeros(3)


def of_whole_numbers(weights: dict[str, Tensor]) -> None:
    weights["output_layer.bias"] = weights["output_layer.bias"].to(torch.int64)


def of_complex_numbers(weights: dict[str, Tensor]) -> None:
    weights["output_layer.bias"] = weights["output_layer.bias"].to(torch.complex64)


@pytest.mark.parametrize("change", [transposed, emptied, one_less, one_more, of_whole_numbers, of_complex_numbers])
def test_weights_of_another_form_are_refused_by_name(run: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    for name, commands in (("best", [translate]), ("last", [translate_last, resume])):
        forge_weights(run / name, change)
        for command in commands:
            what = "source_embedding.weight" if change is transposed else "output_layer."
            refused_modestly(command, run, str(run / name), what)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(run: Path, value: float) -> None:
    def spoilt(weights: dict[str, Tensor]) -> None:
        weights["output_layer.bias"][5] = value

    for name, command in (("best", translate), ("last", translate_last), ("last", resume)):
        forge_weights(run / name, spoilt)
        refused_modestly(command, run, str(run / name), "not finite", "output_layer.bias")


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("name", [f"best/{WEIGHTS}", f"last/{WEIGHTS}", f"last/{TRAINING}"])
def test_a_file_of_a_hundred_gigabytes_is_not_read(run: Path, name: str, listed: bool) -> None:
    path, size = run / name, 100 * 10**9
    os.truncate(path, size)

    def list_it(content: dict[str, Any]) -> None:
        content["files"][path.name]["size"] = size

    if listed:
        forge(path.parent, change=list_it)
    command = {"best": translate, "last": resume}[path.parent.name]
    refused_modestly(command, run, str(path), f"{size:,} bytes")


def test_facts_and_tokenizers_that_are_too_large_are_not_read(run: Path) -> None:
    os.truncate(run / "best" / FACTS, 100 * 10**9)
    refused_modestly(translate, run, str(run / "best" / FACTS))
    os.truncate(run / "tokenizer.model", 300 * 2**20)
    refused_modestly(translate_last, run, str(run / "tokenizer.model"))
    refused_modestly(resume, run, str(run / "tokenizer.model"))
    os.truncate(run / "tokenizer.model", 100 * 10**9)
    refused_modestly(translate_last, run, str(run / "tokenizer.model"))


def test_a_config_of_a_hundred_gigabytes_is_not_read(run: Path) -> None:
    os.truncate(run / "config.yaml", 100 * 10**9)
    for command in ALL:
        refused_modestly(command, run, str(run / "config.yaml"))


@posix_only
@pytest.mark.parametrize("name", ["config.yaml", "tokenizer.model", f"best/{FACTS}", f"best/{WEIGHTS}"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(run: Path, name: str) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    for command in (translate, evaluate):
        refused_modestly(command, run, str(run))


@pytest.mark.parametrize(
    "text",
    ["[" * 500_000, '{"a":' * 500_000, "[" + "{}," * (MOST_FACTS // 3 - 10) + "{}]", '{"a":1' + "0" * 5000 + "}"],
    ids=["lists", "mappings", "as_large_as_may_be", "digits"],
)
def test_facts_that_would_fill_the_memory_are_refused(run: Path, text: str) -> None:
    for name, command in (("best", translate), ("last", resume)):
        (run / name / FACTS).write_text(text)
        refused_modestly(command, run, str(run / name / FACTS))


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("depth", [30, 300, 600])
def test_facts_nested_without_need_are_refused(run: Path, depth: int) -> None:
    for key in ("model", "vocabulary", "progress", "corpus", "format", "files", "anything"):
        whole = (run / "last" / FACTS).read_bytes()
        forge(run / "last", change=lambda content, key=key: content.update({key: nested(depth)}))
        refused_modestly(resume, run, str(run / "last"))
        (run / "last" / FACTS).write_bytes(whole)


RUBBISH = ["\x1b[2J\n" * 50_000, 10**400, -1, 1e308, [[]], {}, None, "9" * 300]


@pytest.mark.parametrize("key", ["format", "program", "vocabulary", "corpus", "files", "progress"])
def test_facts_of_another_kind_are_refused_in_one_short_line(run: Path, key: str) -> None:
    for value in RUBBISH:
        forge(run / "last", change=lambda content, value=value: content.update({key: value}))
        refused_modestly(resume, run, str(run))


@pytest.mark.parametrize("value", RUBBISH, ids=lambda value: str(value)[:5].strip())
def test_facts_within_facts_are_held_against_what_they_can_be(run: Path, value: object) -> None:
    whole = (run / "last" / FACTS).read_bytes()
    for path in (
        ("model", "attention", "heads"),
        ("vocabulary", "source"),
        ("vocabulary", "fingerprint"),
        ("files", WEIGHTS),
        ("files", WEIGHTS, "size"),
        ("files", TRAINING, "sha256"),
    ):

        def put(content: dict[str, Any], path: tuple[str, ...] = path) -> None:
            if path[:1] == ("vocabulary",):  # sizes are told where the fingerprint does not fit
                content["vocabulary"]["fingerprint"] = ""
            for name in path[:-1]:
                content = content[name]
            content[path[-1]] = value

        if value == {} and path[0] == "model":
            continue  # a group of settings that says nothing of any; the weights have to fit all the same
        forge(run / "last", change=put)
        refused_modestly(resume, run, str(run / "last"))
        (run / "last" / FACTS).write_bytes(whole)


@pytest.mark.parametrize("name", Progress().as_dict())
def test_progress_of_another_kind_is_refused_by_name(run: Path, name: str) -> None:
    for value in ("nonsense", [], {"a": "b"}, "\x1b[2J", nested(15)):
        forge(run / "last", change=lambda content, value=value: content["progress"].update({name: value}))
        refused_modestly(resume, run, str(run / "last"), name)
    forge(run / "last", change=lambda content: content["progress"].pop(name))
    refused_modestly(resume, run, str(run / "last"), name)


COUNTS = [
    "step", "epoch", "position", "target_tokens", "skipped", "skipped_in_a_row", "best_step", "validations_since_best",
    "plateau_waited", "interval_tokens", "risk_epoch", "risk_step",
]  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_progress_that_no_training_makes_is_refused_by_name(run: Path, name: str) -> None:
    for value in (-1, 10**30, 10**400, 1e300, -(10**19)):
        forge(run / "last", change=lambda content, value=value: content["progress"].update({name: value}))
        refused_modestly(resume, run, str(run / "last"), name)


def test_a_position_beyond_the_epoch_is_refused(run: Path) -> None:
    forge(run / "last", change=lambda content: content["progress"].update(epoch=1, position=1000))
    refused_modestly(resume, run, str(run / "last"), "position")


def forge_training(folder: Path, name: str, tensor: Tensor | None) -> None:
    tensors = load_file(folder / TRAINING)
    del tensors[name]
    forge(folder, {TRAINING: save(tensors if tensor is None else {**tensors, name: tensor})})


@pytest.mark.parametrize("moment", ["exp_avg", "exp_avg_sq", "step"])
@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(2, 3), torch.zeros(0), torch.tensor(float("nan")), torch.tensor(1), torch.tensor(True), None],
    ids=["shape", "empty", "nan", "whole_number", "flag", "missing"],
)
def test_an_optimizer_s_memory_of_another_form_is_refused(run: Path, moment: str, tensor: Tensor | None) -> None:
    name = f"{moment}.output_layer.bias"
    kept = load_file(run / "last" / TRAINING)[name]
    if tensor is not None and tensor.dim() == 0:
        tensor = tensor.expand(kept.shape).contiguous()
    forge_training(run / "last", name, tensor)
    # So that there is an update to be made.
    done = in_process("train", "--run", run, "--resume", *settings("data.test=null", "training.epochs=3"))
    done.refused("optimizer", "output_layer.bias", str(run / "last"))


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(7, dtype=torch.uint8), torch.zeros(5056), torch.zeros(0, dtype=torch.uint8), None],
    ids=["size", "kind", "empty", "missing"],
)
def test_a_random_state_of_another_form_is_refused(run: Path, tensor: Tensor | None) -> None:
    forge_training(run / "last", "random.cpu", tensor)
    refused_modestly(resume, run, str(run / "last"))


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (LAUGHS, "anchor"),
        ("seed: !!python/object/apply:os.mkdir [CASE_PAYLOAD_RAN]\n", "tag"),
        ("seed: !!int 1\n", "tag"),
        ("data: " + "{a: " * 5000, "nested"),
        ("data: [" + "[], " * 200_000 + "]", "values"),
        ("<<: {seed: 1}\n", "merge"),
    ],
    ids=["laughs", "payload", "harmless_tag", "depth", "values", "merge"],
)
def test_settings_that_would_run_or_fill_something_are_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (run / "config.yaml").write_text(text, encoding="utf-8")
    for command in (translate, evaluate, resume, resume_by_config):
        refused_modestly(command, run, str(run / "config.yaml"), word)
    assert not (tmp_path / "CASE_PAYLOAD_RAN").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden_size", 65_536), ("embedding_size", 65_536), ("encoder", {"layers": 16}), ("hidden_size", 34)],
)
def test_settings_of_a_giant_beside_small_weights_are_refused_before_it_is_made(
    run: Path, key: str, value: object
) -> None:
    config = run / "config.yaml"
    lines = config.read_text(encoding="utf-8").splitlines()
    words = [f"--set=model.{key}={value}"] if not isinstance(value, dict) else ["--set=model.encoder.layers=16"]
    heads = ["--set=model.attention.heads=2"]
    from seq2seq.config.loading import dump_config, load_config

    config.write_text("\n".join(lines[2:]) + "\n", encoding="utf-8")
    giant = load_config(config, [word.removeprefix("--set=") for word in words + heads])
    config.write_text(dump_config(giant), encoding="utf-8")
    for name in ("best", "last"):
        forge(run / name, change=lambda content: content.update(model=giant.model.model_dump(mode="json")))
    for command in (translate, evaluate, resume):
        refused_modestly(command, run, "does not fit")


# -- memory that does not suffice ------------------------------------------------------------------------------------

REFUSAL = (
    "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 "
    "bytes. Error code 12 (Cannot allocate memory)"
)


def rows_of(batch: Batch) -> int:
    return len(batch.src_BS)


def refuse_loss(monkeypatch: pytest.MonkeyPatch, refuses: Callable[[Batch], bool]) -> None:
    """Let the allocator refuse some batches of a training and of its validation."""
    loss = TranslationModel.loss

    def refusing(self: TranslationModel, batch: Batch, *others: Any) -> tuple[Tensor, Tensor]:
        if refuses(batch):
            raise RuntimeError(REFUSAL)
        return loss(self, batch, *others)

    monkeypatch.setattr(TranslationModel, "loss", refusing)


def trained_in(folder: Path, name: str, *more: str) -> Finished:
    """Four updates without dropout, whose masks would depend on how a batch is divided."""
    some = settings("data.test=null", "model.dropout=0", "training.max_steps=4", "training.validate_every=2", *more)
    done = in_process("train", folder / "tiny.yaml", "--run", folder / name, *some)
    assert done.status == 0, done.err
    return done


def assert_nearly_the_same(first: Path, second: Path) -> None:
    weights, others = (load_file(run / "last" / WEIGHTS) for run in (first, second))
    for name, weight in weights.items():
        difference = (others[name] - weight).abs()
        # Adam divides a gradient by its own size, and where it is mere rounding makes a small step of that.
        assert difference.mean() < 1e-7, name
        assert difference.max() < 1e-4, name
    for one, other in zip(told(first), told(second), strict=True):
        for key in ("loss", "target_tokens", "learning_rate"):
            assert other.get(key) == pytest.approx(one.get(key), abs=2e-5)


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("training.accumulate=2", "training.batch_tokens=200"),
        ("training.subword_sampling=0.2", "training.average=ema", "model.layer_norm=true"),
    ],
)
def test_a_batch_that_the_memory_refuses_is_halved_and_the_weights_are_the_same(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    trained_in(tiny, "whole", *more)
    refuse_loss(monkeypatch, lambda batch: rows_of(batch) > 7)
    done = trained_in(tiny, "halved", *more)
    assert re.search(r"update 1: memory does not suffice for a batch of \d+ pairs; it is halved", done.out)
    assert_nearly_the_same(tiny / "whole", tiny / "halved")


LIMITED = """
import re, resource, sys
import safetensors.torch
from seq2seq.cli.main import main
from seq2seq.training.trainer import Trainer

update = Trainer._update

def limited(self, *batches):
    Trainer._update = update
    size = int(re.search(r"VmSize:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
    resource.setrlimit(resource.RLIMIT_AS, ((size + 10 * 2**10) * 2**10,) * 2)
    update(self, *batches)

Trainer._update = limited
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of Linux")
def test_a_batch_is_halved_where_the_system_itself_has_no_more_memory(tiny: Path) -> None:
    # All pairs in one batch, for which a model of this size takes some forty MiB more than the ten that there are.
    large = (
        "model.hidden_size=256",
        "training.batch_tokens=100000",
        "training.epochs=4",
        "training.validate_every=100",
    )
    trained_in(tiny, "whole", *large)
    some = settings("data.test=null", "model.dropout=0", "training.max_steps=4", *large)
    done = run_python("-c", LIMITED, "train", tiny / "tiny.yaml", "--run", tiny / "halved", *some)
    assert (done.status, done.err) == (0, "")
    assert "update 1: memory does not suffice for a batch of 160 pairs; it is halved" in done.out
    assert_nearly_the_same(tiny / "whole", tiny / "halved")


def test_a_refusal_in_the_middle_of_an_update_counts_nothing_twice(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = ("training.accumulate=3", "training.batch_tokens=200")
    trained_in(tiny, "whole", *more)
    calls = iter(range(1, 1000))
    refuse_loss(monkeypatch, lambda batch: batch.tokens > 0 and next(calls) in (2, 6, 15))
    assert trained_in(tiny, "halved", *more).out.count("it is halved") == 3
    assert_nearly_the_same(tiny / "whole", tiny / "halved")


def test_a_pair_that_is_refused_alone_is_left_out_with_a_message(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("en", "de"):
        lines = (tiny / f"train.{side}").read_text(encoding="utf-8").splitlines()
        lines[70] = " ".join(lines[70:74])
        write_lines(tiny / f"train.{side}", lines)
    refuse_loss(monkeypatch, lambda batch: batch.src_BS.shape[1] > 40)
    done = trained_in(tiny, "run", "training.epochs=2", "training.max_steps=null", "training.patience=null")
    assert done.out.count("1 pair left out, since memory does not suffice for it alone") == 2  # once an epoch
    assert told(tiny / "run")[-1]["reason"] == "epochs"


def test_memory_that_suffices_for_no_pair_ends_the_training_with_advice(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_loss(monkeypatch, lambda batch: True)
    done = in_process("train", tiny / "tiny.yaml")
    done.refused("Memory does not suffice", "data.max_length")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("beam", [1, 4])
def test_lines_that_the_memory_refuses_together_are_translated_apart(
    trained: Path, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    command = ("translate", trained, trained.parent / "test.en", "--beam", beam, "--n-best", 2)
    expected = in_process(*command)
    start, most = TranslationModel.start, 3

    def refusing(self: TranslationModel, src_BS: Tensor, mask_BS: Tensor) -> object:
        if len(src_BS) > most:
            raise RuntimeError(REFUSAL)
        return start(self, src_BS, mask_BS)

    monkeypatch.setattr(TranslationModel, "start", refusing)
    done = in_process(*command)
    assert (done.status, done.out) == (0, expected.out)
    most = 0
    in_process(*command).refused("Memory is used up")


def test_a_validation_that_the_memory_refuses_is_measured_in_parts(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained_in(tiny, "whole")
    refuse_loss(monkeypatch, lambda batch: not torch.is_grad_enabled() and rows_of(batch) > 2)
    done = trained_in(tiny, "apart")
    assert "halved" not in done.out  # no training batch was
    assert (tiny / "apart" / "last" / WEIGHTS).read_bytes() == (tiny / "whole" / "last" / WEIGHTS).read_bytes()
    for one, other in zip(told(tiny / "whole"), told(tiny / "apart"), strict=True):
        assert other.get("loss") == pytest.approx(one.get("loss"), abs=2e-6)
        assert other.get("bleu") == one.get("bleu")


def test_halves_come_back_in_order_and_other_errors_as_they_are() -> None:
    sizes = []

    def compute(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        if len(items) > 2:
            raise MemoryError
        return list(items)

    assert in_halves(range(7), compute) == [[0], [1, 2], [3, 4], [5, 6]]
    assert sizes == [7, 3, 1, 2, 4, 2, 2]
    with pytest.raises(MemoryError):
        in_halves([5], lambda _: compute([1, 2, 3]))

    def broken(items: Sequence[int]) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        in_halves([1, 2], broken)
