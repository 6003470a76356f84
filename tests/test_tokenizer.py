"""Claims about the tokenizer: text comes back as it went in, whatever it says; the same text gives the same vocabulary;
and a size that does not suit the text is answered with one that does.

A name with c054 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import numbered_pairs, run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import TokenizerConfig
from seq2seq.corpus import tokenizer as tokenizer_module
from seq2seq.corpus.lines import clean
from seq2seq.corpus.subwords import hide, show
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK, UNKNOWN_MARK, Tokenizer
from seq2seq.errors import CorpusError, MissingPackageError, TokenizerError

BASE = numbered_pairs()
MODEL_TYPES = ["bpe", "unigram", "char", "word"]
# Characters that mean something somewhere: to SentencePiece, to its wrapper here, or to Unicode.
ODD = "<>/\u2581\u2585\u2047\0\ufffd\ufeff\uf8e0\uf8e1\uf8e2\uf8e3\uf8e4abcdeä\u0308 \t\n\r\u2028語𝒳\U0010ffff\ue000"
LITERALS = ["<unk>", "<s>", "</s>", "<pad>", "[UNK]", "<0x0A>", "<0xFF>", "\u2581", "\u2585", "\u2047", "<", "\ufffd"]

any_text = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=20)


def config(**changes: Any) -> TokenizerConfig:
    return TokenizerConfig(**{"vocab_size": 340, **changes})


def save(tokenizer: Tokenizer, folder: Path) -> Path:
    for name, content in tokenizer.files().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def base_tokenizer() -> Tokenizer:
    return Tokenizer.train(BASE, config())


@pytest.fixture(scope="module", params=MODEL_TYPES)
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    sizes = {"bpe": 340, "unigram": 330}
    return Tokenizer.train(BASE, config(model_type=request.param, vocab_size=sizes.get(request.param, 6000)))


def round_trips(tokenizer: Tokenizer, text: str) -> bool:
    [ids] = tokenizer.encode_target([text])
    return not {PAD, BOS, EOS} & set(ids) and tokenizer.decode_target(ids) == clean(text)


# ---- text in is text out


@given(text=any_text)
@settings(max_examples=150, deadline=None)
def test_decoding_gives_the_cleaned_text_back(any_tokenizer: Tokenizer, text: str) -> None:
    assert round_trips(any_tokenizer, text)
    assert UNK not in any_tokenizer.encode_target([text])[0]


@given(text=any_text)
def test_hiding_what_sentencepiece_would_read_loses_nothing(text: str) -> None:
    hidden = hide(text)
    assert show(hidden) == text
    assert not set(hidden) & set("<\u2581\u2585\0")


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("times", [1, 1000])
def test_literal_special_pieces_are_text_c054(model_type: str, times: int) -> None:
    lines = [f"the {literal} sign and{literal}glued" for literal in LITERALS]
    corpus = BASE[:20] + [(line, line) for line in lines] * times
    tokenizer = Tokenizer.train(corpus, config(model_type=model_type, vocab_size=330 if times == 1 else 308))
    byte_pieces = set(range(4, 260))
    for text in [*LITERALS, *lines, "</s> goes on after it", "<s><s>", " ".join(LITERALS)]:
        assert round_trips(tokenizer, text), text
    if times == 1000:
        # Seen often, they have pieces like any other text (in a word model as the whole words that they were in).
        for text in lines if model_type == "word" else [*LITERALS, *lines]:
            assert not byte_pieces & set(tokenizer.encode_source([text])[0]), text


def test_a_piece_that_a_model_chooses_never_breaks_the_line(base_tokenizer: Tokenizer) -> None:
    """A model may write any ids, such as the byte pieces of LF and NUL, or half a character."""
    for ids in (
        [14, 14, 4, 300],
        [PAD, BOS, 300, EOS, PAD],
        [4 + 0xE2, 4 + 0x80, 4 + 0xA8],
        [4 + 0xC3],
        list(range(340)),
    ):
        decoded = base_tokenizer.decode_target(ids)
        assert decoded == clean(decoded).replace("\0", "")
    assert base_tokenizer.decode_target([]) == ""
    assert base_tokenizer.encode_source([]) == []
    assert base_tokenizer.encode_source(["", " \u3000"]) == [[], []]


def test_both_spellings_of_an_accent_have_the_same_ids_c052(base_tokenizer: Tokenizer) -> None:
    for sentence in ("Der Bär hört Häuser.", "grüne Bücher"):
        composed, decomposed = (unicodedata.normalize(form, sentence) for form in ("NFC", "NFD"))
        assert composed != decomposed
        assert base_tokenizer.encode_target([decomposed]) == base_tokenizer.encode_target([composed])


def test_outer_inner_and_odd_blanks_change_no_ids_c005_c032_c034(base_tokenizer: Tokenizer) -> None:
    [plain] = base_tokenizer.encode_source(["The dog sees"])
    for spelt in ("  The dog sees ", "The\tdog   sees", "The dog sees\r", "The\u2028dog\u00a0sees"):
        assert base_tokenizer.encode_source([spelt]) == [plain]


def test_half_characters_are_replaced_and_stop_nothing(base_tokenizer: Tokenizer) -> None:
    [ids] = base_tokenizer.encode_source(["The \udce9 dog \ud83d\ude00"])
    assert base_tokenizer.decode_source(ids) == "The \ufffd dog \U0001f600"


SCRIPTS = [
    "שלום עולם",
    "\u200fמה שלומך?\u200e",
    "مرحبا بالعالم",
    "می\u200cخواهم",
    "你好世界",
    "日本語のテキスト",
    "ภาษาไทย",
    "안녕하세요",
    "ភាសាខ្មែរ",
    "𝒳 und 𠀀",
]


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_no_character_seen_in_training_is_unknown_c048_c049(model_type: str, byte_fallback: bool) -> None:
    corpus = BASE + [(script, script) for script in SCRIPTS]
    sizes = {("bpe", True): 420, ("bpe", False): 180, ("unigram", True): 410, ("unigram", False): 160}
    size = sizes.get((model_type, byte_fallback), 6000)
    tokenizer = Tokenizer.train(corpus, config(model_type=model_type, byte_fallback=byte_fallback, vocab_size=size))
    for text in SCRIPTS:
        assert round_trips(tokenizer, text)
        assert UNK not in tokenizer.encode_source([text])[0]


@pytest.mark.parametrize(
    ("model_type", "text", "decoded"),
    [
        ("bpe", "The d\u4e2dg sees", f"The d{UNKNOWN_MARK}g sees"),
        ("char", "The \u4e2d\u6587 sees", f"The {UNKNOWN_MARK} sees"),
        ("word", "The unheard-of sees", f"The {UNKNOWN_MARK} sees"),
    ],
)
def test_without_byte_fallback_the_unknown_has_a_mark(model_type: str, text: str, decoded: str) -> None:
    size = 150 if model_type == "bpe" else 6000
    tokenizer = Tokenizer.train(BASE, config(model_type=model_type, byte_fallback=False, vocab_size=size))
    [ids] = tokenizer.encode_source([text])
    assert UNK in ids
    assert tokenizer.decode_source(ids) == decoded


def test_pieces_read_as_the_text_with_marks_for_blanks(base_tokenizer: Tokenizer) -> None:
    [ids] = base_tokenizer.encode_source(["The <dog>"])
    assert "".join(base_tokenizer.source_pieces(ids)).startswith("\u2581The\u2581")
    [ids] = base_tokenizer.encode_target(["Der Hund"])
    assert "".join(base_tokenizer.target_pieces(ids)) == "\u2581Der\u2581Hund"
    assert base_tokenizer.target_pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


# ---- the vocabulary


def test_the_vocabulary_has_the_size_that_was_asked_for(base_tokenizer: Tokenizer) -> None:
    assert base_tokenizer.shared
    assert base_tokenizer.source_size == base_tokenizer.target_size == 340
    assert list(base_tokenizer.files()) == ["tokenizer.model"]


def test_separate_vocabularies_know_their_own_side_only(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(iter(BASE), config(shared=False, vocab_size=310))
    assert not tokenizer.shared
    assert (tokenizer.source_size, tokenizer.target_size) == (310, 310)
    assert sorted(tokenizer.files()) == ["tokenizer.source.model", "tokenizer.target.model"]
    assert len(tokenizer.encode_source(["Der Hund"])[0]) > len(tokenizer.encode_target(["Der Hund"])[0])
    again = Tokenizer.load(save(tokenizer, tmp_path))
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode_target(["Der Hund"]) == tokenizer.encode_target(["Der Hund"])
    for file in ("tokenizer.source.model", "tokenizer.target.model"):
        (tmp_path / file).rename(tmp_path / "away")
        with pytest.raises(TokenizerError, match=file):
            Tokenizer.load(tmp_path)
        (tmp_path / "away").rename(tmp_path / file)


@pytest.mark.parametrize("model_type", ["char", "word"])
def test_char_and_word_take_the_size_as_an_upper_bound(model_type: str) -> None:
    whole = Tokenizer.train(BASE, config(model_type=model_type, vocab_size=6000))
    assert 260 < whole.source_size < 700
    assert Tokenizer.train(BASE, config(model_type=model_type, vocab_size=270)).source_size == 270


def test_training_gives_the_same_bytes_in_any_process_and_locale_c017(base_tokenizer: Tokenizer) -> None:
    code = (
        "from conftest import numbered_pairs\n"
        "from seq2seq.config.schema import TokenizerConfig\n"
        "from seq2seq.corpus.tokenizer import Tokenizer\n"
        "for kind in ('bpe', 'unigram'):\n"
        "    size = 340 if kind == 'bpe' else 330\n"
        "    settings = TokenizerConfig(model_type=kind, vocab_size=size)\n"
        "    print(Tokenizer.train(numbered_pairs(), settings).fingerprint())\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)])
    printed = set()
    for env in (
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "2"},
    ):
        done = run_python("-c", "import sys\nsys.path[:0] = " + repr(path.split(os.pathsep)) + "\n" + code, env=env)
        assert (done.status, done.err) == (0, "")
        printed.add(done.out)
    assert len(printed) == 1
    assert printed.pop().split()[0] == base_tokenizer.fingerprint()


def test_the_third_column_and_the_mark_of_a_file_reach_no_vocabulary_c011_c025(tmp_path: Path) -> None:
    from seq2seq.config.schema import PairFiles
    from seq2seq.corpus.pairs import ParallelCorpus

    path = tmp_path / "pairs.tsv"
    rows = "".join(f"{source}\t{target}\tQQ-licence\n" for source, target in BASE)
    path.write_bytes(b"\xef\xbb\xbf" + rows.encode())
    tokenizer = Tokenizer.train(ParallelCorpus([PairFiles(tsv=str(path))], key="data.train"), config())
    pieces = tokenizer.source_pieces(range(tokenizer.source_size))
    assert not any("Q" in piece or "\ufeff" in piece for piece in pieces)
    assert tokenizer.fingerprint() == Tokenizer.train(BASE, config()).fingerprint()


def test_of_a_large_corpus_every_kth_line_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    other = [(f"zzz {source}", f"yyy {target}") for source, target in BASE]
    mixed = [pair for both in zip(BASE, other, strict=True) for pair in both]
    monkeypatch.setattr(tokenizer_module, "ENOUGH_LINES", 320)
    expected = Tokenizer.train(BASE, config()).fingerprint()
    assert Tokenizer.train(mixed, config()).fingerprint() == expected


def test_a_line_of_any_length_takes_part_in_training_c046() -> None:
    long = ("word " * 20_000).strip(), "x" * 70_000
    tokenizer = Tokenizer.train([*BASE, long], config(vocab_size=345))
    assert round_trips(tokenizer, long[0])
    assert round_trips(tokenizer, long[1])
    assert any("word" in piece for piece in tokenizer.source_pieces(range(tokenizer.source_size)))


# ---- what is refused


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_size_that_does_not_suit_is_answered_with_one_that_does_c058(
    model_type: str, byte_fallback: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    for asked, word in ((32_000, "less"), (8, "more")):
        with pytest.raises(TokenizerError) as refused:
            Tokenizer.train(BASE, config(model_type=model_type, byte_fallback=byte_fallback, vocab_size=asked))
        message = str(refused.value)
        assert f"tokenizer.vocab_size is {asked}," in message
        assert ".cc" not in message
        answer = re.search(rf"Set tokenizer.vocab_size to (\d+) or {word}", message)
        assert answer
        possible = int(answer[1])
        fits = config(model_type=model_type, byte_fallback=byte_fallback, vocab_size=possible)
        assert Tokenizer.train(BASE, fits).source_size == possible
        beyond = possible + 1 if word == "less" else possible - 1
        with pytest.raises(TokenizerError):
            Tokenizer.train(BASE, config(model_type=model_type, byte_fallback=byte_fallback, vocab_size=beyond))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("model_type", ["char", "word"])
def test_no_room_for_a_first_piece_is_refused_c058(model_type: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TokenizerError, match=r"Set tokenizer\.vocab_size to 261 or more"):
        Tokenizer.train(BASE, config(model_type=model_type, vocab_size=260))
    assert Tokenizer.train(BASE, config(model_type=model_type, vocab_size=261)).source_size == 261
    assert capfd.readouterr() == ("", "")


def test_the_side_is_named_whose_vocabulary_cannot_be_had_c058() -> None:
    corpus = [(source, "ja") for source, _ in BASE]
    with pytest.raises(TokenizerError, match="the training target gives at most"):
        Tokenizer.train(corpus, config(shared=False, vocab_size=300))


def test_no_text_is_refused_c043(capfd: pytest.CaptureFixture[str]) -> None:
    for corpus in ([], [("", " ")]):
        with pytest.raises(TokenizerError, match="holds no text"):
            Tokenizer.train(corpus, config())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("failure", [CorpusError("line 3 is bad"), KeyboardInterrupt(), ValueError("a fault of ours")])
def test_an_error_while_reading_reaches_the_caller_as_it_is(failure: BaseException) -> None:
    class Corpus:
        passes = 0

        def __iter__(self) -> Iterator[tuple[str, str]]:
            self.passes += 1
            yield from BASE[:2]
            if self.passes == 2:
                raise failure

    with pytest.raises(type(failure)) as raised:
        Tokenizer.train(Corpus(), config())
    assert raised.value is failure


def test_a_damaged_tokenizer_is_refused_by_file(
    tmp_path: Path, base_tokenizer: Tokenizer, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TokenizerError, match="holds no tokenizer"):
        Tokenizer.load(tmp_path)
    save(base_tokenizer, tmp_path)
    assert Tokenizer.load(tmp_path).fingerprint() == base_tokenizer.fingerprint()
    path = tmp_path / "tokenizer.model"
    whole = path.read_bytes()
    for content in (b"", b"no tokenizer at all", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(TokenizerError, match=re.escape(f"{path} is damaged")):
            Tokenizer.load(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_sentencepiece_model_of_another_making_is_refused(tmp_path: Path) -> None:
    import io

    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    sentences = iter([source for source, _ in BASE])
    SentencePieceTrainer.train(sentence_iterator=sentences, model_writer=model, vocab_size=60, minloglevel=2)
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    with pytest.raises(TokenizerError, match="was not made by this program"):
        Tokenizer.load(tmp_path)


def test_torchtext_is_asked_for_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchtext", None)  # also where it is installed
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[torchtext\]'"):
        Tokenizer.train(BASE, config(kind="torchtext", name="basic_english"))
