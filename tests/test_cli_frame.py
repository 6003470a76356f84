"""Claims about the frame round every verb: help, mistakes, streams, signals and the status at the end."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, Finished, command_environment, in_process, run_python, write_lines

import seq2seq
from seq2seq.cli import main as frame
from seq2seq.errors import CorpusError

Command = Callable[..., Finished]

# A verb that announces itself and then works for a minute, in place of a real one.
BUSY = """
import sys, time
from types import SimpleNamespace
from seq2seq.cli import main as frame
def run(args):
    print("ready", flush=True)
    time.sleep(60)
frame.load_verb = lambda name: SimpleNamespace(SUMMARY="s", EXAMPLES="e", add_arguments=lambda parser: None, run=run)
sys.argv = ["seq2seq", "score"]
frame.entry()
"""
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def with_verb(monkeypatch: pytest.MonkeyPatch, run: Callable[[Namespace], int]) -> None:
    """Puts a verb of our own in the place of every verb."""

    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--beam-size", type=int)

    fake = SimpleNamespace(SUMMARY="Does it.", EXAMPLES="seq2seq score", add_arguments=add_arguments, run=run)
    monkeypatch.setattr(frame, "load_verb", lambda name: fake)


def raising(error: BaseException) -> Callable[[Namespace], int]:
    def run(args: Namespace) -> int:
        raise error

    return run


def test_help_lists_every_verb(run_cli: Command) -> None:
    done = run_cli("--help")
    assert done.status == 0
    assert all(f"\n  {verb} " in done.out for verb in frame.VERBS)


@pytest.mark.parametrize("verb", frame.VERBS)
def test_the_help_of_a_verb_shows_an_example(run_cli: Command, verb: str) -> None:
    done = run_cli(verb, "--help")
    assert done.status == 0
    assert "examples:\n  seq2seq " in done.out


def test_the_version_is_the_package_s(run_cli: Command) -> None:
    assert run_cli("--version").out == f"seq2seq {seq2seq.__version__}\n"


def test_one_argument_too_many_is_called_that() -> None:
    in_process("attend", "one", "two", "three").refused("'three' is one argument too many")


def test_an_unknown_verb_names_the_nearest(run_cli: Command) -> None:
    run_cli("scroe", "x").refused("'scroe'", "did you mean 'score'?")
    run_cli("zzz").refused("'zzz'", "train, translate")
    run_cli().refused("train, translate")


def test_a_wrong_argument_is_one_sentence_naming_the_nearest(run_cli: Command) -> None:
    done = run_cli("score", "out", "--reference", "ref", "--jsno").refused("'--jsno'", "did you mean '--json'?")
    assert done.err.count("\n") == 1
    run_cli("score", "out").refused("--reference")
    # An abbreviation would change its meaning as options are added.
    run_cli("score", "out", "--ref", "x").refused("--reference")


def test_schema_is_json_on_standard_output_and_in_a_file(run_cli: Command, tmp_path: Path) -> None:
    done = run_cli("schema")
    assert done.status == 0, done.err
    schema = json.loads(done.out)
    assert "data" in schema["properties"]
    assert run_cli("schema", "--output", tmp_path / "s.json").out == ""
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == schema
    run_cli("schema", "--output", tmp_path / "none" / "s.json").refused("There is no folder for --output", "s.json")
    run_cli("schema", "--output", "").refused("--output is empty")
    run_cli("schema", "--output", tmp_path / "s.json.gz").refused("s.json.gz", "not compressed")
    assert list(tmp_path.iterdir()) == [tmp_path / "s.json"]


def test_a_refusal_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_verb(monkeypatch, raising(CorpusError("train.de is empty.")))
    assert frame.main(["score"]) == 2
    assert capsys.readouterr() == ("", "seq2seq: train.de is empty.\n")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "seq2seq: interrupted\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/r/best"), 2, "seq2seq: /r/best: Permission denied.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "/r/x"), 2, "seq2seq: /r/x: No space left on device.\n"),
        (OSError(errno.ENOSPC, "No space left"), 2, "seq2seq: The output cannot be written: No space left.\n"),
        (MemoryError(), 2, "seq2seq: Memory is used up; a smaller batch, model or corpus needs less.\n"),
    ],
)
def test_what_the_world_does_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str
) -> None:
    with_verb(monkeypatch, raising(error))
    assert frame.main(["score"]) == status
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError(), OSError("odd")])
def test_a_bug_shows_its_traceback_and_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    with_verb(monkeypatch, raising(error))
    assert frame.main(["score"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.rstrip().split("\n")[-1].startswith("seq2seq: This is a bug in seq2seq")


def test_the_status_of_a_verb_is_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    with_verb(monkeypatch, lambda args: int(args.beam_size))
    assert frame.main(["score", "--beam-size", "7"]) == 7


def test_the_handler_for_sigterm_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with_verb(monkeypatch, lambda args: 0)
    assert frame.main(["score"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before


@posix_only
@pytest.mark.parametrize(
    ("number", "status", "line"),
    [(signal.SIGINT, 130, b"seq2seq: interrupted\n"), (signal.SIGTERM, 143, b"seq2seq: terminated\n")],
)
def test_a_signal_ends_the_command_quietly_c501_c502(number: signal.Signals, status: int, line: bytes) -> None:
    environment = command_environment()
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (status, line)


@posix_only
def test_a_reader_that_leaves_ends_the_command_quietly_c321(tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "ref.de", ["Der Bär."])
    with subprocess.Popen(
        [sys.executable, "-m", "seq2seq", "score", reference, "--reference", reference],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command_environment(),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()  # before a word is written
        assert process.stderr is not None
        err = process.stderr.read()
        assert (process.wait(timeout=60), err) == (141, b"")


@posix_only
@pytest.mark.parametrize("command", [["-m", "seq2seq.model.attention"], [ROOT / "scripts" / "first_run.py", "--help"]])
def test_a_reader_that_leaves_ends_the_demonstration_and_the_first_run_quietly(command: list[object]) -> None:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=command_environment(),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (141, -signal.SIGPIPE)


def test_the_first_run_has_a_help_of_its_own_and_makes_nothing_for_it(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "first_run.py"
    script.parent.mkdir()
    script.write_bytes((ROOT / "scripts" / "first_run.py").read_bytes())
    done = run_python(script, "--help", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "--tests" in done.out
    assert "--overwrite" in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scripts"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", [None, "1"])
def test_help_that_a_full_disk_does_not_take_is_no_success(unbuffered: str | None) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123  (a device, not a path)
        done = subprocess.run(
            [sys.executable, "-m", "seq2seq", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=command_environment({"PYTHONUNBUFFERED": unbuffered}),
            timeout=60,
            check=False,
        )
    assert b"cannot be written: No space left on device" in done.stderr
    assert done.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_standard_output_is_told_in_one_line_c507(tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "ref.de", ["Der Bär."])
    with open("/dev/full", "wb") as full:  # noqa: PTH123  (a device, not a path)
        done = subprocess.run(
            [sys.executable, "-m", "seq2seq", "score", reference, "--reference", reference],
            stdout=full,
            stderr=subprocess.PIPE,
            env=command_environment({"PYTHONUNBUFFERED": None}),
            timeout=60,
            check=False,
        )
    assert done.stderr == b"seq2seq: Standard output cannot be written: No space left on device.\n"
    assert done.returncode == 2


ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_streams_are_utf8_whatever_the_locale_c319() -> None:
    code = (
        "from types import SimpleNamespace as N; import sys; from seq2seq.cli import main as f\n"
        "def run(a): print(sys.stdin.read() + 'B\\xe4r \\u65e5'); print('\\xdcber', file=sys.stderr); return 0\n"
        "f.load_verb = lambda name: N(SUMMARY='s', EXAMPLES='e', add_arguments=lambda p: None, run=run)\n"
        "sys.exit(f.main(['score']))\n"
    )
    done = run_python("-c", code, env=ASCII, input="größer\r\n")
    assert done.status == 0, done.err
    assert done.out == "größer\r\nBär 日\n"
    assert done.err == "Über\n"


@posix_only
def test_arguments_and_file_names_are_utf8_whatever_the_locale_c319(run_cli: Command, tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "größer-日本.de", ["Der Bär."])
    done = run_cli("score", reference, "--reference", reference, env=ASCII)
    assert (done.status, done.err) == (0, "")
    run_cli("score", tmp_path / "nötig.de", "--reference", reference, env=ASCII).refused("nötig.de")


def test_output_into_a_file_has_no_escape_and_no_cr_c516(run_cli: Command, tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "ref.de", ["Der Bär sieht den Hund."])
    for arguments in (["--help"], ["score", reference, "--reference", reference], ["schema"], ["scroe"]):
        done = run_cli(*arguments, env={"FORCE_COLOR": None})
        assert b"\r" not in done.out_bytes + done.err_bytes
        assert b"\x1b" not in done.out_bytes + done.err_bytes


@pytest.mark.parametrize("verb", ["train", "translate", "evaluate"])
def test_the_scripts_are_doors_to_the_verbs_from_anywhere(verb: str, tmp_path: Path) -> None:
    done = run_python(ROOT / "scripts" / f"{verb}.py", "--help", cwd=tmp_path, env={"PYTHONPATH": None})
    assert done.status == 0, done.err
    assert done.out.startswith(f"usage: seq2seq {verb} ")
