"""The lesson on attention: its snippets run, its commands exist, and its translation has the same snippets."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT

from seq2seq.cli.main import load_verb

LESSON, CHINESE = ROOT / "docs" / "attention.md", ROOT / "docs" / "attention.zh.md"
README, CHINESE_README = ROOT / "README.md", ROOT / "README.zh.md"


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a page that name this language, or with "" none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [code for named, code in fenced if named == language]


def without_comments(code: str) -> str:
    return re.sub(r"\s*#.*", "", code)


def test_every_snippet_of_the_lesson_runs_in_order() -> None:
    names: dict[str, object] = {}
    snippets = blocks(LESSON, "python")
    assert len(snippets) > 10
    for number, snippet in enumerate(snippets, start=1):
        exec(compile(snippet, f"docs/attention.md, snippet {number}", "exec"), names)


def test_the_chinese_lesson_has_the_same_code() -> None:
    for language in ("python", ""):
        ours, theirs = ([without_comments(code) for code in blocks(path, language)] for path in (LESSON, CHINESE))
        assert ours == theirs


@pytest.mark.parametrize("path", [LESSON, CHINESE, README, CHINESE_README], ids=lambda path: path.name)
def test_the_commands_that_are_shown_are_understood(path: Path) -> None:
    for block in blocks(path, ""):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.search(r"(?:^|\| )seq2seq (\w+)(?= |$)(.*)", line)
            if not found:
                continue
            parser = argparse.ArgumentParser(exit_on_error=False)
            load_verb(found[1]).add_arguments(parser)
            words = shlex.split(found[2].split(" > ")[0], comments=True)
            parser.parse_args(words)


@pytest.mark.parametrize("path", [LESSON, CHINESE, CHINESE_README], ids=lambda path: path.name)
def test_what_the_pages_link_to_is_there(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
