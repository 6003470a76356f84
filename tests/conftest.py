"""What the tests share: a small corpus with known answers, real corpora where there are any, and the command itself."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Before anything imports torch: two threads fighting for one core are slower than one, and sums then add in one order.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import hypothesis
import pytest

# A shell that starts the tests in the background has SIGINT ignored, and so would every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes to an hour")


def pytest_configure(config: pytest.Config) -> None:
    """The same random inputs in every default run, so that it judges a change and not the day; new ones with --long."""
    hypothesis.settings.register_profile("steady", derandomize=True)
    if not config.getoption("--long"):
        hypothesis.settings.load_profile("steady")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes to an hour; run with --long"))


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
    return write_base_corpus(tmp_path / "base")


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


TINY = """\
run: RUN
data:
  source_language: en
  target_language: de
  train: {source: train.en, target: train.de}
  validation: {source: val.en, target: val.de}
  test: {source: test.en, target: test.de}
tokenizer: {vocab_size: 150, byte_fallback: false}
model: {embedding_size: 16, hidden_size: 32, dropout: 0.1}
training:
  {epochs: 2, batch_tokens: 400, learning_rate: 1e-2, warmup_steps: 2, log_every: 3, threads: 1, device: cpu,
   precision: fp32}
"""


def write_base_corpus(folder: Path) -> Path:
    """The files of `base_corpus`, and beside them tiny.yaml: a model that is trained in a second."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in {
        "train": numbered_pairs(),
        "val": numbered_pairs(20, first=161),
        "test": numbered_pairs(20, first=181),
    }.items():
        write_lines(folder / f"{name}.en", [source for source, _ in pairs])
        write_lines(folder / f"{name}.de", [target for _, target in pairs])
    (folder / "tiny.yaml").write_text(TINY.replace("RUN", (folder / "run").as_posix()), encoding="utf-8")
    return folder


def in_process(*args: object, stdin: bytes = b"") -> Finished:
    """Runs the command in this process: the same streams, statuses and messages, without loading PyTorch again."""
    from seq2seq.cli.main import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    streams = {"stdin": io.TextIOWrapper(io.BytesIO(stdin)), "stdout": out, "stderr": err}
    before = {name: getattr(sys, name) for name in streams}
    try:
        for name, stream in streams.items():
            setattr(sys, name, stream)
        status = main([str(argument) for argument in args])
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)
    for stream in (out, err):
        stream.flush()
    return Finished(status, out.buffer.getvalue(), err.buffer.getvalue())


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder of its own with the base corpus and tiny.yaml, whose run goes to `run` beside it."""
    return write_base_corpus(tmp_path / "corpus")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of one finished tiny training, beside its corpus; to be read and copied, never changed."""
    folder = write_base_corpus(tmp_path_factory.mktemp("trained"))
    done = in_process("train", folder / "tiny.yaml")
    assert done.status == 0, done.err
    return folder / "run"


@pytest.fixture
def torchtext(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchtext that needs no PyTorch of its own year, in place of one that may be installed."""
    import fake_torchtext

    fake_torchtext.install(monkeypatch)
