"""A cache folder: each thing in it is a folder that is whole, or it is made anew.

    NAME/           files, and facts.json, which names each with its size and SHA-256 and is sealed with its own
    .NAME.*.tmp/    one in the making; it takes its name when all of it is on the disk
    NAME.lock       held by the process that makes it

What a crash, a full disk or a second process does at any moment leaves a thing that is whole, or none. A digest tells
of damage, not of ill will: the folder is one's own, as the corpus is.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq.errors import CacheError
from seq2seq.files import digest_of, lock_file, sealed, sync_folder, write_file

FACTS, MOST_FACTS = "facts.json", 2**20  # the latter in bytes; they take some hundred
_POLL = 0.1  # seconds from one look at a lock to the next


@dataclass(frozen=True)
class Stored:
    """A thing in the cache: its folder and what is known of it."""

    folder: Path
    facts: dict[str, Any]


class Store:
    """The things of one cache folder, by name. `said` is told what a person should know.

    Raises CacheError where the folder cannot be written and must be.
    """

    def __init__(self, folder: Path, said: Callable[[str], None] = lambda _: None) -> None:
        self.folder, self._said = folder, said
        self._damaged: set[str] = set()

    def find(self, name: str) -> Stored | None:
        """A thing that is there and is as it was written, file by file."""
        folder = self.folder / name
        try:
            if not (folder / FACTS).exists():
                return None
            return Stored(folder, _verified(folder))
        except (OSError, ValueError) as error:
            if name not in self._damaged:
                self._damaged.add(name)
                reason = getattr(error, "strerror", None) or error
                self._said(f"{folder} is damaged ({reason}) and is made anew")
            return None

    def put(self, name: str, make: Callable[[Path], Mapping[str, Any]]) -> Stored:
        """Make a thing, or take it from the process that has made it meanwhile.

        `make` writes its files into the folder that it is given, and returns what else should be known.
        """
        with self.alone(name):
            found = self.find(name)
            return self._put(name, make) if found is None else found

    def _put(self, name: str, make: Callable[[Path], Mapping[str, Any]]) -> Stored:
        final = self.folder / name
        folder = self.folder / f".{name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        try:
            folder.mkdir()
            facts = dict(make(folder))
            facts["files"] = {path.name: _seal_of(path, flush=True) for path in sorted(folder.iterdir())}
            write_file(folder / FACTS, json.dumps(sealed(facts), indent=1) + "\n")
            if final.exists():  # a damaged one
                final.rename(folder.with_suffix(".old.tmp"))
            folder.rename(final)
            sync_folder(self.folder)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self._clear_leftovers(name)
        return Stored(final, facts)

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep other processes out until the `with` block ends; waits for one that is in, and says so."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            stream = (self.folder / f"{name}.lock").open("ab")
        except OSError as error:
            raise self._unwritable(error) from error
        told = False
        with stream:
            while True:
                try:
                    lock_file(stream)
                except OSError as error:
                    # Some network drives know no locks. There two processes may do the same work, and no harm.
                    if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                        break
                    if not told:
                        self._said(f"another process is preparing this corpus in {self.folder}; waiting for it")
                    told = True
                    time.sleep(_POLL)
                else:
                    break
            yield

    def _clear_leftovers(self, name: str) -> None:
        """Remove what is left of this thing in the making, and of others that nobody is making any more."""
        for leftover in self.folder.glob(".*.tmp"):
            other = leftover.name.split(".")[1]
            with contextlib.suppress(OSError):
                if other != name:
                    with (self.folder / f"{other}.lock").open("ab") as stream:
                        lock_file(stream)
                        shutil.rmtree(leftover)
                else:
                    shutil.rmtree(leftover)

    def _unwritable(self, error: OSError) -> CacheError:
        return CacheError(
            f"The prepared corpus cannot be written into {self.folder} ({error.strerror or error}); "
            "make room there, or set data.cache to another folder."
        )


def _verified(folder: Path) -> dict[str, Any]:
    """The facts of a thing. ValueError or OSError where it is not what was written."""
    with (folder / FACTS).open("rb") as stream:
        content = stream.read(MOST_FACTS + 1)
    try:
        facts = json.loads(content)
        whole = len(content) <= MOST_FACTS and isinstance(facts, dict) and sealed(facts) == facts
    except (ValueError, RecursionError):
        whole = False
    if not whole or not isinstance(facts.get("files"), dict):
        raise ValueError(f"its {FACTS} has changed")
    for name, seal in facts["files"].items():
        if seal["size"] != (folder / name).stat().st_size or seal != _seal_of(folder / name):
            raise ValueError(f"its {name} has changed")
    return dict(facts)


def _seal_of(path: Path, *, flush: bool = False) -> dict[str, Any]:
    """The size and SHA-256 of a file; with `flush` it is on the disk afterwards."""
    with path.open("rb") as stream:
        digest = digest_of(stream)
        size = os.fstat(stream.fileno()).st_size
        if flush and os.name == "posix":
            os.fsync(stream.fileno())
    return {"size": size, "sha256": digest}
