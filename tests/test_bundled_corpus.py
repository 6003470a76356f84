"""The bundled data: what the grammar promises of data/english-chinese and data/reverse, read from the files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import make_bundled_corpus  # noqa: E402
from bundled_corpus.inflection import a, chinese_number, english_number  # noqa: E402

CORPUS = ROOT / "data" / "english-chinese"
REVERSE = ROOT / "data" / "reverse"
SPLITS = ("train", "validation", "test")
# Written otherwise in simplified Chinese; a sample of the most frequent.
TRADITIONAL = (
    "們個來時國說會為這過還學點對開見車買書電馬魚鳥貓錢間問門請誰讓後沒東業兩麼嗎從給寫紅綠藍愛歲場媽爺氣飯館醫師雙條"
)
ENGLISH = re.compile(r"[A-Z][A-Za-z0-9 ,.:'?-]*[.?!]")
# A point or a colon only between digits.
CHINESE = re.compile(r"(?:[\u4e00-\u9fff]|[0-9]+(?:\.[0-9]+)?|[，。？！])+")
MEASURES = "只匹头本辆杯瓶件条双顶把张封部根个位台块支"
# "an" stands before a vowel sound, which these words have or lack against their spelling.
VOWEL_SOUND = ("hour",)
CONSONANT_SOUND = ("university", "used", "one", "european", "uniform")


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[tuple[str, str]]]:
    """The pairs of each split."""
    return {name: list(zip(lines(CORPUS / f"{name}.en"), lines(CORPUS / f"{name}.zh"), strict=True)) for name in SPLITS}


@pytest.fixture(scope="module")
def pairs(corpus: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return [pair for name in SPLITS for pair in corpus[name]]


def test_the_grammar_writes_exactly_the_files_that_are_bundled(tmp_path: Path) -> None:
    written = make_bundled_corpus.write(tmp_path)
    assert len(written) == 12
    for path in written:
        assert path.read_bytes() == (ROOT / "data" / path.relative_to(tmp_path)).read_bytes(), path.name


def test_a_changed_or_missing_file_is_found(tmp_path: Path) -> None:
    make_bundled_corpus.write(tmp_path)
    assert make_bundled_corpus.differing(tmp_path) == []
    (tmp_path / "english-chinese" / "test.zh").write_text("改\n", encoding="utf-8")
    (tmp_path / "reverse" / "train.source").unlink()
    assert make_bundled_corpus.differing(tmp_path) == ["english-chinese/test.zh", "reverse/train.source"]


def test_the_files_are_utf8_lines_with_a_final_newline_and_small() -> None:
    files = [*CORPUS.glob("*.*"), *REVERSE.glob("*.*")]
    for path in files:
        content = path.read_bytes()
        assert content.endswith(b"\n") and not content.endswith(b"\n\n") and b"\r" not in content, path.name
    assert sum(path.stat().st_size for path in files) < 2_000_000


def test_the_splits_have_their_sizes(corpus: dict[str, list[tuple[str, str]]]) -> None:
    assert len(corpus["train"]) >= 9_000
    assert len(corpus["validation"]) == len(corpus["test"]) == 500


def test_no_sentence_occurs_twice_on_either_side(pairs: list[tuple[str, str]]) -> None:
    # So no held-out sentence is seen in training, and the same English always has the same Chinese.
    assert len({english for english, _ in pairs}) == len(pairs)
    assert len({chinese for _, chinese in pairs}) == len(pairs)


def test_a_sentence_is_unique_even_without_case_and_punctuation(pairs: list[tuple[str, str]]) -> None:
    bare = [re.sub(r"[^a-z0-9 .:]", "", english.lower()[:-1]) for english, _ in pairs]
    assert len(set(bare)) == len(bare)


def test_every_held_out_word_and_character_is_known_from_training(corpus: dict[str, list[tuple[str, str]]]) -> None:
    def units(pair: tuple[str, str]) -> set[str]:
        words = set(re.findall(r"[a-z'-]+", pair[0].lower()))
        return words | set(re.findall(r"[^0-9.]", pair[1]))

    known = set().union(*map(units, corpus["train"]))
    for name in ("validation", "test"):
        for pair in corpus[name]:
            assert units(pair) <= known, pair


def test_an_english_line_is_a_sentence(pairs: list[tuple[str, str]]) -> None:
    for english, _ in pairs:
        assert ENGLISH.fullmatch(english), english
        assert "  " not in english and " ." not in english and " ," not in english, english
        assert 1 <= len(english.split()) <= 20, english


def test_a_chinese_line_is_simplified_characters_digits_and_its_own_punctuation(pairs: list[tuple[str, str]]) -> None:
    for _, chinese in pairs:
        assert CHINESE.fullmatch(chinese), chinese
        assert chinese[-1] in "。？！", chinese
        assert not set(chinese) & set(TRADITIONAL), chinese
        assert not re.search(r"[，。？！]{2}", chinese), chinese


def test_a_question_is_a_question_on_both_sides(pairs: list[tuple[str, str]]) -> None:
    for english, chinese in pairs:
        if not english.startswith("Excuse me"):
            assert (english[-1] == "?") == (chinese[-1] == "？"), (english, chinese)


def test_the_indefinite_article_agrees(pairs: list[tuple[str, str]]) -> None:
    for english, _ in pairs:
        for article, word in re.findall(r"\b([Aa]n?) ([A-Za-z]+)", english):
            vowel = word.lower().startswith(tuple("aeiou")) and not word.lower().startswith(CONSONANT_SOUND)
            vowel = vowel or word.lower().startswith(VOWEL_SOUND)
            assert (article.lower() == "an") == vowel, english


def test_a_verb_agrees_with_its_pronoun(pairs: list[tuple[str, str]]) -> None:
    wrong = re.compile(
        r"^(I|You|We|They) (is|was not he|has|does|doesn't|goes|likes|wants)\b"
        r"|^(He|She) (are|am|have|do|don't|go|like|want|were)\b|^(You|We|They) (am|was)\b|^I (are|were)\b"
    )
    for english, _ in pairs:
        assert not wrong.search(english), english


@pytest.mark.parametrize(
    ("noun", "measure"),
    [
        ("猫", "只"), ("狗", "只"), ("马", "匹"), ("书", "本"), ("词典", "本"), ("车", "辆"), ("自行车", "辆"),
        ("咖啡", "杯"), ("啤酒", "瓶"), ("大衣", "件"), ("裤子", "条"), ("鞋子", "双"), ("帽子", "顶"), ("雨伞", "把"),
        ("票", "张"), ("信", "封"), ("手机", "部"), ("香蕉", "根"),
    ],
)  # fmt: skip
def test_a_noun_takes_its_measure_word(pairs: list[tuple[str, str]], noun: str, measure: str) -> None:
    counted = re.compile(rf"[一两三四五六七八九十几这那哪]([{MEASURES}]){noun}")
    found = [match for _, chinese in pairs for match in counted.findall(chinese)]
    assert len(found) >= 5
    assert set(found) == {measure}


def test_two_things_are_liang(pairs: list[tuple[str, str]]) -> None:
    for _, chinese in pairs:
        assert not re.search(rf"(?<![十百千零])二[{MEASURES}百千]", chinese), chinese


def test_his_and_her_keep_their_gender(pairs: list[tuple[str, str]]) -> None:
    pronouns = {"he": "他", "his": "他", "him": "他", "she": "她", "her": "她"}
    for english, chinese in pairs:
        words = re.findall(r"[a-z]+", english.lower())
        seen = {pronouns[word] for word in words if word in pronouns}
        if "他们" not in chinese:
            # 吉他 is a guitar.
            assert set(chinese.replace("吉他", "")) & set("他她") <= seen, (english, chinese)


def test_many_constructions_share_the_corpus_evenly(pairs: list[tuple[str, str]]) -> None:
    from bundled_corpus.drawing import PRODUCTIONS

    assert len(PRODUCTIONS) >= 60
    total = sum(production.count for production in PRODUCTIONS)
    assert max(production.count for production in PRODUCTIONS) <= 0.05 * total
    lengths = sorted(len(english.split()) for english, _ in pairs)
    assert lengths[len(lengths) // 2] in (7, 8, 9)


@pytest.mark.parametrize(
    ("number", "english", "chinese"),
    [
        (2, "two", "两"), (12, "twelve", "十二"), (22, "twenty-two", "二十二"),
        (105, "one hundred and five", "一百零五"),
        (215, "two hundred and fifteen", "两百一十五"), (1050, "one thousand and fifty", "一千零五十"),
        (2500, "two thousand five hundred", "两千五百"), (15000, "fifteen thousand", "一万五千"),
        (20005, "twenty thousand and five", "两万零五"),
    ],
)  # fmt: skip
def test_numbers_are_written_in_words(number: int, english: str, chinese: str) -> None:
    assert english_number(number) == english
    assert chinese_number(number) == chinese


def test_the_article_follows_the_sound() -> None:
    assert [a(word) for word in ("apple", "cat", "hour", "university")] == [
        "an apple", "a cat", "an hour", "a university",
    ]  # fmt: skip


def test_reverse_is_the_same_digits_backwards_and_its_splits_are_apart() -> None:
    sources: list[str] = []
    lengths: dict[int, int] = {}
    for name, size in (("train", 25_000), ("validation", 500), ("test", 500)):
        source, target = lines(REVERSE / f"{name}.source"), lines(REVERSE / f"{name}.target")
        assert len(source) == len(target) == size
        for one, other in zip(source, target, strict=True):
            assert re.fullmatch(r"[0-9]( [0-9]){2,11}", one)
            assert other.split(" ") == one.split(" ")[::-1]
            length = len(one.split(" "))
            lengths[length] = lengths.get(length, 0) + 1
        sources += source
    assert len(set(sources)) == len(sources)
    assert sorted(lengths) == list(range(3, 13))
