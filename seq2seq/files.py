"""The one writer: a file appears under its name whole and on the disk, or not at all; and how files are sealed and
locked."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast


def write_file(path: Path, data: bytes | str) -> None:
    """Write to a temporary name in the same folder, flush to the disk, then rename. OSError names `path`."""
    with _replacing(path) as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file to write line by line that takes its name only when everything is written; UTF-8, LF line ends.

    Under a name in .gz or .xz it is compressed, as whoever reads such a name expects.
    """
    pack = PACKED.get(path.suffix.lower(), contextlib.nullcontext)
    with _replacing(path) as stream, pack(stream) as data:
        text = io.TextIOWrapper(data, encoding="utf-8", errors="surrogateescape", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # writes what it still holds, and leaves the stream open to be synced


def _gzip(stream: IO[bytes]) -> IO[bytes]:
    import gzip

    return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=stream, mtime=0))  # the same text gives the same bytes


def _xz(stream: IO[bytes]) -> IO[bytes]:
    import lzma

    return cast(IO[bytes], lzma.LZMAFile(stream, "wb"))


# How text is written under such a name; `corpus.archives` reads it.
PACKED: dict[str, Callable[[IO[bytes]], contextlib.AbstractContextManager[IO[bytes]]]] = {".gz": _gzip, ".xz": _xz}


@contextlib.contextmanager
def whole_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file of bytes to write piece by piece, that likewise takes its name only when everything is written."""
    with _replacing(path) as stream:
        yield stream


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """What is written here takes the place of `path` when all of it is on the disk; otherwise nothing is left of it."""
    if _is_special(path):
        with path.open("ab") as stream:
            yield stream
        return
    temporary = _beside(path)
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path.resolve())
    except OSError as error:
        # The temporary name means nothing to a person.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with the SHA-256 of all of them; how they are spaced or ordered does not matter."""
    facts = {name: value for name, value in content.items() if name != "sha256"}
    plain = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**facts, "sha256": hashlib.sha256(plain.encode("ascii")).hexdigest()}


def digest_of(stream: IO[bytes]) -> str:
    """The SHA-256 of what is left to read, in hexadecimal."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _is_special(path: Path) -> bool:
    """Whether this is a pipe, a terminal or a device such as /dev/null, which nothing may take the place of.

    /dev/stdout is a link to what may be a file at the moment, so devices are known by their folder as well.
    """
    among_devices = path.absolute().parts[1:2] in (("dev",), ("proc",))
    return path.exists() and (among_devices or not (path.is_file() or path.is_dir()))


def _beside(path: Path) -> Path:
    """A temporary name in the folder of the file itself: a link stays a link to it."""
    file = path.resolve()
    return file.with_name(f".{file.name[:50]}.{os.getpid()}.tmp")  # a name may have 255 bytes at the most


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder survive a power loss, where the system can (Windows does it by itself)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # it knows no name
        raise OSError(error.errno, error.strerror, str(folder)) from error
    finally:
        os.close(descriptor)


def lock_file(stream: IO[bytes]) -> None:
    """An exclusive lock that the system releases when the process ends; OSError where another process holds it."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
