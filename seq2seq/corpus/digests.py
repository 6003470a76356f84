"""What a file says, in 64 letters: the SHA-256 of its bytes, remembered for as long as nobody has written to it.

A digest of gigabytes takes seconds. So the cache folder remembers it beside what the system says of the file: device,
number, size, and the times of its last change. The time of change of the entry itself (ctime) cannot be set by a
program, so a copy that keeps its date does not pass for the old file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from seq2seq.errors import CorpusError
from seq2seq.files import digest_of, sealed, write_file

# A file that was written to a moment before it was read may be written to again within the same tick of the clock.
_SETTLED = 2_000_000_000  # nanoseconds


class Digests:
    """The digests of files, remembered in a folder where there is one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, list[int]] = {}

    def of(self, paths: Sequence[Path]) -> list[str]:
        """The digest of each. CorpusError where one cannot be read."""
        return [self._of(Path(path).absolute()) for path in paths]

    def check_unchanged(self) -> None:
        """CorpusError where a file has been written to since its digest was asked for."""
        for path, facts in self._seen.items():
            if _facts_of(path) != facts:
                raise CorpusError(f"{path} was changed while it was being read. Start again when it is complete.")

    def _of(self, path: Path) -> str:
        facts = self._seen[path] = _facts_of(path)
        memory = self._folder / f"file-{hashlib.sha256(str(path).encode('utf-8', 'replace')).hexdigest()[:24]}.json"
        known = _remembered(memory)
        if known is not None and known.get("file") == facts and "content" in known:
            return str(known["content"])
        now = time.time_ns()
        try:
            with path.open("rb") as stream:
                digest = digest_of(stream)
        except OSError as error:
            raise _unreadable(path, error) from None
        if _facts_of(path) == facts and max(facts[3:]) + _SETTLED < now:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                write_file(memory, json.dumps(sealed({"path": str(path), "file": facts, "content": digest})) + "\n")
            except OSError:  # a folder that is read only: the digest is taken again the next time
                pass
        return digest


def _facts_of(path: Path) -> list[int]:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _unreadable(path: Path, error: OSError) -> CorpusError:
    return CorpusError(f"{path} cannot be read: {error.strerror or error}.")


def _remembered(memory: Path) -> dict[str, object] | None:
    try:
        facts = json.loads(memory.read_bytes())
        return facts if isinstance(facts, dict) and sealed(facts) == facts else None
    except (OSError, ValueError, RecursionError):
        return None
