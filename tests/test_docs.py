"""What is written down is what is true: generated pages are current, and the README's words exist."""

import re

import pytest
from conftest import ROOT

from seq2seq.cli.main import VERBS, main


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


def test_the_readme_names_every_verb_and_only_files_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"seq2seq {verb}" in readme
    for path in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / path).exists(), path
