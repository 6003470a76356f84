"""Claims about techniques for small corpora as a training knows them: each resumes to the bit, and makes sense.

What each computes is claimed beside its part: test_dropout.py, test_averaging.py, test_consistency.py, ...
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import in_process
from test_resume import assert_same_run, told, train
from test_team import alone, same_run, torchrun

TECHNIQUES = {
    "word_dropout": ("source_word_dropout=0.2", "target_word_dropout=0.1"),
    "r_drop": ("r_drop=3.5", "accumulate=2", "batch_tokens=200"),
    "subword_sampling": ("subword_sampling=0.3", "checkpoint_every=1"),
    "ema": ("average=ema", "average_decay=0.8", "average_warmup=2"),
    "last": ("average=last", "average_last=3", "validate_every=2"),
}
TOGETHER = (
    *("source_word_dropout=0.2", "r_drop=2", "subword_sampling=0.3", "sampled_sides=source"),
    *("average=ema", "average_decay=0.8", "validate_every=6"),
)
some_steps = pytest.mark.parametrize(
    "settings",
    [pytest.param(TOGETHER, id="together")]
    + [pytest.param(settings, id=name, marks=pytest.mark.long) for name, settings in TECHNIQUES.items()],
)


@some_steps
def test_a_training_with_a_technique_resumes_to_the_bit(tiny: Path, settings: tuple[str, ...]) -> None:
    train(tiny, "whole", *settings)
    for steps in ("max_steps=5", "max_steps=null"):  # in the middle of the first epoch, and the end
        train(tiny, "parts", *settings, steps, more=[] if steps == "max_steps=5" else ["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")
    assert told(tiny / "whole")[-1]["reason"] == "epochs"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("training.average_last=3",), ("average_last is 3", "average is none", "only with average last")),
        (("training.average=last", "training.average_decay=0.9"), ("average_decay is 0.9", "only with average ema")),
        (("training.subword_sampling=0.1", "tokenizer.model_type=char"), ("subword_sampling is 0.1", "char", "bpe")),
        (("model.residual=true",), ("model.residual is true", "no second layer")),
        (("training.sampled_sides=source",), ("sampled_sides is source", "subword_sampling is null")),
        (("training.r_drop=1", "model.dropout=0"), ("r_drop is 1", "model.dropout is 0", "both readings are the same")),
    ],
)
def test_what_makes_no_sense_together_is_refused(tiny: Path, settings: tuple[str, ...], words: tuple[str, ...]) -> None:
    in_process("train", tiny / "tiny.yaml", *[word for setting in settings for word in ("--set", setting)]).refused(
        *words
    )


@pytest.mark.long
def test_a_team_samples_and_averages_as_one(tiny: Path) -> None:
    """Every process cuts the same pieces and keeps the same averages; test_team.py says what else it shares."""
    settings = ("training.subword_sampling=0.2", "training.average=ema", "training.average_decay=0.8")
    together = torchrun(2, tiny, "together", "training.accumulate=1", *settings)
    out, _ = together.communicate(timeout=300)
    assert together.returncode == 0, out
    same_run(tiny / "together", alone(tiny, "alone", "training.accumulate=2", *settings))
