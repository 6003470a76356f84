"""Claims about pictures of trainings: what a curve's points are, what is told apart, and what is refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import in_process

from seq2seq.errors import RunError
from seq2seq.evaluation.curves import COLOURS, FORMATS, MARKS, PANELS, Course, draw_curves
from seq2seq.runs import RunFolder

EVENTS = [
    {"event": "train", "step": 10, "loss": 5.0, "elapsed_seconds": 60.0, "target_tokens": 1000, "learning_rate": 0.1},
    {"event": "validation", "step": 15, "loss": 4.0, "bleu": 3.0, "perplexity": 54.6},
    {"event": "train", "step": 20, "loss": None, "elapsed_seconds": 180.0, "target_tokens": 3000, "learning_rate": 0.2},
    {"event": "train", "step": 30, "loss": 3.0, "elapsed_seconds": 240.0, "target_tokens": 4000, "learning_rate": 0.1},
    {"event": "validation", "step": 30, "loss": 2.0, "bleu": 9.0, "perplexity": 7.4},
]
COURSE = Course("runs/a $x$ 中", EVENTS)


def test_a_curve_leaves_out_what_is_not_finite_and_a_validation_stands_at_its_update() -> None:
    assert COURSE.points("train", "loss", "updates") == ([10.0, 30.0], [5.0, 3.0])
    assert COURSE.points("validation", "bleu", "updates") == ([15.0, 30.0], [3.0, 9.0])
    assert COURSE.points("validation", "bleu", "minutes") == ([2.0, 4.0], [3.0, 9.0])
    assert COURSE.points("validation", "loss", "tokens") == ([2000.0, 4000.0], [4.0, 2.0])
    assert COURSE.points("train", "gradient_norm", "updates") == ([], [])


def test_runs_are_told_apart_by_mark_as_well_as_by_colour() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert len({(COLOURS[n % len(COLOURS)], MARKS[n % len(MARKS)]) for n in range(56)}) == 56


def test_the_verb_offers_what_can_be_drawn() -> None:
    from seq2seq.cli import plot

    assert tuple(PANELS) == plot._SHOWN
    assert tuple(f".{name}" for name in FORMATS) == plot._FORMATS


pytest_plot = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")


@pytest_plot
def test_every_quantity_is_drawn_and_the_same_picture_is_the_same_file() -> None:
    first, again = (draw_curves([COURSE, COURSE], ["loss"], along="tokens", kind="svg") for _ in range(2))
    assert first == again
    assert ElementTree.fromstring(first).tag.endswith("svg")
    drawn = draw_curves([COURSE], ["bleu", "perplexity", "rate"], along="minutes", kind="png")
    assert drawn.startswith(b"\x89PNG")
    with pytest.raises(RunError, match="nothing to draw"):
        draw_curves([COURSE], ["speed"], along="updates", kind="png")


@pytest_plot
def test_several_runs_are_drawn_in_one_picture_under_names_that_differ(trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "run"
    other.mkdir()
    (other / "config.yaml").write_text("", encoding="utf-8")
    lines = [json.dumps(event) for event in EVENTS] + ['{"event": "tra']
    (other / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert RunFolder(other).metrics() == EVENTS
    output = tmp_path / "curves.svg"
    done = in_process("plot", trained, other, "--output", output)
    assert done.status == 0, done.err
    assert done.out == f"wrote {output}\n"
    # Letters are drawn as shapes; beside them stands what they spell.
    text = output.read_text(encoding="utf-8")
    assert f"{trained.parent.name}/run" in text
    assert f"{tmp_path.name}/run" in text


def test_what_cannot_be_drawn_is_refused(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process("plot", trained, "--output", "curves.bmp").refused("curves.bmp", ".png")
    in_process("plot", trained, "--show", "loss,blue").refused("blue", "bleu")
    in_process("plot", tmp_path / "none").refused("none")
    in_process("plot", trained, "--output", tmp_path / "no" / "x.png").refused("no folder")
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    in_process("plot", tmp_path, "--output", tmp_path / "x.png").refused("metrics.jsonl")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    in_process("plot", trained, "--output", tmp_path / "x.png").refused("matplotlib", ".[plot]")
