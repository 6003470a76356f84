"""Unpacking: the one text of a .gz or .zip, and nothing else of it.

The name of the text here is ours and never the archive's, so no archive can write anywhere; a member of a zip is found
by its exact name. What unpacks is counted, so a small archive cannot fill the disk.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from seq2seq.corpus.archives import Unpacked
from seq2seq.errors import CorpusError, DownloadError
from seq2seq.files import whole_bytes

_CHUNK = 1 << 16


def unpack(archive: Path, text: Path, *, member: str | None, largest: int) -> None:
    """Write the text of an archive to a file: gzip, or with `member` the zip's file of that name.

    DownloadError where the archive is damaged, holds no such file, or unpacks to more than `largest` bytes; nothing is
    left of the text then.
    """
    size = 0
    with _packed_text(archive, member) as packed, whole_bytes(text) as output:
        while chunk := _read(packed, archive):
            size += len(chunk)
            if size > largest:
                raise DownloadError(
                    f"{archive.name} unpacks to more than {largest:,} bytes, which this corpus has not."
                )
            output.write(chunk)
        if not size:
            raise DownloadError(f"{archive.name} holds no text.")


# What the zip reader and its decompressors raise on damaged or forged archives; RuntimeError where there is a password.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError)


@contextlib.contextmanager
def _packed_text(archive: Path, member: str | None) -> Iterator[IO[bytes]]:
    with contextlib.ExitStack() as opened:
        if member is None:
            packed = opened.enter_context(archive.open("rb"))
            yield cast(IO[bytes], io.BufferedReader(Unpacked(packed, "gzip", archive.name)))
            return
        with _in_words(archive):
            try:
                text = opened.enter_context(zipfile.ZipFile(archive)).open(member)
            except KeyError:
                raise DownloadError(f"{archive.name} holds no {member}.") from None
        yield opened.enter_context(text)


def _read(packed: IO[bytes], archive: Path) -> bytes:
    with _in_words(archive):
        return packed.read(_CHUNK)


@contextlib.contextmanager
def _in_words(archive: Path) -> Iterator[None]:
    try:
        yield
    except CorpusError as error:
        raise DownloadError(str(error)) from None
    except _DAMAGE as error:
        raise DownloadError(f"{archive.name} is damaged or no zip archive ({str(error) or 'it ends early'}).") from None
    except OSError as error:
        if error.filename is not None:
            raise
        # A place outside of the archive, which a forged one can name.
        raise DownloadError(f"{archive.name} is damaged or no zip archive ({error.strerror}).") from None
