"""Claims about `seq2seq suggest`: what it writes is sound, the same every time, and says why."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
from conftest import ROOT, in_process, numbered_pairs, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seq2seq.config.loading import load_config, parse_config
from seq2seq.config.schema import Fraction, PairFiles
from seq2seq.suggestion.rules import RECIPES, fraction_for, recipe_for, warmup_for
from seq2seq.suggestion.survey import survey


def table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    return write_lines(path, [f"{source}\t{target}\twho wrote it" for source, target in pairs])


def test_two_files_are_enough_and_the_config_passes_check(base_corpus: Path) -> None:
    output = base_corpus / "my.yaml"
    done = in_process("suggest", base_corpus / "train.en", base_corpus / "train.de", "--output", output)
    assert (done.status, done.err) == (0, "")
    assert f"seq2seq check {output}" in done.out
    config = load_config(output)
    assert (config.data.source_language, config.data.target_language) == ("en", "de")
    assert config.data.validation == Fraction(fraction=0.1)
    assert config.tokenizer.shared
    text = output.read_text(encoding="utf-8")
    assert "train: {source: train.en, target: train.de}" in text
    assert "160 pairs" in text
    checked = in_process("check", output)
    assert checked.status == 0, checked.err
    again = base_corpus / "again.yaml"
    in_process("suggest", base_corpus / "train.en", base_corpus / "train.de", "--output", again)
    assert again.read_text(encoding="utf-8") == text


def test_every_choice_of_sizes_has_its_reason_beside_it(base_corpus: Path) -> None:
    out = in_process("suggest", base_corpus / "train.en", base_corpus / "train.de").out
    for key in ("validation", "test", "vocab_size", "shared", "dropout", "epochs", "batch_tokens"):
        [line] = [line for line in out.splitlines() if line.strip().startswith(f"{key}:")]
        assert "  # " in line, line
    assert all(len(line) <= 120 for line in out.splitlines() if "train:" not in line)


def test_a_training_with_the_suggestion_runs(base_corpus: Path) -> None:
    output = base_corpus / "my.yaml"
    in_process("suggest", base_corpus / "train.en", base_corpus / "train.de", "--output", output)
    quick = ["--set", "training.max_steps=2", "--set", "model.hidden_size=16", "--set", "model.embedding_size=8"]
    done = in_process("train", output, "--run", base_corpus / "run", *quick)
    assert done.status == 0, done.err


def test_sets_of_their_own_are_named_and_nothing_is_split_off(base_corpus: Path) -> None:
    sets = {name: (base_corpus / f"{part}.en", base_corpus / f"{part}.de") for name, part in
            (("--validation", "val"), ("--test", "test"))}  # fmt: skip
    arguments = [word for name, files in sets.items() for word in (name, *files)]
    done = in_process("suggest", base_corpus / "train.en", base_corpus / "train.de", *arguments)
    config = parse_config(done.out, "the suggestion")
    assert isinstance(config.data.validation, PairFiles)
    assert config.data.validation.source == str(base_corpus / "val.en")
    assert config.data.test is not None
    assert "fraction" not in done.out


@pytest.mark.parametrize(
    ("name", "languages"),
    [("pairs.en-de.tsv", ("en", "de")), ("cmn-eng.tsv", ("cmn", "eng")), ("en_zh.txt.gz", ("en", "zh"))],
)
def test_the_name_of_a_table_tells_its_languages(tmp_path: Path, name: str, languages: tuple[str, str]) -> None:
    path = table(tmp_path / "plain", numbered_pairs())
    path = path.rename(tmp_path / name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    config = parse_config(in_process("suggest", path).out, "the suggestion")
    assert (config.data.source_language, config.data.target_language) == languages


def test_languages_that_nothing_tells_are_asked_for(tmp_path: Path) -> None:
    path = table(tmp_path / "pairs.tsv", numbered_pairs())
    in_process("suggest", path).refused("--source-language")
    in_process("suggest", path, "--source-language", "en").refused("--target-language")
    in_process("suggest", path, "--source-language", "en", "--target-language", "!").refused("target_language")
    done = in_process("suggest", path, "--source-language", "en", "--target-language", "no", "--columns", "2,1")
    config = parse_config(done.out, "the suggestion")
    assert config.data.target_language == "no"
    assert config.data.train[0].columns == (2, 1)


def test_sides_the_wrong_way_round_are_refused(tmp_path: Path) -> None:
    pairs = [(english, f"\u72d7{number}\u732b") for number, (english, _) in enumerate(numbered_pairs())]
    path = table(tmp_path / "pairs.tsv", pairs)
    languages = ("--source-language", "zh", "--target-language", "en")
    in_process("suggest", path, *languages).refused("Latin", "CJK", "--columns")
    assert in_process("suggest", path, *languages, "--columns", "2,1").status == 0
    files = [write_lines(tmp_path / f"train.{side}", [pair[side == "b"] for pair in pairs]) for side in "ab"]
    in_process("suggest", *files, *languages).refused("the other way round")
    # Either side may be as it should be, and languages whose script is not known say nothing.
    for other in (
        ("--source-language", "de", "--target-language", "en"),
        ("--source-language", "zh", "--target-language", "xx"),
    ):
        assert in_process("suggest", path, *other).status == 0


def test_two_scripts_share_a_vocabulary_where_no_size_suits_both(tmp_path: Path) -> None:
    han = [chr(0x4E00 + number) for number in range(1200)]
    pairs = [(f"{english} {number}", "".join(han[(7 * number + i) % 1200] for i in range(9)))
             for number, (english, _) in enumerate(numbered_pairs(400))]  # fmt: skip
    path = table(tmp_path / "en-zh.tsv", pairs)
    output = tmp_path / "my.yaml"
    assert in_process("suggest", path, "--output", output).status == 0
    config = load_config(output)
    assert config.tokenizer.shared  # 900 pieces of English are all there is, and Chinese needs 1,400
    assert config.tokenizer.vocab_size > 1400
    assert "too little text" in output.read_text(encoding="utf-8")
    assert in_process("check", output).status == 0


def test_words_without_blanks_are_counted_by_their_letters(tmp_path: Path) -> None:
    found = survey([PairFiles(tsv=str(table(tmp_path / "t", [("four words stand here", "这里有八个汉字")] * 3)))])
    assert found.source.words == 12
    assert found.target.words == 10  # 21 letters
    assert (found.pairs, found.repeated, found.retranslated) == (3, 2, 0)
    assert found.source.script == "Latin"
    assert found.target.script == "CJK"


def test_bad_lines_are_counted_and_dropped_by_the_config_too(tmp_path: Path) -> None:
    path = table(tmp_path / "en-de.tsv", numbered_pairs())
    path.write_bytes(path.read_bytes() + b"no column\n\xff\tx\n")
    output = tmp_path / "my.yaml"
    assert in_process("suggest", path, "--output", output).status == 0
    assert load_config(output).data.bad_lines == "drop"
    assert "2 lines cannot be read" in output.read_text(encoding="utf-8")
    assert in_process("check", output).status == 0


def test_long_sentences_get_the_length_they_need(tmp_path: Path) -> None:
    pairs = [(f"{source} " * 25, f"{target} " * 25) for source, target in numbered_pairs()]
    output = tmp_path / "my.yaml"
    in_process("suggest", table(tmp_path / "en-de.tsv", pairs), "--output", output)
    assert load_config(output).data.max_length > 100
    assert in_process("check", output).status == 0


def test_what_is_in_the_way_or_missing_is_said(base_corpus: Path) -> None:
    files = (base_corpus / "train.en", base_corpus / "train.de")
    in_process("suggest", *files, "--output", base_corpus / "tiny.yaml").refused("tiny.yaml", "exists")
    in_process("suggest", *files, "--output", files[0]).refused("train.en", "is read here")
    in_process("suggest", *files, "--output", base_corpus / "none" / "my.yaml").refused("no folder")
    in_process("suggest", base_corpus / "none.en", files[1]).refused("none.en")
    in_process("suggest", *files, base_corpus / "val.en").refused("3 were given")
    in_process("suggest", files[0], base_corpus / "val.de").refused("160 lines", "20")
    in_process("suggest", files[0], "--columns", "1,1").refused("--columns", "'1,1'", "1,2")
    in_process("suggest", files[0]).refused("train.en is the only file", "no tab", "the other language as well")
    few = write_lines(base_corpus / "few.en", ["one"] * 3), write_lines(base_corpus / "few.de", ["eins"] * 3)
    in_process("suggest", *few).refused("3 pairs are too few", "20")
    one = write_lines(base_corpus / "one.en", ["one"]), write_lines(base_corpus / "one.de", ["eins"])
    in_process("suggest", *one).refused("1 pair is too few")
    in_process("suggest", base_corpus, base_corpus).refused("is a folder")


def test_messages_name_sides_where_no_setting_names_the_files(tmp_path: Path) -> None:
    blank = write_lines(tmp_path / "blank.en", [""] * 2), write_lines(tmp_path / "blank.de", ["eins"] * 2)
    in_process("suggest", *blank).refused("There are no pairs in ", "(source lines 1, 2). Check them.")
    sentences = [source for source, _ in numbered_pairs()]
    sentences[4] = ""
    text = write_lines(tmp_path / "same.en", sentences)
    done = in_process("suggest", text, text, "--target-language", "de")
    assert f"# Source and target are the same file: {text}." in done.out
    assert "# 1 pair dropped: one side is blank (source line 5)." in done.out


def test_one_sentence_many_times_is_nothing_to_learn_from(tmp_path: Path) -> None:
    target = write_lines(tmp_path / "same.de", [target for _, target in numbered_pairs(30)])
    same = write_lines(tmp_path / "same.en", ["This one."] * 30)
    in_process("suggest", same, target).refused("The 30 source sentences are all the same")
    two = write_lines(tmp_path / "two.en", ["This one.", "That one."] * 15)
    in_process("suggest", two, target).refused("only 2 different ones")


@given(st.integers(1, 10**9), st.integers(1, 10**8))
def test_the_rules_have_an_answer_for_every_size(words: int, pairs: int) -> None:
    recipe = recipe_for(words)
    assert words <= recipe.words
    assert 1 <= warmup_for(recipe, words) <= recipe.warmup_steps
    assert 0.01 <= fraction_for(pairs) <= 0.1


def test_the_table_of_rules_goes_one_way() -> None:
    for before, after in itertools.pairwise(RECIPES):
        assert before.words < after.words
        assert before.vocab_size <= after.vocab_size
        assert before.dropout >= after.dropout
        assert before.batch_tokens <= after.batch_tokens


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=25, max_size=40))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gets_a_config_that_passes_check_or_a_refusal(tmp_path: Path, texts: list[str]) -> None:
    pairs = [(source, texts[-1 - number]) for number, source in enumerate(texts)]
    path = tmp_path / "en-de.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in pairs).encode("utf-8"))
    output = tmp_path / "my.yaml"
    output.unlink(missing_ok=True)
    done = in_process("suggest", path, "--output", output)
    assert done.status in (0, 2), done.err
    if done.status == 0:
        assert in_process("check", output).status == 0


@pytest.mark.parametrize(
    ("words", "like"), [(345_020, "multi30k_en_de"), (163_189, "tatoeba_en_zh"), (60_000, "low_resource")]
)
def test_the_rows_that_call_themselves_measured_are_the_recipes_that_were(words: int, like: str) -> None:
    recipe, measured = recipe_for(words), load_config(ROOT / "configs" / f"{like}.yaml")
    assert "measured" in recipe.basis
    assert recipe.vocab_size == measured.tokenizer.vocab_size
    assert (recipe.embedding_size, recipe.hidden_size) == (measured.model.embedding_size, measured.model.hidden_size)
    assert (recipe.decoder_layers, recipe.dropout) == (measured.model.decoder.layers, measured.model.dropout)
    assert measured.model.lexical_model  # as in every suggestion
    for key in ("epochs", "batch_tokens", "warmup_steps", "r_drop", "risk_epochs"):
        assert getattr(recipe, key) == getattr(measured.training, key)


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "target", "like"),
    [("multi30k/train.en", "multi30k/train.de", "multi30k_en_de"), ("tatoeba/cmn-eng.tsv", None, "tatoeba_en_zh")],
)
def test_corpora_that_were_measured_get_the_recipe_that_was_measured(
    corpora: Path, source: str, target: str | None, like: str
) -> None:
    files = [corpora / source] + ([corpora / target] if target else [])
    done = in_process("suggest", *files, "--source-language", "en", "--target-language", "zh" if not target else "de")
    config, measured = parse_config(done.out, "it"), load_config(ROOT / "configs" / f"{like}.yaml")
    assert config.model == measured.model
    assert config.tokenizer == measured.tokenizer
    for key in ("epochs", "batch_tokens", "warmup_steps", "learning_rate", "r_drop"):
        assert getattr(config.training, key) == getattr(measured.training, key)
