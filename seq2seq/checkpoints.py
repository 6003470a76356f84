"""One checkpoint on the disk: a folder that is whole, or is refused.

    checkpoint.json        plain facts, the other files with size and SHA-256, and its own SHA-256
    weights.safetensors    all weights in fp32
    training.safetensors   in last/: what a resume needs beside them

Facts are JSON and tensors are safetensors, so opening a stranger's checkpoint runs no code. Everything is held against
its size and digest before anything is made of it. A digest tells of damage, not of ill will: whoever can change a file
can change its digest, so what a file says is also held against limits and against the settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from seq2seq.errors import CheckpointError
from seq2seq.files import sealed as sealed
from seq2seq.files import write_file

if TYPE_CHECKING:
    from torch import Tensor

FORMAT, PROGRAM = 1, "seq2seq"
WEIGHTS, TRAINING, FACTS = "weights.safetensors", "training.safetensors", "checkpoint.json"
MOST_FACTS = 2**20  # bytes; a checkpoint's facts take a few thousand
DEEPEST_FACTS = 20  # levels of nesting; the facts need five


def write_checkpoint(folder: Path, facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, Tensor] | None]) -> None:
    """Make a folder with all of a checkpoint; the list of its files comes last and says that it is whole."""
    folder.mkdir()
    files = {name: write_tensors(folder / name, tensors) for name, tensors in parts.items() if tensors is not None}
    content = sealed({"format": FORMAT, "program": PROGRAM, **facts, "files": files})
    write_file(folder / FACTS, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write a safetensors file; returns its size and SHA-256, by which it is known again."""
    from safetensors.torch import save

    data = save({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()})
    write_file(path, data)
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read_facts(folder: Path, advice: str) -> dict[str, Any]:
    """The facts of a checkpoint. CheckpointError, which ends with `advice`, where they are not what was written."""
    path = folder / FACTS
    if path.stat().st_size > MOST_FACTS:
        _refuse(path, "is damaged or not a checkpoint of this program", advice)
    try:
        facts = json.loads(path.read_bytes(), parse_constant=_no_constant)
        whole = isinstance(facts, dict) and not _is_deep(facts) and sealed(facts) == facts
    except (ValueError, RecursionError):
        _refuse(path, "is damaged or not a checkpoint of this program", advice)
    ours = isinstance(facts, dict) and facts.get("program") == PROGRAM
    # Before the digest: a later format may have another kind of seal.
    if ours and facts.get("format", FORMAT) != FORMAT:
        raise CheckpointError(
            f"{path} has format {facts.get('format')!r:.40}, and this version of the program reads format {FORMAT}; "
            "use the version that wrote it, or train again."
        )
    if not ours or not whole or not isinstance(facts.get("files"), dict):
        _refuse(path, "is damaged or not a checkpoint of this program", advice)
    return dict(facts)


def _is_deep(facts: object) -> bool:
    """Whether something is nested so deeply that whoever looks at it would have to fear for the stack."""
    level = [facts]
    for _ in range(DEEPEST_FACTS):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def read_tensors(
    folder: Path, file_name: str, facts: Mapping[str, Any], advice: str, most: int | None = None
) -> dict[str, Tensor]:
    """The tensors of one file of a checkpoint. CheckpointError where it is not the file that was written.

    One of more than `most` bytes is refused unread, since its size and digest may be forged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = folder / file_name
    listed = facts["files"].get(file_name)
    if not path.is_file() or not isinstance(listed, dict):
        raise CheckpointError(f"{path} is missing: the checkpoint is incomplete.{advice}")
    size = path.stat().st_size
    if size != listed.get("size"):
        expected = listed.get("size")
        _refuse(path, f"is damaged or incomplete: it has {size:,} bytes and should have {expected!r:.40}", advice)
    if most is not None and size > most:
        _refuse(path, f"does not fit the settings beside it: {size:,} bytes are more than their model needs", advice)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != listed.get("sha256"):
        _refuse(path, "is damaged: its content has changed since it was written", advice)
    try:
        return load(data)
    # Beside the reader's own: a type of number that torch lacks, a shape of nothing by more than torch can count.
    except (SafetensorError, ValueError, KeyError, AttributeError, RuntimeError, TypeError, AssertionError):
        _refuse(path, "is damaged: it is no safetensors file", advice)


def _refuse(path: Path, problem: str, advice: str) -> NoReturn:
    raise CheckpointError(f"{path} {problem}.{advice}")
