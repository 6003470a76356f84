"""Claims about the settings: what is understood, what is written, and what an editor is told of them."""

import json
import string
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from seq2seq.config import (
    Config,
    DataConfig,
    Fraction,
    ModelConfig,
    PairFiles,
    TokenizerConfig,
    TrainingConfig,
    data_files,
    dump_config,
    json_schema,
    load_config,
    parse_config,
)
from seq2seq.config.known_settings import known_settings
from seq2seq.errors import ConfigError

DATA = """\
data:
  source_language: en
  target_language: de
  train: {source: train.en, target: train.de}
  validation: {source: val.en, target: val.de}
"""

SAMPLE = """\
run: runs/en-de                   # a folder
seed: 1
data:
  source_language: en
  target_language: de
  train: {source: train.en, target: train.de}
  validation: {source: val.en, target: val.de}
  test: {source: test.en, target: test.de}
  max_length: 100
tokenizer: {kind: sentencepiece, model_type: bpe, vocab_size: 6000, shared: true}
model:
  embedding_size: 256
  hidden_size: 256
  encoder: {layers: 1}
  decoder: {kind: parallel, layers: 1, attend: after}
  attention: {kind: multi_head, heads: 4}
  dropout: 0.3
  tie_embeddings: true
training:
  epochs: 30
  batch_tokens: 2000
  learning_rate: 1e-3
  schedule: cosine
  warmup_steps: 300
  label_smoothing: 0.1
  clip_norm: 1.0
  precision: auto
  device: auto
  patience: 5
decoding: {beam_size: 5, length_penalty: 1.0, max_length_ratio: 2.0}
"""


def read(more: str = "", *overrides: str) -> Config:
    """Read a config with good data, more lines after it, and overrides."""
    return parse_config(DATA + more, "base.yaml", overrides, base=Path("/corpus"))


def refused(text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "base.yaml", overrides, base=Path("/corpus"))
    return str(caught.value)


def refused_after_data(more: str, *overrides: str) -> str:
    """Return the refusal of lines that stand after good data, which takes the first five lines."""
    return refused(DATA + more, *overrides)


def with_data(lines: str) -> str:
    return f"data:\n  source_language: en\n  target_language: de\n{lines}"


def test_the_sample_in_the_manual_loads(tmp_path: Path) -> None:
    file = tmp_path / "sample.yaml"
    file.write_text(SAMPLE, encoding="utf-8")
    config = load_config(file)
    assert config.run == "runs/en-de"
    assert config.data.train == (PairFiles(source=str(tmp_path / "train.en"), target=str(tmp_path / "train.de")),)
    assert config.data.validation == PairFiles(source=str(tmp_path / "val.en"), target=str(tmp_path / "val.de"))
    assert config.model.attention.kind == "multi_head"
    assert config.training.learning_rate == 0.001
    assert config.decoding.beam_size == 5


def test_only_the_data_section_is_required_and_a_blank_section_means_its_defaults() -> None:
    assert read() == read("tokenizer:\nmodel:\n  encoder:\n  # dropout: 0.1\ntraining:\ndecoding: {}\n")


@pytest.mark.parametrize("spelling", ["1e-3", "1E-3", "1.0e-3", "0.001", ".001", "+1e-3", "10e-4"])
def test_a_learning_rate_may_be_spelt_any_usual_way(spelling: str) -> None:
    """c104."""
    assert read(f"training: {{learning_rate: {spelling}}}").training.learning_rate == 0.001


@pytest.mark.parametrize("spelling", ["30000", "3e4", "30000.0", "+30000", "030000"])
def test_a_whole_number_may_be_spelt_any_usual_way(spelling: str) -> None:
    """c104."""
    steps = read(f"training: {{max_steps: {spelling}}}").training.max_steps
    assert steps == 30_000
    assert type(steps) is int


@pytest.mark.parametrize("code", ["no", "on", "yes", "off", "n", "y", "No", "zh-TW", "pt_BR"])
def test_a_language_code_that_yaml_1_1_takes_for_a_boolean_is_text(code: str) -> None:
    """c108."""
    if len(code) == 1:
        assert f"data.source_language is {code}" in refused(DATA.replace(": en", f": {code}"))
    else:
        assert parse_config(DATA.replace(": en", f": {code}"), "base.yaml").data.source_language == code


@pytest.mark.parametrize("spelling", ["true", "True", "TRUE"])
def test_true_is_spelt_in_three_ways_and_yes_is_not_one_of_them(spelling: str) -> None:
    assert read(f"tokenizer: {{byte_fallback: {spelling}}}").tokenizer.byte_fallback is True
    message = refused_after_data("tokenizer: {byte_fallback: yes}")
    assert message == "base.yaml, line 6: tokenizer.byte_fallback is yes; it must be true or false."


@pytest.mark.parametrize("spelling", ["null", "~", "", "Null", "NULL"])
def test_null_switches_a_limit_off(spelling: str) -> None:
    assert read(f"training:\n  patience: {spelling}\n").training.patience is None


def test_dates_and_times_are_text() -> None:
    assert read("run: 2024-01-01").run == "2024-01-01"
    assert read("run: 12:30:45").run == "12:30:45"
    assert read("run: 1_000").run == "1_000"


def test_a_byte_order_mark_and_windows_line_ends_are_read_over(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + SAMPLE.replace("\n", "\r\n").encode())
    assert load_config(file).model.hidden_size == 256


def test_training_files_are_always_a_tuple_of_pairs() -> None:
    text = with_data(
        "  train: [{source: a, target: b}, {tsv: c.tsv, columns: [3, 1]}]\n  validation: {fraction: 0.02}\n"
    )
    data = parse_config(text, "base.yaml", base=Path("/corpus")).data
    assert data.train == (
        PairFiles(source="/corpus/a", target="/corpus/b"),
        PairFiles(tsv="/corpus/c.tsv", columns=(3, 1)),
    )
    assert data.validation == Fraction(fraction=0.02)
    assert read("  test: {tsv: d.tsv}").data.test == (PairFiles(tsv="/corpus/d.tsv", columns=(1, 2)),)


def test_every_data_file_is_listed_with_its_key() -> None:
    text = with_data("  train: [{source: a, target: b}, {tsv: c}]\n  validation: {fraction: 0.1}\n  test: {tsv: d}\n")
    listed = list(data_files(parse_config(text, "base.yaml", base=Path("/corpus"))))
    assert listed == [
        ("data.train[0].source", Path("/corpus/a")),
        ("data.train[0].target", Path("/corpus/b")),
        ("data.train[1].tsv", Path("/corpus/c")),
        ("data.test.tsv", Path("/corpus/d")),
    ]


def test_data_paths_follow_the_file_and_overrides_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", "/home/ada")
    text = with_data("  train: {source: ../a.en, target: /data/a.de}\n  validation: {source: ~/v.en, target: v.de}\n")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text(text, encoding="utf-8")
    config = load_config(Path("../configs/a.yaml"), ["data.test={tsv: t.tsv}", "run=~/runs/a"])
    assert [str(path) for _, path in data_files(config)] == [
        str(tmp_path / "a.en"),
        "/data/a.de",
        "/home/ada/v.en",
        str(tmp_path / "configs" / "v.de"),
        str(elsewhere / "t.tsv"),
    ]
    assert config.run == "/home/ada/runs/a"


def test_a_linked_data_file_keeps_its_telling_suffix(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"")
    (tmp_path / "train.en.gz").symlink_to(tmp_path / "blob")
    text = with_data("  train: {tsv: ./train.en.gz}\n  validation: {fraction: 0.1}\n")
    assert parse_config(text, "base.yaml", base=tmp_path).data.train[0].tsv == str(tmp_path / "train.en.gz")


@pytest.mark.parametrize(
    ("tied", "shared", "meaning"),
    [
        ("true", "true", "all"),
        ("true", "false", "decoder"),
        ("false", "true", "none"),
        ("decoder", "true", "decoder"),
        ("none", "false", "none"),
    ],
)
def test_tied_embeddings_are_resolved_to_a_word(tied: str, shared: str, meaning: str) -> None:
    config = read(f"model: {{tie_embeddings: {tied}}}\ntokenizer: {{shared: {shared}}}\n")
    assert config.model.tie_embeddings == meaning


def test_nobody_changes_a_setting_after_it_has_been_read() -> None:
    with pytest.raises(ValidationError):
        read().training.epochs = 3  # type: ignore[misc]


def test_every_setting_has_a_description() -> None:
    assert [path for path, info in known_settings().items() if not (info.description or "").endswith(".")] == []


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
paths = text.map(lambda name: "/corpus/" + name.replace("/", "_").replace("~", "_") + "x")
pairs = st.builds(PairFiles, source=paths, target=paths) | st.builds(
    PairFiles, tsv=paths, columns=st.sampled_from([(1, 2), (3, 1)])
)
many_pairs = st.lists(pairs, min_size=1, max_size=3).map(tuple)
fractions = st.builds(Fraction, fraction=st.floats(0.001, 0.4))
codes = st.sampled_from(["en", "no", "on", "zh-TW", "pt_BR", "yes", "off", "nan"])
data_sections = st.builds(
    DataConfig,
    source_language=codes,
    target_language=codes,
    train=many_pairs,
    validation=pairs | fractions,
    test=st.none() | many_pairs | fractions,
)
configs = st.builds(
    Config,
    run=st.none() | text.filter(lambda found: not found.startswith("~")) | codes,
    seed=st.integers(0, 2**31 - 1),
    data=data_sections,
    tokenizer=st.builds(TokenizerConfig, shared=st.booleans(), character_coverage=st.none() | st.floats(0.9, 1)),
    model=st.builds(ModelConfig, dropout=st.floats(0, 0.99), tie_embeddings=st.booleans() | st.just("decoder")),
    training=st.builds(
        TrainingConfig,
        learning_rate=st.floats(1e-300, 1e300),
        clip_norm=st.none() | st.floats(1e-9, 1e9),
        max_steps=st.none() | st.integers(1, 10**9),
    ),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=configs)
def test_what_is_written_reads_back_equal(config: Config) -> None:
    assert parse_config(dump_config(config), "dump.yaml", base=Path("/nowhere")) == config


@pytest.mark.parametrize(
    "name", ["a\x85b", "a\u2028 b", " a\n\n b ", "a\rb", "\ufeffa", "# a", "a: b", "1e3", "- a", "é", "<<", "'"]
)
def test_a_strange_name_is_written_so_that_it_reads_back(name: str) -> None:
    config = read().model_copy(update={"run": name})
    assert parse_config(dump_config(config), "dump.yaml").run == name


def test_what_is_written_says_every_setting_and_means_the_same_to_other_yaml_readers() -> None:
    written = yaml.safe_load(dump_config(read("run: no\n  # the word\n", "data.source_language=no")))
    assert written["run"] == written["data"]["source_language"] == "no"
    assert written["training"]["epochs"] == 30
    assert written["model"]["tie_embeddings"] == "all"
    assert written["data"]["train"] == {"source": "/corpus/train.en", "target": "/corpus/train.de"}
    sections = {name: set(part) for name, part in written.items() if isinstance(part, dict)}
    assert all(path[1] in sections[path[0]] for path in known_settings() if len(path) == 2)


def test_the_schema_for_editors_accepts_what_the_loader_accepts() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    accepts = jsonschema.Draft202012Validator(schema).is_valid
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    files, tsv, fraction = {"source": "a", "target": "b"}, {"tsv": "a", "columns": [2, 1]}, {"fraction": 0.1}

    def with_splits(**splits: object) -> dict[str, object]:
        return {"data": {"source_language": "en", "target_language": "de", "train": files, "validation": tsv, **splits}}

    sample = yaml.safe_load(SAMPLE.replace("1e-3", "0.001"))
    good = [
        sample,
        yaml.safe_load(dump_config(read())),
        with_splits(),
        with_splits(train=[files, tsv], validation=fraction, test=None),
        with_splits(test=[files, tsv]),
        with_splits(test=fraction),
        with_splits() | {"model": {"tie_embeddings": True}, "training": None},
        with_splits() | {"model": {"tie_embeddings": "decoder"}, "training": {"max_steps": None}},
    ]
    bad = [
        {},
        with_splits(train=fraction),
        with_splits(train=[]),
        with_splits(train={**files, **tsv}),
        with_splits(train={"source": "a"}),
        with_splits(validation=0.1),
        with_splits(validation=[files]),
        with_splits(validation={**fraction, **files}),
        with_splits() | {"lr": 1},
        with_splits() | {"training": {"learning_rat": 1}},
        with_splits() | {"model": {"tie_embeddings": "al"}},
        with_splits() | {"model": {"hidden_size": 63}},
    ]
    assert [config for config in good if not accepts(config)] == []
    assert [config for config in bad if accepts(config)] == []
    for config in good:
        assert isinstance(parse_config(json.dumps(config), "good.yaml"), Config)
    for config in bad:
        assert refused(json.dumps(config))


def test_settings_are_read_without_anything_heavy() -> None:
    heavy = ["torch", "numpy", "sentencepiece", "sacrebleu", "safetensors"]
    code = f"import sys, seq2seq.config; print([name for name in {heavy} if name in sys.modules])"
    root = Path(__file__).resolve().parents[1]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@settings(max_examples=150, deadline=None)
@given(lines=st.text(alphabet=string.printable + "é\u2028\x85\ufeff", max_size=60))
def test_any_text_is_a_config_or_a_refusal_in_words(lines: str) -> None:
    try:
        parse_config(DATA + lines, "base.yaml")
    except ConfigError as refusal:
        assert "Traceback" not in str(refusal)
