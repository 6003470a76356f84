"""Claims about the translator: one line out for each line in, in order, and nothing of a line is lost.

The tokenizer here spells letters, one model copies its source, and a small untrained model stands for all real ones.
A name with c316 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import numbered_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2seq.config.schema import AttentionConfig, DataConfig, DecodingConfig, ModelConfig, TokenizerConfig
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from seq2seq.errors import CheckpointError
from seq2seq.model.attention import KINDS
from seq2seq.model.places import Places
from seq2seq.model.translation_model import build_model
from seq2seq.runs import Checkpoint, run_of
from seq2seq.translation.long_lines import passages, split_long
from seq2seq.translation.opening import check_vocabulary, model_from, vocabulary_facts
from seq2seq.translation.translator import Candidate, Translation, Translator

LETTERS = "abcdefghijklmnopqrstuvwxyz.!?\n"
V = 4 + 2 * len(LETTERS)


class Spelling:
    """A tokenizer whose pieces are single letters, with or without the blank before them."""

    source_size = target_size = V
    _pieces = ("<pad>", "<unk>", "<s>", "</s>", *LETTERS, *("▁" + letter for letter in LETTERS))

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        found = (re.findall("▁?[^▁]", ("▁" + text).replace(" ", "▁")) for text in texts)
        return [[self._pieces.index(piece) if piece in self._pieces else UNK for piece in pieces] for pieces in found]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces[i] for i in ids]

    def decode_target(self, ids: Sequence[int]) -> str:
        return "".join(self.source_pieces(ids)).replace("▁", " ").strip(" ")

    def fingerprint(self) -> str:
        return "spelling"


@dataclass(frozen=True)
class Place:
    """How far the copy has come, and of which source each row is one."""

    sources_R: list[list[int]]
    written: int

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> Place:
        return Place([self.sources_R[r] for r in rows_r.tolist()], self.written)


@dataclass
class Copying:
    """A model that says its source again with probability 0.9 a piece, and z instead with 0.1."""

    instead: int = V - len(LETTERS) + LETTERS.index("z")
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    padding: int = 0

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> Place:
        self.shapes.append(tuple(src_BS.shape))
        self.padding += int((~mask_BS).sum())
        return Place([row[mask].tolist() for row, mask in zip(src_BS, mask_BS, strict=True)], 0)

    def step(self, previous_R: Tensor, state: Place, count: int) -> tuple[Tensor, Tensor, Place]:
        log_probability_RV = torch.full((len(previous_R), V), -torch.inf)
        for row, source in enumerate(state.sources_R):
            said = source[min(state.written, len(source) - 1)]
            log_probability_RV[row, said] = math.log(0.9)
            if said != EOS:
                log_probability_RV[row, self.instead] = math.log(0.1)
        best = log_probability_RV.topk(count, dim=1)
        return best.values, best.indices, Place(state.sources_R, state.written + 1)


class Saying:
    """A model that says one sequence of pieces whatever the source, and its last piece for ever if that is no EOS."""

    def __init__(self, *ids: int) -> None:
        self.ids = ids

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> Place:
        return Place([[*self.ids] for _ in src_BS], 0)

    step = Copying.step
    instead = 4


def translator(
    model: Any = None, *, target_language: str = "de", max_length: int = 100, tokenizer: Any = None, **decoding: Any
) -> Translator:
    pair = {"source": "a", "target": "b"}
    data = DataConfig.model_validate(
        {
            "source_language": "en",
            "target_language": target_language,
            "train": pair,
            "validation": pair,
            "max_length": max_length,
        }
    )
    settings = DecodingConfig.model_validate({"beam_size": 1, **decoding})
    cpu = torch.device("cpu")
    return Translator(Copying() if model is None else model, tokenizer or Spelling(), settings, data, cpu)


def texts(translations: Any) -> list[str]:
    return [translation.text for translation in translations]


def untrained(kind: str = "general", seed: int = 1, **changes: Any) -> Any:
    settings = {
        "embedding_size": 12,
        "hidden_size": 8,
        "attention": {"kind": kind, "heads": 2},
        "tie_embeddings": "all",
    }
    model = build_model(ModelConfig.model_validate(settings | changes), V, V, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.0  # an untrained model has hardly an opinion; this one has
    return model


def random_lines(count: int, words: int = 8, seed: int = 5) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join("".join(rng.choices(LETTERS[:26], k=rng.randint(1, 3))) for _ in range(rng.randint(1, words)))
        for _ in range(count)
    ]


# ---- one line out for each line in


@pytest.mark.parametrize("batch_size", [1, 3, 64])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_lines_come_back_in_their_order_whatever_their_lengths(batch_size: int, beam_size: int) -> None:
    lines = random_lines(40)
    assert texts(translator().translate(lines, batch_size=batch_size, beam_size=beam_size)) == lines


def test_a_blank_line_stays_blank_and_keeps_its_place() -> None:
    lines = ["one two", "", "three", "  \t ", "\u3000\u00a0", "four", ""]
    found = list(translator().translate(lines, n_best=3))
    assert texts(found) == ["one two", "", "three", "", "", "four", ""]
    assert [translation.source for translation in found] == lines
    assert found[1] == Translation("", [], 1)


def test_no_lines_give_no_translations() -> None:
    assert list(translator().translate([])) == []
    assert texts(translator().translate(["", " "])) == ["", ""]


def test_a_line_is_cleaned_as_in_training() -> None:
    assert texts(translator().translate(["  one \t two\r\n", "three\u2028four"])) == ["one two", "three four"]


def test_lines_of_like_length_share_a_batch() -> None:
    model = Copying()
    lines = [letter * length for length in (5, 1, 3) for letter in "abcd"]
    assert texts(translator(model).translate(lines, batch_size=4)) == lines
    assert model.shapes == [(4, 2), (4, 4), (4, 6)]
    assert model.padding == 0


@pytest.mark.parametrize(("given", "configured", "expected"), [(None, 2, [2, 2, 1]), (3, 2, [3, 2]), (1, 2, [1] * 5)])
def test_the_batch_size_is_the_settings_or_the_callers(given: int | None, configured: int, expected: list[int]) -> None:
    model = Copying()
    list(translator(model, batch_size=configured).translate(["a"] * 5, batch_size=given))
    assert [shape[0] for shape in model.shapes] == expected


# ---- what the model may do to a line


def test_a_line_break_that_the_model_spells_does_not_break_the_line() -> None:
    a, line_break = 4, 4 + LETTERS.index("\n")
    for ids, expected in (((a, line_break, a, EOS), "a a"), ((line_break, EOS), ""), ((a, line_break, EOS), "a")):
        (found,) = translator(Saying(*ids)).translate(["x"], n_best=2)
        assert found.text == expected
        assert not any("\n" in candidate.text for candidate in found.candidates)


@pytest.mark.parametrize(("ratio", "length", "limit"), [(2.0, 3, 16), (1.0, 7, 17), (1.5, 3, 15), (0.1, 1, 11)])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_that_never_ends_is_cut_at_the_limit(ratio: float, length: int, limit: int, beam_size: int) -> None:
    endless = Saying(4 + LETTERS.index("q"))
    (found,) = translator(endless, max_length_ratio=ratio, beam_size=beam_size).translate(["x" * length])
    assert found.text == "q" * limit


def test_padding_and_begin_marks_are_never_said() -> None:
    model = untrained()
    with torch.no_grad():
        model.output_layer.bias[[PAD, BOS]] = 50.0
    for beam_size in (1, 3):
        for translation in translator(model, beam_size=beam_size).translate(random_lines(5)):
            assert translation.candidates[0].score < -10.0, "and all else is improbable"


def test_an_empty_translation_is_an_empty_line() -> None:
    (found,) = translator(Saying(EOS)).translate(["x"])
    assert found.text == ""
    assert len(found.candidates) == 1


@pytest.mark.parametrize("nonsense", [math.nan, -math.inf])
def test_a_model_that_has_diverged_still_gives_a_line_for_each(nonsense: float) -> None:
    class Diverged(Copying):
        def step(self, previous_R: Tensor, state: Place, count: int) -> tuple[Tensor, Tensor, Place]:
            return torch.full((len(previous_R), count), nonsense), torch.zeros(len(previous_R), count).long(), state

    for beam_size in (1, 5):
        found = list(translator(Diverged(), max_length=3).translate(["one two three", "", "four"], beam_size=beam_size))
        assert len(found) == 3


def test_c324_a_model_that_learnt_nothing_gives_every_line() -> None:
    lines = random_lines(20)
    found = list(translator(untrained(), beam_size=5).translate(lines, n_best=5))
    assert len(found) == 20
    assert all(1 <= len(translation.candidates) <= 5 for translation in found)


# ---- the n best


def test_the_n_best_are_distinct_and_the_best_comes_first() -> None:
    (found,) = translator(beam_size=4).translate(["abc"], n_best=4)
    assert found.text == "abc"
    assert len({candidate.text for candidate in found.candidates}) == 4
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(math.log(0.9), rel=1e-5)
    assert scores[1] == pytest.approx((3 * math.log(0.9) + math.log(0.1)) / 4, rel=1e-5)


def test_the_length_penalty_of_the_settings_is_used() -> None:
    (found,) = translator(length_penalty=0.0).translate(["abc"])
    assert found.candidates == [Candidate("abc", pytest.approx(4 * math.log(0.9), rel=1e-5))]


# ---- long lines


def test_a_long_line_is_split_and_nothing_of_it_is_lost() -> None:
    lines = [" ".join(random_lines(20)), "short", "a. b", ""]
    found = list(translator(max_length=7, beam_size=2).translate(lines, n_best=2))
    assert texts(found) == lines
    assert [translation.parts > 1 for translation in found] == [True, False, False, False]


def test_parts_are_as_long_as_the_model_was_trained_on() -> None:
    model = Copying()
    (found,) = translator(model, max_length=4).translate(["abcdefghijk"])
    assert found.parts == 3
    assert found.text == "abcd efgh ijk"
    assert max(shape[1] for shape in model.shapes) == 4 + 1


@pytest.mark.parametrize("language", ["zh", "ja", "th", "zh_TW", "zh-Hant"])
def test_languages_without_blanks_are_joined_without(language: str) -> None:
    (found,) = translator(target_language=language, max_length=4).translate(["abcdefghijk"])
    assert found.text == "abcdefghijk"


def test_the_candidates_of_a_split_line_join_those_of_its_parts() -> None:
    (found,) = translator(max_length=3, beam_size=2).translate(["abc de"], n_best=2)
    assert found.parts == 2
    assert [candidate.text.count("z") for candidate in found.candidates] == [0, 2]
    first, second = ((length * math.log(0.9) + math.log(0.1)) / (length + 1) for length in (3, 2))
    assert found.candidates[0] == Candidate("abc de", pytest.approx(math.log(0.9), rel=1e-5))
    assert found.candidates[1].score == pytest.approx((first + second) / 2, rel=1e-5)


pieces_of_text = st.lists(st.sampled_from(["▁a", "b", "c", ".", "▁?", "。", "x!"]), max_size=60)


@settings(deadline=None)
@given(pieces=pieces_of_text, longest=st.integers(1, 12))
def test_parts_join_to_the_line_and_none_is_empty_or_too_long(pieces: list[str], longest: int) -> None:
    ids = list(range(len(pieces)))
    parts = split_long(ids, pieces, longest)
    assert [i for part in parts for i in part] == ids
    assert all(len(part) <= longest for part in parts)
    assert all(parts) or not ids
    assert all(2 * len(part) >= longest for part in parts[:-1]), "and all but the last are at least half full"


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("▁a b . ▁c ▁d ▁e f", 5, ["▁a b .", "▁c ▁d ▁e f"]),  # after a sentence's end, though a word ends later
        ("▁a . ▁b c ▁d e ▁f", 6, ["▁a . ▁b c ▁d e", "▁f"]),  # an end in the first half would waste too much
        ("▁a b ▁c d e ▁f", 4, ["▁a b ▁c d", "e ▁f"]),  # no word begins in the second half
        ("▁a b c ▁d e ▁f", 4, ["▁a b c", "▁d e ▁f"]),  # before a word
        ("a b c d e f g", 3, ["a b c", "d e f", "g"]),  # where it must be
        ("▁a b . ▁c d .", 3, ["▁a b .", "▁c d ."]),
        ("▁a b c", 3, ["▁a b c"]),
        ("▁it ▁costs ▁3. 50 ▁now", 4, ["▁it ▁costs ▁3. 50", "▁now"]),  # a point within a number ends nothing
        ("▁她来了。 他没来", 1, ["▁她来了。", "他没来"]),
        ("a b c d <0xE2> <0x82> <0xAC> e", 6, ["a b c d", "<0xE2> <0x82> <0xAC> e"]),  # never within a character
    ],
)
def test_a_line_is_cut_where_it_hurts_least(text: str, longest: int, expected: list[str]) -> None:
    pieces = text.split()
    parts = split_long(range(len(pieces)), pieces, longest)
    assert [" ".join(pieces[i] for i in part) for part in parts] == expected


def test_a_line_as_long_as_a_book_is_cut_into_passages_that_lose_nothing() -> None:
    for text in ("word " * 30_000, "字" * 50_000, " ".join(["x" * 19_999, "y" * 20_001, "z"])):
        parts = list(passages(text.strip()))
        assert "".join(parts) == text.strip()
        assert max(map(len, parts)) <= 20_000
        assert not any(passage.startswith(" ") for passage in parts[:1])
    assert list(passages("")) == []


def test_a_batch_that_memory_refuses_is_translated_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = random_lines(20, words=4)
    made = translator(untrained(), beam_size=2, max_length_ratio=0.2)
    expected = texts(made.translate(lines, batch_size=20))
    searched, sizes = made._search, []

    def refused(rows: Sequence[list[int]], *how: Any) -> Any:
        sizes.append(len(rows))
        if len(rows) > limit:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")
        return searched(rows, *how)

    monkeypatch.setattr(made, "_search", refused)
    limit = 3
    assert texts(made.translate(lines, batch_size=20)) == expected
    assert max(size for size in sizes if size <= limit) == 3
    limit = 0
    with pytest.raises(MemoryError):
        list(made.translate(lines, batch_size=20))


# ---- real models


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_c316_batches_of_one_and_of_32_give_the_same_translations(kind: str, beam_size: int) -> None:
    lines = random_lines(50, words=5)
    made = translator(untrained(kind), beam_size=beam_size, max_length_ratio=0.2)
    singly = list(made.translate(lines, batch_size=1))
    together = list(made.translate(lines, batch_size=32))
    assert texts(singly) == texts(together)
    assert len(set(texts(singly))) >= 5, "and they say something of their lines"
    for one, other in zip(singly, together, strict=True):
        assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-4)


@pytest.mark.parametrize("changes", [{"decoder": {"kind": "step", "layers": 2}}, {"encoder": {"layers": 2}}], ids=str)
def test_c316_holds_for_other_forms_of_the_model(changes: dict[str, Any]) -> None:
    lines = random_lines(30, words=5)
    made = translator(untrained(**changes), beam_size=3, max_length_ratio=0.2)
    assert texts(made.translate(lines, batch_size=1)) == texts(made.translate(lines, batch_size=32))


def test_a_real_tokenizer_and_model_answer_line_for_line() -> None:
    tokenizer = Tokenizer.train(numbered_pairs(), TokenizerConfig(vocab_size=400))
    settings = ModelConfig(embedding_size=12, hidden_size=8, tie_embeddings="all")
    model = build_model(settings, tokenizer.source_size, tokenizer.target_size, seed=1).eval()
    made = translator(model, tokenizer=tokenizer, max_length=20, beam_size=3)
    lines = [source for source, _ in numbered_pairs(6)] + [
        "",
        "日本語 \N{GRINNING FACE} \ud800",
        " ".join(["dog."] * 30),
    ]
    found = list(made.translate(lines, n_best=3))
    assert [translation.source for translation in found] == lines
    assert found[-1].parts > 1
    for translation in found:
        assert all(len(candidate.text.splitlines()) <= 1 for candidate in translation.candidates)


def test_translating_asks_for_no_gradient_and_changes_no_weight() -> None:
    model = untrained()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    list(translator(model).translate(random_lines(3)))
    for name, parameter in model.named_parameters():
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])


# ---- weights, settings and tokenizer that belong together

SETTINGS = ModelConfig.model_validate(
    {"embedding_size": 12, "hidden_size": 8, "attention": {"kind": "general"}, "tie_embeddings": "all"}
)


def config_of(settings: ModelConfig) -> Any:
    class Wanted:
        model, seed = settings, 1

    return Wanted()


def test_a_model_is_rebuilt_from_its_weights() -> None:
    model = untrained()
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    facts = {"vocabulary": vocabulary_facts(Spelling())}
    rebuilt = model_from(Checkpoint(weights, facts, {}), config_of(SETTINGS), Spelling(), Path("r"))
    for name, parameter in rebuilt.named_parameters():
        assert torch.equal(parameter, weights[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_from_before_scores_were_divided_is_never_read_as_if_they_were(kind: str) -> None:
    """Its checkpoint says nothing of it, and its weights are of the same shapes."""
    settings = SETTINGS.model_copy(update={"attention": AttentionConfig.model_validate({"kind": kind})})
    model = build_model(settings, V, V, seed=1)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    older = settings.model_dump(mode="json")
    del older["attention"]["scaled"]
    checkpoint = Checkpoint(weights, {"vocabulary": vocabulary_facts(Spelling()), "model": older}, {})
    if kind in ("additive", "multi_head", "none"):  # to which it makes no difference
        model_from(checkpoint, config_of(settings), Spelling(), Path("r"))
        return
    words = r"trained with model\.attention\.scaled false, and config\.yaml says true\. Put the old value back"
    with pytest.raises(CheckpointError, match=words):
        model_from(checkpoint, config_of(settings), Spelling(), Path("r"))
    undivided = AttentionConfig.model_validate({"kind": kind, "scaled": False})
    model_from(checkpoint, config_of(settings.model_copy(update={"attention": undivided})), Spelling(), Path("r"))


def test_weights_of_another_model_are_refused_by_name_and_shape() -> None:
    facts = {"vocabulary": vocabulary_facts(Spelling())}
    weights = {name: parameter.detach() for name, parameter in untrained().named_parameters()}
    narrower = SETTINGS.model_copy(update={"hidden_size": 4})
    with pytest.raises(CheckpointError, match=r"runs/x/best .*encoder.* is \(12, 12\) and should be \(6, 12\)"):
        model_from(Checkpoint(weights, facts, {}), config_of(narrower), Spelling(), Path("runs/x/best"))
    del weights["output_layer.bias"]
    with pytest.raises(CheckpointError, match=r"output_layer\.bias is missing"):
        model_from(Checkpoint(weights, facts, {}), config_of(SETTINGS), Spelling(), Path("runs/x/best"))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "says nothing of its vocabulary"),
        ({"source": 9, "target": V}, f"of 9 .*and {V} .*has {V} and {V}"),
        ({"source": V, "target": V, "fingerprint": "other"}, "another tokenizer"),
    ],
)
def test_a_tokenizer_that_is_not_the_models_is_refused(facts: dict[str, object], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        check_vocabulary({"vocabulary": facts} if facts else {}, Spelling(), Path("run/best"))


def test_a_path_names_a_run_or_one_of_its_checkpoints(tmp_path: Path) -> None:
    run = tmp_path / "best"  # a run may have an unlucky name
    run.mkdir()
    (run / "config.yaml").touch()
    assert run_of(run) == (run, "best")
    assert run_of(run / "best") == (run, "best")
    assert run_of(run / "last") == (run, "last")
    assert run_of(tmp_path / "elsewhere") == (tmp_path / "elsewhere", "best")
