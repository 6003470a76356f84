"""Claims about the rooms: which may use which, how they are named, and that help waits for none of the heavy ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, run_python

PACKAGE = ROOT / "seq2seq"
# In the order of the imports: a room uses itself and what stands before it. `files` and `bundled` serve all of them:
# how files are kept, and where.
ROOMS = (
    "errors",
    "files",
    "bundled",
    "config",
    "corpus",
    "diagnosis",
    "suggestion",
    "download",
    "model",
    "checkpoints",
    "runs",
    "translation",
    "evaluation",
    "training",
    "cli",
)
HEAVY = (
    *("torch", "numpy", "sacrebleu", "sentencepiece", "pydantic", "yaml", "safetensors", "torchtext", "tqdm"),
    *("matplotlib", "tensorboard"),
)
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room of a file: the folder under the package, or the file's own name. The package's own files have none."""
    inside = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if inside[0] in ("__init__", "__main__") else inside[0]


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports anywhere, late and type-only imports included, with the line."""
    package = ("seq2seq", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for name in node.names:
                # `from seq2seq import corpus` names a room; `from seq2seq.corpus import x` has named it already.
                yield node.lineno, f"{module}.{name.name}"


def test_every_room_stands_in_the_list() -> None:
    assert {room_of(path) for path in MODULES} - {""} <= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_uses_only_the_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    if not room:
        return
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "seq2seq" or parts[1:2] == ["__version__"]:
            continue
        assert parts[1] in ROOMS, f"{path.name}:{line} imports {module}, which is in no room"
        assert ROOMS.index(parts[1]) <= ROOMS.index(room), f"{path.name}:{line}: {room} must not use {parts[1]}"


def test_no_file_is_named_for_odds_and_ends() -> None:
    names = {part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc", "tools"}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["trian"], *([verb, "--help"] for verb in ("score", "train", "compare", "plot"))],
)
def test_help_and_a_mistyped_verb_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from seq2seq.cli.main import main\n"
        f"main({arguments!r})\n"
        f"print('heavy:', *sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = run_python("-c", code)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == "heavy:"


def test_the_package_itself_imports_nothing_heavy() -> None:
    done = run_python("-c", f"import sys, seq2seq; print(*sorted(set({HEAVY!r}) & set(sys.modules)))")
    assert (done.status, done.out.strip()) == (0, "")
