"""What the tests share: a small corpus with known answers, real corpora where there are any, and the command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Before anything imports torch: two threads fighting for one core are slower than one, and sums then add in one order.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest

ROOT = Path(__file__).resolve().parent.parent

_ANIMALS = [
    ("dog", "Hund"),
    ("bird", "Vogel"),
    ("fish", "Fisch"),
    ("bear", "Bär"),
    ("fox", "Fuchs"),
    ("wolf", "Wolf"),
    ("donkey", "Esel"),
]
_ACTS = [("sees", "sieht"), ("hears", "hört"), ("finds", "findet"), ("seeks", "sucht"), ("loves", "liebt")]
_HUES = [("green", "grüne"), ("red", "rote"), ("blue", "blaue"), ("old", "alte"), ("small", "kleine"), ("new", "neue")]
_THINGS = [("houses", "Häuser"), ("boats", "Boote"), ("books", "Bücher"), ("trees", "Bäume")]


def numbered_pairs(count: int = 160, first: int = 1) -> list[tuple[str, str]]:
    """Sentence pairs that carry their own number on both sides, so that a slip of one line shows."""
    pairs = []
    for number in range(first, first + count):
        # The lengths of the lists share few factors, so that no two sentences in a row look alike.
        animal, act, hue, thing = (words[number % len(words)] for words in (_ANIMALS, _ACTS, _HUES, _THINGS))
        pairs.append(
            (
                f"The {animal[0]} {act[0]} {number} {hue[0]} {thing[0]}.",
                f"Der {animal[1]} {act[1]} {number} {hue[1]} {thing[1]}.",
            )
        )
    return pairs


def write_lines(path: Path, lines: list[str]) -> Path:
    """Writes UTF-8 lines with LF on every platform."""
    path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))
    return path


@pytest.fixture
def base_corpus(tmp_path: Path) -> Path:
    """A folder with train.en/train.de of 160 pairs, val.en/val.de of 20 and test.en/test.de of 20 other pairs."""
    folder = tmp_path / "base"
    folder.mkdir()
    for name, pairs in {
        "train": numbered_pairs(),
        "val": numbered_pairs(20, first=161),
        "test": numbered_pairs(20, first=181),
    }.items():
        write_lines(folder / f"{name}.en", [source for source, _ in pairs])
        write_lines(folder / f"{name}.de", [target for _, target in pairs])
    return folder


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora; tests that want one are skipped where SEQ2SEQ_CORPORA does not name it."""
    named = os.environ.get("SEQ2SEQ_CORPORA")
    if not named:
        pytest.skip("SEQ2SEQ_CORPORA names no folder of real corpora")
    if not Path(named).is_dir():
        pytest.skip(f"SEQ2SEQ_CORPORA names {named}, which is not a folder")
    return Path(named)


@dataclass(frozen=True)
class Finished:
    """How a command ended. `out` and `err` are decoded without touching line ends, so a CR shows."""

    status: int
    out_bytes: bytes
    err_bytes: bytes

    @property
    def out(self) -> str:
        return self.out_bytes.decode("utf-8")

    @property
    def err(self) -> str:
        return self.err_bytes.decode("utf-8")

    def refused(self, *words: str) -> Finished:
        """Holds the rules of a refusal: status 2, one short line of ours, each of `words` in it, no traceback."""
        assert self.status == 2, (self.status, self.err)
        assert "Traceback" not in self.err
        last = self.err.rstrip("\n").split("\n")[-1]
        assert last.startswith("seq2seq: "), self.err
        for word in words:
            assert word in last, (word, self.err)
        return self


def command_environment(env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """This process's environment with the repository importable; `env` adds to it, None takes a name away."""
    merged: dict[str, str] = dict(os.environ)
    merged["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    for name, value in (env or {}).items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return merged


def run_python(
    *args: object,
    env: Mapping[str, str | None] | None = None,
    input: str | bytes | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> Finished:
    """Runs this Python with the arguments, and never waits for a terminal."""
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        input=input.encode("utf-8") if isinstance(input, str) else (input or b""),
        capture_output=True,
        env=command_environment(env),
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def run_cli() -> Callable[..., Finished]:
    """`run_cli("score", hypothesis, "--reference", reference, env=..., input=..., cwd=..., timeout=...)`."""

    def run(*args: object, **how: object) -> Finished:
        return run_python("-m", "seq2seq", *args, **how)  # type: ignore[arg-type]

    return run
