"""Claims about mistakes in the settings: each is told with its key, its value, its line and what would be right."""

from pathlib import Path

import pytest
from test_config import DATA, read, refused, refused_after_data, with_data

from seq2seq.config import PairFiles, parse_config


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "training:\n  learning_rat: 1\n",
            "line 7: training.learning_rat is not a setting; the nearest known one is training.learning_rate.",
        ),
        (
            "training: {learning-rate: 1}",
            "line 6: training.learning-rate is not a setting; the nearest known one is training.learning_rate.",
        ),
        ("trainin: {epochs: 1}", "line 6: trainin is not a setting; the nearest known one is training."),
        (
            "learning_rate: 1",
            "line 6: learning_rate is not a setting; learning_rate belongs to training, as in training.learning_rate.",
        ),
        (
            "training: {hidden_size: 4}",
            "line 6: training.hidden_size is not a setting; hidden_size belongs to model, as in model.hidden_size.",
        ),
        (
            "model: {layers: 2}",
            "line 6: model.layers is not a setting; layers belongs to model.encoder and model.decoder, as "
            "in model.encoder.layers.",
        ),
        ("training: {lr: 1}", "line 6: training.lr is not a setting; here it is called training.learning_rate."),
        (
            "decoding: {zzz: 1}",
            "line 6: decoding.zzz is not a setting; known in decoding are beam_size, length_penalty, coverage_penalty, "
            "max_length_ratio, batch_size, shortlist.",
        ),
    ],
)
def test_a_misspelt_key_is_named_with_its_line_and_the_nearest_known_one(lines: str, message: str) -> None:
    """c101."""
    assert refused_after_data(lines) == f"base.yaml, {message}"


def test_a_misspelt_key_in_a_list_of_files_is_named_with_its_position() -> None:
    """c101."""
    text = with_data(
        "  train:\n  - {source: a, target: b}\n  - sourse: c\n    target: d\n  validation: {fraction: 0.1}\n"
    )
    message = "data.train[1].sourse is not a setting; the nearest known one is data.train[1].source."
    assert refused(text) == f"base.yaml, line 6: {message}"


def test_a_misspelt_required_key_is_one_mistake_and_not_two() -> None:
    """c101."""
    message = "base.yaml, line 2: data.sorce_language is not a setting; the nearest known one is data.source_language."
    assert refused(DATA.replace("source_language", "sorce_language")) == message


def test_several_mistakes_come_in_the_order_of_the_file_and_five_are_enough() -> None:
    lines = "".join(f"  {key}: x\n" for key in ("epochs", "dropout", "beta1", "lr", "seed", "beta2", "accumulate"))
    reported = refused_after_data(f"training:\n{lines}").splitlines()
    assert [line.split(":")[0] for line in reported[:5]] == [f"base.yaml, line {number}" for number in range(7, 12)]
    assert reported[5:] == ["There are at least 2 more mistakes."]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("model: {hidden_size: -64}", "model.hidden_size is -64; it must be an even integer from 2 to 65536."),
        ("model: {hidden_size: 63}", "model.hidden_size is 63; it must be an even integer from 2 to 65536."),
        ("model: {hidden_size: 1e300}", "model.hidden_size is 1e300; it must be an even integer from 2 to 65536."),
        (
            "model: {hidden_size: [64, 64]}",
            "model.hidden_size is [64, 64]; it must be an even integer from 2 to 65536.",
        ),
        ("model: {hidden_size: {a: 1}}", "model.hidden_size is {a: 1}; it must be an even integer from 2 to 65536."),
        ("model: {hidden_size: true}", "model.hidden_size is true; it must be an even integer from 2 to 65536."),
        ("model: {hidden_size: }", "model.hidden_size is empty; it must be an even integer from 2 to 65536."),
        (
            "model: {hidden_size: '64'}",
            "model.hidden_size is '64'; it must be an even integer from 2 to 65536, without quotes.",
        ),
        ("model: {dropout: 1}", "model.dropout is 1; it must be a number of at least 0 and below 1."),
        (
            'model: {dropout: "0.1"}',
            'model.dropout is "0.1"; it must be a number of at least 0 and below 1, without quotes.',
        ),
        ("training: {batch_tokens: 0}", "training.batch_tokens is 0; it must be an integer from 1 to 1,000,000,000."),
        (
            "training: {batch_sentences: 0}",
            "training.batch_sentences is 0; it must be an integer from 1 to 1,000,000, or null.",
        ),
        ("decoding: {batch_size: 0}", "decoding.batch_size is 0; it must be an integer from 1 to 1,000,000."),
        ("training: {epochs: 2.5}", "training.epochs is 2.5; it must be an integer from 1 to 1,000,000."),
        (
            "training: {epochs: 6_000}",
            "training.epochs is 6_000; it must be an integer from 1 to 1,000,000, such as 6000.",
        ),
        ("training: {learning_rate: 0}", "training.learning_rate is 0; it must be a number above 0."),
        ("training: {learning_rate: .nan}", "training.learning_rate is .nan; it must be a number above 0."),
        ("training: {learning_rate: .inf}", "training.learning_rate is .inf; it must be a number above 0."),
        ("training: {learning_rate: 1e999}", "training.learning_rate is 1e999; it must be a number above 0."),
        ("training: {clip_norm: -1}", "training.clip_norm is -1; it must be a number above 0, or null."),
        ("training: {device: gpu}", "training.device is gpu; it must be auto, cpu, cuda, cuda:N or mps."),
        ("training: 3", "training is 3; it must be a group of settings, such as {epochs: 30}."),
        ("seed: -1", "seed is -1; it must be an integer from 0 to 2,147,483,647."),
        ("run: 3", "run is 3; it must be the path of a folder, in quotes."),
        (
            "model: {tie_embeddings: al}",
            "model.tie_embeddings is al; it must be true, false, or one of all, decoder, none (the nearest is all).",
        ),
    ],
)
def test_a_bad_value_is_refused_by_key_with_what_it_must_be(lines: str, message: str) -> None:
    """c117, c119, c121, c123."""
    assert refused_after_data(lines) == f"base.yaml, line 6: {message}"


def test_a_mistyped_choice_lists_the_choices_and_the_nearest() -> None:
    """c125."""
    assert refused_after_data("model:\n  attention:\n    kind: aditive\n") == (
        "base.yaml, line 8: model.attention.kind is aditive; it must be one of my, additive, tanh, qkv, "
        "multi_head, dot, general, none (the nearest is additive)."
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "model:\n  hidden_size: 30\n  attention: {kind: multi_head, heads: 4}\n",
            "line 8: model.hidden_size is 30 and model.attention.heads is 4; multi_head attention needs a "
            "hidden_size that is a multiple of its heads.",
        ),
        (
            "model: {hidden_size: 30, attention: {kind: multi_head}}",
            "line 6: model.hidden_size is 30 and model.attention.heads is 4 (the default); multi_head "
            "attention needs a hidden_size that is a multiple of its heads.",
        ),
        (
            "model: {decoder: {attend: between}}",
            "line 6: model.decoder.attend is between and model.decoder.layers is 1 (the default); "
            "attention between the layers needs at least 2 of them.",
        ),
        (
            "model: {decoder: {attend: between, kind: step, layers: 2}}",
            "line 6: model.decoder.attend is between and model.decoder.kind is step; attention between "
            "the layers needs kind parallel.",
        ),
        (
            "tokenizer: {shared: false}\nmodel: {tie_embeddings: all}",
            "line 7: model.tie_embeddings is all and tokenizer.shared is false; one table for both "
            "languages needs one vocabulary for both.",
        ),
        (
            "tokenizer: {name: basic_english}",
            "line 6: tokenizer.name is basic_english and tokenizer.kind is sentencepiece (the default); "
            "name has a meaning only with kind torchtext.",
        ),
        (
            "training: {min_learning_rate: 0.5, learning_rate: 0.25}",
            "line 6: training.min_learning_rate is 0.5 and training.learning_rate is 0.25; the lowest "
            "learning rate must not be above the highest.",
        ),
    ],
)
def test_settings_that_contradict_one_another_are_both_named_with_their_values(lines: str, message: str) -> None:
    """c116."""
    assert refused_after_data(lines) == f"base.yaml, {message}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "  train: {source: a}\n  validation: {tsv: b}",
            "line 4: data.train has only source; it needs source and target, or tsv alone.",
        ),
        (
            "  train: {source: a, target: b, tsv: c}\n  validation: {tsv: b}",
            "line 4: data.train has source, target, tsv; it needs source and target, or tsv alone.",
        ),
        (
            "  train: {source: 3, target: b}\n  validation: {tsv: b}",
            "line 4: data.train.source is 3; it must be the path of a file, in quotes.",
        ),
        (
            "  train: []\n  validation: {tsv: b}",
            "line 4: data.train is []; it must be source and target files, a tsv file, or a list of such.",
        ),
        (
            "  train:\n  - 3\n  validation: {tsv: b}",
            "line 5: data.train[0] is 3; it must be source and target files, a tsv file, or a list of such.",
        ),
        (
            "  train: {tsv: a, columns: [2, 2]}\n  validation: {tsv: b}",
            "line 4: data.train.columns is [2, 2]; it must be a list of two different column numbers "
            "counted from 1, such as [1, 2].",
        ),
        (
            "  train: {tsv: a, columns: [2]}\n  validation: {tsv: b}",
            "line 4: data.train.columns is [2]; it must be a list of two different column numbers counted "
            "from 1, such as [1, 2].",
        ),
        (
            "  train: {tsv: a}\n  validation: 0.02",
            "line 5: data.validation is 0.02; it must be source and target files, a tsv file, or a "
            "fraction such as {fraction: 0.02}.",
        ),
        (
            "  train: {tsv: a}\n  validation: {fraction: 1}",
            "line 5: data.validation.fraction is 1; it must be a number above 0 and below 1.",
        ),
        (
            "  train: {tsv: a}\n  validation: {fraction: 0.1, tsv: b}",
            "line 5: data.validation has fraction and tsv; it needs either files or a fraction.",
        ),
        (
            "  train: {tsv: a}\n  validation: {fraction: 0.1}\n  test: [{fraction: 0.1}]",
            "line 6: data.test[0].fraction is not accepted in a list.",
        ),
        (
            "  train: {tsv: a}\n  validation: {fraction: 0.5}\n  test: {fraction: 0.5}",
            "line 6: data.validation.fraction is 0.5 and data.test.fraction is 0.5; together they must be "
            "below 1, to leave pairs for training.",
        ),
    ],
)
def test_files_and_fractions_have_exact_messages(lines: str, message: str) -> None:
    assert refused(with_data(lines)) == f"base.yaml, {message}"


def test_overrides_are_read_like_the_file() -> None:
    config = read(
        "training: {epochs: 9}",
        "training.epochs=1",
        "training.learning_rate=1e9",
        "training.clip_norm=null",
        "model.decoder={kind: step, layers: 2}",
        "data.source_language=no",
        "training.patience=",
        "training.epochs=2",
    )
    assert (config.training.epochs, config.training.learning_rate, config.training.clip_norm) == (2, 1e9, None)
    assert (config.model.decoder.kind, config.model.decoder.layers) == ("step", 2)
    assert (config.data.source_language, config.training.patience) == ("no", None)


def test_an_override_replaces_the_whole_of_a_section() -> None:
    assert read("model: {decoder: {layers: 3}}", "model.decoder={kind: step}").model.decoder.layers == 1


@pytest.mark.parametrize("key", ["data.train.source", "data.train.0.source", "data.train[0].source"])
@pytest.mark.parametrize("given_as", ["{source: a, target: b}", "[{source: a, target: b}]"])
def test_one_pair_of_files_is_overridden_with_or_without_a_position(key: str, given_as: str) -> None:
    text = with_data(f"  train: {given_as}\n  validation: {{fraction: 0.1}}\n")
    config = parse_config(text, "base.yaml", [f"{key}=/other/x"], base=Path("/corpus"))
    assert config.data.train == (PairFiles(source="/other/x", target="/corpus/b"),)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epochs=2.5", ": training.epochs is 2.5; it must be an integer from 1 to 1,000,000."),
        (
            "model.hidden_size='64'",
            ": model.hidden_size is '64'; it must be an even integer from 2 to 65536, without quotes.",
        ),
        ("training.epochs=", ": training.epochs is empty; it must be an integer from 1 to 1,000,000."),
        (
            "training.learning_rat=1",
            ": training.learning_rat is not a setting; the nearest known one is training.learning_rate.",
        ),
        ("epochs=1", ": epochs is not a setting; epochs belongs to training, as in training.epochs."),
        ("trainin.epochs=1", ": trainin.epochs is not a setting; epochs belongs to training, as in training.epochs."),
        ("training.epochs.x=1", ": training.epochs.x is not a setting; training.epochs has none below it."),
        (
            "model.decoder={knd: step}",
            ": model.decoder.knd is not a setting; the nearest known one is model.decoder.kind.",
        ),
        (
            "model.attention.heads=3",
            ": model.hidden_size is 512 (the default) and model.attention.heads is 3; multi_head "
            "attention needs a hidden_size that is a multiple of its heads.",
        ),
        (
            "data.validation.fraction=0.1",
            ": data.validation has fraction and source; it needs either files or a fraction.",
        ),
        ("data.train.1.source=x", ": data.train is not a list, so it holds no 1."),
        ("training.0.epochs=1", ": training is not a list, so it holds no 0."),
        (
            "training.epochs=[1",
            ", character 3 of the value: the text ends inside a list or mapping; a bracket is not closed.",
        ),
        ("training.epochs=!!int 1", ": the tag !!int is not accepted in settings; write a plain value."),
        ("training={epochs: 1, epochs: 2}", ": epochs is given twice; keep one of the two."),
        ("training.epochs", " lacks a key or a value; write it like --set training.epochs=1."),
        ("=1", " lacks a key or a value; write it like --set training.epochs=1."),
        ("", " lacks a key or a value; write it like --set training.epochs=1."),
        ("data..train=1", " lacks a key or a value; write it like --set training.epochs=1."),
    ],
)
def test_a_bad_override_is_told_in_place_of_file_and_line(override: str, message: str) -> None:
    assert refused_after_data("model: {attention: {kind: multi_head}}", override) == f"--set {override}{message}"


def test_an_entry_of_a_list_must_be_named_when_there_are_several() -> None:
    text = with_data("  train: [{tsv: a}, {tsv: b}]\n  validation: {fraction: 0.1}\n")
    assert "data.train is a list of 2; name the entry, such as data.train.0.tsv." in refused(text, "data.train.tsv=x")
    assert "data.train has 2 entries, counted from 0." in refused(text, "data.train.2.tsv=x")
    assert parse_config(text, "base.yaml", ["data.train.1.tsv=/x"]).data.train[1].tsv == "/x"


def test_overrides_can_give_what_an_empty_file_lacks() -> None:
    data = "data={source_language: en, target_language: de, train: {tsv: /a}, validation: {fraction: 0.1}}"
    assert parse_config("", "base.yaml", [data]).data.train[0].tsv == "/a"
    assert refused("", "seed=1").startswith("base.yaml is empty")
