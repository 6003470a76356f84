"""A run folder: everything that a training made and everything that a translation needs.

    config.yaml        all settings, resolved
    tokenizer.model    (or tokenizer.source.model and tokenizer.target.model)
    best/  last/       weights.safetensors and checkpoint.json; last/ also training.safetensors, for a resume
    metrics.jsonl      one JSON object a line; train.log: the same for people

A checkpoint is a folder whose checkpoint.json names every other file in it with size and SHA-256; it is written beside
the old one and takes its place by renaming, so a crash at any moment leaves one that is whole. Weights are safetensors,
facts are JSON: opening a run of a stranger runs no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from seq2seq.errors import CheckpointError, RunError
from seq2seq.files import sync_folder, write_file

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
WEIGHTS, TRAINING, FACTS = "weights.safetensors", "training.safetensors", "checkpoint.json"
# What a crash can leave of a checkpoint called `last`: the next one, whole or not, and the one before.
_NEXT, _BEFORE = ".next", ".before"
_OUR_FILES = ("config.yaml", "metrics.jsonl", "train.log", "test.json", ".lock")
_MOST_FACTS = 16 * 2**20


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: the weights, plain facts, and (in last/) the tensors that a resume needs."""

    weights: dict[str, Tensor]
    facts: dict[str, Any]
    training: dict[str, Tensor]


class RunFolder:
    """One run on disk. `create` makes a new one, `open` finds an existing one; both refuse what is not as expected."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None

    # -- finding and making -------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run. RunError where there is none."""
        if not path.exists():
            raise RunError(f"There is no run folder {path.absolute()}; give the folder that `seq2seq train` wrote.")
        if not path.is_dir():
            raise RunError(
                f"{path} is a file, not a run folder of this program; give the folder that `seq2seq train` wrote."
            )
        run = cls(path)
        if not (path / "config.yaml").is_file():
            raise RunError(
                f"{path} is not a run folder of this program: it has no config.yaml; give the folder that "
                "`seq2seq train` wrote."
            )
        return run

    @classmethod
    def begun(cls, path: Path) -> RunFolder:
        """A run to go on with, locked. RunError where there is none, or where another process works on it."""
        run = cls.open(path)
        if not run.holds_run():
            raise RunError(f"{path} has a config.yaml but no tokenizer, so no run has begun there; check --run.")
        run.lock()
        return run

    @classmethod
    def vacant(cls, path: Path, *, overwrite: bool) -> RunFolder:
        """A folder in which a new run may begin, not yet made. RunError where a run or other files are in it."""
        run = cls(path)
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file, and a run needs a folder; choose another --run.")
        if run.holds_run() and not overwrite:
            run._refuse_to_replace()
        if path.is_dir() and not run.holds_run():
            # A config.yaml on its own is a person's: a run writes its tokenizer first.
            strangers = sorted(
                entry.name for entry in path.iterdir() if not run._is_ours(entry.name) or entry.name == "config.yaml"
            )
            if strangers:
                raise RunError(f"{path} is not empty and holds no run (found {strangers[0]}); choose another --run.")
        existing = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
        if not os.access(existing, os.W_OK | os.X_OK):
            raise RunError(
                f"{existing} cannot be written, and the run folder {path} belongs there; choose another --run."
            )
        return run

    def create(self, config: str, tokenizer_files: Mapping[str, bytes], *, replace: bool) -> None:
        """Make the folder and write what is known before the first update; `replace` an old run, or find none."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.lock()
        if self.holds_run() and not replace:  # made by another process since `vacant` looked
            self._refuse_to_replace()
        # First of all what says that this is a run: a crash in the middle must not leave half of one.
        (self.path / "config.yaml").unlink(missing_ok=True)
        for entry in self.path.iterdir():
            if self._is_ours(entry.name) and entry.name != ".lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for name, data in tokenizer_files.items():
            write_file(self.path / name, data)
        write_file(self.path / "config.yaml", config)

    def holds_run(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / "config.yaml").is_file() and any(self.path.glob("tokenizer.*model"))

    def _refuse_to_replace(self) -> NoReturn:
        raise RunError(
            f"{self.path} already holds a run; continue it with --resume, replace it with --overwrite, or choose "
            "another --run."
        )

    @staticmethod
    def _is_ours(name: str) -> bool:
        checkpoint = name.removesuffix(_NEXT).removesuffix(_BEFORE) in ("best", "last")
        tokenizer = name.startswith("tokenizer.") and name.endswith("model")
        return name in _OUR_FILES or checkpoint or tokenizer or (name.startswith(".") and name.endswith(".tmp"))

    def lock(self) -> None:
        """Keep other processes out until this one ends, however it ends. RunError where one is in."""
        if self.is_held():
            return
        stream = (self.path / ".lock").open("ab")
        try:
            _lock_file(stream)
        except OSError:
            stream.close()
            raise RunError(
                f"{self.path} is in use by another training; wait for it to end, or choose another --run."
            ) from None
        self._lock = stream

    def is_held(self) -> bool:
        """Whether it is this object that keeps others out, so that the run is its own to write."""
        return self._lock is not None

    def release(self) -> None:
        """Let others in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def save(
        self,
        name: str,
        weights: Mapping[str, Tensor],
        facts: Mapping[str, Any],
        training: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write checkpoint `name` (best or last). The old one stays until the new one is complete on the disk."""
        target = self.path / name
        following, before = self.path / f"{name}{_NEXT}", self.path / f"{name}{_BEFORE}"
        if not target.exists() and (following / FACTS).exists():  # a crash came between the two renames below
            following.rename(target)
        shutil.rmtree(following, ignore_errors=True)
        try:
            self._write_checkpoint(following, facts, {WEIGHTS: weights, TRAINING: training})
        except OSError:
            shutil.rmtree(following, ignore_errors=True)  # a full disk needs the room
            raise
        if target.exists():
            shutil.rmtree(before, ignore_errors=True)
            target.rename(before)
        following.rename(target)
        sync_folder(self.path)
        shutil.rmtree(before, ignore_errors=True)

    @staticmethod
    def _write_checkpoint(
        folder: Path, facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, Tensor] | None]
    ) -> None:
        """Make a folder with all of a checkpoint; the list of its files comes last and says that it is whole."""
        from safetensors.torch import save

        folder.mkdir()
        files = {}
        for file_name, tensors in parts.items():
            if tensors is None:
                continue
            data = save({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()})
            write_file(folder / file_name, data)
            files[file_name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        content = {"format": FORMAT, "program": "seq2seq", **facts, "files": files}
        write_file(folder / FACTS, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def load(self, name: str, *, with_training: bool = False) -> Checkpoint:
        """Read checkpoint `name`, held against its own sizes and SHA-256. CheckpointError if it is not whole."""
        try:
            return self._read(name, with_training)
        except (CheckpointError, FileNotFoundError):
            # A training may have put the next one in its place while we read; a damaged one stays damaged.
            return self._read(name, with_training)

    def _read(self, name: str, with_training: bool) -> Checkpoint:
        folder = self._whole(name)
        facts = self._facts(folder)
        weights = self._tensors(folder, WEIGHTS, facts)
        training = self._tensors(folder, TRAINING, facts) if with_training else {}
        return Checkpoint(weights, facts, training)

    def has(self, name: str) -> bool:
        """Whether a checkpoint of this name has been written, be it damaged since."""
        return (self.path / name).exists() or any(
            (self.path / f"{name}{state}" / FACTS).is_file() for state in (_NEXT, _BEFORE)
        )

    def _whole(self, name: str) -> Path:
        """The folder of checkpoint `name`; after a crash between two renames, the one that is complete beside it."""
        for state in ("", _NEXT, _BEFORE):
            folder = self.path / f"{name}{state}"
            if (folder / FACTS).exists():
                return folder
        if (self.path / name).exists():
            raise CheckpointError(
                f"{self.path / name} is damaged or incomplete: it has no {FACTS}.{self._others(name)}"
            )
        raise CheckpointError(f"There is no checkpoint {self.path / name}.{self._others(name)}")

    def _others(self, name: str) -> str:
        others = [other for other in ("best", "last") if other != name and (self.path / other / FACTS).is_file()]
        return (
            f" The run also has {self.path / others[0]}."
            if others
            else " Train again, or restore the folder from a copy."
        )

    def _facts(self, folder: Path) -> dict[str, Any]:
        path = folder / FACTS
        damaged = CheckpointError(f"{path} is damaged or not a checkpoint of this program.{self._others(folder.name)}")
        if path.stat().st_size > _MOST_FACTS:
            raise damaged
        try:
            facts = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise damaged from None
        if not isinstance(facts, dict) or facts.get("program") != "seq2seq" or not isinstance(facts.get("files"), dict):
            raise damaged
        if facts.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} has format {facts.get('format')}, and this version of the program reads format {FORMAT}; "
                "use the version that wrote it, or train again."
            )
        return facts

    def _tensors(self, folder: Path, file_name: str, facts: dict[str, Any]) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load

        path = folder / file_name
        listed = facts["files"].get(file_name)
        if not path.is_file() or not isinstance(listed, dict):
            raise CheckpointError(f"{path} is missing: the checkpoint is incomplete.{self._others(folder.name)}")
        size = path.stat().st_size
        if size != listed.get("size"):
            raise CheckpointError(
                f"{path} is damaged or incomplete: it has {size:,} bytes and should have {listed.get('size')}."
                f"{self._others(folder.name)}"
            )
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != listed.get("sha256"):
            raise CheckpointError(
                f"{path} is damaged: its content has changed since it was written.{self._others(folder.name)}"
            )
        try:
            return load(data)
        except (SafetensorError, ValueError, KeyError):
            raise CheckpointError(f"{path} is damaged: it is no safetensors file.{self._others(folder.name)}") from None

    # -- the record ---------------------------------------------------------------------------------------------------

    def write(self, name: str, content: str) -> None:
        """Write or replace one of the run's small files."""
        write_file(self.path / name, content)

    def append_metrics(self, event: Mapping[str, Any]) -> None:
        """Add one event to metrics.jsonl."""
        self._append("metrics.jsonl", json.dumps(event, ensure_ascii=False, allow_nan=False))

    def append_log(self, line: str) -> None:
        """Add one line to train.log."""
        self._append("train.log", line)

    def _append(self, name: str, line: str) -> None:
        path = self.path / name
        try:
            with path.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(line + "\n")
        except OSError as error:  # one that comes from a write knows no name
            raise OSError(error.errno, error.strerror, str(path)) from error

    def forget_metrics_after(self, step: int) -> None:
        """Drop what a run wrote after its last checkpoint, and its end: a resume tells that part again."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                event = json.loads(line)
                if event["step"] <= step and event["event"] != "end":
                    kept.append(line + "\n")
        write_file(path, "".join(kept))


def run_of(path: Path) -> tuple[Path, str]:
    """The run folder and the checkpoint that a path names: RUN is its best one, RUN/best and RUN/last themselves."""
    if path.name in ("best", "last") and not (path / "config.yaml").exists() and (path.parent / "config.yaml").exists():
        return path.parent, path.name
    return path, "best"


def _lock_file(stream: IO[bytes]) -> None:
    """An exclusive lock that the system releases when the process ends; OSError where another process holds it."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
