"""How a run is to search, where `seq2seq tune` has chosen it: decoding.json beside config.yaml, with its own SHA-256.

A file of its own, since config.yaml says how the run was trained and stays as it was; without decoding.json the
settings of config.yaml hold again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seq2seq.checkpoints import MOST_FACTS, PROGRAM, sealed
from seq2seq.errors import RunError
from seq2seq.runs import TUNED, RunFolder

if TYPE_CHECKING:
    from seq2seq.config.schema import DecodingConfig

FORMAT = 1
CHOSEN = ("beam_size", "length_penalty", "coverage_penalty")


def write_tuned(run: RunFolder, decoding: DecodingConfig, found: Mapping[str, Any]) -> None:
    """Keep what tuning has chosen, and what it found (plain values) for those who look into the file."""
    chosen = {name: getattr(decoding, name) for name in CHOSEN}
    content = sealed({"format": FORMAT, "program": PROGRAM, "decoding": chosen, **found})
    run.write(TUNED, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def is_tuned(run: RunFolder) -> bool:
    """Whether tuning has chosen how this run searches."""
    return (run.path / TUNED).is_file()


def tuned_decoding(run: RunFolder, decoding: DecodingConfig) -> DecodingConfig:
    """The settings of config.yaml with what tuning has chosen in their place, if it has.

    RunError where the file is not as it was written.
    """
    from pydantic import ValidationError

    path = run.path / TUNED
    if not path.is_file():
        return decoding
    advice = "tune again with `seq2seq tune --write`, or delete it to search as config.yaml says."
    damaged = RunError(f"{path} is damaged or was changed: it does not match its own SHA-256; {advice}")
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_FACTS + 1)
        facts = json.loads(content) if len(content) <= MOST_FACTS else None
        whole = isinstance(facts, dict) and sealed(facts) == facts
    except (ValueError, RecursionError):
        raise damaged from None
    if isinstance(facts, dict) and facts.get("program") == PROGRAM and facts.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {facts.get('format')!r:.40}, and this version of the program reads format {FORMAT}; "
            f"{advice}"
        )
    chosen = facts.get("decoding") if isinstance(facts, dict) else None
    if not whole or not isinstance(chosen, dict) or chosen.keys() != set(CHOSEN):
        raise damaged
    try:
        return type(decoding).model_validate({**decoding.model_dump(), **chosen})
    except ValidationError:
        raise RunError(f"{path} holds settings that are out of their range; {advice}") from None
