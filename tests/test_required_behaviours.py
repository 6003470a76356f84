"""Claims about what the command does with awkward input, each acted out as a user would meet it.

Every name ends in the ids of the failures of comparable tools that it stands for; other files have further claims about
the same ids, and docs/reliability.md has the list of all. "Base" are the 160 numbered pairs of `write_base_corpus`.
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import Finished, command_environment, in_process, numbered_pairs, write_lines
from test_check_cli import rows
from test_resume import assert_same_run
from test_train_cli import change, contents, events, refused_and_nothing_made

from seq2seq.config import load_config
from seq2seq.corpus.lines import clean
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK, UNKNOWN_MARK, Tokenizer
from seq2seq.model.attention import KINDS
from seq2seq.training.prepare import Prepared, prepare
from seq2seq.translation.translator import Translator

BASE = numbered_pairs()
SOURCES, TARGETS = [source for source, _ in BASE], [target for _, target in BASE]
# Everything that some program takes for the end of a line, or for a blank, and that is not LF.
BLANKS = "\r\u2028\u2029\x85\v\f\x1c\x1d\x1e\x1f\t\u00a0\u2003\u3000"
posix_only = pytest.mark.skipif(os.name != "posix", reason="pipes and permissions of POSIX")

Spoil = Callable[[bytes], bytes]


# -- how a claim is put ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(trained: Path) -> Prepared:
    """What is prepared from the base corpus as it is."""
    return prepared(trained.parent)


def prepared(folder: Path, *settings: str) -> Prepared:
    return prepare(load_config(folder / "tiny.yaml", settings))


def checked(folder: Path, pairs: int, *settings: str) -> Prepared:
    """`seq2seq check` finds so many training pairs, and the sides of each pair carry the same numbers."""
    done = in_process("check", folder / "tiny.yaml", *(word for setting in settings for word in ("--set", setting)))
    assert (done.status, done.err) == (0, "")
    assert rows(done.out)["training pairs"] == str(pairs)
    ready = prepared(folder, *settings)
    assert ready.messages == done.out.split("\n")[: len(ready.messages)], "what was left out is said first"
    assert len(ready.train) == pairs
    for number in range(pairs):
        source, target = texts(ready, number)
        assert re.findall(r"\d+", source) == re.findall(r"\d+", target)
    return ready


def texts(ready: Prepared, number: int) -> tuple[str, str]:
    """A training pair, spelt by its ids."""
    tokenizer, train = ready.tokenizer, ready.train
    return (
        tokenizer.decode_source(train.source[number].tolist()),
        tokenizer.decode_target(train.target[number].tolist()),
    )


def same_training(ready: Prepared, base: Prepared) -> bool:
    """Whether all ids, their order and the vocabulary are those of the base corpus."""
    return (ready.tokenizer.fingerprint(), ready.fingerprint()) == (base.tokenizer.fingerprint(), base.fingerprint())


def changed(lines: Sequence[str], changes: dict[int, str]) -> list[str]:
    """The lines with some of them, counted from 1, replaced."""
    return [changes.get(number, line) for number, line in enumerate(lines, start=1)]


def inside(line: str, what: str) -> str:
    """The line with its second blank replaced."""
    first, second, rest = line.split(" ", 2)
    return f"{first} {second}{what}{rest}"


def rewrite(path: Path, spoil: Spoil) -> Path:
    path.write_bytes(spoil(path.read_bytes()))
    return path


def table(folder: Path, lines: Sequence[str], name: str = "train.tsv") -> Path:
    """Writes a table and makes it the training corpus."""
    change(folder, ("train: {source: train.en, target: train.de}", f"train: {{tsv: {name}}}"))
    return write_lines(folder / name, list(lines))


def translate(run: Path, *arguments: object, stdin: bytes = b"") -> list[str]:
    done = in_process("translate", run, *arguments, stdin=stdin)
    assert (done.status, done.err) == (0, "")
    return done.out.split("\n")[:-1]


# -- what ends a line, and what is a blank ---------------------------------------------------------------------------


def test_a_line_separator_inside_a_line_is_blank_space_c001(tiny: Path, base: Prepared) -> None:
    write_lines(tiny / "train.en", changed(SOURCES, {n: inside(SOURCES[n - 1], "\u2028") for n in (3, 80, 160)}))
    assert same_training(checked(tiny, 160), base)


def test_crlf_changes_no_id_and_reaches_no_piece_and_no_output_c005(
    tiny: Path, base: Prepared, trained: Path, tmp_path: Path
) -> None:
    for path in (*tiny.glob("*.en"), *tiny.glob("*.de")):
        rewrite(path, lambda content: content.replace(b"\n", b"\r\n"))
    ready = checked(tiny, 160)
    assert same_training(ready, base)
    assert not any("\r" in piece for piece in ready.tokenizer.source_pieces(range(ready.tokenizer.source_size)))
    done = in_process("translate", trained, tiny / "test.en")
    assert b"\r" not in done.out_bytes
    assert done.out_bytes == in_process("translate", trained, trained.parent / "test.en").out_bytes


def test_a_lone_cr_is_blank_space_c007(tiny: Path, base: Prepared) -> None:
    write_lines(tiny / "train.en", changed(SOURCES, {n: inside(SOURCES[n - 1], "\r") for n in (21, 122)}))
    assert same_training(checked(tiny, 160), base)


def test_a_last_line_without_its_end_is_kept_c009(tiny: Path, base: Prepared) -> None:
    rewrite(tiny / "train.de", lambda content: content.removesuffix(b"\n"))
    ready = checked(tiny, 160)
    assert texts(ready, 159) == (SOURCES[159], TARGETS[159])
    assert same_training(ready, base)


def test_a_byte_order_mark_is_part_of_no_pair_and_of_no_piece_c011(tiny: Path, base: Prepared) -> None:
    rewrite(tiny / "train.en", lambda content: b"\xef\xbb\xbf" + content)
    ready = checked(tiny, 160)
    assert ready.train.source[0].tolist() == base.train.source[0].tolist()
    assert not any("\ufeff" in piece for piece in ready.tokenizer.source_pieces(range(ready.tokenizer.source_size)))
    assert same_training(ready, base)


def test_a_tab_in_a_plain_file_is_blank_space_and_no_column_c032(tiny: Path, base: Prepared) -> None:
    write_lines(tiny / "train.en", changed(SOURCES, {n: inside(SOURCES[n - 1], "\t") for n in (1, 40, 99)}))
    write_lines(tiny / "train.de", changed(TARGETS, {n: inside(TARGETS[n - 1], "\t \t") for n in (2, 40, 160)}))
    assert same_training(checked(tiny, 160), base)


def test_outer_and_repeated_blanks_change_no_id_c034(tiny: Path, base: Prepared) -> None:
    spaced = {7: f"   {SOURCES[6]}", 8: f"{SOURCES[7]}  ", 9: SOURCES[8].replace(" ", "   ")}
    write_lines(tiny / "train.en", changed(SOURCES, spaced))
    assert same_training(checked(tiny, 160), base)


@pytest.mark.parametrize("side", ["en", "de"])
def test_only_lf_ends_a_line_wherever_text_enters_c001_c007(
    tiny: Path, base: Prepared, trained: Path, side: str
) -> None:
    """Each line with another of the characters that are no line end, in training, validation, test and translation."""
    for name in ("train", "val", "test"):
        path = tiny / f"{name}.{side}"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        write_lines(path, [inside(line, BLANKS[n % len(BLANKS)]) for n, line in enumerate(lines)])
    ready = checked(tiny, 160)
    assert same_training(ready, base)
    assert (ready.validation.sources, ready.validation.targets) == (base.validation.sources, base.validation.targets)
    assert ready.test is not None
    assert base.test is not None
    assert [clean(line) for line in ready.test.sources] == base.test.sources
    assert [clean(line) for line in ready.test.references[0]] == base.test.references[0]
    if side == "en":
        expected = translate(trained, trained.parent / "test.en")
        assert translate(trained, tiny / "test.en") == expected
        assert translate(trained, stdin=(tiny / "test.en").read_bytes()) == expected
    for command in (
        ("score", tiny / "test.de", "--reference", tiny / "test.de"),
        ("evaluate", trained, "--source", tiny / "test.en", "--reference", tiny / "test.de", "--beam", 1),
    ):
        assert json.loads(in_process(*command, "--json").out)["lines"] == 20


MARK = b"\xef\xbb\xbf"
HARMLESS: dict[str, Spoil] = {
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "no last end": lambda content: content.removesuffix(b"\n"),
    "mark": lambda content: MARK + content,
    "mark, CRLF, no last end": lambda content: MARK + content.replace(b"\n", b"\r\n").removesuffix(b"\r\n"),
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "mark in gzip": lambda content: gzip.compress(MARK + content),
    "two gzip members": lambda content: gzip.compress(content[:333]) + gzip.compress(content[333:]),
    "two xz members, padded": lambda content: lzma.compress(content[:333]) + bytes(8) + lzma.compress(content[333:]),
}


@pytest.mark.parametrize("form", HARMLESS)
def test_how_a_text_is_stored_changes_nothing_wherever_it_enters_c005_c009_c011_c038_c040(
    tiny: Path, base: Prepared, trained: Path, form: str
) -> None:
    for path in (*tiny.glob("*.en"), *tiny.glob("*.de")):
        rewrite(path, HARMLESS[form])
    ready = checked(tiny, 160)
    assert same_training(ready, base)
    assert (ready.validation.sources, ready.validation.targets) == (base.validation.sources, base.validation.targets)
    assert ready.test is not None
    assert base.test is not None
    assert (ready.test.sources, ready.test.references) == (base.test.sources, base.test.references)

    def told(folder: Path) -> list[str]:
        source, reference = folder / "test.en", folder / "test.de"
        commands: list[tuple[object, ...]] = [
            ("translate", trained, source, "--beam", 1),
            ("evaluate", trained, "--source", source, "--reference", reference, "--beam", 1),
            ("score", folder / "val.de", "--reference", reference),
        ]
        done = [in_process(*command) for command in commands]
        done.append(in_process("translate", trained, "--beam", 1, stdin=source.read_bytes()))
        done.append(in_process("score", "-", "--reference", reference, stdin=(folder / "val.de").read_bytes()))
        assert [(one.status, one.err) for one in done] == [(0, "")] * len(done)
        return [one.out for one in done]

    assert told(tiny) == told(trained.parent)


def test_gzip_files_are_the_same_corpus_c038(tiny: Path, base: Prepared) -> None:
    for side in ("en", "de"):
        (tiny / f"train.{side}.gz").write_bytes(gzip.compress((tiny / f"train.{side}").read_bytes()))
        (tiny / f"train.{side}").unlink()
    change(tiny, ("train: {source: train.en, target: train.de}", "train: {source: train.en.gz, target: train.de.gz}"))
    assert same_training(checked(tiny, 160), base)


def test_gzip_files_of_two_members_are_read_to_the_end_c040(tiny: Path, base: Prepared) -> None:
    for side, cut in (("en", 1000), ("de", 1234)):
        content = (tiny / f"train.{side}").read_bytes()
        members = gzip.compress(content[:cut]) + gzip.compress(content[cut:])
        (tiny / f"train.{side}.gz").write_bytes(members)
    change(tiny, ("train: {source: train.en, target: train.de}", "train: {source: train.en.gz, target: train.de.gz}"))
    assert same_training(checked(tiny, 160), base)


# -- text that cannot be used ----------------------------------------------------------------------------------------


def test_a_byte_that_is_not_utf8_is_refused_by_file_and_line_before_anything_is_made_c014(tiny: Path) -> None:
    rewrite(tiny / "train.de", lambda content: content.replace(b" 42 ", b" \xe9 "))
    words = (str(tiny / "train.de"), "line 42 ", "0xE9", "data.bad_lines")
    refused_and_nothing_made(tiny, words=words)
    in_process("check", tiny / "tiny.yaml").refused(*words)


@pytest.mark.parametrize("how", ["drop", "repair"])
def test_bad_bytes_are_left_out_or_replaced_only_when_asked_for_and_counted_c014(tiny: Path, how: str) -> None:
    rewrite(tiny / "train.de", lambda content: content.replace(b" 42 ", b" 42 \xe9 "))
    ready = checked(tiny, 160 - (how == "drop"), f"data.bad_lines={how}")
    message = {"drop": "1 pair dropped: a line is not UTF-8", "repair": "1 line repaired"}[how]
    assert ready.messages[0].startswith(f"data.train: {message}")
    assert "data.train.target line 42" in ready.messages[0]
    if how == "repair":
        assert texts(ready, 41) == (SOURCES[41], TARGETS[41].replace(" 42 ", " 42 \ufffd "))


@pytest.mark.parametrize("how", ["refuse", "drop", "repair"])
def test_a_nul_is_refused_by_line_or_removed_and_counted_c056(tiny: Path, how: str) -> None:
    rewrite(tiny / "train.en", lambda content: content.replace(b" 30 ", b" 30\0 ").replace(b" 99 ", b" \09\09 "))
    rewrite(tiny / "train.de", lambda content: content.replace(b" 120 ", b" 120 \0"))
    if how == "refuse":
        refused_and_nothing_made(tiny, words=(str(tiny / "train.en"), "line 30 holds a NUL byte"))
        return
    setting = f"data.bad_lines={how}"
    if how == "drop":
        assert checked(tiny, 157, setting).messages[0].startswith("data.train: 3 pairs dropped")
        return
    ready = checked(tiny, 160, setting)
    assert ready.messages[0].startswith("data.train: 3 lines repaired")
    for number in (30, 99, 120):  # the text after the NUL as well
        assert texts(ready, number - 1) == BASE[number - 1]


def test_a_cut_archive_is_called_cut_short_and_not_a_count_mismatch_c039(tiny: Path) -> None:
    for side in ("en", "de"):
        packed = gzip.compress((tiny / f"train.{side}").read_bytes())
        (tiny / f"train.{side}.gz").write_bytes(packed[: len(packed) * 6 // 10] if side == "en" else packed)
    change(tiny, ("train: {source: train.en, target: train.de}", "train: {source: train.en.gz, target: train.de.gz}"))
    done = refused_and_nothing_made(tiny, words=(str(tiny / "train.en.gz"), "cut short"))
    assert "160" not in done.err


def at_line_12(what: bytes) -> Spoil:
    return lambda content: b"\n".join(
        line[:5] + what + line[5:] if number == 12 else line for number, line in enumerate(content.split(b"\n"), 1)
    )


def cut(content: bytes) -> bytes:
    return content[: len(content) * 6 // 10]


def flipped_at(place: int) -> Spoil:
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place:][1:]


DAMAGES: dict[str, tuple[Spoil, tuple[str, ...]]] = {
    "a bad byte": (at_line_12(b"\xe9"), ("line 12 ", "UTF-8")),
    "half a character": (at_line_12(b"\xed\xa0\x80"), ("line 12 ", "UTF-8")),
    "a NUL": (at_line_12(b"\0"), ("line 12 ", "NUL")),
    "a bad byte in gzip": (lambda content: gzip.compress(at_line_12(b"\xff")(content)), ("line 12 ", "UTF-8")),
    "a cut gzip": (lambda content: cut(gzip.compress(content)), ("cut short",)),
    "a cut xz": (lambda content: cut(lzma.compress(content)), ("cut short",)),
    "a gzip with another checksum": (lambda content: flipped_at(-6)(gzip.compress(content)), ("damaged",)),
    "bytes after an xz": (lambda content: lzma.compress(content) + b"rest\n", ("after the end",)),
    "UTF-16": (lambda content: content.decode("utf-8").encode("utf-16"), ("UTF-16",)),
}
# Where text enters: the file that is damaged (none: standard input), the good text that it holds, and the command.
TRAIN = ("train", "FOLDER/tiny.yaml")
SECOND = "[{source: FOLDER/train.en, target: FOLDER/train.de}, {source: FOLDER/more.en, target: FOLDER/test.de}]"
PLACES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "training source": ("train.en", "train.en", TRAIN),
    "training target": ("train.de", "train.de", TRAIN),
    "training table": ("train.tsv", "train.tsv", (*TRAIN, "--set", "data.train={tsv: FOLDER/train.tsv}")),
    "second training file": ("more.en", "test.en", (*TRAIN, "--set", f"data.train={SECOND}")),
    "validation source": ("val.en", "val.en", TRAIN),
    "validation target": ("val.de", "val.de", TRAIN),
    "validation table": ("train.tsv", "train.tsv", (*TRAIN, "--set", "data.validation={tsv: FOLDER/train.tsv}")),
    "test source": ("test.en", "test.en", TRAIN),
    "test target": ("test.de", "test.de", TRAIN),
    "text to translate": ("in.en", "test.en", ("translate", "RUN", "FOLDER/in.en")),
    "text to translate from a pipe": ("", "test.en", ("translate", "RUN")),
    "hypothesis": ("out.de", "test.de", ("score", "FOLDER/out.de", "--reference", "FOLDER/test.de")),
    "hypothesis from a pipe": ("", "test.de", ("score", "-", "--reference", "FOLDER/test.de")),
    "reference": ("ref.de", "test.de", ("score", "FOLDER/test.de", "--reference", "FOLDER/ref.de")),
    "source to evaluate": (
        "in.en",
        "test.en",
        ("evaluate", "RUN", "--source", "FOLDER/in.en", "--reference", "FOLDER/test.de"),
    ),
    "reference to evaluate": (
        "ref.de",
        "test.de",
        ("evaluate", "RUN", "--source", "FOLDER/test.en", "--reference", "FOLDER/ref.de"),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_damaged_text_is_refused_by_file_wherever_it_enters_c014_c039_c056(
    tiny: Path, trained: Path, place: str
) -> None:
    name, model, command = PLACES[place]
    write_lines(tiny / "train.tsv", [f"{source}\t{target}" for source, target in BASE])
    good = (tiny / model).read_bytes()
    arguments = [word.replace("FOLDER", tiny.as_posix()).replace("RUN", trained.as_posix()) for word in command]
    for spoil, words in DAMAGES.values():
        bad = spoil(good)
        if name:
            (tiny / name).write_bytes(bad)
        before = contents(tiny)
        done = in_process(*arguments, stdin=b"" if name else bad)
        done.refused(str(tiny / name) if name else "standard input", *words)
        assert contents(tiny) == before
        if command[0] == "train":
            assert "step" not in done.out
        elif name:
            assert done.out == ""


@pytest.mark.parametrize("how", ["drop", "repair"])
def test_a_test_set_keeps_its_lines_and_says_how_many_were_repaired_c014_c056(
    tiny: Path, trained: Path, how: str
) -> None:
    rewrite(tiny / "test.en", at_line_12(b"\0"))
    rewrite(tiny / "test.de", at_line_12(b"\xe9"))
    sources = (tiny / "test.en").read_bytes().split(b"\n")
    (tiny / "test.en").write_bytes(b"\n".join([*sources[:4], b"", *sources[5:]]))
    ready = checked(tiny, 160, f"data.bad_lines={how}")
    assert ready.test is not None
    assert len(ready.test.sources) == len(ready.test.references[0]) == 20
    (message,) = ready.messages
    assert message.startswith("data.test: 2 lines repaired")
    assert "data.test.source line 12; data.test.target line 12" in message
    steps = ("--set", "training.max_steps=1", "--set", f"data.bad_lines={how}")
    done = in_process("train", tiny / "tiny.yaml", *steps)
    assert (done.status, done.err) == (0, "")
    assert message in done.out
    done = in_process("evaluate", tiny / "run", "--json")
    assert (done.status, done.err) == (0, f"seq2seq: {message}\n")
    assert json.loads(done.out)["lines"] == 20


# -- pairs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["train", "val", "test"])
@pytest.mark.parametrize("side", ["en", "de"])
def test_unequal_counts_are_refused_with_both_paths_and_counts_wherever_pairs_are_read_c018(
    tiny: Path, part: str, side: str
) -> None:
    path = tiny / f"{part}.{side}"
    count = path.read_bytes().count(b"\n")
    rewrite(path, lambda content: b"".join(content.splitlines(keepends=True)[:-1]))
    found = {"en": count, "de": count, side: count - 1}
    words = tuple(f"{tiny / f'{part}.{side}'} has {found[side]}" for side in ("en", "de"))
    refused_and_nothing_made(tiny, words=words)


def test_unequal_counts_in_an_archive_or_a_list_are_refused_c018(tiny: Path) -> None:
    rewrite(tiny / "train.en", lambda content: lzma.compress(content + b"one more\n"))
    refused_and_nothing_made(tiny, words=(f"{tiny / 'train.en'} has 161", f"{tiny / 'train.de'} has 160"))
    two = "[{source: test.en, target: test.de}, {source: val.en, target: train.de}]"
    change(tiny, ("train: {source: train.en, target: train.de}", f"train: {two}"))
    refused_and_nothing_made(tiny, words=(f"{tiny / 'val.en'} has 20", f"{tiny / 'train.de'} has 160"))


@pytest.mark.parametrize("blank", ["", " \t", "\u3000", "\r", "\u2028 \x85"])
def test_a_pair_with_a_blank_side_is_left_out_as_a_pair_and_counted_c021(tiny: Path, blank: str) -> None:
    write_lines(tiny / "train.en", changed(SOURCES, dict.fromkeys((10, 50, 90), blank)))
    (message,) = checked(tiny, 157).messages
    assert message == "data.train: 3 pairs dropped: one side is blank (data.train.source lines 10, 50, 90)"


def test_blank_sides_in_validation_and_in_a_table_are_counted_too_c021(tiny: Path) -> None:
    rewrite(tiny / "val.de", lambda content: b" \n" + content.split(b"\n", 1)[1])
    table(tiny, changed([f"{source}\t{target}" for source, target in BASE], {7: "\tNichts.", 8: "", 9: "No.\t "}))
    first, second = checked(tiny, 157).messages
    assert first == "data.train: 3 pairs dropped: one side is blank (data.train.tsv lines 7, 8, 9)"
    assert second == "data.validation: 1 pair dropped: one side is blank (data.validation.target line 1)"


def test_a_table_of_two_columns_holds_the_same_pairs_c024(tiny: Path, base: Prepared) -> None:
    table(tiny, [f"{source}\t{target}" for source, target in BASE])
    assert same_training(checked(tiny, 160), base)


@pytest.mark.parametrize("form", HARMLESS)
def test_a_table_of_three_columns_holds_the_same_pairs_however_it_is_stored_c024_c025(
    tiny: Path, base: Prepared, form: str
) -> None:
    path = table(tiny, [f"{source}\t{target}\tCC-BY QQ #{n}" for n, (source, target) in enumerate(BASE)])
    rewrite(path, HARMLESS[form])
    assert same_training(checked(tiny, 160), base)


def test_the_columns_of_a_table_can_be_chosen_and_the_others_are_not_read_c025(tiny: Path, base: Prepared) -> None:
    table(tiny, [f"QQ {n}\t{target}\t\t{source}" for n, (source, target) in enumerate(BASE)])
    assert same_training(checked(tiny, 160, "data.train.columns=[4, 2]"), base)


def test_a_row_without_a_tab_is_refused_by_its_number_or_counted_c026(tiny: Path) -> None:
    good = [f"{source}\t{target}" for source, target in BASE]
    path = table(tiny, changed(good, {34: "no tab here", 121: "nor here"}))
    refused_and_nothing_made(tiny, words=(str(path), "line 34 "))
    for how in ("drop", "repair"):
        (message,) = checked(tiny, 158, f"data.bad_lines={how}").messages
        assert message.startswith("data.train: 2 pairs dropped")
        assert "data.train.tsv lines 34, 121" in message
    write_lines(path, changed(good, {1: "tab", 2: "two\tcolumns"}))
    refused_and_nothing_made(tiny, "--set", "data.train.columns=[1, 3]", words=(str(path), "line 1 ", "column 3"))
    write_lines(path, good)
    validation = ("--set", f"data.validation={{tsv: {tiny / 'val.en'}}}")
    refused_and_nothing_made(tiny, *validation, words=(str(tiny / "val.en"), "line 1 "))


def test_a_quote_is_text_and_joins_no_rows_c029(tiny: Path) -> None:
    odd = {
        5: f'"{SOURCES[4]}\t{TARGETS[4]}',
        60: f'"{SOURCES[59]}\t{TARGETS[59]}',
        100: f'{SOURCES[99]}\t{TARGETS[99]}"',
    }
    odd |= {77: f'"{SOURCES[76]}"\t"{TARGETS[76]}"', 78: f'{SOURCES[77]} ""\t\\"{TARGETS[77]}'}
    table(tiny, changed([f"{source}\t{target}" for source, target in BASE], odd))
    ready = checked(tiny, 160)
    for number, row in odd.items():
        assert "\t".join(texts(ready, number - 1)) == row


def test_repeated_pairs_and_second_translations_are_kept_c036(tiny: Path) -> None:
    more = [BASE[0], BASE[0], BASE[1], (SOURCES[2], TARGETS[2].replace("Der", "Ein"))]
    write_lines(tiny / "train.en", [*SOURCES, *(source for source, _ in more)])
    write_lines(tiny / "train.de", [*TARGETS, *(target for _, target in more)])
    ready = checked(tiny, 164)
    assert [texts(ready, number) for number in range(160, 164)] == more
    assert ready.messages == []


@pytest.mark.parametrize(("part", "word"), [("train", "training"), ("val", "validation"), ("test", "test")])
@pytest.mark.parametrize("content", [b"", b"\n \n\t\n"], ids=["empty", "blank"])
def test_a_corpus_without_a_pair_is_refused_in_words_c043(tiny: Path, part: str, word: str, content: bytes) -> None:
    for side in ("en", "de"):
        (tiny / f"{part}.{side}").write_bytes(content)
    done = refused_and_nothing_made(tiny, words=(f"There are no {word} pairs", str(tiny / f"{part}.en")))
    assert done.err.count("\n") == 1


def test_a_corpus_of_pairs_that_are_all_too_long_is_refused_in_words_c043(tiny: Path) -> None:
    refused_and_nothing_made(tiny, "--set", "data.max_length=1", words=("No training pair is left", "data.max_length"))


@posix_only
def test_a_line_of_twenty_thousand_words_is_left_out_in_bounded_memory_c046(tiny: Path) -> None:
    def peak() -> tuple[str, int]:
        """What a check says, and the most memory that it took, in KiB."""
        command = [sys.executable, "-m", "seq2seq", "check", str(tiny / "tiny.yaml")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=command_environment()) as process:
            assert process.stdout is not None
            out = process.stdout.read().decode("utf-8")
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return out, usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)

    _, usual = peak()
    write_lines(tiny / "train.en", changed(SOURCES, {71: " ".join(["word"] * 20_000)}))
    out, most = peak()
    assert rows(out)["training pairs"] == "159"
    assert "data.train: 1 pair dropped: a side has more than 100 pieces (data.max_length)" in out
    assert most < usual + 50_000


@pytest.mark.parametrize(
    "long", ["Wort " * 5000, "x" * 100_000, "語" * 50_000], ids=["words", "one_word", "characters"]
)
def test_long_lines_of_any_kind_are_counted_in_training_and_in_validation_c046(tiny: Path, long: str) -> None:
    write_lines(tiny / "train.de", changed(TARGETS, {71: long}))
    rewrite(tiny / "val.de", lambda content: long.encode() + b"\n" + content.split(b"\n", 1)[1])
    first, second = checked(tiny, 159, "data.max_length=60").messages
    assert first == "data.train: 1 pair dropped: a side has more than 60 pieces (data.max_length)"
    assert second.startswith("data.validation: 1 pair left out of the loss but translated")


# -- text is text ----------------------------------------------------------------------------------------------------


def extended(folder: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """The base corpus with more pairs behind it."""
    write_lines(folder / "train.en", [*SOURCES, *(source for source, _ in pairs)])
    write_lines(folder / "train.de", [*TARGETS, *(target for _, target in pairs)])


SEMITIC = [
    "שלום עולם",
    "\u200fמה שלומך?\u200e",
    "הכלב רואה 7 ציפורים",
    "\u202bספר\u202c חדש",
    "בוקר טוב",
    "مرحبا بالعالم",
    "می\u200cخواهم",
    "\u2067القطة\u2069 صغيرة",
    "كِتَابٌ جَدِيدٌ",
    "١٢٣ كتاب",
]
EASTERN = [
    "你好世界",
    "我喜歡看書。",
    "日本語のテキスト",
    "「はい」と言った",
    "ภาษาไทย",
    "안녕하세요",
    "한국어 문장",
    "ភាសាខ្មែរ",
    "𠀀𠮷野家",
    "𝒳 und 🐕",
]


@pytest.mark.parametrize("byte_fallback", ["false", "true"])
@pytest.mark.parametrize("lines", [pytest.param(SEMITIC, id="c048"), pytest.param(EASTERN, id="c049")])
def test_every_script_comes_back_as_it_was_and_is_never_unknown_c048_c049(
    tiny: Path, lines: list[str], byte_fallback: str
) -> None:
    extended(tiny, [(line, line) for line in lines])
    size = 600 if byte_fallback == "true" else 300
    ready = checked(tiny, 170, f"tokenizer.vocab_size={size}", f"tokenizer.byte_fallback={byte_fallback}")
    for number, line in enumerate(lines, start=160):
        assert texts(ready, number) == (clean(line), clean(line))
        assert UNK not in ready.train.source[number]
    for line in lines:
        assert ready.tokenizer.decode_target(ready.tokenizer.encode_target([line])[0]) == clean(line)


def test_composed_and_decomposed_letters_are_one_in_training_and_in_translation_c052(tiny: Path, trained: Path) -> None:
    sentences = [f"Der Bär hört {number} grüne Bücher über café und Ångström." for number in range(201, 209)]
    forms = [unicodedata.normalize(form, sentence) for sentence in sentences for form in ("NFC", "NFD")]
    assert len(set(forms)) == 16
    extended(tiny, [(form, form) for form in forms])
    ready = checked(tiny, 176, "tokenizer.vocab_size=200")
    for first in range(160, 176, 2):
        for side in (ready.train.source, ready.train.target):
            assert side[first].tolist() == side[first + 1].tolist()
    text = "".join(f"{form}\n" for form in forms)
    translations = translate(trained, stdin=text.encode("utf-8"))
    assert translations[0::2] == translations[1::2]
    assert len(set(translations[0::2])) > 1
    (tiny / "nfd.en").write_text(text, encoding="utf-8")
    assert translate(trained, tiny / "nfd.en") == translations


RESERVED = ["<unk>", "<s>", "</s>", "<pad>", "[UNK]", "<0x0A>"]


def test_words_that_are_written_like_special_pieces_are_words_c054(tiny: Path) -> None:
    lines = [f"The {word} sign {number} and{word}more." for number, word in enumerate(RESERVED)]
    extended(tiny, [(line, line) for line in lines])
    ready = checked(tiny, 166, "tokenizer.vocab_size=200")
    for number, line in enumerate(lines, start=160):
        assert texts(ready, number) == (line, line)
        assert not {PAD, UNK, BOS, EOS} & set(ready.train.source[number].tolist())
        assert ready.tokenizer.encode_source([line])[0] == ready.train.source[number].tolist()


def test_no_word_of_a_text_to_translate_steers_the_program_c054(tiny: Path, trained: Path) -> None:
    tokenizer = Tokenizer.load(trained)
    for word in [*RESERVED, "<0xFF>", "▁", "⁇"]:
        (ids,) = tokenizer.encode_source([f"{SOURCES[0]} {word} {SOURCES[1]}"])
        (alone,) = tokenizer.encode_source([SOURCES[1]])
        assert not {PAD, BOS, EOS} & set(ids)
        assert ids[-len(alone) :] == alone, "a line is not cut there"
    odd = [
        "--beam 3",
        "a ||| b ||| -0.5",
        "%s {0} {run} ${HOME}",
        "\\n \\0 \\u2028",
        "-",
        "@@ a@@ b",
        "\x1b[31mred",
        "$(",
    ]
    lines = [SOURCES[0], *RESERVED, "</s>", "</s> " + SOURCES[0], *odd, SOURCES[1]]
    found = translate(trained, stdin="".join(f"{line}\n" for line in lines).encode("utf-8"))
    assert len(found) == len(lines)
    assert [found[0], found[-1]] == translate(trained, stdin=f"{SOURCES[0]}\n{SOURCES[1]}\n".encode())
    assert all(found[1 : 1 + len(RESERVED)]), "none is taken for a blank line"


# -- the vocabulary --------------------------------------------------------------------------------------------------


def test_a_vocabulary_too_large_for_the_text_is_refused_with_the_largest_that_fits_c058(tiny: Path) -> None:
    setting = ("--set", "tokenizer.vocab_size=32000")
    done = refused_and_nothing_made(tiny, *setting, words=("tokenizer.vocab_size is 32000", "at most"))
    assert ".cc" not in done.err
    (largest,) = re.findall(r"Set tokenizer\.vocab_size to (\d+) or less", done.err)
    fitting = prepared(tiny, f"tokenizer.vocab_size={largest}")
    assert fitting.tokenizer.source_size == int(largest)
    beyond = ("--set", f"tokenizer.vocab_size={int(largest) + 1}")
    in_process("check", tiny / "tiny.yaml", *beyond).refused(f"at most {largest}")


def test_unknown_text_gives_the_mark_and_a_line_for_each_line_c307(tiny: Path, trained: Path) -> None:
    """The model of Latin letters has no byte pieces, so that what it has not seen is unknown to it."""
    lines = ["Привет, мир!", "今日は天気がいい。", "ᎣᏏᏲ ᏓᎾᏓᏲ", "Привет The dog.", "ᎣᏏᏲ"]
    text = write_lines(tiny / "in.en", lines)
    assert len(translate(trained, text)) == 5
    tokenizer = Tokenizer.load(trained)
    for line in lines:
        (ids,) = tokenizer.encode_source([line])
        assert UNK in ids
        assert UNKNOWN_MARK in tokenizer.decode_source(ids)
    assert tokenizer.decode_target([UNK]) == UNKNOWN_MARK == "⁇"


# -- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("learning_rate:", "learning_rat:", ("line 11: training.learning_rat ", "training.learning_rate")),
        ("training:", "trainning:", ("trainning ", "training")),
        ("dropout: 0.1", "dropout: 0.1, learning_rate: 1e-3", ("model.learning_rate ", "training.learning_rate")),
        ("train: {source:", "train: {sorce:", ("data.train.sorce ", "data.train.source")),
        ("byte_fallback", "byte-fallback", ("tokenizer.byte-fallback ", "tokenizer.byte_fallback")),
        ("epochs: 2", "Epochs: 2", ("training.Epochs ", "training.epochs")),
        ("tokenizer: {", "seeds: 1\ntokenizer: {", ("seeds ", "seed")),
    ],
)
def test_a_misspelt_or_misplaced_key_is_refused_with_the_nearest_c101(
    tiny: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    change(tiny, (old, new))
    refused_and_nothing_made(tiny, words=("tiny.yaml", *words))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("training.learning_rat=1", ("training.learning_rat ", "training.learning_rate")),
        ("training={epochs: 1, lerning_rate: 1}", ("training.lerning_rate ", "training.learning_rate")),
        ("learning_rate=1", ("learning_rate ", "training.learning_rate")),
        ("trainig.epochs=1", ("trainig.epochs ", "training.epochs")),
        ("data.train.0.sorce=x", ("sorce", "source")),
    ],
)
def test_a_misspelt_key_on_the_command_line_is_refused_with_the_nearest_c101(
    tiny: Path, setting: str, words: tuple[str, ...]
) -> None:
    refused_and_nothing_made(tiny, "--set", setting, words=(f"--set {setting}", *words))


@pytest.mark.parametrize("code", ["no", "NO", "on", "yes", "off"])
def test_a_language_that_yaml_may_take_for_a_truth_value_is_text_c108(tiny: Path, code: str) -> None:
    config = change(tiny, ("source_language: en", f"source_language: {code}"))
    assert load_config(config).data.source_language == code
    assert in_process("check", config).status == 0
    assert in_process("check", config, "--set", f"data.target_language={code}").status == 0
    if code == "no":
        steps = ("--set", "training.max_steps=1", "--set", "data.test=null")
        assert in_process("train", config, *steps).status == 0
        assert len(translate(tiny / "run", tiny / "test.en")) == 20  # which reads the settings of the run


def test_a_key_given_twice_is_refused_with_both_lines_c111(tiny: Path) -> None:
    config = tiny / "tiny.yaml"
    text = config.read_text(encoding="utf-8").split("training:")[0]
    config.write_text(f"{text}training:\n  learning_rate: 1e-2\n  epochs: 2\n  learning_rate: 1e-3\n", encoding="utf-8")
    refused_and_nothing_made(tiny, words=("tiny.yaml, lines 11 and 13", "training.learning_rate"))
    config.write_text(f"{text}seed: 3\nmodel: {{}}\n", encoding="utf-8")
    refused_and_nothing_made(tiny, words=("tiny.yaml, lines 9 and 11", "model"))
    config.write_text(text, encoding="utf-8")
    refused_and_nothing_made(tiny, "--set", "training={epochs: 1, epochs: 2}", words=("epochs is given twice",))


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.mkdir [CASE_PAYLOAD_RAN]",
        "!!python/object/new:os.mkdir [CASE_PAYLOAD_RAN]",
        "!!python/object/apply:os.system ['mkdir CASE_PAYLOAD_RAN']",
        "!!python/name:os.mkdir ''",
        "!x CASE_PAYLOAD_RAN",
    ],
)
def test_a_tag_runs_nothing_wherever_settings_are_read_c113(
    tiny: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    monkeypatch.chdir(tmp_path)
    in_process("check", tiny / "tiny.yaml", "--set", f"data.source_language={tag}").refused("tag")
    config = change(tiny, ("source_language: en", f"source_language: {tag}"))
    for verb in ("check", "train"):
        in_process(verb, config).refused("tiny.yaml, line 3", "tag")
    # The settings of somebody else's run, without their digest.
    run = Path(shutil.copytree(trained, tiny / "run"))
    settings = (run / "config.yaml").read_text(encoding="utf-8").split("\n", 2)[2]
    (run / "config.yaml").write_text(settings.replace("language: en", f"language: {tag}"), encoding="utf-8")
    for command in (("translate", run, tiny / "test.en"), ("evaluate", run), ("train", "--run", run, "--resume")):
        in_process(*command).refused("config.yaml", "tag")
    assert not (tmp_path / "CASE_PAYLOAD_RAN").exists()


def test_heads_that_do_not_divide_the_width_are_refused_with_both_values_c116(tiny: Path) -> None:
    change(tiny, ("hidden_size: 32", "hidden_size: 30, attention: {kind: multi_head, heads: 4}"))
    words = ("tiny.yaml, line 9", "model.hidden_size is 30", "model.attention.heads is 4")
    refused_and_nothing_made(tiny, words=words)


@pytest.mark.parametrize("size", ["-64", "0", "33", "1e9"])
def test_a_size_out_of_range_is_refused_by_key_with_the_range_c117(tiny: Path, size: str) -> None:
    change(tiny, ("hidden_size: 32", f"hidden_size: {size}"))
    refused_and_nothing_made(tiny, words=(f"tiny.yaml, line 9: model.hidden_size is {size};", "2 to 65536"))


@pytest.mark.parametrize(
    "key", ["training.batch_tokens", "training.batch_sentences", "training.accumulate", "decoding.batch_size"]
)
def test_a_batch_of_nothing_is_refused_by_key_c119(tiny: Path, key: str) -> None:
    refused_and_nothing_made(tiny, "--set", f"{key}=0", words=(f"{key} is 0;", "from 1 to"))
    refused_and_nothing_made(tiny, "--set", f"{key}=0.0", words=(f"{key} is 0.0;", "from 1 to"))
    if key == "training.batch_tokens":
        change(tiny, ("batch_tokens: 400", "batch_tokens: 0"))
        refused_and_nothing_made(tiny, words=("tiny.yaml, line 11: training.batch_tokens is 0;",))


@pytest.mark.parametrize("minutes", ["0 min", "0.00 minutes", "-1 min", "min"])
def test_no_time_at_all_between_two_checkpoints_is_refused_by_key_c119(tiny: Path, minutes: str) -> None:
    setting = f"training.checkpoint_every={minutes}"
    words = (f"training.checkpoint_every is {minutes};", "minutes such as 10 min")
    refused_and_nothing_made(tiny, "--set", setting, words=words)
    for good in ("10 min", "0.5 min", "0.50 minutes", "1 minute", "12.25min"):
        assert load_config(tiny / "tiny.yaml", [f"training.checkpoint_every={good}"]).training.checkpoint_minutes


@pytest.mark.parametrize("epochs", ["2.5", "two", "true", "'2'", "[2]", "-1", ".nan", "1e40"])
def test_a_count_that_is_no_whole_number_is_refused_by_key_c121(tiny: Path, epochs: str) -> None:
    change(tiny, ("epochs: 2", f"epochs: {epochs}"))
    refused_and_nothing_made(tiny, words=(f"tiny.yaml, line 11: training.epochs is {epochs};", "an integer from 1"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("hidden_size: 32", "hidden_size: [32, 32]", ("model.hidden_size is [32, 32];", "an even integer")),
        ("dropout: 0.1", "dropout: {rate: 0.1}", ("model.dropout is {rate: 0.1};", "a number")),
        ("byte_fallback: false", "byte_fallback: 0", ("tokenizer.byte_fallback is 0;", "true or false")),
        ("source_language: en", "source_language: [en]", ("data.source_language is [en];", "a language code")),
        ("train: {source: train.en", "train: {source: [train.en]", ("data.train.source", "the path of a file")),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_type_expected_c123(
    tiny: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    change(tiny, (old, new))
    refused_and_nothing_made(tiny, words=("tiny.yaml, line ", *words))


def test_a_misspelt_choice_is_refused_with_all_choices_c125(tiny: Path) -> None:
    kinds = ("my", "additive", "tanh", "qkv", "multi_head", "dot", "general", "none")
    change(tiny, ("dropout: 0.1", "dropout: 0.1, attention: {kind: aditive}"))
    refused_and_nothing_made(tiny, words=("line 9: model.attention.kind is aditive;", "nearest is additive", *kinds))


def test_a_gpu_that_is_not_there_is_refused_with_the_way_to_the_processor_c126(
    tiny: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refused_and_nothing_made(tiny, "--set", "training.device=cuda", words=("cuda", "use cpu", "training.device"))
    for command in (
        ("check", tiny / "tiny.yaml", "--set", "training.device=cuda"),
        ("translate", trained, tiny / "test.en", "--device", "cuda"),
        ("evaluate", trained, "--device", "cuda:1"),
    ):
        done = in_process(*command).refused("cuda", "use cpu", "--device")
        assert (done.out, done.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="c128"),
        pytest.param(b"# nothing yet\n---\n# and no more\n", id="c129"),
        b"\xef\xbb\xbf",
        b"\r\n\r\n",
        b"---\n...\n",
        b"null\n",
    ],
)
def test_settings_that_say_nothing_are_called_empty_with_the_keys_that_are_needed_c128_c129(
    tiny: Path, content: bytes
) -> None:
    (tiny / "tiny.yaml").write_bytes(content)
    words = ("tiny.yaml is empty", "source_language", "target_language", "train", "validation")
    refused_and_nothing_made(tiny, words=words)
    in_process("check", tiny / "tiny.yaml").refused(*words)


def test_a_tab_in_the_indentation_is_refused_with_line_and_column_c133(tiny: Path) -> None:
    change(tiny, ("  source_language", "\tsource_language"))
    refused_and_nothing_made(tiny, words=(f"{tiny / 'tiny.yaml'}, line 3, column 1", "tab"))


@pytest.mark.parametrize("kind", ["missing", "folder", "dangling link", "pipe", "folder that is missing"])
def test_a_corpus_that_cannot_be_read_twice_is_refused_by_key_and_full_path_c135(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tiny / "train.en"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "dangling link":
        path.symlink_to(tiny / "nowhere")
    elif kind == "pipe":
        if os.name != "posix":
            pytest.skip("no named pipes here")
        os.mkfifo(path)
    elif kind == "folder that is missing":
        path = tiny / "there" / "train.en"
        change(tiny, ("source: train.en", "source: there/train.en"))
    monkeypatch.chdir(tiny.parent)
    refused_and_nothing_made(tiny, words=("data.train.source", str(path)))
    in_process("check", Path(tiny.name) / "tiny.yaml").refused("data.train.source", str(path))


# -- runs and checkpoints --------------------------------------------------------------------------------------------


class Payload:
    """A pickle that makes a folder when it is opened."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("CASE_PAYLOAD_RAN",)


def test_no_file_of_a_run_is_ever_unpickled_c205(
    tiny: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path(shutil.copytree(trained, tiny / "run"))
    for path in sorted(run.rglob("*")):
        if path.is_dir() or path.name in (".lock", "train.log", "test.json", "metrics.jsonl"):
            continue
        whole = path.read_bytes()
        path.write_bytes(pickle.dumps(Payload()))
        statuses = {
            in_process("translate", run, tiny / "test.en", "--beam", 1).status,
            in_process("translate", run / "last", tiny / "test.en", "--beam", 1).status,
            in_process("translate", run, tiny / "test.en", "--shortlist").status,
            in_process("train", tiny / "tiny.yaml", "--resume").status,
        }
        assert statuses in ({2}, {0, 2}), path
        path.write_bytes(whole)
    assert not (tmp_path / "CASE_PAYLOAD_RAN").exists()


@pytest.mark.parametrize("verb", ["translate", "evaluate", "train"])
def test_what_is_no_run_is_refused_by_path_whichever_verb_is_given_it_c207_c214(
    tiny: Path, tmp_path: Path, verb: str
) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    before = contents(tiny)
    for path in (picture, tiny / "test.en", tmp_path / "none", tiny):
        command = ("train", "--run", path, "--resume") if verb == "train" else (verb, path)
        done = in_process(*command).refused(str(path))
        assert done.out == ""
    assert contents(tiny) == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU")
def test_a_model_from_a_gpu_translates_alike_on_a_processor_c216(tiny: Path, run_cli: Callable[..., Finished]) -> None:
    settings = ("training.device=cuda", "training.epochs=20", "training.patience=null")
    done = in_process("train", tiny / "tiny.yaml", *(word for one in settings for word in ("--set", one)))
    assert done.status == 0, done.err
    on_gpu = in_process("translate", tiny / "run", tiny / "test.en", "--device", "cuda")
    assert (on_gpu.status, on_gpu.out.count("\n")) == (0, 20)
    # As on a machine without one: with `auto`, and even though the run's own settings say cuda.
    on_cpu = run_cli("translate", tiny / "run", tiny / "test.en", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (on_cpu.status, on_cpu.err) == (0, "")
    assert on_cpu.out_bytes == on_gpu.out_bytes


def test_two_epochs_a_signal_and_the_other_two_are_four_epochs_c218(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes before the validation at the end of the second epoch, so the resume begins with that."""
    from seq2seq.training.trainer import Trainer

    def train(run: str, *more: str) -> int:
        command = ("train", tiny / "tiny.yaml", "--run", tiny / run, "--set", "training.epochs=4", *more)
        return in_process(*command, "--set", "data.test=null").status

    assert train("whole") == 0
    update = Trainer._update

    def interrupted(self: Trainer, *arguments: object) -> None:
        update(self, *arguments)  # type: ignore[arg-type]
        if self.progress.step == 14:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", interrupted)
        assert train("parts") == 130
    (end,) = events(tiny / "parts", "end")
    assert (end["reason"], end["step"]) == ("stopped", 14)
    assert train("parts", "--resume") == 0
    assert_same_run(tiny / "whole", tiny / "parts")
    rates = [event["learning_rate"] for event in events(tiny / "parts", "train")]
    assert rates == [event["learning_rate"] for event in events(tiny / "whole", "train")]


# -- translating -----------------------------------------------------------------------------------------------------


def test_blank_lines_of_a_file_stay_blank_and_in_place_c301(tiny: Path, trained: Path) -> None:
    sources = (tiny / "test.en").read_text(encoding="utf-8").split("\n")[:-1]
    expected = translate(trained, tiny / "test.en")
    lines = ["", *sources[:7], "", " \t", "\u3000", *sources[7:], "", ""]
    found = translate(trained, write_lines(tiny / "in.en", lines))
    assert found == ["", *expected[:7], "", "", "", *expected[7:], "", ""]
    assert translate(trained, write_lines(tiny / "in.en", ["", " ", ""])) == ["", "", ""]


LONG = " ".join(SOURCES[:34] * 27)


def test_a_very_long_line_of_a_file_is_translated_in_parts_with_a_warning_c305(tiny: Path, trained: Path) -> None:
    assert 5_000 < len(LONG.split()) < 6_000
    text = write_lines(tiny / "in.en", [SOURCES[0], LONG, SOURCES[1]])
    done = in_process("translate", trained, text, "--beam", 1, "--output", tiny / "out.de")
    assert (done.status, done.out) == (0, "")
    assert done.err == "seq2seq: 1 line of more than 100 pieces was translated in parts (line 2)\n"
    first, middle, last = (tiny / "out.de").read_text(encoding="utf-8").split("\n")[:-1]
    assert [first, last] == translate(trained, "--beam", 1, stdin=f"{SOURCES[0]}\n{SOURCES[1]}\n".encode())
    assert len(middle) > 20 * len(first)


def test_a_very_long_line_of_a_test_set_is_translated_in_parts_with_a_warning_c305(tiny: Path, trained: Path) -> None:
    long = " ".join(SOURCES[:40])
    write_lines(tiny / "test.en", [SOURCES[0], long, SOURCES[1]])
    write_lines(tiny / "test.de", [TARGETS[0], TARGETS[1], TARGETS[1]])
    files = ("--source", tiny / "test.en", "--reference", tiny / "test.de")
    done = in_process("evaluate", trained, *files, "--beam", 1)
    warning = "1 line of more than 100 pieces was translated in parts (line 2)"
    assert (done.status, done.err) == (0, f"seq2seq: {warning}\n")
    done = in_process("train", tiny / "tiny.yaml", "--set", "training.max_steps=1")
    assert (done.status, done.err) == (0, "")
    assert warning in done.out


@pytest.mark.parametrize(
    "kind",
    [kind if kind in ("additive", "multi_head") else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS],
)
def test_the_size_of_a_batch_changes_no_byte_of_a_translation_c316(tiny: Path, kind: str) -> None:
    some = ("training.max_steps=21", "training.epochs=9", "training.learning_rate=3e-2", "training.validate_every=99")
    settings = (f"model.attention.kind={kind}", *some, "decoding.max_length_ratio=0.01", "data.test=null")
    overrides = [word for setting in settings for word in ("--set", setting)]
    done = in_process("train", tiny / "tiny.yaml", *overrides)
    assert done.status == 0, done.err
    words = " ".join(SOURCES).split()
    lines = [" ".join(words[5 * number :][: 1 + number % 8]) for number in range(100)]
    text, made = write_lines(tiny / "in.en", lines), Translator.load(tiny / "run", device="cpu")
    for beam in (1, 5):
        alone = translate(tiny / "run", text, "--beam", beam, "--batch-size", 1)
        together = translate(tiny / "run", text, "--beam", beam, "--batch-size", 32)
        assert len(alone) == len(together) == 100
        assert len(set(alone)) > 5, "and they say something of their lines"
        for line, one, other in zip(lines, alone, together, strict=True):
            if one != other:  # excused only where the order of two additions decides between equals
                (found,) = made.translate([line], beam_size=max(beam, 2), n_best=2)
                first, second = found.candidates
                assert abs(first.score - second.score) < 1e-5, (line, one, other)


@posix_only
def test_a_pipe_in_the_place_of_a_file_is_translated_whole_c313(tiny: Path, trained: Path) -> None:
    """As with `seq2seq translate RUN <(...)` in a shell, which gives the command a pipe to open."""
    for content in ((tiny / "test.en").read_bytes(), b""):
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "wb") as stream:
            stream.write(content)
        try:
            found = translate(trained, f"/dev/fd/{read_end}")
        finally:
            os.close(read_end)
        assert found == translate(trained, stdin=content)
        assert len(found) == content.count(b"\n")


@posix_only
def test_a_reader_that_takes_one_line_of_a_translated_file_and_leaves_is_no_failure_c321(
    tiny: Path, trained: Path
) -> None:
    # More than a pipe holds, so that the command is still writing when the reader leaves.
    command = [
        sys.executable,
        "-m",
        "seq2seq",
        "translate",
        trained,
        tiny / "test.en",
        "--beam",
        "64",
        "--n-best",
        "64",
    ]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"1 ||| ")
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (141, b"")


# -- scoring ---------------------------------------------------------------------------------------------------------


def test_text_that_the_scorer_may_trip_over_is_scored_line_by_line_c401_c406(tiny: Path) -> None:
    """Separators inside a line, blank lines and a missing last end change neither the counts nor the pairing."""
    lines = ["Der Bär sieht grüne Häuser.", "", "a\u2028b c d", "e\rf", "g\x85h\x1ci", "und das ist das Ende"]
    hypothesis = tiny / "out.de"
    hypothesis.write_bytes("\r\n".join(lines).encode("utf-8"))
    reference = write_lines(tiny / "ref.de", lines)
    done = in_process("score", hypothesis, "--reference", reference, "--json")
    assert (done.status, done.err) == (0, "")
    told = json.loads(done.out)
    assert (told["lines"], round(told["bleu"]["score"], 2)) == (6, 100.0)
    write_lines(reference, [*lines, ""])
    in_process("score", hypothesis, "--reference", reference).refused("has 6 lines", "has 7 lines")


# -- running ---------------------------------------------------------------------------------------------------------


@posix_only
def test_a_folder_that_one_may_not_write_into_is_refused_before_data_are_read_c509(tiny: Path) -> None:
    (tiny / "train.en").unlink()  # which would be refused next
    nobody, user = 65534, os.getuid()
    # Not in pytest's own folder, into which nobody else may look.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        there = folder / "runs"
        there.mkdir()
        for mode, word in ((0o555, str(there)), (0o777, "data.train.source")):
            there.chmod(mode)
            try:
                if user == 0:  # root may write everywhere, so we ask as somebody else
                    os.setreuid(nobody, 0)
                in_process("train", tiny / "tiny.yaml", "--run", there / "run").refused(word)
            finally:
                if user == 0:
                    os.setreuid(0, 0)
            assert list(there.iterdir()) == []


def test_a_validation_without_a_number_is_never_the_best_and_blocks_no_later_one_c514(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seq2seq.training.validation import ValidationResult, Validator

    measure, count = Validator.measure, iter(range(9))

    def first_is_nan(self: Validator, should_stop: Callable[[], bool], told: object) -> ValidationResult:
        result = measure(self, should_stop)
        return replace(result, loss=math.nan, perplexity=math.nan) if next(count) == 0 else result

    monkeypatch.setattr(Validator, "measure", first_is_nan)
    settings = ("--set", "training.choose_by=loss", "--set", "data.test=null")
    done = in_process("train", tiny / "tiny.yaml", *settings)
    assert (done.status, done.err) == (0, "")
    first, second = events(tiny / "run", "validation")
    assert first["loss"] is None
    assert second["loss"] is not None
    assert events(tiny / "run", "end")[0]["best_step"] == second["step"]
    facts = json.loads((tiny / "run" / "best" / "checkpoint.json").read_text(encoding="utf-8"))
    assert facts["step"] == second["step"]
    assert "NaN" not in (tiny / "run" / "metrics.jsonl").read_text(encoding="utf-8")


def test_no_character_of_a_corpus_reaches_the_log_as_a_command_to_the_terminal_c516(tiny: Path) -> None:
    for side in ("en", "de"):
        rewrite(tiny / f"test.{side}", lambda content: content.replace(b" ", b"\r\x1b[2J\x07", 1))
    done = in_process("train", tiny / "tiny.yaml", "--set", "training.max_steps=1")
    assert (done.status, done.err) == (0, "")
    assert "Some of its translations" in done.out
    log = (tiny / "run" / "train.log").read_bytes()
    for stream in (done.out_bytes, log):
        assert not set(b"\r\x1b\x07") & set(stream)
