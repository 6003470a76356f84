"""What has come of a file so far, on the disk, and what must be so for the rest to belong to it."""

from __future__ import annotations

import io
import json
from email.message import Message
from pathlib import Path

from seq2seq.files import write_file


def drop_if_useless(file: Path) -> None:
    """Remove what has come of a file where no other try can go on from it: nothing, or nothing that tells of what."""
    part = Part(file, "")
    if not part.path.exists() or not part.path.stat().st_size or not part.is_noted:
        part.drop()


class Part:
    """What has come of a file so far, and what must be so for the rest to belong to it."""

    def __init__(self, file: Path, address: str) -> None:
        self.file, self.address = file, address
        self.path, self._note = file.with_name(file.name + ".part"), file.with_name(file.name + ".part.json")
        self.validator: str | None = None
        try:
            note = json.loads(self._note.read_bytes())
            if note["address"] == address and isinstance(note["validator"], str) and note["validator"].isprintable():
                self.validator = note["validator"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass

    @property
    def is_noted(self) -> bool:
        """Whether it is known, from any address, by what the rest will be known."""
        return self._note.exists()

    @property
    def size(self) -> int:
        """How many bytes the rest can be added to; none where nothing tells whether they are of the same file."""
        return self.path.stat().st_size if self.validator is not None and self.path.exists() else 0

    def begin(self, headers: Message) -> None:
        """A file from its first byte on: note by what its rest will be known."""
        self.drop()
        etag = headers.get("ETag", "")
        self.validator = etag if etag.startswith('"') else headers.get("Last-Modified")
        if self.validator is not None:
            note = {"address": self.address, "validator": self.validator}
            write_file(self._note, json.dumps(note) + "\n")

    def is_other(self, headers: Message) -> bool:
        """Whether a part that has come says that it is of another file than the one begun."""
        etag = headers.get("ETag", "")
        return etag.startswith('"') and (self.validator or "").startswith('"') and etag != self.validator

    def drop(self) -> None:
        self.validator = None
        for path in (self._note, self.path):
            path.unlink(missing_ok=True)

    def open(self) -> io.FileIO:
        return self.path.open("ab", buffering=0)

    def finish(self) -> None:
        self.path.replace(self.file)
        self._note.unlink(missing_ok=True)
