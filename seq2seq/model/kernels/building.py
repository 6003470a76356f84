"""Compiling the kernels: once on each kind of processor, into the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

_HERE = Path(__file__).parent
_SOURCES = ("kernels.c", "beams.c", "products.c", "kernels_of.h")
# The first of these that the compiler takes; if it takes none, the same without the products. Threads are shared with
# PyTorch where both use the same OpenMP.
_FLAGS = ["-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared"]
_EXTRAS: tuple[list[str], ...] = (
    ["-march=native", "-mprefer-vector-width=512", "-fopenmp"],
    ["-march=native", "-fopenmp"],
    ["-march=native"],
    [],
)
_SECONDS = 60  # more than any compiler needs for a few hundred lines


def built() -> Path:
    """The compiled library, named after all that it depends on. OSError or SubprocessError where there can be none."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    sources = [(_HERE / name).read_bytes() for name in _SOURCES]
    library = _cache() / f"kernels-{_digest(*sources, _processor(), compiler.encode())}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / "kernels.so"
        for names, extras in product((["kernels.c", "beams.c", "products.c"], ["kernels.c", "beams.c"]), _EXTRAS):
            files = [str(_HERE / name) for name in names]
            command = [compiler, *_FLAGS, *extras, *files, "-o", str(made), "-lm"]
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
            if done.returncode == 0:
                break
        done.check_returncode()
        made.replace(library)  # at once: another process may be doing the same
    return library


def _cache() -> Path:
    """A folder of this user's own, which nobody else can write to."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "seq2seq" / "kernels"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)  # the one above may be open to a group: it holds corpora as well
    if sys.platform != "win32":
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise PermissionError(f"{folder} can be written by others")
    return folder


def _processor() -> bytes:
    """What the machine code depends on: a home folder may be shared by unlike machines."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
        named = [line for line in lines if line.startswith((b"model name", b"flags", b"Features"))]
        return b"\n".join(sorted(set(named))) + platform.machine().encode()
    return f"{platform.machine()} {platform.processor()} {platform.node()}".encode()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
