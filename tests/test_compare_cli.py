"""Claims about `seq2seq compare`; the authority is the sacrebleu command's own paired tests on the same files."""

from __future__ import annotations

import json
import random
import re
import shutil
import statistics
from pathlib import Path

import pytest
from conftest import in_process, numbered_pairs, run_python, write_lines

from seq2seq.checkpoints import sealed
from seq2seq.evaluation.comparison import System, compare, is_significant
from seq2seq.evaluation.scores import sentence_chrf

SOURCES, TARGETS = (list(side) for side in zip(*numbered_pairs(60), strict=True))


def worsened(lines: list[str], share: float, seed: int) -> list[str]:
    """The same, some words being wrong."""
    luck = random.Random(seed)
    return [" ".join("oh" if luck.random() < share else word for word in line.split()) for line in lines]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "a.de": worsened(TARGETS, 0.2, 1),
        "b.de": [*worsened(TARGETS, 0.16, 2)[:-1], "Ende \u00a0"],
        "c.de": worsened(TARGETS, 0.2, 3),
        "1.de": TARGETS,
        "2.de": [line.replace("Der", "Ein") for line in TARGETS],
        "test.en": SOURCES,
    }
    return {name: write_lines(tmp_path / name, lines) for name, lines in texts.items()}


def compared(*arguments: object) -> dict:
    done = in_process("compare", *arguments, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    ("option", "ours", "count"), [("--paired-bs", "p_bootstrap", "300"), ("--paired-ar", "p_randomisation", "700")]
)
def test_scores_and_p_values_equal_the_sacrebleu_command(
    files: dict[str, Path], option: str, ours: str, count: str
) -> None:
    outputs = [files[name] for name in ("a.de", "b.de", "c.de")]
    command = ("-m", "sacrebleu", files["1.de"], files["2.de"], "-i", *outputs, "-m", "bleu", "chrf", "-w", "9")
    done = run_python(*command, option, f"{option}-n", count, "-f", "text")
    references = ("--reference", files["1.de"], "--reference", files["2.de"])
    found = compared(*outputs, *references, "--samples", 300, "--trials", 700)
    scores = [re.findall(r"(\d+\.\d{9})(?: \((\d+\.\d{9}) ± (\d+\.\d{9}))?", line) for line in done.out.splitlines()]
    rows = [row for row in scores if row]
    p_values = [p for p in (re.findall(r"p = (\d\.\d{4})", line) for line in done.out.splitlines()) if p]
    assert (len(rows), len(p_values)) == (3, 2)
    for place, (standing, row) in enumerate(zip(found["standings"], rows, strict=True)):
        for which, (metric, (score, mean, interval)) in enumerate(zip(("bleu", "chrf"), row, strict=True)):
            measured = standing["scores"][metric]
            assert measured["score"] == pytest.approx(float(score), abs=1e-8)
            if mean:
                assert (measured["mean"], measured["interval"]) == pytest.approx(
                    (float(mean), float(interval)), abs=1e-6
                )
            if place:
                assert measured[ours] == pytest.approx(float(p_values[place - 1][which]), abs=5.1e-5)
                assert 0.001 < measured[ours] < 1
    for metric, signed in found["signatures"].items():
        assert signed[option[-2:]] in done.out, metric


def test_wins_and_losses_are_the_largest_differences_of_sentence_chrf() -> None:
    before, after = worsened(TARGETS, 0.3, 4), worsened(TARGETS, 0.3, 5)
    systems = [System("old", before), System("new", after)]
    found = compare(systems, [TARGETS], target_language="de", sources=SOURCES, samples=20, trials=20, shown=3)
    gains = [b - a for a, b in zip(sentence_chrf(before, [TARGETS]), sentence_chrf(after, [TARGETS]), strict=True)]
    assert [change.gain for change in found.wins["new"]] == sorted(gains, reverse=True)[:3]
    assert [change.gain for change in found.losses["new"]] == sorted(gains)[:3]
    win = found.wins["new"][0]
    index = win.line - 1
    assert (win.source, win.baseline, win.other) == (SOURCES[index], before[index], after[index])


def test_a_system_against_itself_wins_and_loses_nothing() -> None:
    found = compare(
        [System("a", TARGETS), System("b", TARGETS)], [TARGETS], target_language="de", samples=20, trials=20
    )
    assert (found.wins["b"], found.losses["b"], found.groups) == ([], [], [])
    bleu = found.standings[1].scores["bleu"]
    assert (bleu.difference, bleu.p_randomisation) == (0.0, 1.0)
    assert not is_significant(bleu)


def test_trainings_that_differ_by_seed_are_one_group_with_mean_and_deviation() -> None:
    systems = [
        System(f"run{seed}", worsened(TARGETS, 0.2, seed), "wide" if seed < 4 else "narrow", seed % 3)
        for seed in (1, 2, 3, 4, 7)
    ]
    found = compare(systems, [TARGETS], target_language="de", samples=20, trials=20)
    (group,) = found.groups  # of the narrow ones both have the same seed, so there is one training and its copy
    assert group.names == ["run1", "run2", "run3"]
    scores = [standing.scores["bleu"].score for standing in found.standings[:3]]
    assert group.means["bleu"] == pytest.approx(statistics.fmean(scores))
    assert group.deviations["bleu"] == pytest.approx(statistics.stdev(scores))


def test_runs_translate_and_are_grouped_by_their_config(trained: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    config = (other / "config.yaml").read_text(encoding="utf-8").split("\n", 2)[2]
    (other / "config.yaml").write_text(
        config.replace("seed: 1", "seed: 2").replace("log_every: 3", "log_every: 4"), encoding="utf-8"
    )
    few = ("--samples", 20, "--trials", 20, "--beam", 1)
    found = compared(trained, other, trained / "last", *few)
    assert [group["seeds"] for group in found["groups"]] == [[1, 2]]
    assert found["lines"] == 20
    done = in_process("compare", trained, other, *few)
    for words in ("the baseline is", "p bootstrap", "exactly as the baseline", "2 seeds: 1, 2"):
        assert words in done.out
    assert "decoding.json" not in done.err


def test_a_run_that_searches_in_a_way_of_its_own_is_told(trained: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    assert in_process("tune", other, "--beams", 2, "--length-penalties", 1, "--write").status == 0
    kept = json.loads((other / "decoding.json").read_text(encoding="utf-8"))
    kept["decoding"] = {"beam_size": 2, "length_penalty": 0.5, "coverage_penalty": 0.25}
    (other / "decoding.json").write_text(json.dumps(sealed(kept)), encoding="utf-8")
    done = in_process("compare", trained, other, "--samples", 20, "--trials", 20)
    told = "other searches as its decoding.json says: beam size 2, length penalty 0.5, coverage penalty 0.25"
    assert done.err.count("decoding.json") == 1
    assert told in done.err


def test_the_same_text_differs_by_chance_with_certainty(files: dict[str, Path], tmp_path: Path) -> None:
    same = write_lines(tmp_path / "same.de", [line + " " for line in files["a.de"].read_text("utf-8").splitlines()])
    found = compared(files["a.de"], same, "--reference", files["1.de"], "--samples", 30, "--trials", 30)
    for measured in found["standings"][1]["scores"].values():
        assert (measured["difference"], measured["p_bootstrap"], measured["p_randomisation"]) == (0.0, 1.0, 1.0)


def test_for_people_there_are_tables_and_sentences_side_by_side(files: dict[str, Path]) -> None:
    test = ("--source", files["test.en"], "--reference", files["1.de"])
    done = in_process("compare", files["a.de"], files["1.de"], *test, "--samples", 99, "--trials", 99)
    assert done.status == 0, done.err
    assert "is better than the baseline" in done.out
    assert "Won most" in done.out
    assert "Lost most" not in done.out


def test_what_cannot_be_compared_is_refused(
    files: dict[str, Path], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, reference = files["a.de"], files["b.de"], ("--reference", files["1.de"])
    in_process("compare", a, *reference).refused("two")
    in_process("compare", a, b).refused("--reference")
    in_process("compare", a, trained, *reference).refused("--source")
    in_process("compare", a, b, "--source", files["test.en"]).refused("--reference")
    in_process("compare", a, tmp_path / "none", *reference).refused("none")
    short = write_lines(tmp_path / "short", TARGETS[1:])
    in_process("compare", a, short, *reference).refused("short", "59", "60")
    in_process("compare", a, tmp_path, *reference, "--source", files["test.en"]).refused("config.yaml")
    monkeypatch.setenv("SACREBLEU_SEED", "often")
    in_process("compare", a, b, *reference).refused("SACREBLEU_SEED", "often")
