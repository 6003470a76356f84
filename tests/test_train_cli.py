"""Claims about `seq2seq train`: what it refuses before it makes anything, what it leaves, and how it ends.

A name with c018 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Finished, command_environment, in_process, numbered_pairs, write_lines
from safetensors.torch import load_file

Command = Callable[..., Finished]

ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and permissions of POSIX")

FIELDS = {
    "train": "event step epoch loss learning_rate target_tokens target_tokens_per_second elapsed_seconds gradient_norm",
    "validation": "event step loss perplexity bleu chrf",
    "end": "event step reason best_step elapsed_seconds peak_memory_mb",
}


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def events(run: Path, kind: str) -> list[dict]:
    return [event for event in metrics(run) if event["event"] == kind]


def losses(run: Path) -> list[float]:
    return [event["loss"] for event in metrics(run) if "loss" in event]


def change(folder: Path, *pairs: tuple[str, str]) -> Path:
    """tiny.yaml of the folder with some of its text exchanged."""
    path = folder / "tiny.yaml"
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def refused_and_nothing_made(folder: Path, *arguments: str, words: tuple[str, ...]) -> Finished:
    before = sorted(folder.rglob("*"))
    done = in_process("train", folder / "tiny.yaml", *arguments).refused(*words)
    assert "step" not in done.out
    assert sorted(folder.rglob("*")) == before
    return done


# -- what a run leaves -----------------------------------------------------------------------------------------------


def test_a_run_folder_holds_the_whole_experiment(trained: Path) -> None:
    names = {path.relative_to(trained).as_posix() for path in trained.rglob("*") if path.is_file()}
    assert names == {
        "config.yaml",
        "tokenizer.model",
        "shortlist.safetensors",
        "best/weights.safetensors",
        "best/checkpoint.json",
        "last/weights.safetensors",
        "last/training.safetensors",
        "last/checkpoint.json",
        "metrics.jsonl",
        "train.log",
        "test.json",
        ".lock",
    }


def test_every_line_of_the_metrics_has_exactly_the_documented_fields(trained: Path) -> None:
    told = metrics(trained)
    assert [event["event"] for event in told].count("validation") == 2
    assert told[-1]["event"] == "end"
    for event in told:
        assert list(event) == FIELDS[event["event"]].split()
    assert told[-1]["reason"] == "epochs"
    assert told[-1]["best_step"] in {event["step"] for event in events(trained, "validation")}


def test_the_log_is_the_metrics_for_people(trained: Path) -> None:
    lines = (trained / "train.log").read_text(encoding="utf-8").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", line) for line in lines)
    for event in events(trained, "train"):
        assert sum(f"  step {event['step']}  epoch {event['epoch']}  loss" in line for line in lines) == 1
    assert any("reading the corpora" in line for line in lines)


def test_tokens_are_counted_with_end_mark_and_without_padding(trained: Path) -> None:
    from seq2seq.corpus.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(trained)
    an_epoch = sum(len(ids) + 1 for ids in tokenizer.encode_target([target for _, target in numbered_pairs()]))
    done = in_process("train", "--run", trained, "--resume", "--set", "training.log_every=1")
    assert done.status == 0, done.err  # nothing is left to do; the table at the end has the count
    assert f"{2 * an_epoch:,} target tokens" in done.out


def test_the_rate_of_tokens_is_tokens_by_time_spent_on_updates(tiny: Path) -> None:
    assert in_process("train", tiny / "tiny.yaml", "--set", "training.log_every=1").status == 0
    told = events(tiny / "run", "train")
    counts = [event["target_tokens"] for event in told]
    seconds = sum(
        (after - before) / event["target_tokens_per_second"]
        for before, after, event in zip([0, *counts], counts, told, strict=False)
    )
    assert 0 < seconds <= told[-1]["elapsed_seconds"]
    assert counts[-1] == 2 * counts[len(counts) // 2 - 1]


def test_a_number_may_be_written_in_any_usual_way_and_is_logged_c104(tiny: Path) -> None:
    config = change(tiny, ("learning_rate: 1e-2", "learning_rate: 1e-3, schedule: constant"))
    assert in_process("train", config, "--set", "training.max_steps=3").status == 0
    assert events(tiny / "run", "train")[0]["learning_rate"] == 0.001
    assert "learning_rate: 0.001" in (tiny / "run" / "config.yaml").read_text(encoding="utf-8")


def test_a_word_like_no_is_a_language_c108(tiny: Path) -> None:
    config = change(tiny, ("source_language: en", "source_language: no"))
    done = in_process("check", config)
    if done.status:
        done.refused("source_language", "no")
    else:
        assert in_process("train", config, "--set", "training.max_steps=1").status == 0
        assert "source_language: 'no'" in (tiny / "run" / "config.yaml").read_text(encoding="utf-8")


def test_an_ascii_locale_changes_nothing_c017_and_files_get_plain_lines_c516(
    run_cli: Command, tiny: Path, trained: Path
) -> None:
    run = tiny / "läufe"
    done = run_cli("train", tiny / "tiny.yaml", "--run", run, env={**ASCII, "FORCE_COLOR": None})
    assert (done.status, done.err) == (0, "")
    assert losses(run) == losses(trained)
    assert (run / "tokenizer.model").read_bytes() == (trained / "tokenizer.model").read_bytes()
    assert "160 pairs" in done.out
    assert f"seq2seq translate {shlex.quote(str(run))}" in done.out
    assert b"\r" not in done.out_bytes
    assert b"\x1b" not in done.out_bytes
    # One line an event, and a heading and an end that do not grow.
    assert done.out.count("\n") <= len(metrics(run)) + 35


def test_one_seed_makes_one_training_c518(tiny: Path, trained: Path) -> None:
    assert in_process("train", tiny / "tiny.yaml").status == 0
    assert losses(tiny / "run") == losses(trained)
    for name in ("best/weights.safetensors", "last/weights.safetensors"):
        assert (tiny / "run" / name).read_bytes() == (trained / name).read_bytes()
    assert in_process("train", tiny / "tiny.yaml", "--overwrite", "--set", "seed=2").status == 0
    assert losses(tiny / "run") != losses(trained)


def test_blank_sides_are_counted_c021(tiny: Path) -> None:
    sources = [source for source, _ in numbered_pairs()]
    for line in (10, 50, 90):
        sources[line - 1] = ""
    write_lines(tiny / "train.en", sources)
    done = in_process("train", tiny / "tiny.yaml", "--set", "training.max_steps=1")
    assert done.status == 0, done.err
    assert "157 pairs for training" in done.out
    assert any("data.train" in line and re.search(r"\b3\b", line) for line in done.out.splitlines())


def test_the_third_column_of_a_table_is_never_read_c025(tiny: Path, trained: Path) -> None:
    rows = [f"{source}\t{target}\tCC-BY zyxwvut #{n}" for n, (source, target) in enumerate(numbered_pairs())]
    write_lines(tiny / "train.tsv", rows)
    config = change(tiny, ("train: {source: train.en, target: train.de}", "train: {tsv: train.tsv}"))
    assert in_process("train", config).status == 0
    assert losses(tiny / "run") == losses(trained)
    assert (tiny / "run" / "tokenizer.model").read_bytes() == (trained / "tokenizer.model").read_bytes()


def test_paths_in_a_config_are_relative_to_it_c063(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    steps = ("--set", "training.max_steps=1")
    assert in_process("train", "../corpus/tiny.yaml", "--run", "mine", *steps).status == 0
    assert (elsewhere / "mine" / "last").is_dir()
    (tiny / "train.de").unlink()
    full = str((tiny / "train.de").resolve())
    in_process("train", "../corpus/tiny.yaml", "--run", "other", *steps).refused(full)
    assert not (elsewhere / "other").exists()


def test_a_last_batch_of_one_pair_is_used_c064(tiny: Path) -> None:
    pairs = numbered_pairs(161)
    write_lines(tiny / "train.en", [source for source, _ in pairs])
    write_lines(tiny / "train.de", [target for _, target in pairs])
    some = ("--set", "training.batch_sentences=32", "--set", "training.batch_tokens=100000")
    done = in_process("train", tiny / "tiny.yaml", *some, "--set", "training.log_every=1")
    assert done.status == 0, done.err
    assert "161 pairs" in done.out
    assert events(tiny / "run", "end")[0]["step"] == 12


def test_batches_of_one_train_and_translate_c066(tiny: Path) -> None:
    one = ("training.batch_sentences=1", "training.epochs=1", "decoding.batch_size=1")
    done = in_process("train", tiny / "tiny.yaml", *(word for key in one for word in ("--set", key)))
    assert done.status == 0, done.err
    assert events(tiny / "run", "end")[0]["step"] == 160
    translated = in_process("translate", tiny / "run", tiny / "test.en", "--batch-size", 1)
    assert translated.out.count("\n") == 20


def test_without_a_config_the_bundled_corpus_is_trained_on(tmp_path: Path) -> None:
    small = ("training.max_steps=2", "model.embedding_size=16", "model.hidden_size=32", "training.threads=1")
    settings = (*small, "tokenizer.vocab_size=2000", "decoding.beam_size=1", "decoding.max_length_ratio=0.1")
    overrides = [word for key in settings for word in ("--set", key)]
    done = in_process("train", "--run", tmp_path / "mine", *overrides)
    assert done.status == 0, done.err
    assert events(tmp_path / "mine", "end")[0]["reason"] == "max_steps"
    assert "target_language: zh" in (tmp_path / "mine" / "config.yaml").read_text(encoding="utf-8")
    assert "tok:zh" in done.out


def test_a_vocabulary_that_the_text_cannot_fill_is_told_in_words_c058(tiny: Path) -> None:
    done = in_process("train", tiny / "tiny.yaml", "--set", "tokenizer.vocab_size=32000")
    told = done.err if done.status else done.out
    assert done.status in (0, 2)
    assert "32000" in told.replace(",", "")
    assert "tokenizer.vocab_size" in told
    assert ".cc" not in done.out + done.err


# -- what is refused, before anything is made ------------------------------------------------------------------------


def test_unequal_counts_are_refused_with_both_c018(tiny: Path) -> None:
    write_lines(tiny / "train.de", [target for _, target in numbered_pairs(159)])
    refused_and_nothing_made(tiny, words=("train.en", "160", "train.de", "159"))


def test_a_misspelt_key_is_refused_with_the_nearest_c101(tiny: Path) -> None:
    change(tiny, ("learning_rate:", "learnign_rate:"))
    refused_and_nothing_made(tiny, words=("training.learnign_rate", "learning_rate"))
    refused_and_nothing_made(tiny, "--set", "model.hiden_size=3", words=("model.hiden_size", "hidden_size"))


def test_a_config_never_runs_code_c113(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    payload = "!!python/object/apply:os.mkdir [CASE_PAYLOAD_RAN]"
    change(tiny, ("source_language: en", f"source_language: {payload}"))
    refused_and_nothing_made(tiny, words=("tiny.yaml",))
    assert not (tmp_path / "CASE_PAYLOAD_RAN").exists()


def test_heads_that_do_not_divide_the_width_are_refused_with_both_c116(tiny: Path) -> None:
    sizes = ("--set", "model.hidden_size=30", "--set", "model.attention.kind=multi_head")
    words = ("model.hidden_size", "30", "model.attention.heads", "4")
    refused_and_nothing_made(tiny, *sizes, "--set", "model.attention.heads=4", words=words)


def test_bf16_says_where_it_is_slow(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2seq.model.device.lacks_bf16", lambda device: True)
    bf16 = ("--set", "training.precision=bf16", "--set", "training.max_steps=1")
    done = in_process("train", tiny / "tiny.yaml", *bf16)
    assert "on cpu in bf16" in done.out
    assert "many times slower than fp32" in done.out


def test_a_device_that_is_not_there_is_refused_with_the_way_out_c126(tiny: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    refused_and_nothing_made(tiny, "--set", "training.device=cuda", words=("cuda", "cpu"))


def test_a_config_that_does_not_exist_is_named_c131(tmp_path: Path) -> None:
    in_process("train", tmp_path / "none.yaml", "--run", tmp_path / "r").refused(str(tmp_path / "none.yaml"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["train.en", "val.de", "test.en"])
def test_a_corpus_that_does_not_exist_is_named_with_its_key_c135(tiny: Path, name: str) -> None:
    (tiny / name).unlink()
    key = f"data.{ {'train': 'train', 'val': 'validation', 'test': 'test'}[name[:-3]] }"
    refused_and_nothing_made(tiny, words=(key, str((tiny / name).resolve())))


def test_no_run_at_all_is_refused(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(tiny, (f"run: {(tiny / 'run').as_posix()}\n", ""))
    refused_and_nothing_made(tiny, words=("--run",))
    monkeypatch.chdir(tiny)  # where the bundled config's own run has not been made
    in_process("train", "--resume").refused("There is no run folder", "english-chinese")


# -- the run folder --------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_holds_a_run_is_refused_and_unharmed_c511(trained: Path) -> None:
    before = contents(trained)
    in_process("train", trained.parent / "tiny.yaml").refused("--resume", "--overwrite", str(trained))
    assert contents(trained) == before


def test_overwriting_begins_anew_and_spares_what_is_not_ours(tiny: Path, trained: Path) -> None:
    shutil.copytree(trained, tiny / "run")
    (tiny / "run" / "notes.txt").write_text("mine")
    # A refused overwrite harms nothing, not even the log.
    before = contents(tiny / "run")
    in_process("train", tiny / "tiny.yaml", "--overwrite", "--set", "tokenizer.vocab_size=9").refused("vocab_size")
    assert contents(tiny / "run") == before
    done = in_process("train", tiny / "tiny.yaml", "--overwrite", "--set", "training.max_steps=1")
    assert done.status == 0, done.err
    assert (tiny / "run" / "notes.txt").read_text() == "mine"
    assert not (tiny / "run" / "best").exists()
    assert [event["step"] for event in metrics(tiny / "run")] == [1]
    assert "step 14" not in (tiny / "run" / "train.log").read_text(encoding="utf-8")


def test_what_a_limit_leaves_out_is_said(tiny: Path) -> None:
    more = ("--set", "training.max_steps=5", "--set", "training.risk_epochs=1", "--set", "training.validate_every=50")
    done = in_process("train", tiny / "tiny.yaml", *more)
    assert (done.status, done.err) == (0, "")
    assert "about 5 updates on" in done.out
    assert "minimum risk training (training.risk_epochs) has not begun: training.max_steps came first" in done.out
    assert "step 5  end: max_steps, no best yet" in done.out


@pytest.mark.parametrize("name", ["thesis.tex", "config.yaml"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_a_folder_of_other_things_is_refused_and_unharmed(tiny: Path, name: str, more: tuple[str, ...]) -> None:
    (tiny / "run").mkdir()
    (tiny / "run" / name).write_text((tiny / "tiny.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    refused_and_nothing_made(tiny, *more, words=("not empty", name))
    refused_and_nothing_made(tiny, "--resume", words=("tokenizer" if name == "config.yaml" else "no config.yaml",))


def test_two_processes_cannot_use_one_run_folder(tiny: Path, trained: Path) -> None:
    from seq2seq.runs import RunFolder

    shutil.copytree(trained, tiny / "run")
    holder = RunFolder(tiny / "run")  # locks are the file's, so another open file stands for another process
    holder.lock()
    before = contents(tiny / "run")
    for how in ("--resume", "--overwrite"):
        done = in_process("train", tiny / "tiny.yaml", how).refused("in use", str(tiny / "run"))
        assert done.out == ""  # before any work is done
    assert contents(tiny / "run") == before
    # Reading is free.
    assert in_process("translate", tiny / "run", tiny / "test.en").status == 0
    holder.release()
    assert in_process("train", tiny / "tiny.yaml", "--resume").status == 0


def test_a_run_that_another_process_made_meanwhile_is_not_replaced(tiny: Path, trained: Path) -> None:
    from seq2seq.errors import RunError
    from seq2seq.runs import RunFolder

    folder = RunFolder.vacant(tiny / "run", overwrite=False)
    shutil.copytree(trained, tiny / "run")
    before = contents(tiny / "run")
    with pytest.raises(RunError, match="already holds a run"):
        folder.create("", {}, replace=False)
    folder.release()
    assert contents(tiny / "run") == before


@posix_only
def test_a_folder_that_cannot_be_written_is_refused_before_data_are_read_c509(tiny: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tiny / "train.en").unlink()  # would be refused next
    closed = tiny / "closed"
    closed.mkdir(mode=0o555)
    in_process("train", tiny / "tiny.yaml", "--run", closed / "run").refused(str(closed))


@posix_only
def test_a_full_disk_is_told_with_path_and_cause_and_spares_the_last_checkpoint_c507(tiny: Path) -> None:
    import resource

    config, run = tiny / "tiny.yaml", tiny / "run"
    assert in_process("train", config, "--set", "training.max_steps=3").status == 0
    before = (run / "last" / "weights.safetensors").read_bytes()

    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # as a disk without room for the weights
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, usual[1]))
        done = in_process("train", config, "--resume", "--set", "training.max_steps=6")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    done.refused(str(run), "weights.safetensors", "File too large")
    assert done.err.count("\n") == 1
    assert (run / "last" / "weights.safetensors").read_bytes() == before
    assert not list(run.glob("*.next"))  # the room is needed
    assert in_process("train", config, "--resume").status == 0


def test_a_small_file_system_that_is_full_is_told_with_path_and_cause_c507(tiny: Path) -> None:
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts a small file system")
    small = tiny / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        steps = ("--set", "training.checkpoint_every=1", "--set", "model.hidden_size=64")
        done = in_process("train", tiny / "tiny.yaml", "--run", small / "run", *steps)
        done.refused(str(small / "run"), "No space left")
        assert done.err.count("\n") == 1
    finally:
        subprocess.run(["umount", small], check=False)


# -- signals ---------------------------------------------------------------------------------------------------------


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "seq2seq", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command_environment())


def wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"the command never said {word!r}")


@posix_only
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT_c501", "SIGTERM_c502"]
)
def test_a_signal_in_an_epoch_saves_and_says_how_to_go_on(tiny: Path, number: signal.Signals, status: int) -> None:
    long = ("--set", "training.epochs=1000", "--set", "training.patience=null", "--set", "training.log_every=1")
    with start("train", tiny / "tiny.yaml", *long) as process:
        wait_for(process, b"step 10 ")
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == status
    assert b"Traceback" not in err
    assert err.count(b"\n") == 1
    how = out.decode().rstrip().split("\n")[-1]
    assert re.fullmatch(rf"stopped at step \d+; go on with: seq2seq train --run {tiny / 'run'} --resume", how)
    stopped = int(re.findall(r"step (\d+)", how)[0])
    assert events(tiny / "run", "end")[0] == {**events(tiny / "run", "end")[0], "reason": "stopped", "step": stopped}
    more = ("--set", f"training.max_steps={stopped + 1}")
    assert in_process("train", "--run", tiny / "run", "--resume", *more).status == 0
    assert in_process("translate", tiny / "run" / "last", tiny / "test.en").out.count("\n") == 20


@posix_only
def test_kill_9_while_saving_leaves_a_checkpoint_that_loads_c505(tiny: Path) -> None:
    each = ("--set", "training.checkpoint_every=1", "--set", "training.log_every=1", "--set", "training.patience=null")
    large = ("--set", "model.hidden_size=256", "--set", "training.epochs=1000", *each)
    for round_, wait in enumerate((0.013, 0.037)):
        how = ("--resume",) if round_ else ()
        with start("train", tiny / "tiny.yaml", *large, *how) as process:
            wait_for(process, b"tokens/s")
            wait_for(process, b"tokens/s")  # the update before this one has been saved by now
            time.sleep(wait)
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        translated = in_process("translate", tiny / "run" / "last", tiny / "test.en", "--beam", 1)
        assert translated.status == 0, translated.err
    done_steps = events(tiny / "run", "train")[-1]["step"]
    more = ("--set", f"training.max_steps={done_steps + 2}")
    done = in_process("train", tiny / "tiny.yaml", *large, *more, "--resume")
    assert done.status == 0, done.err
    left = {path.name for path in (tiny / "run").iterdir()}
    assert not {name for name in left if name.endswith((".next", ".before", ".tmp"))}
    steps = [event["step"] for event in events(tiny / "run", "train")]
    assert steps == list(range(1, done_steps + 3))  # each step is told once, whatever was told before the crash


def test_a_run_killed_before_its_first_checkpoint_can_be_resumed(tiny: Path, trained: Path) -> None:
    run = tiny / "run"
    run.mkdir()
    for name in ("config.yaml", "tokenizer.model"):
        shutil.copy(trained / name, run / name)
    done = in_process("train", tiny / "tiny.yaml", "--resume")
    assert done.status == 0, done.err
    assert losses(run) == losses(trained)


# -- numbers out of range --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("rate", "warmup"), [("1e9", 0), ("1e9", 300), ("1e39", 0)])
def test_a_training_that_explodes_stops_and_saves_no_nan_c513(
    tiny: Path, rate: str, warmup: int, smoothing: float
) -> None:
    settings = {"learning_rate": rate, "clip_norm": "null", "checkpoint_every": 1, "warmup_steps": warmup}
    overrides = [f"training.{key}={value}" for key, value in {**settings, "label_smoothing": smoothing}.items()]
    done = in_process("train", tiny / "tiny.yaml", *(word for one in overrides for word in ("--set", one)))
    done.refused("non-finite", "step", "training.learning_rate")
    assert int(re.findall(r"at step (\d+)", done.err)[0]) < 10
    for path in (tiny / "run").rglob("*.safetensors"):
        assert all(tensor.isfinite().all() for tensor in load_file(path).values()), path
    for path in (tiny / "run").glob("metrics.jsonl"):
        assert not re.search("NaN|Infinity", path.read_text(encoding="utf-8"))
