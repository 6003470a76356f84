"""Claims about scores; the authority is the sacrebleu command on the same files.

A name with c401 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Finished, numbered_pairs, run_python, write_lines

from seq2seq.errors import ScoringError
from seq2seq.evaluation import scores as scoring
from seq2seq.evaluation.scores import default_tokenizer, refuse_pieces, score

Command = Callable[..., Finished]


def garbled(lines: list[str], seed: int = 1) -> list[str]:
    """The lines as a middling model would give them: words lost, doubled and swapped."""
    random_state = random.Random(seed)
    result = []
    for line in lines:
        words = [word for word in line.split(" ") if random_state.random() > 0.15]
        if len(words) > 2 and random_state.random() < 0.3:
            words[0], words[1] = words[1], words[0]
        result.append(" ".join(words))
    return result


def by_command(hypothesis: Path, *references: Path, tokenize: str = "13a") -> dict[str, dict[str, object]]:
    """What the sacrebleu command says, with twelve decimals, by the name of the score."""
    options = ["-m", "bleu", "chrf", "-w", "12", "-tok", tokenize, "-f", "json"]
    done = run_python("-m", "sacrebleu", *references, "-i", hypothesis, *options)
    assert done.status == 0, done.err
    return {entry["name"]: entry for entry in json.loads(done.out)}


def by_us(run_cli: Command, hypothesis: Path, *references: Path, more: tuple[str, ...] = ()) -> dict[str, dict]:
    options = [word for reference in references for word in ("--reference", reference)]
    done = run_cli("score", hypothesis, *options, "--json", *more)
    assert done.status == 0, done.err
    return json.loads(done.out)


def assert_equal(ours: dict[str, dict], command: dict[str, dict[str, object]]) -> None:
    for key, name in (("bleu", "BLEU"), ("chrf", "chrF2")):
        assert ours[key]["name"] == name
        assert ours[key]["score"] == pytest.approx(command[name]["score"], abs=1e-11)
        assert ours[key]["signature"] == command[name]["signature"]


@pytest.fixture
def references() -> list[str]:
    return [target for _, target in numbered_pairs(60)]


def test_unequal_counts_are_refused_with_both_counts_and_both_names_c401(run_cli: Command, tmp_path: Path) -> None:
    hypothesis = write_lines(tmp_path / "out.de", ["a", "b", "c"])
    reference = write_lines(tmp_path / "ref.de", ["a", "b", "c", "d"])
    done = run_cli("score", hypothesis, "--reference", reference)
    done.refused("out.de has 3 lines", "ref.de has 4 lines")
    assert done.out == ""


def test_the_second_reference_is_counted_too_c401(run_cli: Command, tmp_path: Path) -> None:
    hypothesis = write_lines(tmp_path / "out.de", ["a", "b"])
    first, second = write_lines(tmp_path / "1.de", ["a", "b"]), write_lines(tmp_path / "2.de", ["a"])
    run_cli("score", hypothesis, "--reference", first, "--reference", second).refused("2 lines", "2.de has 1 line;")


def test_two_references_equal_the_command_and_not_the_mean_of_two_runs_c404(
    run_cli: Command, tmp_path: Path, references: list[str]
) -> None:
    hypothesis = write_lines(tmp_path / "out.de", garbled(references, 1))
    first = write_lines(tmp_path / "1.de", references)
    second = write_lines(tmp_path / "2.de", garbled(references, 2))
    ours = by_us(run_cli, hypothesis, first, second)
    assert_equal(ours, by_command(hypothesis, first, second))
    assert "nrefs:2" in ours["bleu"]["signature"]
    alone = [by_us(run_cli, hypothesis, reference)["bleu"]["score"] for reference in (first, second)]
    assert ours["bleu"]["score"] != pytest.approx(sum(alone) / 2, abs=0.01)


@pytest.mark.parametrize("with_second", [False, True])
def test_an_empty_reference_line_scores_as_with_the_command_c406(
    run_cli: Command, tmp_path: Path, references: list[str], with_second: bool
) -> None:
    hypothesis = write_lines(tmp_path / "out.de", garbled(references))
    files = [write_lines(tmp_path / "1.de", [*references[:6], "", *references[7:]])]
    if with_second:
        files.append(write_lines(tmp_path / "2.de", references))
    assert_equal(by_us(run_cli, hypothesis, *files), by_command(hypothesis, *files))


def test_empty_hypotheses_and_all_empty_references_give_a_number_c406(tmp_path: Path) -> None:
    assert score(["", ""], [["ein Hund", "zwei"]], target_language="de").bleu.value == 0
    assert score(["ein Hund", "zwei"], [["", ""]], target_language="de").chrf.value == 0


def test_no_lines_at_all_are_refused_c406(run_cli: Command, tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "out.de", [])
    run_cli("score", empty, "--reference", write_lines(tmp_path / "ref.de", [])).refused("out.de has no lines")


def test_references_against_themselves_score_one_hundred_c409(
    run_cli: Command, tmp_path: Path, references: list[str]
) -> None:
    reference = write_lines(tmp_path / "ref.de", references)
    done = run_cli("score", reference, "--reference", reference)
    assert done.status == 0
    bleu, chrf = done.out.splitlines()
    assert bleu.startswith("BLEU  100.00   nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert chrf.startswith("chrF2 100.00   nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "zh", "none"])
def test_scores_equal_the_command_to_the_last_digit_c410(
    run_cli: Command, tmp_path: Path, references: list[str], tokenize: str
) -> None:
    odd = [
        "Er sagte: »Nein!« – 3,5 % & mehr… &amp; &quot;",
        "(hi) don't 日本語 text",
        "  Enden  \u3000",
        "a\u2028b c d",
    ]
    hypothesis = write_lines(tmp_path / "out.de", [*garbled(references), *odd])
    reference = write_lines(tmp_path / "ref.de", [*references, *(line.replace("e", "E") for line in odd)])
    ours = by_us(run_cli, hypothesis, reference, more=("--tokenize", tokenize))
    assert_equal(ours, by_command(hypothesis, reference, tokenize=tokenize))


def test_line_ends_and_a_missing_last_one_do_not_change_the_score_c410(
    run_cli: Command, tmp_path: Path, references: list[str]
) -> None:
    reference = write_lines(tmp_path / "ref.de", references)
    windows = tmp_path / "out.de"
    windows.write_bytes("\r\n".join(garbled(references)).encode("utf-8"))
    assert_equal(by_us(run_cli, windows, reference), by_command(windows, reference))


def test_standard_input_is_a_hypothesis_c410(run_cli: Command, tmp_path: Path, references: list[str]) -> None:
    reference = write_lines(tmp_path / "ref.de", references)
    hypothesis = write_lines(tmp_path / "out.de", garbled(references))
    piped = run_cli("score", "-", "--reference", reference, input=hypothesis.read_bytes())
    assert piped.status == 0
    assert piped.out == run_cli("score", hypothesis, "--reference", reference).out
    run_cli("score", "-", "--reference", "-", input="a\n").refused("Standard input")


@pytest.mark.parametrize("line", ["▁Ein ▁Hund ▁b ellt ▁.", "Ein Hu@@ nd bell@@ t ."])
def test_a_score_over_pieces_is_never_called_bleu_c410(run_cli: Command, tmp_path: Path, line: str) -> None:
    pieces, text = write_lines(tmp_path / "pieces.de", [line] * 3), write_lines(tmp_path / "text.de", ["Ein Hund."] * 3)
    run_cli("score", pieces, "--reference", text).refused("pieces.de", "pieces of words")
    run_cli("score", text, "--reference", pieces).refused("pieces.de", "pieces of words")


def test_text_that_only_resembles_pieces_is_scored_c410() -> None:
    refuse_pieces(["@@ -1,3 +1,4 @@ def f():", "mail@@example", "█▁▂ was", "ein Hund", "zwei"], "patch")


def test_chinese_is_cut_into_characters_and_the_signature_says_so_c413(run_cli: Command, tmp_path: Path) -> None:
    lines = ["我喜歡看書。", "你今天去哪裡？", "他們在公園裡跑步。", "天氣很好，我們出去吧！"]
    reference = write_lines(tmp_path / "ref.zh", lines)
    hypothesis = write_lines(tmp_path / "out.zh", ["我喜歡讀書。", "你今天去哪？", *lines[2:]])
    ours = by_us(run_cli, hypothesis, reference, more=("--language", "zh"))
    assert_equal(ours, by_command(hypothesis, reference, tokenize="zh"))
    assert "tok:zh" in ours["bleu"]["signature"]
    chosen = by_us(run_cli, hypothesis, reference, more=("--language", "zh", "--tokenize", "char"))
    assert "tok:char" in chosen["bleu"]["signature"]


def test_chinese_without_a_language_is_scored_with_a_warning_c413(run_cli: Command, tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "ref.zh", ["我喜歡看書。", "你今天去哪裡？"])
    done = run_cli("score", reference, "--reference", reference)
    assert done.status == 0
    assert "tok:13a" in done.out
    assert "--language" in done.err
    assert "--language" not in run_cli("score", reference, "--reference", reference, "--tokenize", "13a").err


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh_TW", "ZH", "cmn", "zho-Hant"])
def test_every_code_for_chinese_means_chinese_c413(code: str) -> None:
    assert default_tokenizer(code) == "zh"


@pytest.mark.parametrize(("code", "usual"), [("ja", "ja-mecab"), ("jpn", "ja-mecab"), ("ko_KR", "ko-mecab")])
def test_without_mecab_japanese_and_korean_are_cut_into_characters_c413(
    code: str, usual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring.importlib.util, "find_spec", lambda name: None)
    assert default_tokenizer(code) == "char"
    assert usual in str(scoring.missing_tokenizer(code))
    with pytest.raises(ScoringError, match="pip install"):
        scoring.check_tokenizer(usual)
    monkeypatch.setattr(scoring.importlib.util, "find_spec", lambda name: object())
    assert default_tokenizer(code) == usual
    assert scoring.missing_tokenizer(code) is None


@pytest.mark.parametrize("code", ["de", "en", "", "xx", "kok", "jam"])
def test_other_languages_are_cut_by_13a_c413(code: str) -> None:
    assert default_tokenizer(code) == "13a"


@pytest.mark.parametrize("name", ["13b", "spm", "flores200", ""])
def test_a_tokenizer_that_is_unknown_or_wants_the_network_is_refused_with_the_choices_c413(
    run_cli: Command, tmp_path: Path, name: str
) -> None:
    reference = write_lines(tmp_path / "ref.zh", ["我喜歡看書。"])
    done = run_cli("score", reference, "--reference", reference, f"--tokenize={name}")
    done.refused(repr(name), "13a", "zh", "ja-mecab")


def test_a_missing_file_and_bad_bytes_are_refused_by_name(run_cli: Command, tmp_path: Path) -> None:
    reference = write_lines(tmp_path / "ref.de", ["a"])
    run_cli("score", tmp_path / "none.de", "--reference", reference).refused("none.de")
    bad = tmp_path / "bad.de"
    bad.write_bytes(b"caf\xe9\n")
    run_cli("score", bad, "--reference", reference).refused("bad.de line 1")


def test_translations_that_a_tokenizer_has_cut_are_pointed_out_and_french_is_not() -> None:
    from seq2seq.evaluation.scores import cut_into_words

    assert "2 of 3" in str(cut_into_words(["ein mann .", "eine frau .", "Ja."]))
    assert cut_into_words(["Ein Mann.", "Eine Frau .", "Ja."]) is None
    assert cut_into_words(["Ça va ?", "Oui !"]) is None
    assert "100 of 900" in str(cut_into_words(["ein mann ."] * 100 + ["Ja."] * 800))
