"""What is written down is what is true: generated pages are current, and the README's words exist."""

import ast
import re
from pathlib import Path

import pytest
from conftest import ROOT

from seq2seq.cli.main import VERBS, main

# An id of a kind of failure, as the names and descriptions of tests carry it.
ID = re.compile(r"(?<![A-Za-z0-9])c[0-9]{3}(?![A-Za-z0-9])")
RELIABILITY = ROOT / "docs" / "reliability.md"


def carried_ids() -> dict[str, set[str]]:
    """Every test, such as test_docs.py::test_x, with the ids in its name, its cases and its description."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found[f"{path.name}::{node.name}"] = set(ID.findall("\n".join(lines[first - 1 : node.end_lineno])))
    return found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_page_of_settings_is_what_the_program_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == printed(capsys, "schema", "--markdown"), "run: seq2seq schema --markdown --output docs/settings.md"


def test_the_schema_beside_the_configs_is_what_the_program_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    schema = (ROOT / "configs" / "settings.schema.json").read_text(encoding="utf-8")
    assert schema == printed(capsys, "schema"), "run: seq2seq schema --output configs/settings.schema.json"


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_sample_config_is_read_and_names_the_schema(path) -> None:
    from seq2seq.config.loading import load_config

    assert load_config(path).run is not None
    assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=settings.schema.json\n")


def test_the_page_of_the_doctor_names_every_kind_of_finding_with_its_level() -> None:
    from seq2seq.diagnosis.findings import KINDS

    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| .*? \| (error|warning|note)\b", page, flags=re.MULTILINE))
    assert rows == {kind: "note" if known.share else known.level for kind, known in KINDS.items()}


def test_the_readme_names_every_verb_and_only_files_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"seq2seq {verb}" in readme
    for path in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / path).exists(), path


def test_the_page_of_reliability_names_only_tests_that_exist_and_for_each_id_one_that_carries_it() -> None:
    known = carried_ids()
    page = RELIABILITY.read_text(encoding="utf-8")
    assert set(re.findall(r"test_\w+\.py::\w+", page)) <= set(known)
    rows = [line for line in page.splitlines() if line.startswith("|") and "::" in line]
    assert len(rows) > 50
    for row in rows:
        _, ids, _, tests = (cell.strip() for cell in row.strip("|").split("|"))
        carried = set().union(*(known[test] for test in re.findall(r"test_\w+\.py::\w+", tests)))
        assert set(ID.findall(ids)) <= carried, row


def test_the_page_of_reliability_and_the_tests_know_the_same_ids() -> None:
    carried = set().union(*carried_ids().values())
    assert set(ID.findall(RELIABILITY.read_text(encoding="utf-8"))) == carried
