"""Claims about the parts of the doctor, beside Python's own tables of Unicode and of old encodings where they know."""

from __future__ import annotations

import unicodedata
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from conftest import numbered_pairs, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import PairFiles
from seq2seq.corpus.lines import clean, read_lines
from seq2seq.diagnosis.alignment import follow
from seq2seq.diagnosis.characters import FIRST_SCRIPT, Kind, scripts_of, table
from seq2seq.diagnosis.chinese import SIMPLIFIED, TRADITIONAL
from seq2seq.diagnosis.duplicates import duplicates
from seq2seq.diagnosis.found import Text
from seq2seq.diagnosis.scan import Collector, Expectation, Side, scan
from seq2seq.diagnosis.signs import Sign, is_mojibake
from seq2seq.diagnosis.vocabulary import sample

LATIN, CYRILLIC = frozenset({Kind.LATIN}), frozenset({Kind.CYRILLIC})
# How the names of a script's letters begin, where not with the script's own name.
NAMES = {Kind.KANA: ("HIRAGANA", "KATAKANA"), Kind.HAN: ("CJK", "IDEOGRAPHIC"), Kind.GREEK: ("GREEK", "COPTIC")}

lines = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=40)


def side_of(texts: list[str], expected: Expectation = Expectation()) -> Side:  # noqa: B008  # it is frozen
    collector = Collector("text", expected)
    for text in texts:
        collector.add(text)
    return collector.finish(read_lines(BytesIO()), None)


@pytest.mark.parametrize("script", [kind for kind in Kind if FIRST_SCRIPT <= kind <= Kind.HAN])
def test_the_letters_of_a_script_are_called_so_by_unicode(script: Kind) -> None:
    codes = np.flatnonzero(table() == script).tolist()
    assert codes
    odd = [
        chr(code)
        for code in codes
        if (name := unicodedata.name(chr(code), ""))
        and not name.removeprefix("COMBINING ")
        .removeprefix("MODIFIER LETTER ")
        .startswith(NAMES.get(script, (script.name,)))
    ]
    assert len(odd) <= 12, odd  # of Latin the ordinals and the micro sign; modifier letters


def test_every_simplified_character_is_missing_in_big5_and_every_traditional_one_in_gb2312() -> None:
    assert len(SIMPLIFIED) == len(TRADITIONAL) == len(set(SIMPLIFIED)) == len(set(TRADITIONAL)) > 500
    for characters, encoding, other in ((SIMPLIFIED, "big5", "gb2312"), (TRADITIONAL, "gb2312", "big5")):
        for character in characters:
            character.encode(other)
            with pytest.raises(UnicodeEncodeError):
                character.encode(encoding)


@settings(max_examples=30, deadline=None)
@given(lines)
def test_a_side_counts_what_python_counts(texts: list[str]) -> None:
    side = side_of(texts)
    assert side.lengths.tolist() == [len(text) - text.count(" ") for text in texts]
    assert side.lines_with(Sign.BLANK).tolist() == [n for n, text in enumerate(texts) if not clean(text)]
    composed = [n for n, text in enumerate(texts) if not unicodedata.is_normalized("NFC", text)]
    assert side.lines_with(Sign.NOT_COMPOSED).tolist() == composed
    assert side.lines_with(Sign.REPLACEMENT).tolist() == [n for n, text in enumerate(texts) if "\ufffd" in text]
    counts = Counter("".join(texts))
    assert {chr(code): int(side.characters[code]) for code in np.flatnonzero(side.characters)} == counts
    for letter in counts:
        assert side.first_line[ord(letter)] == next(n for n, text in enumerate(texts) if letter in text)
    same = [[clean(one) == clean(other) for other in texts] for one in texts]
    assert (side.hashes[:, None] == side.hashes).tolist() == same


@settings(deadline=None)
@given(st.text(st.sampled_from("abcäöüßéèçñ €“”–…"), min_size=1))
def test_text_that_was_read_wrongly_is_known_from_text_that_was_not(text: str) -> None:
    assert not is_mojibake(text.replace("€", "").replace("“", "").replace("”", ""), LATIN)
    garbled = text.encode().decode("latin-1")
    if set(text) & set("äöüßéèçñ"):
        assert is_mojibake(garbled, LATIN)


def test_garbled_russian_is_known_where_russian_is_expected() -> None:
    garbled = "Привет".encode().decode("latin-1")
    assert is_mojibake(garbled, CYRILLIC)
    assert not is_mojibake("Das Café…” und „Menü“ – CAFÉ…", LATIN)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab "), st.sampled_from("xyz")), max_size=30))
def test_repeated_pairs_are_those_that_a_dictionary_finds(
    tmp_path_factory: pytest.TempPathFactory, pairs: list
) -> None:
    text = Text(
        "train", PairFiles(source="s", target="t"), side_of([s for s, _ in pairs]), side_of([t for _, t in pairs])
    )
    seen: set[tuple[str, str]] = set()
    again = []
    for line, pair in enumerate(pairs):
        if pair[0].strip() and pair in seen:
            again.append(line)
        seen.add(pair)
    found = [one for one in duplicates([text]) if one.kind == "duplicate"]
    assert [line for one in found for line in one.lines.tolist()] == again


def test_lines_that_have_nothing_to_do_with_one_another_never_slip() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        source, target = (generator.integers(5, 200, 2_000, dtype=np.int32) for _ in range(2))
        cues = [generator.integers(0, 8, 2_000, dtype=np.uint8) for _ in range(2)]
        assert follow(source, target, *cues).slips == []


def test_a_loose_translation_that_keeps_step_never_slips() -> None:
    """Lengths that are hardly related, twenty texts of 5,000 lines: a change would need evidence that is not there."""
    generator = np.random.default_rng(6)
    nothing = np.zeros(5_000, dtype=np.uint8)
    for _ in range(20):
        source = generator.lognormal(4, 0.5, 5_000)
        target = source**0.4 * generator.lognormal(2, 0.4, 5_000)
        assert follow(source.astype(np.int32), target.astype(np.int32), nothing, nothing).slips == []


def test_a_text_too_short_to_judge_is_not_judged() -> None:
    few = np.arange(20, dtype=np.int32)
    assert not follow(few, few[::-1].copy(), few.astype(np.uint8) % 8, few.astype(np.uint8) % 8).is_telling


@pytest.mark.parametrize(
    ("code", "scripts"), [("pt_BR", LATIN), ("ru", CYRILLIC), ("zh-TW", frozenset({*scripts_of("zh")})), ("xx", None)]
)
def test_a_language_has_its_scripts_whatever_its_region(code: str, scripts: frozenset[Kind] | None) -> None:
    assert scripts_of(code) == scripts


def test_a_chunk_of_lines_ends_where_there_is_too_much_text_and_numbers_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2seq.diagnosis.scan.CHUNK", 3)
    monkeypatch.setattr("seq2seq.diagnosis.scan.MOST_TEXT", 20)
    texts = ["one", "two", "three", "a line that is longer than twenty", "b\ufffd", "", "c"]
    paths = [write_lines(tmp_path / name, texts) for name in "st"]
    files = PairFiles(source=str(paths[0]), target=str(paths[1]))
    side, _ = scan(files, (Expectation(), Expectation()))
    assert side.lines_with(Sign.REPLACEMENT).tolist() == [4]
    assert side.lines_with(Sign.BLANK).tolist() == [5]
    assert side.first_line[ord("c")] == 6


def test_a_vocabulary_is_measured_on_pairs_that_it_was_not_learnt_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2seq.diagnosis.vocabulary.SAMPLE", 20)
    pairs = numbered_pairs(53)
    paths = [
        write_lines(tmp_path / name, list(side)) for name, side in zip("st", zip(*pairs, strict=True), strict=True)
    ]
    files = PairFiles(source=str(paths[0]), target=str(paths[1]))
    text = Text("train", files, *scan(files, (Expectation(), Expectation())))
    learnt, measured = sample([text], [])
    assert measured == pairs[9::10]
    assert set(learnt) == {pair for pair in pairs[::3] if pair not in measured}
    assert sample([text], [text])[1] == pairs
