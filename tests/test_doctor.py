"""Claims about `seq2seq doctor`: each kind of damage to real text is found on its line, and sound text is left be.

The damages are done to some lines of Multi30k and Tatoeba (SEQ2SEQ_CORPORA); what needs no real text runs anywhere.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from conftest import in_process, numbered_pairs, write_lines

from seq2seq.config.schema import PairFiles
from seq2seq.corpus.lines import read_lines
from seq2seq.diagnosis.examination import Corpus, Examined, examine

SIZE, TATOEBA = 1_500, slice(6_000, 7_000)
EN_DE, EN_ZH = ("en", "de"), ("en", "zh")
TEST_LINES = 300


@dataclass
class Sides:
    """A text to be damaged, as lines without their ends; `raw` takes the place of a file's bytes."""

    source: list[str]
    target: list[str]
    test: list[tuple[str, str]] = field(default_factory=list)
    languages: tuple[str, str] = EN_DE
    raw: dict[str, bytes] = field(default_factory=dict)


def lines_of(path: Path) -> list[str]:
    return [line or "" for line in read_lines(path)]


@pytest.fixture(scope="module")
def multi30k(corpora: Path) -> Callable[[], Sides]:
    folder = corpora / "multi30k"
    source, target = (lines_of(folder / f"train.{code}")[:SIZE] for code in EN_DE)
    test = list(zip(*(lines_of(folder / f"test_2016_flickr.{code}")[:TEST_LINES] for code in EN_DE), strict=True))
    return lambda: Sides(list(source), list(target), list(test))


@pytest.fixture(scope="module")
def tatoeba(corpora: Path) -> Callable[[], Sides]:
    rows = [line.split("\t") for line in lines_of(corpora / "tatoeba" / "cmn-eng.tsv")[TATOEBA]]
    return lambda: Sides([row[0] for row in rows], [row[1] for row in rows], languages=EN_ZH)


def examined(sides: Sides, folder: Path) -> Examined:
    for name, lines in (("source", sides.source), ("target", sides.target)):
        (folder / name).write_bytes(sides.raw.get(name) or "".join(line + "\n" for line in lines).encode())
    parts = {"train": (PairFiles(source=str(folder / "source"), target=str(folder / "target")),)}
    if sides.test:
        for name, side in zip(("test.source", "test.target"), zip(*sides.test, strict=True), strict=True):
            write_lines(folder / name, list(side))
        parts["test"] = (PairFiles(source=str(folder / "test.source"), target=str(folder / "test.target")),)
    return examine(Corpus(parts, sides.languages))


@pytest.fixture(scope="module")
def sound(multi30k: Callable[[], Sides], tmp_path_factory: pytest.TempPathFactory) -> Examined:
    """The undamaged lines, examined."""
    return examined(multi30k(), tmp_path_factory.mktemp("sound"))


def lines_found(result: Examined, kind: str, part: str = "train", side: str | None = None) -> list[int]:
    """The lines of a finding, from 1."""
    return [
        line + 1
        for one in result.found
        if one.kind == kind and one.text.part == part and side in (None, one.side)
        for line in one.lines.tolist()
    ]


def joined(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


# Each damage gives back the side that it is found on and its line, counted from 1.
Damage = Callable[[Sides], tuple[str, int]]


def blank(sides: Sides) -> tuple[str, int]:
    sides.target[702] = " \u3000 "
    return "pair", 703


def duplicate(sides: Sides) -> tuple[str, int]:
    sides.source[903], sides.target[903] = sides.source[40], f" {sides.target[40]}  "
    return "pair", 904


def many_targets(sides: Sides) -> tuple[str, int]:
    sides.source[803] = sides.source[41]
    return "pair", 804


def ratio(sides: Sides) -> tuple[str, int]:
    sides.target[604] = " ".join(sides.target[604:610])
    return "pair", 605


def long(sides: Sides) -> tuple[str, int]:
    sides.source[504], sides.target[504] = (" ".join(side[504:530]) for side in (sides.source, sides.target))
    return "source", 505


def swapped(sides: Sides) -> tuple[str, int]:
    sides.source[1203], sides.target[1203] = sides.target[1203], sides.source[1203]
    return "pair", 1204


def language(sides: Sides) -> tuple[str, int]:
    sides.target[1103] = "This is a sentence that nobody has translated, about the man on the street."
    return "target", 1104


def script(sides: Sides) -> tuple[str, int]:
    sides.target[303] = "Мужчина в красной рубашке сидит на скамейке."
    return "target", 304


def copy(sides: Sides) -> tuple[str, int]:
    sides.target[203] = sides.source[203]
    return "pair", 204


def mojibake(sides: Sides) -> tuple[str, int]:
    line = next(line for line in range(400, SIZE) if "ä" in sides.target[line])
    sides.target[line] = sides.target[line].encode().decode("cp1252", "ignore")
    return "target", line + 1


def replacement(sides: Sides) -> tuple[str, int]:
    sides.target[77] = sides.target[77].replace("e", "\ufffd", 1)
    return "target", 78


def byte_order_mark(sides: Sides) -> tuple[str, int]:
    sides.source[600] = "\ufeff" + sides.source[600]
    return "source", 601


def carriage_return(sides: Sides) -> tuple[str, int]:
    sides.source[12] = sides.source[12].replace(" ", "\r", 1)
    return "source", 13


def nul(sides: Sides) -> tuple[str, int]:
    sides.source[1013] += "\0"
    return "source", 1014


def not_utf8(sides: Sides) -> tuple[str, int]:
    sides.raw["target"] = joined(sides.target[:908]) + b"Stra\xdfe\n" + joined(sides.target[909:])
    return "target", 909


def line_break(sides: Sides) -> tuple[str, int]:
    sides.target[333] += "\u2028und"
    return "target", 334


def control(sides: Sides) -> tuple[str, int]:
    sides.source[1400] += "\x07"
    return "source", 1401


def private(sides: Sides) -> tuple[str, int]:
    sides.target[1401] += "\uf0b7"
    return "target", 1402


def invisible(sides: Sides) -> tuple[str, int]:
    sides.target[1402] = "Fuß\u00adball"
    return "target", 1403


def compatible(sides: Sides) -> tuple[str, int]:
    sides.source[1403] += " ﬁne"
    return "source", 1404


def not_composed(sides: Sides) -> tuple[str, int]:
    line = next(line for line in range(700, SIZE) if "ü" in sides.target[line])
    sides.target[line] = unicodedata.normalize("NFD", sides.target[line])
    return "target", line + 1


def markup(sides: Sides) -> tuple[str, int]:
    sides.source[88] = f'<seg id="4">{sides.source[88]}</seg>'
    return "source", 89


def entity(sides: Sides) -> tuple[str, int]:
    sides.source[89] += " &quot;yes&quot;"
    return "source", 90


def tokenised(sides: Sides) -> tuple[str, int]:
    sides.target[140] = "Der Mann , der lacht , steht ."
    return "target", 141


def pieces(sides: Sides) -> tuple[str, int]:
    sides.target[150] = "ein gelb @-@ roter Ball"
    return "target", 151


def rare(sides: Sides) -> tuple[str, int]:
    sides.source[1300] += " Ω"
    return "source", 1301


DAMAGES = [
    blank,
    duplicate,
    many_targets,
    ratio,
    long,
    swapped,
    language,
    script,
    copy,
    mojibake,
    replacement,
    byte_order_mark,
    carriage_return,
    nul,
    not_utf8,
    line_break,
    control,
    private,
    invisible,
    compatible,
    not_composed,
    markup,
    entity,
    tokenised,
    pieces,
    rare,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_one_damaged_line_of_multi30k_is_found_and_no_other(
    multi30k: Callable[[], Sides], sound: Examined, tmp_path: Path, damage: Damage
) -> None:
    sides, kind = multi30k(), damage.__name__.replace("_", "-")
    before = lines_found(sound, kind)
    side, line = damage(sides)
    found = lines_found(examined(sides, tmp_path), kind, side=side)
    assert line in found
    assert set(found) - set(before) == {line}


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("line", [60, 733, 1_440])
def test_a_lost_line_is_found_where_it_was(multi30k: Callable[[], Sides], tmp_path: Path, side: str, line: int) -> None:
    sides = multi30k()
    del getattr(sides, side)[line]
    result = examined(sides, tmp_path)
    assert [finding.kind for finding in result.diagnosis.findings if finding.level == "error"] == ["unequal", "slip"]
    (slip,) = [one for one in result.found if one.kind == "slip"]
    assert abs(int(slip.lines[1]) - line) <= 1
    assert f"the {side} lacks 1 line" in slip.detail


def test_a_slip_that_is_mended_later_is_found_though_the_sides_are_equal(
    multi30k: Callable[[], Sides], tmp_path: Path
) -> None:
    sides = multi30k()
    del sides.source[400], sides.target[1_000]
    result = examined(sides, tmp_path)
    assert "unequal" not in {one.kind for one in result.found}
    (slip,) = [one for one in result.found if one.kind == "slip"]
    assert "then" in slip.detail
    assert "keep step again" in slip.detail
    out_of_step = set(slip.dirt.tolist())
    assert set(range(401, 999)) <= out_of_step <= set(range(390, 1_010))


def test_a_side_that_merely_ends_early_has_not_slipped(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    del sides.target[1_100:]
    result = examined(sides, tmp_path)
    (unequal,) = [one for one in result.found if one.kind == "unequal"]
    assert "go together up to line 1,100" in unequal.detail
    assert "slip" not in {one.kind for one in result.found}


def test_a_slip_is_found_in_chinese_text_that_is_sorted_by_length(tatoeba: Callable[[], Sides], tmp_path: Path) -> None:
    sides = tatoeba()
    del sides.target[500]
    (slip,) = [one for one in examined(sides, tmp_path).found if one.kind == "slip"]
    assert abs(int(slip.lines[1]) - 500) <= 3


def test_sides_of_different_texts_do_not_go_together(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    random.Random(3).shuffle(sides.target)
    assert "unrelated" in {one.kind for one in examined(sides, tmp_path).found}


def test_test_pairs_in_the_training_text_are_found_with_both_lines(
    multi30k: Callable[[], Sides], tmp_path: Path
) -> None:
    sides = multi30k()
    sides.source[900], sides.target[900] = sides.test[16]
    sides.source[901] = sides.test[27][0]
    result = examined(sides, tmp_path)
    assert lines_found(result, "leak", "test") == [17]
    assert lines_found(result, "leak-source", "test") == [28]
    (leak,) = [finding for finding in result.diagnosis.findings if finding.kind == "leak"]
    assert "training line 901" in leak.places[0].text
    assert leak.level == "warning"
    sides.source[:60], sides.target[:60] = zip(*sides.test[:60], strict=True)
    result = examined(sides, tmp_path)
    assert [finding.level for finding in result.diagnosis.findings if finding.kind == "leak"] == ["error"]


def test_characters_that_training_lacks_are_found_in_the_test(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    sides.test[7] = (sides.test[7][0], "Ein Mann mit einem ☂.")
    assert 8 in lines_found(examined(sides, tmp_path), "unseen", "test", "target")


@pytest.mark.parametrize(("languages", "kind"), [(("de", "en"), "swapped-files"), (("fr", "de"), "other-language")])
def test_files_that_are_not_in_their_languages_are_named(
    multi30k: Callable[[], Sides], tmp_path: Path, languages: tuple[str, str], kind: str
) -> None:
    sides = multi30k()
    sides.languages = languages
    (finding,) = [one for one in examined(sides, tmp_path).diagnosis.findings if one.level == "error"]
    assert finding.kind == kind


def test_exchanged_files_of_different_scripts_are_named(tatoeba: Callable[[], Sides], tmp_path: Path) -> None:
    sides = tatoeba()
    sides.languages = ("zh", "en")
    (finding,) = [one for one in examined(sides, tmp_path).diagnosis.findings if one.level == "error"]
    assert finding.kind == "swapped-files"


def test_both_kinds_of_chinese_characters_are_told_apart(tatoeba: Callable[[], Sides], tmp_path: Path) -> None:
    sides = tatoeba()
    sides.target[700] = "我喜歡这个。"
    result = examined(sides, tmp_path)
    assert 701 in lines_found(result, "mixed-chinese")
    rarer = {one.kind for one in result.found} & {"simplified", "traditional"}
    assert len(rarer) == 1


def test_words_of_chinese_that_are_divided_by_blanks_are_found(tatoeba: Callable[[], Sides], tmp_path: Path) -> None:
    sides = tatoeba()
    sides.target[30] = "我们 明天 去 学校 。"
    assert lines_found(examined(sides, tmp_path), "spaced") == [31]


def test_what_can_be_read_of_a_damaged_file_is_examined(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    sides.raw["source"] = gzip.compress(joined(sides.source))[:-200]
    diagnosis = examined(sides, tmp_path).diagnosis
    (unreadable,) = [finding for finding in diagnosis.findings if finding.kind == "unreadable"]
    assert (unreadable.level, unreadable.side) == ("error", "source")
    assert "cut short" in unreadable.detail


def test_a_file_in_utf_16_is_one_error_which_says_to_convert_it(tmp_path: Path) -> None:
    sources, targets = map(list, zip(*numbered_pairs(60), strict=True))
    result = examined(Sides(sources, targets, raw={"source": joined(sources).decode().encode("utf-16")}), tmp_path)
    (finding,) = result.diagnosis.findings
    assert (finding.kind, finding.level, finding.side) == ("encoding", "error", "source")
    assert "UTF-16" in finding.detail
    assert "Convert" in finding.advice


def test_latin_1_text_has_lost_no_letters_by_being_read_as_utf_8(tmp_path: Path) -> None:
    sources, targets = map(list, zip(*numbered_pairs(60), strict=True))
    targets[:3] = ["Straße eins", "schön zwei", "drei \ufffd verloren"]
    raw = "\n".join(targets[:2]).encode("latin-1") + b"\n" + joined(targets[2:])
    result = examined(Sides(sources, targets, raw={"target": raw}), tmp_path)
    assert lines_found(result, "not-utf8") == [1, 2]
    assert lines_found(result, "replacement") == [3]


def test_line_ends_of_two_kinds_and_a_mark_at_the_start_are_told(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    sides.raw["source"] = b"\xef\xbb\xbf" + joined(sides.source)
    sides.raw["target"] = joined(sides.target[:900]) + joined(sides.target[900:]).replace(b"\n", b"\r\n")
    levels = {finding.kind: finding.level for finding in examined(sides, tmp_path).diagnosis.findings}
    assert (levels["byte-order-mark"], levels["line-ends"]) == ("note", "warning")


def test_rows_without_a_column_are_found(tatoeba: Callable[[], Sides], tmp_path: Path) -> None:
    sides = tatoeba()
    rows = [f"{source}\t{target}" for source, target in zip(sides.source, sides.target, strict=True)]
    rows[17] = "Only one column."
    table = write_lines(tmp_path / "pairs.tsv", rows)
    result = examine(Corpus({"train": (PairFiles(tsv=str(table)),)}, EN_ZH))
    assert lines_found(result, "column") == [18]
    assert result.diagnosis.count("error") == 1


def test_clean_files_give_no_false_alarm(corpora: Path) -> None:
    """What is left is true: two translations of Multi30k are "@@", and Tatoeba mixes two ways to write Chinese."""
    folder = corpora / "multi30k"
    names = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
    parts = {
        part: (PairFiles(source=str(folder / f"{name}.en"), target=str(folder / f"{name}.de")),)
        for part, name in names.items()
    }
    loud = [finding for finding in examine(Corpus(parts, EN_DE)).diagnosis.findings if finding.level != "note"]
    assert [(finding.kind, finding.count) for finding in loud] == [("ratio", 2)]
    assert [place.line for place in loud[0].places] == [16_510, 16_664]
    table = PairFiles(tsv=str(corpora / "tatoeba" / "cmn-eng.tsv"))
    loud = [
        finding for finding in examine(Corpus({"train": (table,)}, EN_ZH)).diagnosis.findings if finding.level != "note"
    ]
    assert [finding.kind for finding in loud] == ["traditional"]


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_tells_a_verdict_a_table_and_where(tiny: Path) -> None:
    sources = [source for source, _ in numbered_pairs()]
    write_lines(tiny / "train.en", [*sources[:9], "The d\ufffdg sleeps.", *sources[10:]])
    done = in_process("doctor", tiny / "tiny.yaml", "--vocab-size", "120")
    assert (done.status, done.err) == (0, "")
    first, second = done.out.splitlines()[:2]
    assert first.startswith("Fit for training; 1 warning")
    assert second == "160 training pairs, 20 validation pairs, 20 test pairs"
    assert "line      10  The d\ufffdg sleeps." in done.out
    assert "120  source" in done.out


def test_json_says_the_same_and_strict_sets_the_status(tiny: Path) -> None:
    write_lines(tiny / "train.de", [target for _, target in numbered_pairs()][:-1])
    done = in_process("doctor", tiny / "tiny.yaml", "--json", "--strict", "--no-vocabulary")
    assert done.status == 2
    report = json.loads(done.out)
    assert report["errors"] == 1
    assert report["findings"][0]["kind"] == "unequal"
    assert report["pairs"]["train"] == 159


def test_two_files_and_a_table_need_no_config(tiny: Path) -> None:
    done = in_process("doctor", tiny / "train.en", tiny / "train.de", "--no-vocabulary")
    assert (done.status, done.err) == (0, "")
    table = write_lines(tiny / "t.tsv", [f"x\t{target}\t{source}" for source, target in numbered_pairs()])
    done = in_process("doctor", table, "--columns", "3,2", "--source-language", "en", "--target-language", "de")
    assert "160 training pairs" in done.out


def test_a_vocabulary_that_does_not_fit_is_measured_on_nothing(tiny: Path) -> None:
    done = in_process("doctor", tiny / "tiny.yaml", "--vocab-size", "90000")
    assert done.status == 0, done.err
    assert "No vocabulary could be learnt from 160 pairs:" in done.out
    assert "measured on" not in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.en", "none.de"], ("none.en",)),
        (["a.en", "b.de", "c.fr"], ("3",)),
        (["train.en"], ("train.en", "second file", "--columns")),
        (["train.en", "train.de", "--columns", "1,2"], ("--columns", "table")),
        (["train.en", "train.de", "--set", "seed=1"], ("--set", "config")),
        (["tiny.yaml", "--columns", "2,1"], ("--columns", "tiny.yaml")),
        (["t.tsv", "--columns", "1,1"], ("'1,1'", "1,2")),
        (["train.en", "train.de", "--write-clean", "."], ("--write-clean", "train.en", "is read")),
        (["val.en", "val.de", "--write-clean", "."], ("--write-clean", "train.en", "already")),
    ],
)
def test_every_mistake_is_refused_in_a_sentence(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tiny)
    before = {path: path.read_bytes() for path in tiny.iterdir()}
    in_process("doctor", *arguments).refused(*words)
    assert {path: path.read_bytes() for path in tiny.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_is_refused_since_a_text_is_read_several_times(tiny: Path) -> None:
    os.mkfifo(tiny / "pipe")
    in_process("doctor", tiny / "pipe", tiny / "train.de").refused("pipe", "several times")


def test_a_clean_copy_leaves_out_what_is_damaged_and_says_why(multi30k: Callable[[], Sides], tmp_path: Path) -> None:
    sides = multi30k()
    removed = {}
    for damage in (blank, duplicate, ratio, swapped, language, copy, mojibake, replacement, control, markup, pieces):
        _, line = damage(sides)
        removed[line] = damage.__name__
    entity(sides)
    for name in ("source", "target"):
        write_lines(tmp_path / f"{name}.{'en' if name == 'source' else 'de'}", getattr(sides, name))
    folder = tmp_path / "clean"
    command = ("doctor", tmp_path / "source.en", tmp_path / "target.de", "--no-vocabulary", "--write-clean", folder)
    done = in_process(*command)
    assert (done.status, done.err) == (0, "")
    log = [row.split("\t") for row in lines_of(folder / "removed.tsv")[1:]]
    assert {int(row[1]): row[2] for row in log} == removed
    kept = [lines_of(folder / f"train.{code}") for code in EN_DE]
    assert len(kept[0]) == len(kept[1]) == SIZE - len(removed)
    assert kept[0] == [" ".join(line.split()) for n, line in enumerate(sides.source, start=1) if n not in removed]
    in_process(*command).refused("--write-clean", "train.en", "already")
    in_process(*command[:1], folder / "train.en", folder / "train.de", *command[3:-1], folder).refused("--write-clean")
    again = in_process("doctor", folder / "train.en", folder / "train.de", "--json", "--no-vocabulary")
    levels = {finding["kind"]: finding["level"] for finding in json.loads(again.out)["findings"]}
    assert set(levels.values()) <= {"note", "warning"}
    assert not set(levels) & set(removed.values())


def test_a_clean_copy_of_a_slipped_text_has_only_pairs_that_belong_together(
    multi30k: Callable[[], Sides], tmp_path: Path
) -> None:
    sides = multi30k()
    true = set(zip(sides.source, sides.target, strict=True))
    del sides.source[300], sides.target[600]
    for name, lines in (("a.en", sides.source), ("a.de", sides.target)):
        write_lines(tmp_path / name, lines)
    done = in_process(
        "doctor", tmp_path / "a.en", tmp_path / "a.de", "--no-vocabulary", "--write-clean", tmp_path / "clean"
    )
    assert done.status == 0, done.err
    kept = list(zip(*(lines_of(tmp_path / "clean" / f"train.{code}") for code in EN_DE), strict=True))
    clean_true = {tuple(" ".join(side.split()) for side in pair) for pair in true}
    assert set(kept) <= clean_true
    assert len(kept) > 1_150


def test_training_says_at_most_five_lines_and_nothing_of_a_sound_text(tiny: Path) -> None:
    from seq2seq.cli.doctor import quick_warnings
    from seq2seq.config.loading import load_config

    data = load_config(tiny / "tiny.yaml").data
    assert quick_warnings(data, ["run/config.yaml"]) == ([], 0)
    pairs = numbered_pairs()
    targets = [target for _, target in pairs]
    targets[:6] = ["Stra\ufffde", "<b>fett</b> gut", "fÃ¼r Ã¤lter", "\x07 Glocke", "Ball\uf0b7", "x\u2028y"]
    write_lines(tiny / "train.de", targets)
    lines, errors = quick_warnings(data, ["run/config.yaml"])
    assert errors == 0
    assert len(lines) == 5
    assert all(line.startswith("doctor ") for line in lines)
    assert "seq2seq doctor run/config.yaml" in lines[-1]
    done = in_process("train", tiny / "tiny.yaml")
    assert done.status == 0, done.err
    assert sum(line.startswith("doctor ") for line in done.out.splitlines()) == 5


def test_names_of_files_cannot_command_a_terminal(tmp_path: Path) -> None:
    names = [tmp_path / f"a\x1b[31m.{code}" for code in EN_DE]
    for path, side in zip(names, zip(*numbered_pairs(60), strict=True), strict=True):
        write_lines(path, list(side))
    names[1].write_bytes(b"\xff\xfe" + names[1].read_bytes())
    done = in_process("doctor", *names, "--no-vocabulary")
    assert done.status == 0
    assert "\x1b" not in done.out


def test_numbers_are_plain_and_lines_count_from_one(tiny: Path) -> None:
    done = in_process("doctor", tiny / "tiny.yaml", "--json", "--no-vocabulary")
    report = json.loads(done.out)
    assert all(place["line"] >= 1 for finding in report["findings"] for place in finding["places"])
    assert not any(isinstance(value, np.generic) for value in report.values())
