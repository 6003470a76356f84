"""Claims about the file of settings: only plain YAML is read, and all else is refused with line and column."""

from pathlib import Path

import pytest
from test_config import DATA, refused, refused_after_data

from seq2seq.config import load_config
from seq2seq.errors import ConfigError


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    """c111."""
    message = refused_after_data("training:\n  learning_rate: 1\n  epochs: 1\n  learning_rate: 2\n")
    assert message == "base.yaml, lines 7 and 9: training.learning_rate is given twice; keep one of the two."


def test_a_section_given_twice_is_refused_with_both_lines() -> None:
    """c111."""
    assert "lines 6 and 7: seed is given twice" in refused_after_data("seed: 1\nseed: 1\n")


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.mkdir [{}]", "!!python/object/new:os.mkdir [{}]", "!!str {}", "!x {}"]
)
def test_a_tag_is_refused_and_runs_nothing(tag: str, tmp_path: Path) -> None:
    """c113."""
    folder = tmp_path / "CASE_PAYLOAD_RAN"
    message = refused_after_data(f"seed: 1\nrun: {tag.format(folder)}\n")
    assert message == f"base.yaml, line 7: the tag {tag.split()[0]} is not accepted in settings; write a plain value."
    assert "the tag !x" in refused_after_data(f"!x {folder}: 3")
    assert not folder.exists()


def test_a_billion_laughs_are_refused_at_the_first_anchor() -> None:
    bomb = "a: &a [lol, lol]\n" + "".join(
        f"{c}: &{c} [*{p}, *{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert refused(bomb) == "base.yaml, line 1: the anchor &a is not accepted in settings; write each value out."
    assert "line 6: the alias *x is not accepted" in refused_after_data("seed: *x")
    assert "line 6: the merge key << is not accepted" in refused_after_data("<<: {seed: 1}")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("---\nseed: 1", "line 6: a second document begins here; settings are one document."),
        ("1: 2", "line 6: a key must be a word; found 1."),
        ("true: 2", "line 6: a key must be a word; found true."),
        ("? [a]\n: 2", "line 6: a key must be a word; found a list or a mapping in its place."),
        ("seed: [1,\nrun: x", "line 7, column 7: the text ends inside a list or mapping; a bracket is not closed."),
        ("run: 'x", "line 6, column 8: a quote is opened and not closed."),
        ("run: a: b", "line 6, column 7: a colon stands where none can; check the indentation, or quote the text."),
        ('run: "\\0"', "line 6: the text holds the character U+0000, which is not accepted."),
        ('run: "\\ud800"', "line 6: the text holds the character U+D800, which is not accepted."),
        ("run: a\x07", "line 6, column 7: the character U+0007 may not stand in YAML."),
        ("seed: " + "[" * 5000, "line 6: values are nested more than 20 levels deep; the settings need five."),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(lines: str, message: str) -> None:
    assert refused_after_data(lines) == f"base.yaml, {message}"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("data:\n\tsource_language: en\n", 2, 1),
        ("data:\n  train:\n  \tsource: a\n", 3, 3),
        ("data:\n  source_language: en\n\ttarget_language: de\n", 3, 1),
        ("# a comment\ndata: {\n\tsource_language: en}\n", 3, 1),
    ],
)
def test_indentation_with_tabs_is_refused_with_line_and_column(text: str, line: int, column: int) -> None:
    """c133."""
    message = f"base.yaml, line {line}, column {column}: the line is indented with a tab; indent with spaces."
    assert refused(text) == message


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing\n---\n# here\n", "---\n", "# only a comment", "\ufeff", "null\n"]
)
def test_an_empty_config_says_what_is_needed(text: str) -> None:
    """c128, c129."""
    needs = "it needs at least `data:` with source_language, target_language, train, validation."
    assert refused(text) == f"base.yaml is empty: {needs}"


def test_missing_keys_are_named_with_their_section() -> None:
    assert refused("data:\n") == (
        "base.yaml, line 1: data lacks source_language, target_language, train and validation."
    )
    assert refused("seed: 1\n").startswith("base.yaml: data is missing; it needs at least")
    without_train = "".join(line for line in DATA.splitlines(keepends=True) if "train" not in line)
    assert refused(without_train) == "base.yaml, line 1: data lacks train."


def test_a_list_or_a_word_is_no_config() -> None:
    assert (
        refused("- a\n") == "base.yaml holds a list; it must hold sections such as `data:`, with settings below them."
    )
    assert refused("hello").startswith("base.yaml holds `hello`;")


def refused_file(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_a_missing_config_is_named_with_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """c131."""
    monkeypatch.chdir(tmp_path)
    assert refused_file(Path("no/such.yaml")) == f"The config file {tmp_path / 'no' / 'such.yaml'} does not exist."


def test_what_cannot_be_read_as_a_config_is_refused_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    assert refused_file(tmp_path) == f"The config {tmp_path} is a folder; name the YAML file in it."
    assert "does not exist" in refused_file(file)
    file.write_bytes(DATA.encode() + b"run: caf\xe9\n")
    assert refused_file(file) == f"{file}, line 6: the byte E9 is not UTF-8; save the file as UTF-8."
    file.write_bytes(b"#" * 1_000_001)
    assert "larger than 1,000,000 bytes" in refused_file(file)
    file.write_bytes(b"a: \x00")
    assert refused_file(file) == f"{file}, line 1, column 4: the character U+0000 may not stand in YAML."
    (file / "b.yaml").parent.touch()
    assert "cannot be read: Not a directory" in refused_file(file / "b.yaml")
