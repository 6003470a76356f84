"""Claims about the cache of prepared corpora: it changes no number, is found again, and is never half there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import command_environment, in_process, numbered_pairs, write_lines

from seq2seq.config.loading import load_config
from seq2seq.corpus import batches, cache, encoders, splits, store
from seq2seq.corpus.encoded import EncodedSide
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.errors import CacheError, CorpusError, Seq2SeqError
from seq2seq.evaluation.test_set import configured_test_set
from seq2seq.training.prepare import Prepared, prepare

FRACTIONS = ("data.validation={fraction: 0.1}", "data.test={fraction: 0.2}")


def prepared(folder: Path, *settings: str, kept: bool = True) -> tuple[Prepared, list[str]]:
    """The corpus prepared, through the cache folder or in memory, and what was said on the way."""
    said: list[str] = []
    where = [f"data.cache={folder / 'cache'}"] if kept else []
    return prepare(load_config(folder / "tiny.yaml", [*settings, *where]), stage=said.append), said


def same(one: Prepared, other: Prepared) -> bool:
    """Whether everything that a training reads is the same."""
    sides = zip(sides_of(one), sides_of(other), strict=True)
    return (
        all(a.ids.dtype == b.ids.dtype and np.array_equal(a.ids, b.ids) for a, b in sides)
        and one.fingerprint() == other.fingerprint()
        and one.tokenizer.fingerprint() == other.tokenizer.fingerprint()
        and (one.validation.sources, one.validation.targets) == (other.validation.sources, other.validation.targets)
        and (one.test and one.test.sources) == (other.test and other.test.sources)
        and one.messages == other.messages
    )


def sides_of(ready: Prepared) -> list[EncodedSide]:
    return [ready.train.source, ready.train.target]


def names(folder: Path) -> list[str]:
    """What lies in the cache, without keys, locks and digests."""
    return sorted(path.name.split("-")[0] for path in (folder / "cache").iterdir() if path.is_dir())


@pytest.fixture
def odd(tiny: Path) -> Path:
    """The tiny corpus with a blank line, a bad line and a long one, which are counted."""
    pairs = numbered_pairs()
    sources, targets = ([pair[side].encode() for pair in pairs] for side in (0, 1))
    sources[5], targets[9], sources[11] = b" ", b"caf\xe9", b"a long one " * 60
    for name, lines in (("en", sources), ("de", targets)):
        (tiny / f"train.{name}").write_bytes(b"\n".join(lines) + b"\n")
    return tiny


@pytest.mark.parametrize("settings", [(), FRACTIONS, ("tokenizer.shared=false",)])
def test_what_lies_in_the_cache_is_what_would_be_in_memory_and_the_messages_are_the_same(
    odd: Path, settings: tuple[str, ...]
) -> None:
    settings = (*settings, "data.bad_lines=drop")
    in_memory, _ = prepared(odd, *settings, kept=False)
    first, said_first = prepared(odd, *settings)
    second, said_second = prepared(odd, *settings)
    assert len(first.messages) >= 2
    assert same(first, in_memory)
    assert same(second, in_memory)
    assert first.train.folder == second.train.folder
    assert "encoding the training pairs" in said_first
    assert said_second == ["reading the corpora", f"the training pairs lie ready in {second.train.folder}"]


def test_a_second_start_reads_no_line_of_the_training_text(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = prepared(tiny, *FRACTIONS)
    monkeypatch.setattr(splits, "source_hash", None)
    monkeypatch.setattr(Tokenizer, "train", None)
    again, _ = prepared(tiny, *FRACTIONS)
    assert same(first, again)
    config = load_config(tiny / "tiny.yaml", [*FRACTIONS, f"data.cache={tiny / 'cache'}"])
    assert first.test is not None
    assert configured_test_set(config).sources == first.test.sources, "evaluate finds it too"


def test_pages_of_files_are_read_and_never_written(tiny: Path) -> None:
    ready, _ = prepared(tiny)
    for side in sides_of(ready):
        assert not side.ids.flags.owndata
        assert not side.ids.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            side.ids[0] = 7


@pytest.mark.parametrize(
    "setting", ["data.max_length=40", "tokenizer.vocab_size=140", "data.bad_lines=drop", "tokenizer.model_type=char"]
)
def test_another_setting_that_has_a_say_is_another_key(tiny: Path, setting: str) -> None:
    before, _ = prepared(tiny)
    after, said = prepared(tiny, setting)
    assert before.train.folder != after.train.folder
    assert "encoding the training pairs" in said
    assert same(after, prepared(tiny, setting, kept=False)[0])


def test_the_key_is_the_content_and_not_the_name_or_the_date(tiny: Path) -> None:
    before, _ = prepared(tiny)
    for name in ("en", "de"):
        shutil.copy(tiny / f"train.{name}", tiny / f"copy.{name}")
    moved, _ = prepared(tiny, f"data.train={{source: {tiny / 'copy.en'}, target: {tiny / 'copy.de'}}}")
    assert moved.train.folder == before.train.folder
    # As many bytes, and the date put back: only the time of change of the entry itself tells.
    path, times = tiny / "train.en", (tiny / "train.en").stat()
    path.write_text(path.read_text(encoding="utf-8").replace("dog", "cow"), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed, _ = prepared(tiny)
    assert changed.train.folder != before.train.folder
    assert same(changed, prepared(tiny, kept=False)[0])


def test_a_digest_is_remembered_of_a_file_that_has_settled_and_only_there(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seq2seq.corpus import digests

    prepared(tiny)
    assert not list((tiny / "cache").glob("file-*")), "it was written a moment ago, and may be again"
    monkeypatch.setattr(digests, "_SETTLED", 0)
    prepared(tiny)
    kept = list((tiny / "cache").glob("file-*"))
    assert len(kept) == 2
    with monkeypatch.context() as patch:
        patch.setattr(digests, "digest_of", None)
        ready, said = prepared(tiny)
    assert f"the training pairs lie ready in {ready.train.folder}" in said
    for file in kept:
        file.write_text("{", encoding="utf-8")
    assert prepared(tiny)[0].train.folder == ready.train.folder


@pytest.mark.parametrize(
    ("name", "how"),
    [("source.ids", "flipped"), ("target.offsets", "cut"), ("facts.json", "flipped"), ("facts.json", "gone")],
)
def test_a_damaged_cache_is_made_anew_with_a_word(tiny: Path, name: str, how: str) -> None:
    ready, _ = prepared(tiny)
    assert ready.train.folder is not None
    path = ready.train.folder / name
    content = bytearray(path.read_bytes())
    path.unlink()
    content[len(content) // 2] ^= 1
    if how != "gone":
        path.write_bytes(content if how == "flipped" else content[:-3])
    again, said = prepared(tiny)
    # Without its facts a folder is none of the store's things, and is replaced in silence.
    assert sum("is damaged" in line for line in said) == (0 if (name, how) == ("facts.json", "gone") else 1)
    assert same(again, prepared(tiny, kept=False)[0])
    assert names(tiny) == ["pairs", "tokenizer"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_preparation_leaves_nothing_that_is_trusted(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def breaks(*_: object) -> Iterator[object]:
        raise error
        yield

    with monkeypatch.context() as patch:
        patch.setattr(cache, "encode_in_parallel", breaks)
        with pytest.raises((KeyboardInterrupt, CacheError)) as raised:
            prepared(tiny)
    if isinstance(error, OSError):
        assert "No space left on device" in str(raised.value)
        assert "data.cache" in str(raised.value)
    assert names(tiny) == ["tokenizer"]
    again, said = prepared(tiny)
    assert "training the tokenizer" not in said, "what was done is not done twice"
    assert same(again, prepared(tiny, kept=False)[0])


def test_what_a_kill_has_left_is_cleared_but_not_what_another_process_is_making(tiny: Path) -> None:
    ready, _ = prepared(tiny)
    assert ready.train.folder is not None
    leftover = tiny / "cache" / f".{ready.train.folder.name}.1-ab.tmp"
    ready.train.folder.rename(leftover)
    others = [tiny / "cache" / f".pairs-{name}.1-ab.tmp" for name in ("dead", "alive")]
    for other in others:
        other.mkdir()
    with store.Store(tiny / "cache").alone("pairs-alive"):
        again, _ = prepared(tiny)
    assert [path.exists() for path in (leftover, *others)] == [False, False, True]
    assert same(again, prepared(tiny, kept=False)[0])


def test_of_two_processes_one_prepares_and_the_other_waits_for_it(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, go_on = threading.Event(), threading.Event()
    trainings: list[int] = []
    train = Tokenizer.train

    def slow(*arguments: object) -> Tokenizer:
        trainings.append(1)
        reached.set()
        assert go_on.wait(20)
        return train(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Tokenizer, "train", slow)
    monkeypatch.setattr(store, "_POLL", 0.01)
    results: list[tuple[Prepared, list[str]]] = []
    said: list[str] = []

    def second() -> None:
        config = load_config(tiny / "tiny.yaml", [f"data.cache={tiny / 'cache'}"])
        results.append((prepare(config, stage=said.append), said))

    first = threading.Thread(target=lambda: results.append(prepared(tiny)))
    first.start()
    assert reached.wait(20)
    other = threading.Thread(target=second)
    other.start()
    deadline = time.monotonic() + 20
    while not any("waiting for it" in line for line in said) and time.monotonic() < deadline:
        time.sleep(0.01)
    go_on.set()
    first.join(), other.join()
    assert len(trainings) == 1
    assert same(results[0][0], results[1][0])
    assert sum("waiting for it" in line for line in said) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_can_only_be_read_serves_and_one_that_lacks_the_corpus_is_refused(tiny: Path) -> None:
    prepared(tiny)
    (tiny / "cache").chmod(0o555)
    try:
        assert "encoding the training pairs" not in prepared(tiny)[1]
        with pytest.raises(CacheError, match=r"data\.cache"):
            prepared(tiny, "data.max_length=40")
    finally:
        (tiny / "cache").chmod(0o755)


@pytest.mark.parametrize("by_default", [True, False])
def test_a_folder_that_cannot_be_written_is_refused_or_where_nobody_chose_it_done_without(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, by_default: bool
) -> None:
    write_lines(tiny / "cache", ["a file"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny / "cache"))
    monkeypatch.setattr(cache, "LARGE", 1)
    if by_default:
        ready, said = prepared(tiny, kept=False)
        assert ready.train.folder is None
        assert any("held in memory" in line for line in said)
    else:
        done = in_process("check", tiny / "tiny.yaml", "--set", f"data.cache={tiny / 'cache'}")
        done.refused("data.cache")


def test_a_large_corpus_goes_to_the_cache_of_its_own_accord(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny / "home"))
    assert prepared(tiny, kept=False)[0].train.folder is None
    monkeypatch.setattr(cache, "LARGE", sum((tiny / f"train.{name}").stat().st_size for name in ("en", "de")))
    folder = prepared(tiny, kept=False)[0].train.folder
    assert folder is not None
    assert folder.parent == tiny / "home" / "seq2seq"


def test_a_text_that_changes_while_it_is_read_is_refused(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = cache.encode_in_parallel

    def slow(*arguments: object) -> Iterator[object]:
        yield from encode(*arguments)  # type: ignore[arg-type]
        with (tiny / "train.en").open("ab") as stream:
            stream.write(b"One more.\n")

    monkeypatch.setattr(cache, "encode_in_parallel", slow)
    with pytest.raises(CorpusError, match="was changed while"):
        prepared(tiny)
    assert names(tiny) == ["tokenizer"]


# ---- processes


def test_several_processes_encode_as_one_does_and_in_order(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "CHUNK", 13)
    monkeypatch.setattr(encoders, "_processors", lambda: 2)
    assert same(prepared(tiny)[0], prepared(tiny, kept=False)[0])


def test_a_process_that_dies_is_told_of(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_processors", lambda: 2)
    monkeypatch.setattr(encoders, "__name__", "seq2seq.no_such_module")
    with pytest.raises(Seq2SeqError, match=r"has died \(status 1\)"):
        prepared(tiny)
    assert names(tiny) == ["tokenizer"]


def test_an_encoder_ends_with_its_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seq2seq.corpus.encoders", "nowhere", "9"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=command_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert b"holds no tokenizer" in done.stderr


# ---- training from it


def test_a_training_from_the_cache_is_the_same_to_the_bit_and_a_resume_finds_it(tiny: Path) -> None:
    from safetensors.numpy import load_file

    settings = ["--set", "training.max_steps=4", "--set", "data.test=null"]
    kept = ["--set", f"data.cache={tiny / 'cache'}"]
    for name, more in (("memory", []), ("cache", kept)):
        assert in_process("train", tiny / "tiny.yaml", "--run", tiny / name, *settings, *more).status == 0
    one, other = (load_file(tiny / name / "last" / "weights.safetensors") for name in ("memory", "cache"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    resumed = in_process("train", "--run", tiny / "cache", "--resume", "--set", "training.max_steps=6")
    assert resumed.status == 0, resumed.err
    assert "lie ready" in resumed.out
    moved = in_process("train", "--run", tiny / "memory", "--resume", "--set", "training.max_steps=6", *kept)
    assert moved.status == 0, "where the pairs lie may change in a run"


def test_check_counts_no_memory_for_pages_of_files(tiny: Path) -> None:
    counted = []
    for settings in ([], ["--set", f"data.cache={tiny / 'cache'}"]):
        done = in_process("check", tiny / "tiny.yaml", *settings)
        assert done.status == 0, done.err
        counted.append(done.out)
    assert "160" in counted[0]
    lines = [[line for line in out.splitlines() if "memory" not in line] for out in counted]
    assert lines[0] == lines[1], "and says the same of everything else"


# ---- the plan of an epoch


@pytest.mark.parametrize("block", [3, 50, 1000])
def test_planned_in_blocks_an_epoch_is_the_same(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = np.random.default_rng(1)
    lengths = [rng.integers(0, 30, 700) for _ in range(2)]

    def plan() -> Sequence[np.ndarray]:
        return batches.BatchSampler(lengths[0], lengths[1], batch_tokens=300, seed=5).epoch(2)

    whole = plan()
    monkeypatch.setattr(batches, "BLOCK", block)
    assert [batch.tolist() for batch in plan()] == [batch.tolist() for batch in whole]


def test_hashes_in_a_file_divide_a_corpus_as_those_in_memory_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: Callable[[int], list[tuple[str, str]]] = numbered_pairs
) -> None:
    text = pairs(90) + pairs(30)
    divide: Callable[..., object] = splits._divide
    in_memory = divide(text, {"data.validation": 0.1, "data.test": 0.3}, 4)
    monkeypatch.setattr(splits, "_SOME", 7)
    assert divide(text, {"data.validation": 0.1, "data.test": 0.3}, 4, tmp_path / "hashes") == in_memory
    assert list(tmp_path.iterdir()) == []
