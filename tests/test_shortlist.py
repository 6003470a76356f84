"""Claims about the shortlist: it names what translates what, and search stays within it, each sentence in its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import in_process

from seq2seq.config.schema import ModelConfig
from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.encoded import EncodedCorpus, EncodedSide
from seq2seq.corpus.tokenizer import BOS, EOS, PAD, UNK
from seq2seq.model import kernels
from seq2seq.model.best_words import best_words
from seq2seq.model.compact import compact, computes_in_int8
from seq2seq.model.shortlist import Shortlist, Shortlisted
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.training import lexicon
from seq2seq.training.lexicon import shortlist
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.search import search

SOURCE, TARGET = 40, 60
HOW = [SearchSettings(BOS, EOS, beam) for beam in (1, 4)]


def side(rows: list[list[int]]) -> EncodedSide:
    return EncodedSide(np.array([i for row in rows for i in row], np.uint16), np.cumsum([0, *map(len, rows)]))


def dictionary_corpus(pairs: int = 600) -> EncodedCorpus:
    """Word s is translated as s + 15, and as s + 16 one time in five; the order of the words is lost."""
    random = np.random.default_rng(1)
    sources, targets = [], []
    for _ in range(pairs):
        source = random.integers(4, SOURCE, random.integers(1, 7)).tolist()
        target = [word + 15 + int(random.random() < 0.2) for word in source]
        random.shuffle(target)
        sources.append(source)
        targets.append(target)
    return EncodedCorpus(side(sources), side(targets))


def model(**changes: object) -> TranslationModel:
    sizes = {"embedding_size": 128, "hidden_size": 144, "tie_embeddings": "decoder"}
    return build_model(ModelConfig.model_validate(sizes | changes), SOURCE, TARGET, seed=1).eval()


@torch.inference_mode()
def found(searched: object, sources: list[list[int]], how: SearchSettings) -> list[list[int]]:
    src, mask = collate_sources(sources)
    return [best[0].ids for best in search(searched, src, mask, [8] * len(sources), how)]  # type: ignore[type-var]


def test_it_learns_which_word_translates_which() -> None:
    likely = shortlist(dictionary_corpus(), SOURCE, TARGET, 3).likely_VN.numpy()
    for word in range(4, SOURCE):
        assert likely[word, 0] == word + 15
        assert word + 16 in likely[word]


def test_a_sample_of_a_large_corpus_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MOST_POSITIONS", 3000)
    likely = shortlist(dictionary_corpus(2000), SOURCE, TARGET, 3).likely_VN.numpy()
    assert np.mean(likely[4:, 0] == np.arange(4, SOURCE) + 15) > 0.9


@pytest.mark.parametrize("how", HOW, ids=["greedy", "beam"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_search_stays_within_the_words_of_each_sentence(precision: str, how: SearchSettings) -> None:
    if precision == "int8" and not computes_in_int8(torch.device("cpu")):
        pytest.skip("no products of bytes on this machine")
    likely = torch.full((SOURCE, 2), EOS, dtype=torch.int32)
    likely[:, 0] = torch.arange(SOURCE) + 15
    short = Shortlisted(compact(model(), precision), Shortlist(likely, torch.tensor([UNK, EOS, 50])))
    sources = [[5, 6], [7], [8, 9, 10, 11], [12, 12]]
    together = found(short, sources, how)
    assert together == [found(short, [source], how)[0] for source in sources]
    for source, ids in zip(sources, together, strict=True):
        assert set(ids) <= {UNK, 50, *(word + 15 for word in (*source, EOS))}


@pytest.mark.parametrize("how", HOW, ids=["greedy", "beam"])
def test_a_shortlist_of_all_words_changes_nothing(how: SearchSettings) -> None:
    made = model()
    everything = Shortlist(torch.zeros((SOURCE, 1), dtype=torch.int32) + EOS, torch.arange(TARGET))
    sources = [[5, 6], [7], [8, 9, 10, 11]]
    assert found(Shortlisted(made, everything), sources, how) == found(made, sources, how)


def test_padding_and_the_begin_mark_are_no_candidates() -> None:
    words = Shortlist(torch.tensor([[PAD, BOS]] * SOURCE, dtype=torch.int32), torch.tensor([EOS, UNK]))
    candidates, own = words.candidates(*collate_sources([[5], [6, 7]]), TARGET)
    assert candidates.tolist() == [UNK, EOS]
    assert own.all()


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"likely": torch.zeros(SOURCE, 2), "always": torch.zeros(2, 2)},
        {"likely": torch.zeros(SOURCE + 1, 2), "always": torch.zeros(2)},
        {"likely": torch.full((SOURCE, 2), TARGET), "always": torch.zeros(2)},
        {"likely": torch.full((SOURCE, 2), -1), "always": torch.zeros(2)},
    ],
)
def test_what_is_no_shortlist_of_these_vocabularies_is_refused(tensors: dict[str, torch.Tensor]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Shortlist.of(tensors, SOURCE, TARGET)


# -- in a run --------------------------------------------------------------------------------------------------------


def test_a_run_keeps_its_shortlist_and_translates_with_it(trained: Path, tmp_path: Path) -> None:
    text = trained.parent / "test.en"
    done = in_process("translate", trained, text, "--shortlist", "--precision", "bf16")
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) == 20
    assert in_process("evaluate", trained, "--shortlist").status == 0


def test_a_damaged_or_missing_shortlist_is_refused_by_name_and_not_needed(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    path, text = run / "shortlist.safetensors", trained.parent / "test.en"
    whole = path.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:50], None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        in_process("translate", run, text, "--shortlist").refused(str(path), "without --shortlist")
        assert in_process("translate", run, text).status == 0


def test_a_run_without_a_shortlist_says_so(tiny: Path) -> None:
    assert in_process("train", tiny / "tiny.yaml", "--set", "decoding.shortlist=0").status == 0
    assert not (tiny / "run" / "shortlist.safetensors").exists()
    in_process("translate", tiny / "run", tiny / "test.en", "--shortlist").refused("has no shortlist")


def test_the_words_of_neighbours_change_no_bit_of_a_score() -> None:
    if kernels.load() is None:
        pytest.skip("PyTorch adds up in an order that depends on all words")
    torch.manual_seed(1)
    logit_V, own_V, others_V = 3 * torch.randn(700), torch.rand(700) < 0.1, torch.rand(700) < 0.4
    first_R = torch.zeros(1, dtype=torch.long)
    found = []
    for union in (own_V, own_V | others_V):
        words = union.nonzero().squeeze(1)
        both = torch.stack([own_V[words], others_V[words]])
        best, place = best_words(logit_V[words].unsqueeze(0), 5, own=(both, first_R))
        found.append((best, words[place]))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    wanted = logit_V.masked_fill(~own_V, -torch.inf).log_softmax(0).topk(5)
    torch.testing.assert_close(found[0][0][0], wanted.values)
    assert found[0][1][0].tolist() == wanted.indices.tolist()
    nothing = best_words(logit_V[:20].unsqueeze(0), 3, own=(torch.zeros(1, 20, dtype=torch.bool), first_R))
    assert nothing[0].tolist() == [[-torch.inf] * 3]
    assert len(set(nothing[1][0].tolist())) == 3
