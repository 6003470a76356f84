"""Claims about torchtext's words: its tokenizers cut and its builder counts; what it found needs it no more."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import in_process, numbered_pairs, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import TokenizerConfig
from seq2seq.corpus.lines import clean
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK, UNKNOWN_MARK, StoredTokenizer, Tokenizer
from seq2seq.corpus.words import cutter
from seq2seq.errors import ConfigError, MissingPackageError, TokenizerError

BASE = numbered_pairs()
LITERALS = ["<unk>", "<pad>", "<s>", "</s>", "\u2047", "\u2581", "special"]
needs_the_real_one = pytest.mark.skipif(
    importlib.util.find_spec("torchtext") is None, reason="torchtext is not installed"
)


def config(**changes: Any) -> TokenizerConfig:
    return TokenizerConfig(**{"kind": "torchtext", "name": "basic_english", **changes})


def save(tokenizer: Tokenizer, folder: Path) -> Path:
    for name, content in tokenizer.files().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def trained_words(torchtext: None) -> Tokenizer:
    return Tokenizer.train(BASE, config(shared=False))


# ---- the vocabulary


def test_the_most_frequent_words_come_first_and_equal_ones_in_their_order(trained_words: Tokenizer) -> None:
    words = trained_words.words()
    assert words is not None
    source, _ = words
    assert [source.word(i) for i in range(4, 8)] == [".", "the", "boats", "books"]
    assert trained_words.source_pieces([PAD, UNK, BOS, EOS, 5]) == ["<pad>", "<unk>", "<s>", "</s>", "\u2581the"]


def test_each_side_has_its_own_words_or_both_share_them(torchtext: None) -> None:
    own = Tokenizer.train(iter(BASE), config(shared=False))
    assert sorted(own.files()) == ["tokenizer.source.json", "tokenizer.target.json"]
    assert own.encode_source(["Hund"]) == [[UNK]]
    both = Tokenizer.train(iter(BASE), config())
    assert list(both.files()) == ["tokenizer.json"]
    assert both.encode_source(["Hund"]) == both.encode_target(["Hund"]) != [[UNK]]
    assert both.source_size > own.source_size


def test_size_and_frequency_are_limits(torchtext: None) -> None:
    assert Tokenizer.train(BASE, config(vocab_size=30)).source_size == 30
    often = Tokenizer.train(BASE, config(min_frequency=20))
    assert often.encode_source(["the 17 green"])[0][1] == UNK
    assert UNK not in often.encode_source(["the green"])[0]
    with pytest.raises(TokenizerError, match=r"tokenizer\.min_frequency"):
        Tokenizer.train(BASE, config(min_frequency=10_000))
    with pytest.raises(TokenizerError, match="no word"):
        Tokenizer.train([("", " ")], config())


def test_the_tokenizers_of_the_two_sides_may_differ(torchtext: None) -> None:
    tokenizer = Tokenizer.train(BASE, config(name="split", target_name="spacy:de_small", shared=False))
    assert tokenizer.decode_source(tokenizer.encode_source(["The dog"])[0]) == "The dog"
    assert tokenizer.decode_target(tokenizer.encode_target(["Der Hund  sieht"])[0]) == "Der Hund sieht"


def test_what_a_tokenizer_writes_like_html_becomes_text_again(torchtext: None) -> None:
    corpus = [("Tom & Jerry.", "Tom & Jerry.")]
    tokenizer = Tokenizer.train(corpus, config(name="moses"))
    assert tokenizer.decode_target(tokenizer.encode_target(["Tom & Jerry."])[0]) == "Tom & Jerry ."


# ---- text in, ids out


@given(st.lists(st.sampled_from([*LITERALS, "the", "dog", ".", "\t", "\u2028", "ä", "\ud800", "e\u0301"]), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_word_becomes_a_special_id_c054(torchtext: None, parts: list[str]) -> None:
    tokenizer = Tokenizer.train([(" ".join(LITERALS) + " the dog ä é",) * 2], config(name="split"))
    text = " ".join(parts)
    [ids] = tokenizer.encode_source([text])
    assert not {PAD, BOS, EOS} & set(ids)
    spelt = clean(text.encode("utf-8", "replace").decode("utf-8"))
    decoded = tokenizer.decode_source(ids)
    if UNK not in ids:
        assert decoded == spelt
    assert decoded == clean(decoded)
    assert len(ids) == len(spelt.split())


def test_an_unknown_word_has_its_mark(trained_words: Tokenizer) -> None:
    [ids] = trained_words.encode_source(["The unheard-of dog"])
    assert trained_words.decode_source(ids) == f"the {UNKNOWN_MARK} dog"


@given(st.text(st.one_of(st.sampled_from("aB .,()!?;:'\"<>br/\t\u2028"), st.characters()), max_size=40))
@settings(deadline=None)
@needs_the_real_one
def test_the_rules_that_need_no_torchtext_are_torchtexts_own(text: str) -> None:
    from torchtext.data.utils import get_tokenizer

    for name, real in (("basic_english", "basic_english"), ("split", None)):
        assert cutter(name)(clean(text)) == get_tokenizer(real)(clean(text))


@needs_the_real_one
def test_the_real_torchtext_counts_as_the_one_of_these_tests() -> None:
    from fake_torchtext import build_vocab_from_iterator as fake
    from torchtext.vocab import build_vocab_from_iterator as real

    lines = [source.split() for source, _ in BASE]
    for limits in ({}, {"max_tokens": 30}, {"min_freq": 20}):
        assert (
            real(iter(lines), specials=["a b"], **limits).get_itos()
            == fake(iter(lines), specials=["a b"], **limits).get_itos()
        )


@needs_the_real_one
@pytest.mark.parametrize(("name", "package"), [("moses", "sacremoses"), ("toktok", "nltk")])
def test_the_other_tokenizers_of_the_real_torchtext_give_text_back(name: str, package: str) -> None:
    pytest.importorskip(package)
    tokenizer = Tokenizer.train([("Tom & Jerry's [dog] <b> 100%.",) * 2], config(name=name))
    [ids] = tokenizer.encode_source(["Tom & Jerry's [dog] <b> 100%."])
    assert tokenizer.decode_source(ids).replace(" ", "") == "Tom&Jerry's[dog]<b>100%."


# ---- what is kept


def test_a_stored_vocabulary_is_plain_json_and_comes_back(trained_words: Tokenizer, tmp_path: Path) -> None:
    save(trained_words, tmp_path)
    content = json.loads((tmp_path / "tokenizer.target.json").read_text(encoding="utf-8"))
    assert content["tokenizer"] == "basic_english"
    assert "grüne" in content["words"]
    stored = StoredTokenizer(tmp_path)
    assert (stored.source_size, stored.target_size) == (trained_words.source_size, trained_words.target_size)
    again = stored.open()
    assert again.fingerprint() == stored.fingerprint() == trained_words.fingerprint()
    assert again.encode_target(["Der Hund"]) == trained_words.encode_target(["Der Hund"])


def test_a_run_translates_without_torchtext(torchtext: None, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--set", "tokenizer={kind: torchtext, name: basic_english, shared: false}")
    done = in_process("train", tiny / "tiny.yaml", *words)
    assert done.status == 0, done.err
    assert "words cut by torchtext's basic_english" in done.out
    for name in ("torchtext", "torchtext.data", "torchtext.data.utils", "torchtext.vocab"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("seq2seq.model.device.lacks_bf16", lambda device: False)  # or there is a word about it
    for options in ((), ("--replace-unknown", "--n-best", "2"), ("--shortlist", "--precision", "bf16")):
        done = in_process("translate", tiny / "run", tiny / "test.en", *options)
        assert (done.status, done.err) == (0, "")
        assert len(done.out.splitlines()) == 20 * (2 if "--n-best" in options else 1)
    long = " ".join(["Zorg sees the dog ."] * 70).encode()
    done = in_process("translate", tiny / "run", "--replace-unknown", stdin=long)
    assert (done.status, len(done.out.splitlines())) == (0, 1)
    assert "\u2047" not in done.out
    assert in_process("train", "--run", tiny / "run", "--resume", "--set", "training.epochs=3").status == 0
    assert in_process("evaluate", tiny / "run", "--replace-unknown", "--json").status == 0
    again = in_process("train", tiny / "tiny.yaml", *words)
    again.refused("already holds a run")


@pytest.mark.parametrize("name", ["spacy:de_small", "moses"])
def test_a_tokenizer_that_is_not_there_is_named_with_what_brings_it(
    torchtext: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    save(Tokenizer.train(BASE, config(name=name)), tmp_path)
    monkeypatch.setitem(sys.modules, "torchtext", None)
    tokenizer = Tokenizer.load(tmp_path)  # the sizes are known without it
    with pytest.raises(MissingPackageError, match=rf"{name}.*pip install '\.\[torchtext\]'"):
        tokenizer.encode_source(["Hallo"])


def test_what_a_tokenizer_needs_besides_torchtext_is_named(torchtext: None) -> None:
    with pytest.raises(MissingPackageError, match="toktok of torchtext needs nltk"):
        Tokenizer.train(BASE, config(name="toktok"))
    with pytest.raises(MissingPackageError, match=r"spacy and its model none_such.*E050"):
        Tokenizer.train(BASE, config(name="spacy:none_such"))


def test_a_torchtext_that_does_not_load_is_told_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchtext").mkdir()
    (tmp_path / "torchtext" / "__init__.py").write_text("raise OSError('undefined symbol: _ZN3c10')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchtext"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingPackageError, match="does not load beside this PyTorch"):
        Tokenizer.train(BASE, config())


DAMAGED = [
    b"",
    b"\xff",
    b"[]",
    b"{}",
    b"[" * 100_000,
    b'{"made_by": "torchtext", "tokenizer": "split", "words": []}',
    b'{"made_by": "torchtext", "tokenizer": "split", "words": ["a", "a"]}',
    b'{"made_by": "torchtext", "tokenizer": "split", "words": ["a b"]}',
    b'{"made_by": "torchtext", "tokenizer": "split", "words": [1]}',
    b'{"made_by": "torchtext", "tokenizer": ["split"], "words": ["a"]}',
    b'{"made_by": "torchtext", "tokenizer": "split", "words": ["\\ud800"]}',
    b'{"made_by": "torchtext", "tokenizer": "spacy:../evil", "words": ["a"]}',
    b'{"made_by": "torchtext", "tokenizer": "nonesuch", "words": ["a"]}',
    b'{"made_by": "somebody", "tokenizer": "split", "words": ["a"]}',
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_vocabulary_is_refused_by_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match=re.escape(f"{path} is damaged")):
        Tokenizer.load(tmp_path)
    with pytest.raises(TokenizerError, match=re.escape(f"{path} is damaged")):
        StoredTokenizer(tmp_path).source_size  # noqa: B018


# ---- the settings


@pytest.mark.parametrize(
    ("settings_text", "words"),
    [
        ("{kind: torchtext, name: nonesuch}", ("tokenizer.name", "basic_english")),
        ("{kind: torchtext, model_type: unigram}", ("tokenizer.model_type", "only with kind sentencepiece")),
        ("{kind: torchtext, byte_fallback: false}", ("tokenizer.byte_fallback", "only with kind sentencepiece")),
        ("{kind: sentencepiece, target_name: moses}", ("tokenizer.target_name", "only with kind torchtext")),
        ("{kind: torchtext, name: split, target_name: moses}", ("tokenizer.target_name", "tokenizer.shared")),
    ],
)
def test_settings_that_do_not_go_together_are_named(settings_text: str, words: tuple[str, ...]) -> None:
    from seq2seq.config.loading import parse_config

    data = "data: {source_language: en, target_language: de, train: {tsv: a}, validation: {fraction: 0.1}}\n"
    with pytest.raises(ConfigError) as refused:
        parse_config(f"{data}tokenizer: {settings_text}\n", "a.yaml")
    for word in words:
        assert word in str(refused.value)


def test_training_without_torchtext_says_what_to_install(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchtext", None)
    done = in_process("train", tiny / "tiny.yaml", "--set", "tokenizer={kind: torchtext}")
    done.refused("torchtext", "pip install '.[torchtext]'", "sentencepiece")
    assert not (tiny / "run").exists()


def test_a_dictionary_needs_a_tab_in_each_line(tmp_path: Path) -> None:
    from seq2seq.errors import CorpusError
    from seq2seq.translation.unknown_words import read_dictionary

    path = write_lines(tmp_path / "words", ["dog\tHund", "", "cat\tKatze\tnoun", "dog\tKöter"])
    assert read_dictionary(path) == {"dog": "Hund", "cat": "Katze"}
    for line in ("dog", "dog\t", "\tHund"):
        write_lines(path, ["cat\tKatze", line])
        with pytest.raises(CorpusError, match="line 2"):
            read_dictionary(path)
