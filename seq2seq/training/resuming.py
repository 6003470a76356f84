"""What must be as it was for a run to go on: a resume that quietly trains something else would be worse than none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.config.fields import as_yaml
from seq2seq.config.loading import flat
from seq2seq.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.runs import Checkpoint

# These decide which weights exist, which numbers the text becomes and which pairs meet in a batch. Paths may change,
# since the corpus itself is compared; rates, limits, patience, device and precision may change at will.
_FIXED = (
    "seed",
    "tokenizer",
    "model",
    "data.source_language",
    "data.target_language",
    "data.max_length",
    "data.bad_lines",
    "training.batch_tokens",
    "training.batch_sentences",
    "training.accumulate",
    "training.optimizer",
    "training.subword_sampling",
    "training.sampled_sides",
)


def check_settings(stored: Config, asked: Config) -> None:
    """ConfigError naming the first setting that may not change in a run, with both values."""
    before, now = dict(flat(stored.model_dump())), dict(flat(asked.model_dump()))
    for key in sorted(before.keys() | now.keys()):
        fixed = any(key == name or key.startswith(name + ".") for name in _FIXED)
        if not fixed or before.get(key) == now.get(key):
            continue
        if key == "tokenizer.vocab_size":
            raise ConfigError(
                f"The run was begun with a vocabulary of {before[key]} pieces, and the settings ask for one of "
                f"{now[key]} (tokenizer.vocab_size); resume with the run's own vocabulary, or begin a new run."
            )
        raise ConfigError(
            f"{key} was {as_yaml(before.get(key))} when the run began and is {as_yaml(now.get(key))} now; it cannot "
            "change in a run. "
            "Put it back, or begin a new run."
        )


def check_corpus(checkpoint: Checkpoint, fingerprint: str, run: Path) -> None:
    """CheckpointError where the training pairs are not those that the run began with."""
    if checkpoint.facts.get("corpus") != fingerprint:
        raise CheckpointError(
            f"The training pairs are not those that {run} was trained on, so it cannot go on as if nothing had "
            "happened; put the old files back, or begin a new run."
        )
