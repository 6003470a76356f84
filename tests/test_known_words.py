"""What a model for search remembers of the words it has met is what it would compute, to the last bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS
from seq2seq.model import known_words
from seq2seq.model.compact import compact, computes_in_int8
from seq2seq.model.device import lacks_bf16
from seq2seq.model.known_words import KnownWords
from seq2seq.model.packed import can_pack
from seq2seq.model.translation_model import TranslationModel, build_model

V = 50
SOURCES = [[7, 8, 9, 10], [11, 12], [5, 6, 7, 8, 9, 10, 11]]
CPU = torch.device("cpu")


def made(**changes: object) -> TranslationModel:
    sizes: dict[str, object] = {"embedding_size": 96, "hidden_size": 128, "tie_embeddings": "all"}
    return build_model(ModelConfig.model_validate(sizes | changes), V, V, seed=1).eval()


@torch.inference_mode()
def said(model: TranslationModel) -> tuple[Tensor, Tensor]:
    """The memory of the sources, and the logits of three steps, (B,3V)."""
    src_BS, mask_BS = collate_sources(SOURCES)
    memory, state = model.encode(src_BS, mask_BS).memory_BSH, model.start(src_BS, mask_BS)
    logits = []
    previous_B = torch.full((len(SOURCES),), BOS)
    for _ in range(3):
        found_BV, state = model.logits(previous_B, state)
        logits.append(found_BV)
        previous_B = found_BV.argmax(1)
    return memory, torch.cat(logits, dim=1)


def precisions() -> list[str]:
    return ["fp32", *(["bf16"] if not lacks_bf16(CPU) else []), *(["int8"] if computes_in_int8(CPU) else [])]


@pytest.mark.skipif(not can_pack(CPU, torch.float32), reason="no compact models on this machine")
@pytest.mark.parametrize("precision", precisions())
@pytest.mark.parametrize(
    "form",
    [{}, {"decoder": {"layers": 2, "attend": "between"}, "encoder": {"layers": 2}}, {"decoder": {"kind": "step"}}],
    ids=str,
)
def test_remembering_words_changes_no_bit(precision: str, form: dict[str, object]) -> None:
    remembering, forgetting = compact(made(**form), precision), compact(made(**form), precision)
    assert remembering.known_source is not None
    assert (remembering.known_target is None) == (remembering.decoder.word_reader is None)
    forgetting.known_source = forgetting.known_target = None
    wanted = said(forgetting)
    for _ in range(2):  # met for the first time, and known
        for found, exact in zip(said(remembering), wanted, strict=True):
            assert torch.equal(found, exact)


def test_a_word_is_computed_once() -> None:
    asked: list[Tensor] = []

    def doubled(vectors: Tensor) -> Tensor:
        asked.append(vectors)
        return 2 * vectors

    vectors = torch.randn(V, 4)
    known = KnownWords(vectors, 3.0, [doubled, torch.neg])
    asked.clear()
    ids = torch.tensor([[5, 7, 5], [9, 7, 7]])
    wanted = torch.cat([6 * vectors, -3 * vectors], dim=1)[ids]
    torch.testing.assert_close(known.of(ids), wanted)
    assert [len(one) for one in asked] == [3]
    torch.testing.assert_close(known.of(ids), wanted)
    assert known.of(torch.tensor([[3, 5]])).shape == (1, 2, 8)
    assert [len(one) for one in asked] == [3, 1]
    assert known.of(ids[:0]).shape == (0, 3, 8)


def test_a_table_that_would_be_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = torch.randn(V, 4)
    assert KnownWords.worthwhile(vectors, 1.0, [torch.neg]) is not None
    monkeypatch.setattr(known_words, "_MOST_BYTES", V * 4 * 4 - 1)
    assert KnownWords.worthwhile(vectors, 1.0, [torch.neg]) is None
