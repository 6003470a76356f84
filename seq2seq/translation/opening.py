"""From a run folder to a model and its tokenizer: what belongs together is opened, and what does not is refused.

Files are exchanged, damaged and forged. Whatever tells how large something may be is read before it is, and no message
holds more of a file than a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from seq2seq.config.fields import MOST_AVERAGED, as_yaml
from seq2seq.corpus.tokenizer import StoredTokenizer, Tokenizer
from seq2seq.errors import CheckpointError
from seq2seq.model.shortlist import Shortlist
from seq2seq.model.translation_model import TranslationModel, empty_model, fill
from seq2seq.runs import Checkpoint, RunFolder

if TYPE_CHECKING:
    from seq2seq.config.schema import Config


def run_config(run: RunFolder) -> Config:
    """The settings of a run. RunError or ConfigError where its config.yaml is damaged."""
    from seq2seq.config.loading import load_config

    run.check_config()
    return load_config(run.path / "config.yaml")


def open_checkpoint(
    run: RunFolder, name: str, config: Config, *, with_training: bool = False
) -> tuple[Checkpoint, Tokenizer]:
    """A checkpoint and the tokenizer it was trained with. CheckpointError where they or the settings do not fit.

    What tells how large the tensors can be is read first, so that nothing larger is.
    """
    where, facts = run.path / name, run.facts(name)
    _check_settings(facts, config, where)
    stored = StoredTokenizer(run.path)
    check_vocabulary(facts, stored, where, " and ".join(str(path) for path in stored.paths))
    tokenizer = stored.open()
    model = empty_model(config.model, tokenizer.source_size, tokenizer.target_size)
    # Adam remembers two numbers for each weight, averages as many as they are of; names and shapes take some kilobytes.
    copies = 3 + (MOST_AVERAGED if with_training else 0)
    most = 4 * copies * model.parameter_count() + 2**20
    return run.load(name, with_training=with_training, most=most), tokenizer


def model_from(checkpoint: Checkpoint, config: Config, tokenizer: Tokenizer, where: Path) -> TranslationModel:
    """The model of a checkpoint (at `where`). CheckpointError where checkpoint, settings and tokenizer do not fit."""
    _check_settings(checkpoint.facts, config, where)
    weights = checkpoint.weights
    model = empty_model(config.model, tokenizer.source_size, tokenizer.target_size)
    foreign = weights.keys() - dict(model.named_parameters()).keys()
    if foreign:
        raise CheckpointError(
            f"{where} does not fit the settings beside it: they know no {min(foreign)}; config.yaml or the checkpoint "
            "has been exchanged."
        )
    for name, parameter in model.named_parameters():
        if name not in weights or weights[name].shape != parameter.shape:
            found = tuple(weights[name].shape) if name in weights else "missing"
            raise CheckpointError(
                f"{where} does not fit the settings beside it: {name} is {found} and should be "
                f"{tuple(parameter.shape)}; config.yaml or the checkpoint has been exchanged."
            )
        if weights[name].dtype != torch.float32:
            raise CheckpointError(
                f"{where} holds {weights[name].dtype} where every training saves torch.float32 ({name}); it is damaged "
                "or not of this program."
            )
        if not torch.isfinite(weights[name]).all():
            raise CheckpointError(f"{where} holds numbers that are not finite ({name}), which no training saves.")
    fill(model, weights)
    return model


def open_shortlist(run: RunFolder, facts: Mapping[str, Any], tokenizer: Tokenizer) -> Shortlist:
    most = 40_000 * tokenizer.source_size + 8 * tokenizer.target_size + 2**16  # decoding.shortlist is 10,000 at most
    try:
        return Shortlist.of(run.read_shortlist(facts, most), tokenizer.source_size, tokenizer.target_size)
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"The shortlist of {run.path} does not fit ({error}); translate without it.") from None


def _check_settings(facts: Mapping[str, object], config: Config, where: Path) -> None:
    """Sizes show in the weights; heads, for one, do not."""
    from seq2seq.config.loading import flat

    trained, now = facts.get("model"), dict(flat(config.model.model_dump(mode="json")))
    if isinstance(trained, dict):
        trained = _with_older_ways(trained)
    for key, value in flat(trained if isinstance(trained, dict) else {}):
        if value != now.get(key):
            raise CheckpointError(
                f"{where} does not fit the settings beside it: it was trained with model.{_shown(key)} "
                f"{_shown(value)}, and config.yaml says {as_yaml(now.get(key))}. Put the old value back."
            )


def _with_older_ways(model: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of its model, and what it does not say since there was no other way when it was made."""
    attention = model.get("attention")
    if not isinstance(attention, dict) or attention.get("kind") not in ("my", "tanh", "qkv", "dot", "general"):
        return model
    return {**model, "attention": {"scaled": False, **attention}}


def _shown(value: object) -> str:
    """A value that a checkpoint holds, for a message: one of ours is a word or a number, a forged one anything."""
    if value is None or isinstance(value, bool):
        return as_yaml(value)
    word = isinstance(value, str) and value.replace(".", "").isidentifier()
    return f"{value!s:.40}" if word else f"{value!r:.40}"


class Vocabularies(Protocol):
    """What is asked of a tokenizer, opened or not."""

    @property
    def source_size(self) -> int: ...

    @property
    def target_size(self) -> int: ...

    def fingerprint(self) -> str: ...


def check_vocabulary(
    facts: Mapping[str, object], tokenizer: Vocabularies, where: Path, name: str = "the tokenizer beside it"
) -> None:
    """Refuse a tokenizer that is not the one the weights were trained with; `name` is what it is called."""
    expected = facts.get("vocabulary")
    if not isinstance(expected, dict):
        raise CheckpointError(f"{where} says nothing of its vocabulary; it is not a checkpoint of this program.")
    sizes = (expected.get("source"), expected.get("target"))
    if expected.get("fingerprint") == tokenizer.fingerprint():
        return
    if sizes != (tokenizer.source_size, tokenizer.target_size):
        raise CheckpointError(
            f"{where} was trained with vocabularies of {_shown(sizes[0])} (source) and {_shown(sizes[1])} (target) "
            f"pieces, and {name} has {tokenizer.source_size} and {tokenizer.target_size}; put back the run's own."
        )
    raise CheckpointError(
        f"{where} was trained with another tokenizer than {name}, though of the same size; it is damaged or was "
        "exchanged, so put back the tokenizer of this run."
    )


def vocabulary_facts(tokenizer: Vocabularies) -> dict[str, object]:
    """What a checkpoint says of its vocabulary."""
    return {
        "source": tokenizer.source_size,
        "target": tokenizer.target_size,
        "fingerprint": tokenizer.fingerprint(),
    }
