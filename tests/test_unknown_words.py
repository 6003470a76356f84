"""Claims about unknown words: what stands in for one is the source word that the model looked at."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import in_process

from seq2seq.config.schema import AttentionConfig, DecoderConfig, ModelConfig
from seq2seq.corpus.tokenizer import BOS, UNK, Tokenizer
from seq2seq.corpus.words import Words
from seq2seq.errors import RunError
from seq2seq.model.translation_model import build_model
from seq2seq.translation.unknown_words import UnknownWords, attention

SOURCE = Words.of("split", ["the", "sees", "."])
TARGET = Words.of("split", ["der", "sieht", "."])


class LooksAt:
    """In place of a model: looks at a given source position at each step."""

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.target_embedding = SimpleNamespace(weight=torch.zeros(1))

    def start(self, src_BS: torch.Tensor, mask_BS: torch.Tensor) -> int:
        assert bool(mask_BS.all())
        return src_BS.shape[1]

    def decode(self, tgt_RT: torch.Tensor, state: int) -> tuple[None, torch.Tensor, None]:
        assert tgt_RT[0, 0] == BOS
        assert len(self.places) == tgt_RT.shape[1]  # one for the end mark too
        return None, torch.nn.functional.one_hot(torch.tensor([self.places]), state).float(), None


def said(target: list[int], places: list[int], dictionary: dict[str, str] | None = None) -> str:
    words = ["the", "Zorg", "sees", "Klaatu", "."]
    source = SOURCE.encode([" ".join(words)])[0]
    model: Any = LooksAt(places)
    return UnknownWords(Tokenizer(SOURCE, TARGET), dictionary).decode(model, source, words, target)


def test_each_unknown_word_becomes_the_one_that_was_looked_at() -> None:
    assert said([4, UNK, 5, UNK, 6], [0, 1, 2, 3, 4, 4]) == "der Zorg sieht Klaatu ."
    assert said([4, UNK, 5, UNK, 6], [0, 3, 2, 1, 4, 4]) == "der Klaatu sieht Zorg ."


def test_a_known_source_word_stands_in_too_and_a_dictionary_comes_before_it() -> None:
    assert said([UNK, 5], [2, 2, 4]) == "sees sieht"
    assert said([UNK, UNK, UNK], [1, 3, 2, 4], {"zorg": "Sorg", "Klaatu": "der  Klaatu"}) == "Sorg der Klaatu sees"


def test_what_has_no_unknown_word_asks_no_model() -> None:
    assert said([4, 5], []) == "der sieht"


def test_pieces_of_words_are_refused(trained: Path) -> None:
    with pytest.raises(RunError, match="whole word"):
        UnknownWords(Tokenizer.load(trained))
    in_process("translate", trained, trained.parent / "test.en", "--replace-unknown").refused("--replace-unknown")
    in_process("translate", trained, trained.parent / "test.en", "--dictionary", "none").refused("none")


@pytest.mark.parametrize("kind", ["parallel", "step"])
@pytest.mark.parametrize("attention_kind", ["multi_head", "additive"])
def test_the_weights_of_the_second_look_are_those_of_the_search(kind: str, attention_kind: str) -> None:
    settings = ModelConfig(
        embedding_size=6,
        hidden_size=8,
        decoder=DecoderConfig(kind=kind, layers=2),  # type: ignore[arg-type]
        attention=AttentionConfig(kind=attention_kind, heads=2),  # type: ignore[arg-type]
        tie_embeddings="none",
    )
    model = build_model(settings, 11, 13, seed=3).eval()
    source, target = [4, 5, 6, 7, 8], [9, 10, 11]
    found_TS = attention(model, source, target)
    assert found_TS.shape == (4, 5)
    torch.testing.assert_close(found_TS.sum(dim=1), torch.ones(4))
    with torch.inference_mode():
        state = model.start(torch.tensor([source]), torch.ones(1, 5, dtype=torch.bool))
        for place, token in enumerate([BOS, *target]):
            _, weights_11S, state = model.decode(torch.tensor([[token]]), state)
            torch.testing.assert_close(weights_11S[0, 0], found_TS[place])
