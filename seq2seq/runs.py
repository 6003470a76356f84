"""A run folder: everything that a training made and everything that a translation needs.

    config.yaml        all settings, resolved, with a digest in its heading
    decoding.json      how to search, where `seq2seq tune` has chosen it
    tokenizer.model    (or tokenizer.source.model and tokenizer.target.model; .json for lists of words)
    best/  last/       weights.safetensors and checkpoint.json; last/ also training.safetensors, for a resume
    metrics.jsonl      one JSON object a line; train.log: the same for people
    tensorboard/       the same for TensorBoard, where it was asked for

A checkpoint is a folder whose checkpoint.json names every other file in it with size and SHA-256, and the tokenizer
beside it; it is written beside the old one and takes its place by renaming, so a crash at any moment leaves one that is
whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

from seq2seq import __version__
from seq2seq.checkpoints import FACTS, TRAINING, WEIGHTS, read_facts, read_tensors, write_checkpoint, write_tensors
from seq2seq.errors import CheckpointError, RunError
from seq2seq.files import lock_file, sync_folder, write_file

if TYPE_CHECKING:
    from torch import Tensor

Read = TypeVar("Read")

# What a crash can leave of a checkpoint called `last`: the next one, whole or not, and the one before.
_NEXT, _BEFORE = ".next", ".before"
_SHORTLIST = "shortlist.safetensors"
TUNED = "decoding.json"
_OUR_FILES = ("config.yaml", TUNED, _SHORTLIST, "metrics.jsonl", "train.log", "test.json", "tensorboard", ".lock")
_MOST_CONFIG = 1_000_001  # bytes; one more than is read as settings
# The first two lines of a config.yaml that the program wrote; the digest is that of all lines but its own.
_HEADING = "# All settings of this run, as seq2seq {} understood them."
_SEAL = "# SHA-256 of the rest: {}  (delete this line if you change the file by hand)"


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
        if not run.holds_run() and (run.has("last") or run.has("best")):
            raise RunError(f"{path} has checkpoints and no tokenizer: its file is missing; restore it from a copy.")
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
        if run.holds_run():  # one that another process works on is refused now, before any work is done
            run.lock()
            run.release()
        if path.is_dir() and not run.holds_run():
            # A config.yaml on its own is a person's: a run writes its tokenizer first.
            strangers = sorted(
                entry.name for entry in path.iterdir() if not run.is_ours(entry.name) or entry.name == "config.yaml"
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
            if self.is_ours(entry.name) and entry.name != ".lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for name, data in tokenizer_files.items():
            write_file(self.path / name, data)
        self.write_config(config)

    def write_config(self, settings: str) -> None:
        """Write config.yaml: the settings under a heading that says whether they are still as they were written."""
        heading = _HEADING.format(__version__) + "\n"
        digest = hashlib.sha256((heading + settings).encode("utf-8")).hexdigest()
        write_file(self.path / "config.yaml", f"{heading}{_SEAL.format(digest)}\n{settings}")

    def check_config(self) -> None:
        """RunError where config.yaml is not as the program wrote it; without the line of the digest all is accepted."""
        path = self.path / "config.yaml"
        with path.open("rb") as stream:
            content = stream.read(_MOST_CONFIG)
        # In the first three lines, since a damaged byte may have become a line break.
        heading = content.split(b"\n", 3)[:3]
        sealed = b"SHA-256" in b"\n".join(heading) or b"\n".join(heading[1:2]).startswith(b"#")
        if not sealed:
            return
        lines = content.split(b"\n", 2)
        lines += [b""] * (3 - len(lines))
        digest = hashlib.sha256(lines[0] + b"\n" + lines[2]).hexdigest()
        if lines[1] != _SEAL.format(digest).encode("ascii"):
            raise RunError(
                f"{path} is damaged or was changed: it does not match the SHA-256 in its line 2. Restore it from a "
                "copy; if you changed it yourself, delete line 2."
            )

    def holds_run(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / "config.yaml").is_file() and any(map(_is_tokenizer, self.path.glob("tokenizer.*")))

    def _refuse_to_replace(self) -> NoReturn:
        raise RunError(
            f"{self.path} already holds a run; continue it with --resume, replace it with --overwrite, or choose "
            "another --run."
        )

    @staticmethod
    def is_ours(name: str) -> bool:
        checkpoint = name.removesuffix(_NEXT).removesuffix(_BEFORE) in ("best", "last")
        return (
            name in _OUR_FILES
            or checkpoint
            or _is_tokenizer(Path(name))
            or (name.startswith(".") and name.endswith(".tmp"))
        )

    def lock(self) -> None:
        """Keep other processes out until this one ends, however it ends. RunError where one is in."""
        if self.is_held():
            return
        stream = (self.path / ".lock").open("ab")
        try:
            lock_file(stream)
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
            write_checkpoint(following, facts, {WEIGHTS: weights, TRAINING: training})
        except OSError:
            shutil.rmtree(following, ignore_errors=True)  # a full disk needs the room
            raise
        if target.exists():
            shutil.rmtree(before, ignore_errors=True)
            target.rename(before)
        following.rename(target)
        sync_folder(self.path)
        shutil.rmtree(before, ignore_errors=True)

    def clear_leftovers(self) -> None:
        """Put right what crashes have left: half a file goes, and one of two checkpoints takes or has its place."""
        for path in self.path.glob(".*.tmp"):
            if path.is_file():
                path.unlink()
        for name in ("best", "last"):
            target, others = self.path / name, [self.path / f"{name}{state}" for state in (_NEXT, _BEFORE)]
            for other in others:
                if not target.exists() and (other / FACTS).is_file():  # a crash came between the two renames
                    other.rename(target)
            for other in others:
                if (target / FACTS).is_file():
                    shutil.rmtree(other, ignore_errors=True)

    def load(self, name: str, *, with_training: bool = False, most: int | None = None) -> Checkpoint:
        """Read checkpoint `name`, held against its own sizes and SHA-256. CheckpointError if it is not whole.

        No file of more than `most` bytes is read.
        """

        def read() -> Checkpoint:
            folder, advice = self._whole(name), self._others(name)
            facts = read_facts(folder, advice)
            weights = read_tensors(folder, WEIGHTS, facts, advice, most)
            training = read_tensors(folder, TRAINING, facts, advice, most) if with_training else {}
            return Checkpoint(weights, facts, training)

        return _twice(read)

    def facts(self, name: str) -> dict[str, Any]:
        """What checkpoint `name` says of itself, without its tensors. CheckpointError if that is not whole."""
        return _twice(lambda: read_facts(self._whole(name), self._others(name)))

    def has(self, name: str) -> bool:
        """Whether a checkpoint of this name has been written, be it damaged since."""
        return (self.path / name).exists() or any(
            (self.path / f"{name}{state}" / FACTS).is_file() for state in (_NEXT, _BEFORE)
        )

    def _whole(self, name: str) -> Path:
        """The folder of checkpoint `name`; after a crash between two renames, the one that is complete beside it."""
        for state in ("", _NEXT, _BEFORE):
            folder = self.path / f"{name}{state}"
            if (folder / FACTS).is_file():
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

    # -- the shortlist ------------------------------------------------------------------------------------------------

    def write_shortlist(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """Keep the lexical shortlist; returns what checkpoints say of it, by which it is known again."""
        return write_tensors(self.path / _SHORTLIST, tensors)

    def read_shortlist(self, facts: Mapping[str, Any], most: int) -> dict[str, Tensor]:
        """The lexical shortlist that a checkpoint's facts name. CheckpointError where none is whole."""
        listed = facts.get("shortlist")
        if not isinstance(listed, dict):
            raise CheckpointError(
                f"{self.path} has no shortlist; train with decoding.shortlist above 0, or go without."
            )
        advice = " Translate without --shortlist, or restore the file from a copy."
        return read_tensors(self.path, _SHORTLIST, {"files": {_SHORTLIST: listed}}, advice, most)

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

    def metrics(self) -> list[dict[str, Any]]:
        """The events of metrics.jsonl; none where there is no such file. Lines that cannot be read are left out."""
        path, events = self.path / "metrics.jsonl", []
        for line in path.read_bytes().split(b"\n") if path.is_file() else []:
            try:
                event = json.loads(line)
                if isinstance(event["step"], int) and isinstance(event["event"], str):
                    events.append(event)
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
        return events

    def forget_metrics_after(self, step: int, *, validation_due: bool) -> int:
        """Drop what a run wrote after its last checkpoint, and its end: a resume tells that part again.

        Where the validation of that step is still due, it may have been told and not saved. Returns how many lines
        could not be read and are gone too; the last one, which a crash may have cut, aside.
        """
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return 0
        kept, damaged = [], 0
        lines = path.read_bytes().split(b"\n")
        for line in lines[:-1]:
            try:
                event = json.loads(line)
                later = event["step"] == step and event["event"] == "validation" and validation_due
                if event["step"] <= step and event["event"] != "end" and not later:
                    kept.append(line + b"\n")
            except (ValueError, KeyError, TypeError, RecursionError):
                damaged += 1
        write_file(path, b"".join(kept))
        return damaged


def _is_tokenizer(path: Path) -> bool:
    return path.name.startswith("tokenizer.") and path.name.endswith(("model", ".json"))


def _twice(read: Callable[[], Read]) -> Read:
    """A training may have put the next checkpoint in its place while we read; a damaged one stays damaged."""
    try:
        return read()
    except (CheckpointError, FileNotFoundError):
        return read()


def run_of(path: Path) -> tuple[Path, str]:
    """The run folder and the checkpoint that a path names: RUN is its best one, RUN/best and RUN/last themselves."""
    if path.name in ("best", "last") and not (path / "config.yaml").exists() and (path.parent / "config.yaml").exists():
        return path.parent, path.name
    return path, "best"


def is_part_of_a_run(path: Path) -> bool:
    """Whether a file is one of those that a run consists of."""
    folder = path.resolve().parent
    if folder.name in ("best", "last"):
        return RunFolder(folder.parent).holds_run()
    return RunFolder(folder).holds_run() and RunFolder.is_ours(path.resolve().name)
