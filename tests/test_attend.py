"""Claims about the attention report: the weights are those of the search, words are words, links count right."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT, in_process, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import AttentionConfig, DecoderConfig, ModelConfig, TokenizerConfig
from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.lines import clean
from seq2seq.corpus.subwords import BOS, Subwords, train_subwords
from seq2seq.evaluation.attention_report import fonts, picture
from seq2seq.evaluation.attention_report.explain import explain, parameters
from seq2seq.evaluation.attention_report.forcing import force
from seq2seq.evaluation.attention_report.kinds import KINDS as TEXTS
from seq2seq.evaluation.attention_report.links import AlignmentError, pharaoh, read, written
from seq2seq.evaluation.attention_report.page import About, page
from seq2seq.evaluation.attention_report.sentences import END, Part, Sentence, attended
from seq2seq.evaluation.attention_report.terminal import as_text
from seq2seq.evaluation.attention_report.units import direction, merged, surfaces, words_of
from seq2seq.model.attention import KINDS
from seq2seq.model.translation_model import TranslationModel, build_model
from seq2seq.translation.translator import Translator

CPU = torch.device("cpu")
SOURCE, TARGET = [5, 9, 7, 11, 6], [8, 4, 10]
DECODERS = {
    "after": DecoderConfig(),
    "between": DecoderConfig(layers=2, attend="between"),
    "step": DecoderConfig(kind="step"),
}


def model_of(kind: str, decoder: str = "after") -> TranslationModel:
    attention = AttentionConfig(kind=kind, heads=2)
    chosen = ModelConfig(
        embedding_size=6, hidden_size=8, attention=attention, decoder=DECODERS[decoder], tie_embeddings="none"
    )
    return build_model(chosen, 13, 14, seed=3).eval()


def part_of(kind: str, decoder: str = "after") -> Part:
    look = force(model_of(kind, decoder), SOURCE, TARGET, CPU)
    return Part(["▁a", "b", "▁cd", "e", "▁f", END], ["▁x", "y", "▁z", END], look)


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return Translator.load(trained, device="cpu")


# -- forcing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("kind", ["multi_head", "additive", "dot"])
def test_forcing_gives_the_weights_that_a_search_sees_step_by_step(kind: str, decoder: str) -> None:
    model = model_of(kind, decoder)
    look = force(model, SOURCE, TARGET, CPU)
    with torch.inference_mode():
        state = model.start(*collate_sources([SOURCE]))
        for step, token in enumerate([BOS, *TARGET]):
            _, weights_11S, state = model.decode(torch.tensor([[token]]), state)
            torch.testing.assert_close(look.mean()[step], weights_11S[0, 0], atol=1e-6, rtol=0)
    assert look.weights_NTS.shape == (2 if kind == "multi_head" else 1, len(TARGET) + 1, len(SOURCE) + 1)


def test_heads_and_output_are_those_of_the_attention_itself() -> None:
    look = force(model_of("multi_head"), SOURCE, TARGET, CPU)
    with torch.inference_mode():
        output_1TC, weights_1NTS = look.attention.attend_heads(look.query_1TH, look.memory)
    assert torch.equal(look.weights_NTS, weights_1NTS[0])
    assert torch.equal(look.output_TC, output_1TC[0])
    assert not torch.allclose(look.weights_NTS[0], look.weights_NTS[1])


def test_listening_leaves_the_model_as_it_was_even_after_an_error() -> None:
    model = model_of("my")
    before = model.decoder.attention
    force(model, SOURCE, TARGET, CPU)
    with pytest.raises(IndexError):
        force(model, SOURCE, [999], CPU)
    assert model.decoder.attention is before


# -- units ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    text = ["the quick brown fox,", "über die Brücke gehen.", "कमल घर में है", "قرأ الولد كتابا", "naïve café (yes)"] * 9
    return Subwords(train_subwords(text, TokenizerConfig(vocab_size=370, byte_fallback=True), "it").model, "it")


@settings(max_examples=60)
@given(text=st.text(st.sampled_from("thequick über,.(€🙂é️कमलघ्रا لولد  "), max_size=30))
def test_words_are_what_stands_between_blanks(subwords: Subwords, text: str) -> None:
    pieces = subwords.pieces(subwords.encode([text])[0])
    words = words_of(pieces)
    assert [word.text for word in words if word.text] == clean(text).split()
    assert [place for word in words for place in range(word.first, word.end)] == list(range(len(pieces)))


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁", "迈克", "的", "手机", "。"], ["迈克", "的", "手机", "。"]),
        (["▁", "他", "M", "ike", "喜欢", "▁GR", "U"], ["他", "Mike", "喜欢", "GRU"]),
        (["▁Das", "▁", "<0xE9>", "<0xBE>", "<0x98>", "."], ["Das", "龘", "."]),
        (["▁", "ก", "ี", "่", "ไป"], ["กี่", "ไป"]),
        (["▁x", "<unk>", "<0xFF>"], ["x⁇\ufffd"]),
        (["▁end", "▁"], ["end"]),
        (["▁"], [""]),
        ([], []),
    ],
)
def test_chinese_pieces_are_words_and_bytes_are_characters(pieces: list[str], words: list[str]) -> None:
    assert [word.text for word in words_of(pieces)] == words


def test_words_show_signs_that_the_tokenizer_hides_as_they_were_typed(subwords: Subwords) -> None:
    text = "<0x41> a < b \uf8e1 </s> \uf8e0a"
    pieces = subwords.pieces(subwords.encode([text])[0])
    assert "<0xEF>" in pieces  # unseen, so spelt in bytes
    assert [word.text for word in words_of(pieces)] == text.split()


def test_a_character_in_bytes_stands_at_its_first() -> None:
    assert surfaces(["<0xE9>", "<0xBE>", "<0x98>", "<0x41>", "x"]) == ["龘", "", "", "A", "x"]


def test_a_written_word_still_looks_with_the_weight_of_one() -> None:
    part = part_of("multi_head")
    source, target = part.units("words")
    assert [unit.text for unit in source] == ["ab", "cde", "f", END]
    weights_NTS = part.weights("words")
    assert weights_NTS.shape == (2, 3, 4)
    torch.testing.assert_close(weights_NTS.sum(dim=-1), torch.ones(2, 3))
    by_hand = part.look.weights_NTS[0, 0:2, 2:4].sum(dim=1).mean()
    torch.testing.assert_close(weights_NTS[0, 0, 1], by_hand)
    assert merged(torch.eye(4), target, target).tolist()[0] == [1, 0, 0]


def test_the_direction_is_that_of_the_first_letter() -> None:
    assert [direction(text) for text in ("abc", "«قرأ»", "12 שלום", "你好", "")] == ["ltr", "rtl", "rtl", "ltr", "ltr"]


# -- links ------------------------------------------------------------------------------------------------------------


def fixed(source: list[str], target: list[str], rows: list[list[float]]) -> Part:
    """A part whose weights are given."""
    part = part_of("none")
    look = type(part.look)(
        part.look.attention, part.look.memory, part.look.query_1TH, *[torch.tensor([rows])] * 2, part.look.output_TC
    )
    return Part([*source, END], [*target, END], look)


def test_links_are_the_strongest_words_and_go_on_from_part_to_part() -> None:
    first = fixed(["▁a", "▁b"], ["▁x", "▁y"], [[0.1, 0.7, 0.2], [0.2, 0.3, 0.5], [0, 0, 1]])  # y looks at the end
    second = fixed(["▁c", "d"], ["▁z"], [[0.3, 0.3, 0.4], [0, 0, 1]])  # the two pieces of cd together are the strongest
    third = fixed(["e", "▁f"], ["▁w"], [[0.9, 0.1, 0.0], [0, 0, 1]])  # goes on within the word cde
    assert pharaoh(Sentence(1, "a b cde f", "x y z w", [first, second, third])) == "1-0 2-2 2-3"
    assert pharaoh(Sentence(1, "a b cd", "x y z", [first, second]), "pieces") == "1-0"


def test_pharaoh_links_are_read_as_written_and_nonsense_is_named() -> None:
    assert read(written([(0, 0), (12, 3)])) == {(0, 0), (12, 3)}
    with pytest.raises(ValueError, match="'1:2'"):
        read("0-0 1:2")


def test_the_error_rate_is_och_and_ney_s() -> None:
    counted = AlignmentError()
    counted.add([(0, 0), (1, 2), (2, 2)], sure=[(0, 0), (1, 1)], possible=[(1, 2)])
    assert (counted.precision, counted.recall) == (2 / 3, 1 / 2)
    assert counted.rate == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert AlignmentError().rate == 0


def test_the_links_made_by_hand_are_links_of_the_corpus(corpora: Path) -> None:
    sides = [(corpora / "multi30k" / f"val.{side}").read_text(encoding="utf-8").split("\n") for side in ("en", "de")]
    rows = [
        row.split("\t")
        for row in (ROOT / "tests" / "data" / "multi30k_val_links.tsv").read_text(encoding="utf-8").splitlines()
        if not row.startswith("#")
    ]
    assert len(rows) == 50
    for line, digest, sure, possible in rows:
        source, target = (side[int(line) - 1] for side in sides)
        assert hashlib.sha256(f"{source}\t{target}".encode()).hexdigest().startswith(digest)
        assert not read(sure) & read(possible)
        for s, t in read(sure) | read(possible):
            assert s < len(source.split())
            assert t < len(target.split())


def test_the_script_measures_a_run_against_links(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [(trained.parent / f"val.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")]
    rows = [
        f"{line}\t{hashlib.sha256(chr(9).join(pair).encode()).hexdigest()[:12]}\t0-0 1-1 2-2 3-3\t4-4"
        for line, pair in enumerate(zip(*sides, strict=True), start=1)
        if line < 5
    ]
    gold = write_lines(tmp_path / "gold.tsv", ["# links", *rows])
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import alignment_error

    monkeypatch.setattr(sys, "argv", ["alignment_error.py", str(trained), "--gold", str(gold), "--heads", "--json"])
    assert alignment_error.main() == 0
    diagonal, mean, *heads = map(json.loads, capsys.readouterr().out.splitlines())
    assert diagonal["recall"] == 1  # word for word
    assert (mean["attention"], len(heads)) == ("multi_head", 4)
    assert all(0 <= row["aer"] <= 1 for row in (mean, *heads))
    gold.write_text(gold.read_text(encoding="utf-8").replace("1\t", "2\t", 1), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"Line 2 of .* is not the pair"):
        alignment_error.main()


# -- the step worked through ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_of_a_step_are_those_of_the_module(kind: str) -> None:
    part = part_of(kind)
    look = part.look
    found = explain(part, kind, step=1)
    torch.testing.assert_close(found.scores_S.softmax(dim=0), found.weights_S)
    torch.testing.assert_close(found.weights_S @ found.values_SV, found.context_V)
    torch.testing.assert_close(found.scores_S, look.scores_NTS[found.head, 1])
    if found.kind.compare == "dot":
        scale = len(found.query_D) ** 0.5
        torch.testing.assert_close(found.keys_SD @ found.query_D / scale, found.scores_S)
    if found.kind.compare == "additive":
        v_D = look.attention.score_layer.weight[0].detach()
        torch.testing.assert_close(torch.tanh(found.query_D + found.keys_SD) @ v_D, found.scores_S)
    with torch.inference_mode():
        output_1TC, _ = look.attention.attend(look.query_1TH, look.memory)
    torch.testing.assert_close(found.output_C, output_1TC[0, 1])
    rows = parameters(look.attention, found.kind)
    assert [row[0] for row in rows] == [name for name, _ in look.attention.named_parameters()]
    assert all(row[3] for row in rows)
    text = as_text(found, rows)
    assert found.kind.formula in text
    assert all(f"{float(weight):.3f}" in text for weight in found.weights_S)


def test_every_kind_has_its_text() -> None:
    assert tuple(sorted(TEXTS)) == tuple(sorted(KINDS))


# -- the page and the pictures ----------------------------------------------------------------------------------------


def page_of(translator: Translator, *lines: str) -> str:
    sentences = [sentence for _, sentence in attended(translator, lines)]
    return page(sentences, About("run", "multi_head", "en", "de", "facts"))


def numbers_in(text: str) -> dict:
    return json.loads(text.split("id='data'>")[1].split("</script>")[0])


def test_the_page_holds_everything_and_asks_the_network_for_nothing(translator: Translator) -> None:
    text = page_of(translator, "The dog sees 3 red boats.", "", "The wolf loves 4 old trees.")
    assert "default-src 'none'" in text
    for word in (" src=", "@import", "url(", "fetch(", "XMLHttp", "<link"):
        assert word not in text
    assert text.count("<article") == 3
    (first, second), end = numbers_in(text)["parts"], numbers_in(text)["end"]
    assert first["words"]["source"] == ["The", "dog", "sees", "3", "red", "boats.", end]
    for heads in (first["words"]["weights"], second["pieces"]["weights"]):
        assert len(heads) == 4
        assert all(abs(sum(row) - 1000) < 10 for head in heads for row in head)


def test_no_sentence_can_write_into_the_page() -> None:
    evil = "</script><script>alert(1)</script><img src='x'>"
    part = part_of("my")
    part = Part([f"▁{evil}", *part.source_pieces[1:]], [f"▁{evil}", *part.target_pieces[1:]], part.look)
    text = page([Sentence(1, evil, evil, [part])], About(evil, "my", "en", "de", evil))
    assert "<script>alert" not in text
    assert "<img" not in text
    assert numbers_in(text)["parts"][0]["words"]["source"][0] == evil + "b"


def test_a_picture_is_a_png_whose_size_follows_the_sentence(translator: Translator, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (_, sentence), *_ = attended(translator, ["The dog sees $3 red_boats$."])
    assert picture.draw(sentence.parts[0], tmp_path / "a.png") is None
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") > 300


@pytest.mark.filterwarnings("error")
def test_a_sign_that_no_font_has_is_said_in_a_note_and_not_by_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    own = [entry for entry in fonts._candidates() if entry[0] == fonts.FIRST]
    monkeypatch.setattr(fonts, "_candidates", lambda: own)
    part = part_of("dot")
    odd = Part(["▁\ue123", *part.source_pieces[1:]], part.target_pieces, part.look)
    assert "U+E123" in (picture.draw(odd, tmp_path / "a.png") or "")


def test_a_script_without_a_font_is_named_with_what_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    assert fonts.families_for("Ein Bär, αβγ") == ([fonts.FIRST], None)
    own = [entry for entry in fonts._candidates() if entry[0] == fonts.FIRST]
    monkeypatch.setattr(fonts, "_candidates", lambda: own)
    _, invisible = fonts.families_for("a\ue123")
    assert invisible is not None
    assert "U+E123" in invisible
    assert "Install" not in invisible
    families, note = fonts.families_for("你好 नमस्ते")
    assert families == [fonts.FIRST]
    assert note is not None
    assert "Chinese characters (你 好)" in note
    assert "Devanagari" in note
    assert "fonts-noto-cjk fonts-noto-core" in note


# -- the verb ---------------------------------------------------------------------------------------------------------


def test_attend_prints_what_translate_prints_and_writes_the_page(trained: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.en", ["The dog sees 3 red boats.", "", "The fox hears 11 new books."])
    for how in ((), ("--beam", 1)):
        done = in_process("attend", trained, source, "--output", tmp_path / "a.html", *how)
        assert done.status == 0, done.err
        assert done.out_bytes == in_process("translate", trained, source, *how).out_bytes
        assert "a.html shows 3 sentences" in done.err
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_no_sentence_makes_no_page(trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("of before", encoding="utf-8")
    in_process("attend", trained, "--output", page, stdin=b"").refused("no sentence", str(page))
    assert page.read_text(encoding="utf-8") == "of before"


def test_json_and_links_have_a_line_for_each_line(trained: Path) -> None:
    lines = b"The dog sees 3 red boats.\n\nThe fox hears 11 new books.\n"
    told = [json.loads(line) for line in in_process("attend", trained, "--json", stdin=lines).out.splitlines()]
    links = in_process("attend", trained, "--pharaoh", stdin=lines).out.split("\n")
    assert [one["line"] for one in told] == [1, 2, 3]
    assert (told[1]["parts"], links[1], len(links)) == ([], "", 4)
    for one, line in ((told[0], links[0]), (told[2], links[2])):
        (part,) = one["parts"]
        assert [word["text"] for word in part["source_words"]] == [*one["source"].split(), END]
        assert [word["text"] for word in part["target_words"]] == [*one["translation"].split(), END]
        assert all(abs(sum(row) - 1) < 1e-4 for row in part["weights"] + part["word_weights"])
        assert len(part["heads"]) == 4
        for s, t in read(line):
            assert part["word_weights"][t][s] == max(part["word_weights"][t])


def test_a_long_line_is_shown_in_parts(trained: Path, translator: Translator) -> None:
    line = " ".join(["The dog sees 3 red boats."] * 12)
    ((translation, sentence),) = attended(translator, [line])
    assert translation.parts == len(sentence.parts) > 1
    done = in_process("attend", trained, "--pharaoh", stdin=line.encode())
    assert "translated in parts (line 1)" in done.err
    assert max(s for s, _ in read(done.out)) < len(line.split())
    assert max(t for _, t in read(done.out)) < len(translation.text.split())


def test_explain_is_text_with_every_stage(trained: Path) -> None:
    done = in_process("attend", trained, "--explain", stdin=b"The dog sees 3 red boats.\n")
    assert done.status == 0, done.err
    for word in ("W_q.weight", "1. The query", "Softmax", "Weighted sum", "Output", "‘The’"):
        assert word in done.out


def test_what_cannot_be_written_is_said_at_once(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_lines(tmp_path / "in.en", ["a"])
    in_process("attend", trained, source, "--output", tmp_path / "none" / "a.html").refused("none")
    in_process("attend", trained, source, "--output", "").refused("--output is empty")
    in_process("attend", trained, source, "--output", source).refused("is read here")
    in_process("attend", trained, source, "--png", source).refused("is a file")
    in_process("attend", trained, source, "--json", "--pharaoh").refused("--pharaoh", "not allowed")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    in_process("attend", trained, source, "--png", tmp_path / "p").refused("pip install '.[plot]'")
