"""Claims about techniques for small corpora as a training knows them: each resumes to the bit, and makes sense.

What each computes is claimed beside its part: test_dropout.py, test_averaging.py, test_consistency.py, ...
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import in_process
from test_resume import assert_same_run, told, train

TECHNIQUES = {
    "word_dropout": ("source_word_dropout=0.2", "target_word_dropout=0.1", "validate_every=3"),
    "r_drop": ("r_drop=3.5", "accumulate=2", "batch_tokens=200"),
    "ema": ("average=ema", "average_decay=0.8", "average_warmup=2", "validate_every=3"),
    "last": ("average=last", "average_last=3", "validate_every=2"),
}


@pytest.mark.parametrize("settings", TECHNIQUES.values(), ids=TECHNIQUES)
def test_a_training_with_a_technique_resumes_to_the_bit(tiny: Path, settings: tuple[str, ...]) -> None:
    train(tiny, "whole", *settings)
    for steps in ("max_steps=2", "max_steps=8", "max_steps=null"):
        train(tiny, "parts", *settings, steps, more=[] if steps == "max_steps=2" else ["--resume"])
    assert_same_run(tiny / "whole", tiny / "parts")
    assert told(tiny / "whole")[-1]["reason"] == "epochs"


def test_two_readings_without_dropout_are_refused(tiny: Path) -> None:
    settings = ("training.r_drop=1", "model.dropout=0")
    done = in_process("train", tiny / "tiny.yaml", *[word for setting in settings for word in ("--set", setting)])
    done.refused("training.r_drop is 1", "model.dropout is 0", "both readings are the same")
