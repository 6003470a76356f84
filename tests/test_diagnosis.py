"""Claims about what explains a score: every number has a known answer, and every cause a case that has it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import in_process, numbered_pairs, run_python, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.config.loading import load_config
from seq2seq.config.schema import Config
from seq2seq.evaluation.causes import MOST_CAUSES, Known, likely_causes
from seq2seq.evaluation.diagnosis import Diagnosis, diagnose, repeats
from seq2seq.evaluation.report import _STYLE, Explained, page
from seq2seq.evaluation.scores import edit_rate, score, sentence_chrf
from seq2seq.evaluation.training_record import TrainingRecord, training_record
from seq2seq.evaluation.training_text import compare_texts

PAIRS = numbered_pairs(60)
SOURCES, TARGETS = [source for source, _ in PAIRS], [target for _, target in PAIRS]


def of(hypotheses: list[str], sources: list[str] | None = SOURCES, references: list[str] = TARGETS) -> Diagnosis:
    return diagnose(hypotheses, [references], target_language="de", sources=sources)


def causes(diagnosis: Diagnosis, **known: object) -> list[str | None]:
    return [cause.setting for cause in likely_causes(Known(diagnosis, **known))]  # type: ignore[arg-type]


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_perfect_translation_has_nothing_wrong_and_the_numbers_of_the_scorer() -> None:
    perfect = of(TARGETS)
    assert (perfect.repeated, perfect.copied, perfect.empty) == ([], [], [])
    assert (perfect.length_ratio, perfect.brevity_penalty) == (1.0, 1.0)
    assert perfect.bleu == perfect.bleu_lowercase == pytest.approx(100)
    assert likely_causes(Known(perfect)) == []


def test_lines_that_repeat_copy_or_are_empty_are_named_by_number() -> None:
    hypotheses = list(TARGETS)
    hypotheses[2] = "Der Bär sieht der Bär sieht der Bär."
    hypotheses[6] = SOURCES[6].upper()
    hypotheses[10] = " "
    found = of(hypotheses)
    assert (found.repeated, found.copied, found.empty) == ([3], [7], [11])
    assert of(hypotheses, sources=None).copied == []


def test_what_the_reference_repeats_as_well_is_no_fault_nor_is_a_name_that_stays() -> None:
    line, name = "sehr sehr sehr gut", "Toledo Washington"
    found = diagnose([line, name], [[line, name]], target_language="de", sources=["very good", name])
    assert (found.repeated, found.copied) == ([], [])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a b c d e f", False),
        ("so so gut", False),
        ("so so so gut", True),
        ("er sagt , er sagt , nein", True),
        ("1 1 1 1", False),
        (". . . . .", False),
        ("a b c d e f a b c d e f", True),
        ("a b c d e f g a b c d e f g", False),
        ("", False),
    ],
)
def test_a_repetition_is_a_word_three_times_or_a_short_run_twice(text: str, answer: bool) -> None:
    assert repeats(text.split()) is answer


def test_groups_by_length_hold_every_sentence_once_and_score_like_sacrebleu() -> None:
    sources = [" ".join(["word"] * (1 + number % 13)) for number in range(60)]
    hypotheses = [target if number % 3 else "Der Esel" for number, target in enumerate(TARGETS)]
    found = diagnose(hypotheses, [TARGETS], target_language="de", sources=sources)
    assert sum(group.sentences for group in found.groups) == 60
    assert [group.shortest for group in found.groups] == sorted({group.shortest for group in found.groups})
    assert all(one.longest < other.shortest for one, other in zip(found.groups, found.groups[1:], strict=False))
    group = found.groups[1]
    inside = [i for i, source in enumerate(sources) if group.shortest <= len(source.split()) <= group.longest]
    alone = score([hypotheses[i] for i in inside], [[TARGETS[i] for i in inside]], target_language="de")
    assert (group.sentences, group.bleu) == (len(inside), alone.bleu.value)


def test_sentences_of_one_length_are_one_group_and_chinese_is_measured_in_characters() -> None:
    assert len(of(TARGETS).groups) == 1
    chinese = ["我们去学校。" * (1 + number % 4) for number in range(40)]
    found = diagnose(TARGETS[:40], [TARGETS[:40]], target_language="de", sources=chinese)
    assert (found.unit, [group.shortest for group in found.groups]) == ("characters", [6, 12, 18, 24])


def test_the_worst_sentences_have_the_lowest_sentence_chrf() -> None:
    hypotheses = list(TARGETS)
    hypotheses[4], hypotheses[8] = "xyz", "Der xyz"
    found = of(hypotheses)
    assert [example.line for example in found.worst[:2]] == [5, 9]
    assert found.worst[0].chrf == sentence_chrf(["xyz"], [[TARGETS[4]]])[0]
    assert found.best[0].chrf == 100


def test_ter_equals_the_sacrebleu_command(tmp_path: Path) -> None:
    said = ["迈克去了学校。", "他不吃香蕉"]
    meant = ["迈克昨天去学校了。", "他不吃香蕉。"]
    output, reference = write_lines(tmp_path / "out", said), write_lines(tmp_path / "ref", meant)
    for language, options in (("zh", ["--ter-normalized", "--ter-asian-support"]), ("de", [])):
        done = run_python("-m", "sacrebleu", reference, "-i", output, "-m", "ter", "-w", "9", "-f", "json", *options)
        theirs, ours = json.loads(done.out), edit_rate(said, [meant], target_language=language)
        assert (ours.signature, ours.value) == (theirs["signature"], pytest.approx(theirs["score"], abs=1e-8))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=12))
def test_any_text_can_be_explained_and_shown(rows: list[tuple[str, str, str]]) -> None:
    sources, hypotheses, references = (list(side) for side in zip(*rows, strict=True))
    found = diagnose(hypotheses, [references], target_language="zh", sources=sources)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["lines"] == len(rows)
    assert sum(group.sentences for group in found.groups) == len(rows)
    assert len(likely_causes(Known(found))) <= MOST_CAUSES


# -- what the training text and its record say -------------------------------------------------------------------------


class Letters:
    """A tokenizer whose pieces are letters."""

    source_size = 128

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text] for text in texts]


def test_the_training_text_tells_what_of_the_test_it_knows() -> None:
    pairs = [("a dog runs", "ein Hund rennt"), ("ok", "ok"), ("The cat.", "Die Katze.")]
    found = compare_texts(["the cat.", "a zebra", "A dog"], pairs, Letters())
    assert (found.pairs, found.complete, found.seen, found.untranslated) == (3, True, 1 / 3, 1 / 3)
    assert found.unknown_words == 1 / 6
    pieces = "the cat.a zebraA dog"
    assert found.unknown_pieces == sum(letter in "zbA" for letter in pieces) / len(pieces)


def events(losses: list[float], scores: list[float], reason: str = "epochs") -> list[dict]:
    found = [
        {"event": "validation", "step": 10 * number, "loss": loss, "bleu": bleu}
        for number, (loss, bleu) in enumerate(zip(losses, scores, strict=True), start=1)
    ]
    return [*found, {"event": "end", "step": 10 * len(losses), "reason": reason}]


def test_the_record_tells_a_training_that_ended_too_early_from_one_that_went_on_too_long() -> None:
    early = training_record(events([3.0, 2.0, 1.5], [5.0, 15.0, 25.0], "max_minutes"))
    assert early is not None
    assert (early.still_gaining, early.lowest_at, early.last_loss) == (10.0, 30, 1.5)
    assert causes(of(TARGETS), record=early) == ["training.max_minutes"]
    hardly = training_record(events([6.9, 6.1, 5.5], [0.7, 1.5, 1.1], "max_steps"))
    assert causes(of(TARGETS), record=hardly) == ["training.max_steps"]  # its BLEU says nothing yet, its loss does
    stopped = training_record(events([6.9, 6.1, 5.5], [0.7, 1.5, 1.1], "stopped"))
    [cause] = likely_causes(Known(of(TARGETS), record=stopped))
    assert (cause.setting, "--resume" in cause.advice, "0.60 nats" in cause.what) == (None, True, True)
    late = training_record(events([3.0, 1.5, 2.0], [5.0, 25.0, 25.0]))
    assert causes(of(TARGETS), record=late) == ["model.dropout"]
    fine = training_record(events([3.0, 1.5, 1.49], [5.0, 25.0, 25.1]))
    assert causes(of(TARGETS), record=fine) == []
    assert training_record(events([3.0, 2.0], [1.0, 2.0])) is None
    damaged = [{"event": "validation", "step": 1, "loss": None, "bleu": "high"}]
    assert training_record([*damaged, *events([3.0, 2.0], [1.0, 2.0])]) is None


def test_a_model_that_has_not_learnt_enough_is_told_to_train_before_anything_else(config: Config) -> None:
    stammering = [f"{line} und und und und" if number % 3 == 0 else line for number, line in enumerate(TARGETS)]
    early = training_record(events([3.0, 2.0, 1.5], [5.0, 15.0, 25.0]))
    alone = causes(of(stammering), config=config)
    assert alone[0] == "model.decoder.kind"
    assert causes(of(stammering), config=config, record=early)[0] == "training.epochs"


# -- causes ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def config(base_corpus: Path) -> Config:
    return load_config(base_corpus / "tiny.yaml")


def test_each_fault_names_its_setting(config: Config) -> None:
    assert causes(of([" ".join(line.split()[:-1]) for line in TARGETS])) == ["decoding.length_penalty"]
    assert causes(of([line + " und so weiter" for line in TARGETS])) == ["decoding.length_penalty"]
    assert causes(of([line.lower() for line in TARGETS])) == ["data.train"]
    assert causes(of(TARGETS), beam_size=1) == ["decoding.beam_size"]
    repeated = [f"{line} so so so" if number % 10 == 0 else line for number, line in enumerate(TARGETS)]
    assert "model.decoder.kind" in causes(of(repeated), config=config)
    assert causes(of(["", *TARGETS[1:]])) == ["decoding.length_penalty"]
    copies = [SOURCES[number] if number % 10 == 0 else line for number, line in enumerate(TARGETS)]
    assert causes(of(copies)) == ["data.train"]


def test_a_reference_that_has_slipped_by_a_line_is_the_first_to_be_told() -> None:
    first = likely_causes(Known(of([*TARGETS[1:], "Ende."])))[0]
    assert "line" in first.what
    assert first.setting is None


def test_a_model_without_attention_wants_it_and_weak_long_sentences_want_longer_pairs(config: Config) -> None:
    sources = [" ".join(["word"] * (1 + number % 12)) for number in range(60)]
    hypotheses = ["Ein Esel singt." if number % 12 > 8 else line for number, line in enumerate(TARGETS)]
    found = diagnose(hypotheses, [TARGETS], target_language="de", sources=sources)
    without = config.model.model_copy(update={"attention": config.model.attention.model_copy(update={"kind": "none"})})
    advised = causes(found, config=config.model_copy(update={"model": without}))
    assert "model.attention.kind" in advised
    assert causes(found, config=config) == ["decoding.length_penalty", "decoding.length_penalty"]
    meant = ["Das da war es also nicht." if number % 12 > 8 else line for number, line in enumerate(TARGETS)]
    found = diagnose(meant, [TARGETS], target_language="de", sources=sources)
    assert "data.max_length" in causes(found, config=config)


def test_the_likeliest_cause_stands_first_and_there_are_three_at_most() -> None:
    record = TrainingRecord("patience", 1.0, 2.0, 99.0, 0.0, 5, 9)
    found = likely_causes(Known(of([line.lower()[:-9] for line in TARGETS]), beam_size=1, record=record))
    assert found[0].setting == "training.patience"
    assert len(found) == MOST_CAUSES
    assert [cause.points for cause in found] == sorted((cause.points for cause in found), reverse=True)


def test_every_setting_that_is_advised_exists(config: Config) -> None:
    source = Path("seq2seq/evaluation/causes.py")
    text = (Path(__file__).parent.parent / source).read_text(encoding="utf-8")
    named = set(re.findall(r'"((?:data|model|training|decoding|tokenizer)\.[a-z_.]+)"', text))
    assert len(named) > 8
    for key in named:
        value: object = config
        for part in key.split("."):
            value = getattr(value, part)


# -- the page and the verbs --------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Tags that are open, and everything that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "wbr"):
            self.open.append(tag)
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href")] + (
            ["?"] if tag == "script" else []
        )

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_fetches_nothing_and_lets_no_sentence_be_markup() -> None:
    evil = '<script>alert(1)</script> & "quotes"'
    found = of([evil, *TARGETS[1:]], sources=[evil, *SOURCES[1:]])
    scores = score([evil, *TARGETS[1:]], [TARGETS], target_language="de")
    groups = [replace(group) for group in found.groups * 2]
    text = page(Explained(evil, ["60 sentences"], ("en", "de"), scores, None, replace(found, groups=groups), []))
    outline = Outline()
    outline.feed(text)
    assert (outline.open, outline.fetched) == ([], [])
    assert "<script" not in text
    assert 'role="img"' in text
    assert "prefers-color-scheme: dark" in text


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_stands_out_from_its_ground_on_light_and_dark_screens() -> None:
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{[^}]*\}", _STYLE)]
    assert len(schemes) == 2
    for scheme in schemes:
        pairs = [
            (text, ground, 4.5) for text in ("ink", "soft", "accent", "good", "bad") for ground in ("ground", "card")
        ]
        for one, other, least in [*pairs, ("bar", "rest", 3.0)]:
            darker, lighter = sorted((luminance(scheme[one]), luminance(scheme[other])))
            assert (lighter + 0.05) / (darker + 0.05) >= least, (one, other)


def test_evaluate_explains_when_it_is_asked_to(trained: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    done = in_process("evaluate", trained, "--beam", 1, "--explain", "--report", report)
    assert done.status == 0, done.err
    for words in ("TER ", "precisions ", "brevity penalty", "repetitions ", "160 training pairs", "Worst sentences"):
        assert words in done.out
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    facts = json.loads(in_process("evaluate", trained, "--beam", 1, "--json").out)
    assert facts["diagnosis"]["training"]["pairs"] == 160
    assert {"what", "advice", "setting", "points"} == set(facts["causes"][0])


def test_a_run_whose_corpus_is_gone_is_explained_without_it(trained: Path, tmp_path: Path) -> None:
    import shutil

    run = Path(shutil.copytree(trained, tmp_path / "run"))
    config = (run / "config.yaml").read_text(encoding="utf-8").split("\n", 2)
    (run / "config.yaml").write_text(config[2].replace("train.en", "gone.en"), encoding="utf-8")
    files = ("--source", trained.parent / "test.en", "--reference", trained.parent / "test.de")
    facts = json.loads(in_process("evaluate", run, *files, "--beam", 1, "--json").out)
    assert facts["diagnosis"]["training"] is None


def test_score_explains_files_and_refuses_a_source_that_does_not_pair(tmp_path: Path) -> None:
    files = [
        write_lines(tmp_path / name, lines)
        for name, lines in (("out", TARGETS[::-1]), ("ref", TARGETS), ("src", SOURCES))
    ]
    arguments = ("score", files[0], "--reference", files[1], "--language", "de", "--source", files[2])
    done = in_process(*arguments, "--explain")
    assert done.status == 0, done.err
    assert "Likeliest cause" in done.out
    assert len(in_process(*arguments).out.splitlines()) == 2
    write_lines(files[2], SOURCES[1:])
    in_process(*arguments, "--explain").refused("60", "59", "src")
    in_process(*arguments, "--report", files[1]).refused("--report", "ref")
    in_process(*arguments, "--report", tmp_path / "none" / "x.html").refused("no folder")
