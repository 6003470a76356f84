"""Claims about `seq2seq translate`: one line out for each line in, whatever the lines are.

A name with c301 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import io
import lzma
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Finished, command_environment, in_process, numbered_pairs

from seq2seq.cli import translate as verb
from seq2seq.corpus.lines import read_lines
from seq2seq.translation.translator import Translator

Command = Callable[..., Finished]
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
SOURCES = [source for source, _ in numbered_pairs(20, first=181)]


def translate(run: Path, *arguments: object, lines: list[str] | None = None) -> list[str]:
    """The lines of output for lines of standard input."""
    text = "".join(line + "\n" for line in lines or []).encode("utf-8")
    done = in_process("translate", run, *arguments, stdin=text)
    assert done.status == 0, done.err
    assert done.out == "" or done.out.endswith("\n")
    return done.out.split("\n")[:-1]


def test_a_file_standard_input_and_an_output_file_give_the_same(trained: Path, tmp_path: Path) -> None:
    expected = translate(trained, trained.parent / "test.en")
    assert len(expected) == 20
    assert all(expected)
    assert translate(trained, lines=SOURCES) == expected
    output = tmp_path / "out.de"
    assert translate(trained, trained.parent / "test.en", "--output", output) == []
    assert output.read_bytes().decode("utf-8").split("\n")[:-1] == expected


def test_two_translations_of_one_text_are_the_same_c327(trained: Path) -> None:
    first = in_process("translate", trained, trained.parent / "test.en")
    assert in_process("translate", trained, trained.parent / "test.en").out_bytes == first.out_bytes


def test_a_run_is_the_whole_experiment_wherever_it_lies_c061(
    tiny: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained, tiny / "run")
    expected = translate(trained, lines=SOURCES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tiny / "run").rename(elsewhere / "moved")
    shutil.rmtree(tiny)
    monkeypatch.chdir(elsewhere)
    assert translate(Path("moved"), lines=SOURCES) == expected


def test_output_is_utf8_under_an_ascii_locale_c319(run_cli: Command, trained: Path, tmp_path: Path) -> None:
    locale = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # Sixteen of a weak model's guesses for each line have a letter beyond ASCII somewhere.
    done = run_cli("translate", trained, trained.parent / "test.en", "--n-best", 16, env=locale)
    assert done.status == 0
    assert not done.out.isascii()
    assert done.out_bytes == in_process("translate", trained, trained.parent / "test.en", "--n-best", 16).out_bytes


def test_blank_lines_stay_blank_and_in_place_c301(trained: Path) -> None:
    expected = translate(trained, lines=SOURCES)
    lines = [*SOURCES[:3], "", "  \t\u3000", *SOURCES[3:5], "\r", "\u2028", SOURCES[5]]
    given = translate(trained, lines=lines)
    assert given == [*expected[:3], "", "", *expected[3:5], "", "", expected[5]]


def test_nothing_in_is_nothing_out_c303_c313(trained: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.en"
    empty.write_bytes(b"")
    assert translate(trained, empty) == []
    assert translate(trained, lines=[]) == []
    assert translate(trained, empty, "--output", tmp_path / "out") == []
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_the_last_line_needs_no_end_and_a_cr_goes_with_its_lf(trained: Path, ends: str) -> None:
    done = in_process("translate", trained, stdin=ends.join(SOURCES[:3]).encode())
    assert done.out == "".join(f"{line}\n" for line in translate(trained, lines=SOURCES[:3]))


def test_a_line_break_inside_a_line_is_blank_space(trained: Path) -> None:
    plain = translate(trained, lines=[SOURCES[0]])
    for mark in ("\r", "\u2028", "\x0b", "\x85", "\t"):
        assert translate(trained, lines=[SOURCES[0].replace(" ", mark)]) == plain


def test_a_very_long_line_is_translated_in_parts_with_a_warning_c305(trained: Path) -> None:
    long = " ".join([*SOURCES] * 45)
    assert len(long.split()) == 5400
    text = "".join(f"{line}\n" for line in (SOURCES[0], long, SOURCES[1]))
    done = in_process("translate", trained, "--beam", 1, stdin=text.encode())
    assert done.status == 0, done.err
    first, middle, last = done.out.split("\n")[:-1]
    assert [first, last] == translate(trained, "--beam", 1, lines=SOURCES[:2])
    assert len(middle) > 20 * len(first)
    assert re.fullmatch(r"seq2seq: 1 line of more than 100 pieces was translated in parts \(line 2\)\n", done.err)


def test_a_line_as_long_as_a_book_shows_how_far_it_is(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    translator, screen, output = Translator.load(trained), Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    args = argparse.Namespace(processes=1, batch_size=3, n_best=1, run_folder=str(trained))
    work = functools.partial(translator.translate, beam_size=1, batch_size=3)
    for lines, shown in ((["x" * 1_000], True), (SOURCES[:4], False)):
        screen.truncate(0)
        verb._translate_all(translator, work, lines, output, args, len(lines))
        assert bool(re.search(r"\b3 of [0-9]+ parts", screen.getvalue())) == shown
    assert output.getvalue().count("\n") == 5


def test_text_of_another_script_gives_a_line_each_c307(trained: Path) -> None:
    lines = ["Привет, мир!", "今日は天気がいい。", "ᎣᏏᏲ ᏓᎾᏓᏲ", "The dog sees 🐕 trees.", "\u202eabc\u202c"]
    assert len(translate(trained, lines=lines)) == 5


@pytest.mark.parametrize("beam", [1, 5])
def test_the_size_of_a_batch_changes_no_translation(trained: Path, beam: int) -> None:
    lines = [" ".join(source.split()[: 1 + number % 7]) for number, source in enumerate(SOURCES * 2)]
    alone = translate(trained, "--batch-size", 1, "--beam", beam, lines=lines)
    assert translate(trained, "--batch-size", 32, "--beam", beam, lines=lines) == alone


def test_a_model_of_one_step_with_a_short_limit_gives_every_line_c324(tiny: Path) -> None:
    # The limit is a ratio and ten pieces, so a ratio near zero makes it eleven.
    settings = ("training.max_steps=1", "decoding.max_length_ratio=0.001", "decoding.beam_size=5")
    done = in_process("train", tiny / "tiny.yaml", *(word for one in settings for word in ("--set", one)))
    assert done.status == 0, done.err
    assert len(translate(tiny / "run", tiny / "test.en")) == 20


def test_n_best_lines_carry_number_text_and_falling_scores(trained: Path) -> None:
    best = translate(trained, lines=SOURCES[:2])
    lines = [line.split(" ||| ") for line in translate(trained, "--n-best", 3, lines=[SOURCES[0], "", SOURCES[1]])]
    assert [line[0] for line in lines] == ["1"] * 3 + ["2"] + ["3"] * 3
    assert [lines[0][1], lines[3][1], lines[4][1]] == [best[0], "", best[1]]
    for first in (0, 4):
        scores = [float(line[2]) for line in lines[first : first + 3]]
        assert scores == sorted(scores, reverse=True)
    assert len({line[1] for line in lines[:3]}) > 1


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", "9999999999"])
def test_sizes_are_whole_numbers_above_zero(trained: Path, number: str) -> None:
    for option in ("--beam", "--n-best", "--batch-size"):
        in_process("translate", trained, f"{option}={number}").refused(option, number)


def test_a_device_that_is_not_there_is_refused_with_the_way_out_c126(trained: Path) -> None:
    for device, words in (("cuda:99", ("cuda:99", "cpu")), ("gpu", ("'gpu'", "cpu", "cuda"))):
        in_process("translate", trained, trained.parent / "test.en", "--device", device).refused(*words)


# -- refusals come before output -------------------------------------------------------------------------------------


def test_bf16_says_where_it_is_slow(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2seq.model.device.lacks_bf16", lambda device: True)
    done = in_process("translate", trained, "--precision", "bf16", stdin=b"one two\n")
    assert "many times slower than fp32" in done.err
    monkeypatch.setattr("seq2seq.model.device.lacks_bf16", lambda device: False)
    assert not in_process("translate", trained, "--precision", "bf16", stdin=b"one two\n").err


def test_a_file_of_bad_bytes_is_refused_before_any_output(trained: Path, tmp_path: Path) -> None:
    bad, output = tmp_path / "bad.en", tmp_path / "out.de"
    bad.write_bytes("".join(f"{line}\n" for line in SOURCES).encode() + b"caf\xe9\n")
    assert in_process("translate", trained, bad).refused("bad.en line 21", "UTF-8").out == ""
    output.write_text("from before\n")
    in_process("translate", trained, bad, "--output", output).refused("bad.en line 21")
    assert output.read_text() == "from before\n"
    in_process("translate", trained, tmp_path / "none.en", "--output", output).refused(str(tmp_path / "none.en"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.en", "out.de"]


def test_an_output_file_appears_whole_or_not_at_all(trained: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.de"
    text = "".join(f"{line}\n" for line in SOURCES).encode()
    in_process("translate", trained, "--output", output, stdin=text + b"\xff\n").refused("line 21")
    assert list(tmp_path.iterdir()) == []
    in_process("translate", trained, "--output", tmp_path / "no" / "out.de", stdin=text).refused(
        "no folder for --output", "out.de"
    )
    in_process("translate", trained, "--output", tmp_path, stdin=text).refused(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@posix_only
def test_an_output_that_is_a_pipe_stays_one(trained: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert translate(trained, "--output", pipe, lines=SOURCES) == []
        out, _ = reader.communicate(timeout=20)
    assert out.decode().split("\n")[:-1] == translate(trained, lines=SOURCES)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_output_that_is_a_link_stays_one(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "out.de").symlink_to(tmp_path / "there" / "out.de")
    assert translate(trained, "--output", tmp_path / "out.de", lines=SOURCES[:1]) == []
    assert (tmp_path / "out.de").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["out.de"]


@pytest.mark.parametrize(("suffix", "unpacked"), [(".gz", gzip.decompress), (".XZ", lzma.decompress)])
def test_an_output_named_as_an_archive_is_one_and_is_read_again(
    trained: Path, tmp_path: Path, suffix: str, unpacked: Callable[[bytes], bytes]
) -> None:
    output = tmp_path / f"out.de{suffix}"
    assert translate(trained, "--output", output, lines=SOURCES) == []
    expected = translate(trained, lines=SOURCES)
    assert unpacked(output.read_bytes()).decode("utf-8").split("\n")[:-1] == expected
    assert list(read_lines(output)) == expected
    first = output.read_bytes()
    test = ("--source", trained.parent / "test.en", "--reference", trained.parent / "test.de")
    assert in_process("evaluate", trained, *test, "--output", output).status == 0
    assert output.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_a_nul_is_to_be_removed_since_the_text_may_well_be_utf8(trained: Path) -> None:
    done = in_process("translate", trained, stdin=b"a\0b\n").refused("line 1 holds a NUL byte", "Remove it.")
    assert "UTF-8" not in done.err


@posix_only
def test_devices_are_never_replaced(tmp_path: Path) -> None:
    from seq2seq import files

    assert files._is_special(Path("/dev/null"))
    assert files._is_special(Path("/dev/stdout"))  # a link, perhaps to a file that ">" has opened
    with (tmp_path / "out").open("wb") as redirected:
        files.write_file(Path(f"/dev/fd/{redirected.fileno()}"), "text\n")
    assert (tmp_path / "out").read_text() == "text\n"


# -- pipes and signals -----------------------------------------------------------------------------------------------


@pytest.fixture
def piped(trained: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command between two pipes, still reading."""
    command = [sys.executable, "-m", "seq2seq", "translate", str(trained), "--beam", "1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command_environment()
    ) as process:
        yield process
        process.kill()


def ask(process: subprocess.Popen[bytes], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    return process.stdout.readline().decode("utf-8").removesuffix("\n")


@posix_only
def test_a_pipe_is_answered_line_by_line_and_leaves_quietly_on_a_signal_c501(
    piped: subprocess.Popen[bytes], trained: Path
) -> None:
    assert piped.stderr is not None
    expected = translate(trained, "--beam", 1, lines=SOURCES[:2])
    assert ask(piped, SOURCES[0]) == expected[0]
    began = time.monotonic()
    assert ask(piped, SOURCES[1]) == expected[1]
    assert time.monotonic() - began < 5
    piped.send_signal(signal.SIGINT)
    # The thread that waits for standard input must not be in the way.
    assert piped.wait(timeout=10) == 130
    assert piped.stderr.read() == b"seq2seq: interrupted\n"


@posix_only
def test_a_reader_that_leaves_ends_the_command_quietly_c321(piped: subprocess.Popen[bytes]) -> None:
    assert piped.stdin is not None
    assert piped.stdout is not None
    assert piped.stderr is not None
    ask(piped, SOURCES[0])
    piped.stdout.close()
    piped.stdin.write(f"{SOURCES[1]}\n".encode())  # the input stays open
    piped.stdin.flush()
    assert piped.wait(timeout=20) == 141
    assert piped.stderr.read() == b""


# -- the prompt ------------------------------------------------------------------------------------------------------


def prompt(run: Path, answers: list[str | type[BaseException]], n_best: int = 1) -> list[str]:
    """Talks to the prompt; gives back the signs it showed. An exception is a key: Ctrl-C or Ctrl-D."""
    shown = []
    coming = iter(answers)

    def ask(sign: str) -> str:
        shown.append(sign)
        answer = next(coming)
        if isinstance(answer, str):
            return answer
        raise answer

    args = argparse.Namespace(beam=1, n_best=n_best, batch_size=None)
    assert verb._prompt(Translator.load(run, device="cpu"), args, ask) == 0
    return shown


def test_the_prompt_answers_each_line_until_ctrl_d(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = translate(trained, "--beam", 1, lines=SOURCES[:2])
    prompt(trained, [SOURCES[0], KeyboardInterrupt, "", SOURCES[1], EOFError])
    shown = capsys.readouterr()
    # Ctrl-C forgets a line and nothing else; only translations are on standard output.
    assert shown.out.split("\n") == [expected[0], "", expected[1], ""]
    assert "Ctrl-D" in shown.err


def test_the_prompt_survives_anything_typed(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt(trained, ["caf\udce9", "\x00", "<unk> </s>", "a" * 5000, EOFError])
    assert capsys.readouterr().out.count("\n") == 4


def test_n_best_lines_at_the_prompt_are_numbered(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt(trained, ["", SOURCES[0], EOFError], n_best=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ||| ")[0] for line in lines] == ["1", "2", "2"]


def test_ctrl_c_during_a_translation_ends_that_line_only(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Translator.translate
    calls = []

    def interrupted(*arguments: Any, **how: Any) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments, **how)

    monkeypatch.setattr(Translator, "translate", interrupted)
    prompt(trained, [SOURCES[0], SOURCES[1], EOFError])
    assert capsys.readouterr().out.split("\n") == [*translate(trained, "--beam", 1, lines=SOURCES[1:2]), ""]


def test_the_signs_of_the_prompt_never_reach_a_file(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prompt(trained, [SOURCES[0], EOFError]) == ["", ""]  # under pytest, standard output is no terminal
    assert ">" not in capsys.readouterr().out


def test_several_processes_give_what_one_gives(trained: Path, tmp_path: Path) -> None:
    lines = [f"{name} sleeps {times} times." for name in ("Mike", "Anna", "Tom") for times in range(12)]
    (tmp_path / "source.en").write_text("\n".join(["", *lines, ""]) + "\n", encoding="utf-8")
    for processes in (1, 2):
        output = tmp_path / f"by{processes}"
        translate(trained, tmp_path / "source.en", "--output", output, "--processes", processes, "--batch-size", 4)
    assert (tmp_path / "by1").read_bytes() == (tmp_path / "by2").read_bytes()
