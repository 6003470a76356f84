"""Claims about `seq2seq evaluate`; the authority is the sacrebleu command on the files that were written."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path

import pytest
from conftest import Finished, in_process, numbered_pairs, run_python, write_lines

from seq2seq.cli.decoding import bar_of
from seq2seq.translation.translator import Translator


def evaluate(run: Path, *arguments: object) -> dict:
    done = in_process("evaluate", run, "--json", *arguments)
    assert done.status == 0, done.err
    assert done.err == ""
    return json.loads(done.out)


def by_command(hypothesis: Path, *references: Path) -> dict[str, dict]:
    done = run_python("-m", "sacrebleu", *references, "-i", hypothesis, "-m", "bleu", "chrf", "-w", "12", "-f", "json")
    assert done.status == 0, done.err
    return {entry["name"]: entry for entry in json.loads(done.out)}


def test_scores_equal_the_sacrebleu_command_with_several_references_c404_c410(trained: Path, tmp_path: Path) -> None:
    # Raw lines decide, so a test set may have what a training corpus may not.
    pairs = [
        *numbered_pairs(12, first=300),
        ("A blank  side", ""),
        ("", "Eine leere Quelle"),
        ("x\u2028y", "z\u00a0 a "),
    ]
    source = write_lines(tmp_path / "test.en", [source for source, _ in pairs])
    first = write_lines(tmp_path / "1.de", [target for _, target in pairs])
    second = write_lines(tmp_path / "2.de", [target.replace("Der", "Ein") for _, target in pairs])
    output = tmp_path / "out.de"
    files = ("--source", source, "--reference", first, "--reference", second, "--output", output)
    ours = evaluate(trained, *files)
    theirs = by_command(output, first, second)
    for key, name in (("bleu", "BLEU"), ("chrf", "chrF2")):
        assert ours[key]["score"] == pytest.approx(theirs[name]["score"], abs=1e-11)
        assert ours[key]["signature"] == theirs[name]["signature"]
    assert "nrefs:2" in ours["bleu"]["signature"]
    assert (ours["lines"], ours["beam_size"]) == (15, 5)
    # What was scored is what translate would have written.
    assert output.read_bytes() == in_process("translate", trained, source).out_bytes


def test_the_test_set_of_the_settings_is_the_default_and_the_training_s_last_word(trained: Path) -> None:
    ours = evaluate(trained)
    given = evaluate(trained, "--source", trained.parent / "test.en", "--reference", trained.parent / "test.de")
    assert ours == given
    at_the_end = json.loads((trained / "test.json").read_text(encoding="utf-8"))
    assert at_the_end == {key: ours[key] for key in ("lines", "bleu", "chrf")}


def test_for_people_there_is_a_table_with_signatures(trained: Path) -> None:
    done = in_process("evaluate", trained, "--beam", 1)
    heading, bleu, chrf, blank, *causes = done.out.splitlines()
    assert heading == "20 sentences, beam 1"
    assert bleu.startswith("BLEU ")
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in bleu
    assert "nc:6|nw:0" in chrf
    assert blank == ""
    assert causes[0].startswith("Likeliest cause")
    assert evaluate(trained, "--beam", 1, "--tokenize", "char")["bleu"]["signature"].count("tok:char") == 1


def test_the_last_checkpoint_can_be_evaluated_too(trained: Path) -> None:
    assert evaluate(trained / "last")["lines"] == 20


def refused(run: Path, *arguments: object, words: tuple[str, ...]) -> Finished:
    done = in_process("evaluate", run, *arguments).refused(*words)
    assert done.out == ""
    return done


def test_a_run_is_asked_for_once() -> None:
    done = in_process("evaluate").refused("required: RUN.")
    assert in_process("evaluate", "--help").out.count("\n  RUN ") == 1
    assert done.out == ""


def test_half_a_test_set_is_refused(trained: Path) -> None:
    source, reference = trained.parent / "test.en", trained.parent / "test.de"
    refused(trained, "--source", source, words=("--reference",))
    refused(trained, "--reference", reference, words=("--source",))


def test_unequal_counts_are_refused_before_translating_c401(trained: Path, tmp_path: Path) -> None:
    short = write_lines(tmp_path / "short.de", ["Der Bär."] * 19)
    source = trained.parent / "test.en"
    files = ("--source", source, "--reference", trained.parent / "test.de", "--reference", short)
    refused(trained, *files, "--output", tmp_path / "out", words=("20", "short.de", "19"))
    assert not (tmp_path / "out").exists()


def test_what_is_missing_is_named(trained: Path, tmp_path: Path) -> None:
    none = tmp_path / "none.de"
    refused(trained, "--source", trained.parent / "test.en", "--reference", none, words=(str(none),))
    refused(tmp_path / "none", words=(str(tmp_path / "none"),))
    refused(trained, "--tokenize", "13b", words=("13b", "13a"))
    empty = write_lines(tmp_path / "empty", [])
    refused(trained, "--source", empty, "--reference", empty, words=(str(empty), "no lines", "translate"))


def test_without_a_test_set_files_are_asked_for(tiny: Path) -> None:
    config = tiny / "tiny.yaml"
    text = config.read_text(encoding="utf-8").replace("  test: {source: test.en, target: test.de}\n", "")
    config.write_text(text, encoding="utf-8")
    done = in_process("train", config, "--set", "training.max_steps=1")
    assert done.status == 0, done.err
    assert "Test set" not in done.out
    refused(tiny / "run", words=("data.test", "--source"))


def test_a_test_set_split_off_from_the_training_corpus_is_the_same_one_each_time(tiny: Path) -> None:
    config = tiny / "tiny.yaml"
    text = config.read_text(encoding="utf-8").replace("{source: test.en, target: test.de}", "{fraction: 0.1}")
    config.write_text(text, encoding="utf-8")
    done = in_process("train", config, "--set", "training.max_steps=1")
    assert done.status == 0, done.err
    at_the_end = json.loads((tiny / "run" / "test.json").read_text(encoding="utf-8"))
    ours = evaluate(tiny / "run")
    assert at_the_end == {key: ours[key] for key in ("lines", "bleu", "chrf")}


def test_a_terminal_shows_how_far_it_is_and_a_file_does_not(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    translator = Translator.load(trained)
    for screen in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", screen)
        with bar_of(translator, "translated"):
            translator.told(10, 10)
            translator.told(2, 10)  # the same lines in another way
            time.sleep(1.1)  # what takes less than a second needs no bar
            translator.told(9, 10)
        translator.told(1, 10)
        assert bool(re.search(r"translated: +90%.* 9/10 ", screen.getvalue())) == screen.isatty()
        assert screen.isatty() or not screen.getvalue()
