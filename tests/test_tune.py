"""Claims about `seq2seq tune`: its figures are what a search would give, and what it writes is what is used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import Finished, in_process, numbered_pairs

from seq2seq.checkpoints import sealed
from seq2seq.evaluation.scores import bleu_counts, bleu_of_counts, score
from seq2seq.evaluation.tuning import Trial, _halves, best, gains_on_other_lines
from seq2seq.runs import RunFolder

GRID = ("--beams", "1,4", "--length-penalties", "0,1.6", "--coverage-penalties", "0,0.2")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A run of its own beside a corpus of its own."""
    folder = tmp_path / "corpus"
    shutil.copytree(trained.parent, folder, ignore=shutil.ignore_patterns("second", "stranger"))
    config = folder / "run" / "config.yaml"
    lines = config.read_text(encoding="utf-8").replace(str(trained.parent), str(folder)).split("\n")
    config.write_text("\n".join([lines[0], *lines[2:]]), encoding="utf-8")  # line 2 is the seal
    return folder / "run"


def tune(run: Path, *arguments: object) -> dict:
    done = in_process("tune", run, "--json", *arguments)
    assert done.status == 0, done.err
    return json.loads(done.out)


def evaluate(run: Path, trained: Path, *how: object) -> dict:
    validation = ("--source", trained.parent / "val.en", "--reference", trained.parent / "val.de")
    return json.loads(in_process("evaluate", run, *validation, "--json", *how).out)


@pytest.mark.parametrize("tokenizer", ["13a", "zh", "char"])
def test_bleu_of_summed_counts_is_bleu(tokenizer: str) -> None:
    references = [target for _, target in numbered_pairs(9)] + ["", "今天天气很好。"]
    hypotheses = [*references[3:6], *references[3:9], "x", "今天天气好。 "]
    counts = sum(bleu_counts(ours, theirs, tokenizer) for ours, theirs in zip(hypotheses, references, strict=True))
    expected = score(hypotheses, [references], target_language="de", tokenize=tokenizer).bleu.value
    assert bleu_of_counts(counts) == pytest.approx(expected, abs=1e-12)


def test_every_figure_is_the_one_that_evaluate_gives(run: Path, trained: Path) -> None:
    found = tune(run, *GRID)
    assert len(found["trials"]) == 3 * 3 * 2, "the present settings are compared as well"
    for trial in found["trials"]:
        if trial["beam_size"] == 4 and trial["length_penalty"] != 1.0:
            how = ("--beam", trial["beam_size"], "--length-penalty", trial["length_penalty"])
            ours = evaluate(run, trained, *how, "--coverage-penalty", trial["coverage_penalty"])
            assert trial["bleu"] == pytest.approx(ours["bleu"]["score"], abs=1e-9)
    assert found["best"]["bleu"] == max(trial["bleu"] for trial in found["trials"])
    assert not (run / "decoding.json").exists()


def test_the_test_set_has_no_say(run: Path) -> None:
    expected = tune(run, *GRID)
    (run.parent / "test.de").write_text("")
    (run.parent / "test.en").write_text("")
    assert tune(run, *GRID) == expected


def test_what_is_written_is_used_until_it_is_deleted_or_overruled(run: Path, trained: Path) -> None:
    before = in_process("evaluate", run).out
    done = in_process("tune", run, "--write", "--beams", 7, "--length-penalties", "0.3", "--coverage-penalties", "0.7")
    assert done.status == 0, done.err
    assert "as it is now" in done.out
    kept = json.loads((run / "decoding.json").read_text(encoding="utf-8"))
    kept["decoding"] = {"beam_size": 7, "length_penalty": 0.3, "coverage_penalty": 0.7}
    (run / "decoding.json").write_text(json.dumps(sealed(kept)))
    tuned = in_process("evaluate", run).out
    assert tuned.splitlines()[0] == "20 sentences, beam 7, length penalty 0.3, coverage penalty 0.7"
    overruled = in_process("evaluate", run, "--beam", 5, "--length-penalty", 1, "--coverage-penalty", 0).out
    assert overruled == before
    (run / "decoding.json").unlink()
    assert in_process("evaluate", run).out == before


def test_what_is_written_is_the_best_that_was_found(run: Path) -> None:
    found = tune(run, *GRID, "--write")
    kept = json.loads((run / "decoding.json").read_text(encoding="utf-8"))
    assert kept["decoding"] == {name: value for name, value in found["best"].items() if name != "bleu"}
    assert kept["bleu"] == found["best"]["bleu"]
    assert kept == sealed(kept)


def refused(run: Path, content: str, *words: str) -> Finished:
    (run / "decoding.json").write_text(content, encoding="utf-8")
    return in_process("translate", run, stdin=b"x\n").refused("decoding.json", "delete it", *words)


def test_a_damaged_or_foreign_choice_is_refused_with_the_way_out(run: Path) -> None:
    tune(run, "--beams", 2, "--length-penalties", 1, "--coverage-penalties", 0, "--write")
    good = (run / "decoding.json").read_text(encoding="utf-8")
    for content in ("", "[]", good.replace(": 2", ": 3", 1), good[:-9], '{"a": NaN}', "[" * 9999, "x" * 2_000_000):
        refused(run, content, "damaged")
    facts = json.loads(good)
    refused(run, json.dumps(sealed({**facts, "format": 2})), "format 2", "format 1")
    wild = {**facts["decoding"], "beam_size": 0}
    refused(run, json.dumps(sealed({**facts, "decoding": wild})), "range")


def test_what_is_tuned_is_part_of_a_run_and_goes_with_it(run: Path) -> None:
    tune(run, "--beams", 2, "--length-penalties", 1, "--coverage-penalties", 0, "--write")
    in_process("translate", run, "--output", run / "decoding.json", stdin=b"x\n").refused("part of a run")
    folder = RunFolder(run)
    folder.create("data: {}\n", {"tokenizer.model": b"x"}, replace=True)
    folder.release()
    assert not (run / "decoding.json").exists()


def test_of_equals_the_smallest_beam_and_the_present_penalties_win() -> None:
    from seq2seq.config.schema import DecodingConfig

    equals = [Trial(5, 1.0, 0.0, 9.0), Trial(3, 0.0, 0.0, 9.0), Trial(3, 1.2, 0.1, 9.0), Trial(3, 1.2, 0.0, 9.0)]
    assert best([*equals, Trial(1, 1.0, 0.0, 8.9)], DecodingConfig()) == equals[3]


def test_what_a_choice_is_worth_is_measured_on_lines_that_did_not_choose() -> None:
    from seq2seq.config.schema import DecodingConfig

    present = Trial(5, 1.0, 0.0, 6.0, (6.0, 6.0, 6.0, 6.0))
    lucky = Trial(5, 1.2, 0.0, 7.5, (10.0, 5.0, 7.0, 8.0))  # by chance best on the first half, and worse on its rest
    assert gains_on_other_lines([present, lucky], DecodingConfig()) == [0.0, -1.0, 1.0, 2.0]


def test_two_and_two_halves_are_all_lines() -> None:
    for lines in (2, 7, 20):
        half_HL = _halves(lines)
        assert (half_HL[0::2] + half_HL[1::2] == 1).all()
        assert set(half_HL.sum(axis=1).tolist()) == {lines // 2, lines - lines // 2}
    assert len(_halves(1)) == 0, "one line cannot be halved"


def test_what_a_choice_is_worth_is_said(run: Path) -> None:
    found = tune(run, *GRID)
    assert isinstance(found["gain_on_other_lines"], float)
    assert f"it is worth {found['gain_on_other_lines']:+.2f} BLEU (40 halves" in in_process("tune", run, *GRID).out


@pytest.mark.parametrize("given", ["", "5,", "0", "1;2", "a"])
def test_lists_are_numbers_between_commas(run: Path, given: str) -> None:
    in_process("tune", run, f"--beams={given}").refused("--beams", "1 to 1,024")


def test_a_corpus_that_is_gone_is_named(run: Path) -> None:
    (run.parent / "val.de").unlink()
    in_process("tune", run).refused("data.validation.target", "val.de")
