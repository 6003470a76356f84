"""Compressed text: gzip and xz streams unpacked a little at a time, and every kind of damage noticed.

The standard library's xz reader passes silently over bytes after the end of an archive, and its gzip reader has
one error for a foreign file and for a bad tail. A training text that is silently short is the worst outcome of
all, so both formats go through the one small loop below.
"""

from __future__ import annotations

import io
import lzma
import zlib
from typing import BinaryIO

from seq2seq.errors import CorpusError

MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00"}
CHUNK = 1 << 16
XZ_MEMORY = 256 << 20  # `xz -9` needs 65 MiB to unpack; an archive that asks for more than this is no text corpus


class _GzipMember:
    """One gzip member being unpacked, at most CHUNK bytes of text a call, however much a byte may expand to."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, CHUNK)

    @property
    def hungry(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data


class _XzMember:
    """The same for one xz stream."""

    def __init__(self) -> None:
        self._inner = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def feed(self, data: bytes) -> bytes:
        return self._inner.decompress(data, CHUNK)

    @property
    def hungry(self) -> bool:
        return self._inner.needs_input

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def rest(self) -> bytes:
        return self._inner.unused_data


class Unpacked(io.RawIOBase):
    """The text inside a gzip or xz stream, member after member; at most 64 KiB of it is held at a time.

    Raises CorpusError when the archive ends too early, is damaged, or is followed by something else.
    """

    def __init__(self, packed: BinaryIO, form: str, name: str) -> None:
        super().__init__()
        self._packed, self._form, self._name = packed, form, name
        self._input = b""
        self._text = b""
        self._members = 0
        self._begin_member(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        room = memoryview(buffer)  # type: ignore[arg-type]  # the buffer protocol has no name before Python 3.12
        while not self._text and self._member is not None:
            self._text = self._unpack_some(self._member)
        size = min(len(room), len(self._text))
        room[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _begin_member(self, data: bytes) -> None:
        self._member: _GzipMember | _XzMember | None = _GzipMember() if self._form == "gzip" else _XzMember()
        self._input = data
        self._fresh = True

    def _unpack_some(self, member: _GzipMember | _XzMember) -> bytes:
        """The next piece of text; empty when no text came of the bytes read, or the archive has come to its end."""
        if member.hungry and not self._input:
            self._input = self._packed.read(CHUNK)
            if not self._input:
                raise self._damage(EOFError())
        try:
            text = member.feed(self._input)
        except (zlib.error, lzma.LZMAError) as error:
            raise self._damage(error) from None
        self._input = b""
        self._fresh = self._fresh and not text
        if member.ended:
            self._members += 1
            self._look_for_another(member.rest)
        return text

    def _look_for_another(self, rest: bytes) -> None:
        """Another member may follow, after padding with zeros; what else follows is refused when it is unpacked."""
        rest = rest.lstrip(b"\0")
        while not rest:
            chunk = self._packed.read(CHUNK)
            if not chunk:
                self._member = None
                return
            rest = chunk.lstrip(b"\0")
        self._begin_member(rest)

    def _damage(self, error: Exception) -> CorpusError:
        if self._members and self._fresh:
            found = f"holds bytes after the end of its {self._form} data that belong to no archive"
        elif isinstance(error, EOFError):
            found = f"is cut short: its {self._form} data stop before the end of the archive"
        else:
            found = f"is damaged: its {self._form} data do not unpack ({error})"
        return CorpusError(f"{self._name} {found}. Make or fetch the file again.")
