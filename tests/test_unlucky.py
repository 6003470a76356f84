"""Claims about what the unlucky and the careless do: signals at bad moments, outputs over inputs, changed measures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from conftest import command_environment, in_process, run_python
from safetensors.torch import load_file

from seq2seq.checkpoints import sealed
from seq2seq.cli.signals import StopRequest, Terminated, interruptible
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.errors import TokenizerError
from seq2seq.model.device import is_out_of_memory

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


# -- signals ---------------------------------------------------------------------------------------------------------


@posix_only
def test_a_signal_in_the_middle_of_an_import_waits_until_it_is_over(tmp_path: Path) -> None:
    """Libraries swallow what is raised while they load; this one would, too."""
    (tmp_path / "swallows.py").write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0.1)\n"
        "except BaseException:\n"
        "    pass\n"
        "whole = True\n"
    )
    code = (
        f"import sys, time; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from seq2seq.cli.signals import interruptible\n"
        "with interruptible():\n"
        "    try:\n"
        "        import swallows\n"
        "        time.sleep(10)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', sys.modules['swallows'].whole)\n"
    )
    assert run_python("-c", code).out == "interrupted True\n"


@posix_only
@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_signal_at_any_moment_of_the_start_ends_the_command(
    trained: Path, number: signal.Signals, status: int
) -> None:
    for moment in (0.25, 0.5, 0.8, 1.2):
        command = [sys.executable, "-m", "seq2seq", "translate", str(trained)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=command_environment()
        ) as process:
            time.sleep(moment)
            process.send_signal(number)
            assert process.stderr is not None
            said = process.stderr.read()
        # Before Python has come so far as to hear it, the signal does what it does to any program.
        assert process.returncode in (status, -number), said
        assert "bug" not in said


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_signal_is_an_exception_that_knows_its_number(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores SIGHUP, which the program respects
    try:
        with pytest.raises(Terminated) as ended, interruptible():
            signal.raise_signal(number)
        assert ended.value.number == number
        with StopRequest() as stop:
            signal.raise_signal(number)
            assert stop.asked()
        with pytest.raises(Terminated):
            stop.end_as_asked()
    finally:
        signal.signal(number, before)


@posix_only
def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible(), StopRequest() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.asked()
    finally:
        signal.signal(signal.SIGHUP, before)


# -- outputs over inputs ---------------------------------------------------------------------------------------------


def test_an_output_never_takes_the_place_of_an_input_or_of_a_part_of_a_run(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    source, reference = (Path(shutil.copy(trained.parent / f"test.{code}", tmp_path)) for code in ("en", "de"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "link").symlink_to(source)
    for output in (source, tmp_path / "link"):
        in_process("translate", run, source, "--output", output).refused("--output", "another name")
    evaluate = ("evaluate", run, "--source", source, "--reference", reference, "--output")
    in_process(*evaluate, reference).refused("--output", str(reference))
    for part in ("config.yaml", "tokenizer.model", "best/weights.safetensors", "last/checkpoint.json"):
        in_process("translate", run, source, "--output", run / part).refused("part of a run")
        in_process("schema", "--output", run / part).refused("part of a run")
    assert {path: path.read_bytes() for path in before} == before
    assert in_process("translate", run, source, "--output", run / "output.de").status == 0


# -- another measure, another validation set -------------------------------------------------------------------------


def resumed(folder: Path, *settings: str) -> str:
    words = [word for setting in settings for word in ("--set", setting)]
    done = in_process("train", folder / "tiny.yaml", "--resume", *words)
    assert done.status == 0, done.err
    return done.out


def test_a_best_score_is_compared_only_with_its_like(tiny: Path) -> None:
    more = ("--set", "training.patience=1", "--set", "data.test=null")
    assert in_process("train", tiny / "tiny.yaml", *more).status == 0
    out = resumed(tiny, "training.choose_by=loss", "training.epochs=4", "training.patience=1", "data.test=null")
    assert "now chosen by loss; until now it was bleu" in out
    assert "step 28: loss" in out, "the loss went on falling, so the last one is the best"
    other = "data.validation={source: train.en, target: train.de}".replace("train.", f"{tiny.as_posix()}/train.")
    out = resumed(tiny, "training.choose_by=loss", "training.epochs=5", "data.test=null", other)
    assert "the validation set is another one" in out
    assert "step 35: loss" in out, "and a first one of another kind is the best of its kind"


# -- numbers that are not finite -------------------------------------------------------------------------------------


def test_a_model_that_says_nonsense_is_refused_and_not_printed(trained: Path, tmp_path: Path) -> None:
    import json

    from safetensors.torch import save

    run = Path(shutil.copytree(trained, tmp_path / "run"))
    weights = run / "best" / "weights.safetensors"
    huge = {name: torch.full_like(value, 3e38) for name, value in load_file(weights).items()}
    weights.write_bytes(save(huge))
    facts = run / "best" / "checkpoint.json"
    content = json.loads(facts.read_text(encoding="utf-8"))
    import hashlib

    data = weights.read_bytes()
    content["files"][weights.name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    facts.write_text(json.dumps(sealed(content)), encoding="utf-8")
    text, output = trained.parent / "test.en", tmp_path / "out"
    in_process("translate", run, text, "--output", output).refused("not finite for 20 lines", "learning_rate")
    assert not output.exists()
    in_process("evaluate", run).refused("not finite")


# -- odds and ends ---------------------------------------------------------------------------------------------------


@posix_only
def test_a_path_that_is_no_utf8_is_refused_before_any_work(tiny: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"d\xff")
    in_process("train", tiny / "tiny.yaml", "--run", tmp_path / name).refused("is not UTF-8")
    folder = tmp_path / name
    shutil.copytree(tiny, folder)
    in_process("check", folder / "tiny.yaml").refused("is not UTF-8")


@posix_only
def test_a_working_directory_that_is_gone_is_told(tmp_path: Path, trained: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); from seq2seq.cli.main import entry; entry()"
    run_python("-c", code, "score", "a", "--reference", "b", cwd=gone).refused("working directory")


@pytest.mark.parametrize("option", ["--beam", "--n-best"])
@pytest.mark.parametrize("number", ["1025", "0", "٣", " 3", "1_0", "1e3"])
def test_an_option_has_the_range_of_its_setting(trained: Path, option: str, number: str) -> None:
    in_process("translate", trained, trained.parent / "test.en", option, number).refused("1 to 1,024")


@pytest.mark.parametrize("language", ["chinese", "", "a\nb", "z"])
def test_a_name_is_no_language_code(tiny: Path, language: str) -> None:
    score = ("score", tiny / "test.de", "--reference", tiny / "test.de", "--language")
    in_process(*score, language).refused("language code")
    assert in_process(*score, "pt_BR").status == 0
    assert "--tokenize char" in in_process(*score, "th").err


def test_too_little_text_is_called_that(tmp_path: Path) -> None:
    from seq2seq.config.schema import TokenizerConfig

    with pytest.raises(TokenizerError, match="too little text"):
        Tokenizer.train([("a", "a")], TokenizerConfig(vocab_size=8, byte_fallback=False))


def test_each_library_has_its_own_words_for_too_little_memory() -> None:
    for words in ("could not create a primitive", "could not execute a primitive", "CUDA out of memory. Tried"):
        assert is_out_of_memory(RuntimeError(words))
    for other in ("could not create a primitive descriptor for the matmul primitive", "shape mismatch"):
        assert not is_out_of_memory(RuntimeError(other))


@pytest.mark.skipif(os.name != "posix", reason="names of 255 bytes")
def test_an_output_may_have_the_longest_name_there_is(tmp_path: Path, trained: Path) -> None:
    output = tmp_path / ("x" * 255)
    assert in_process("translate", trained, trained.parent / "test.en", "--output", output).status == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 20
