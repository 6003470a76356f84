"""How settings are read and written: strict YAML, overrides from the command line, and a schema for editors.

Data paths in a file are relative to the file's folder, those in an override to the working directory; both are absolute
once they are read. `run` stays relative to the working directory.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from seq2seq.config.overrides import apply_override
from seq2seq.config.refusals import MISSING_DATA, refusal
from seq2seq.config.schema import Config
from seq2seq.config.strict_yaml import plain_value, read_document
from seq2seq.errors import ConfigError

LARGEST_FILE = 1_000_000  # bytes; settings take a few thousand
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config file, with overrides such as "training.epochs=1"; whatever is wrong raises ConfigError."""
    path = Path(path)
    refuse_bytes(str(path.absolute()))
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ConfigError(f"The config file {path.absolute()} does not exist.") from None
    except IsADirectoryError:
        raise ConfigError(f"The config {path.absolute()} is a folder; name the YAML file in it.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"The config file {path.absolute()} cannot be read: {reason}.") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(
            f"The config file {path} is larger than {LARGEST_FILE:,} bytes; settings take a few thousand."
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"the byte {content[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise ConfigError(f"{path}, line {line}: {problem}.") from None
    return parse_config(text, str(path), overrides, base=path.parent)


def refuse_bytes(path: str) -> None:
    """ConfigError where a path is no UTF-8: it is written into the run's files, which are."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"The path {path!r} is not UTF-8, as the files of a run are; rename it.") from None


def parse_config(text: str, name: str, overrides: Sequence[str] = (), base: Path | None = None) -> Config:
    """Return the config of a YAML text; `name` is what errors call it, `base` the folder that data paths start from.

    Without a base they start from the working directory. Raises ConfigError.
    """
    document = read_document(text, name)
    is_empty = document.value is None
    if is_empty:
        document.value = {}
    if not isinstance(document.value, dict):
        found = "a list" if isinstance(document.value, list) else f"`{document.origins[()].written}`"
        raise ConfigError(f"{name} holds {found}; it must hold sections such as `data:`, with settings below them.")
    _make_absolute(document.value, base or Path())
    for number, override in enumerate(overrides):
        apply_override(document, override, number)
    if is_empty and "data" not in document.value:
        raise ConfigError(f"{name} is empty: {MISSING_DATA}.")
    # What is still relative now comes from an override.
    _make_absolute(document.value, Path())
    try:
        return Config.model_validate(document.value)
    except ValidationError as error:
        raise refusal(error, document, name) from None


def dump_config(config: Config) -> str:
    """Return YAML with every setting, defaults included, that reads back to an equal config."""
    settings = config.model_dump(mode="json")
    if len(settings["data"]["train"]) == 1:
        settings["data"]["train"] = settings["data"]["train"][0]
    text: str = yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**20)
    return text


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config, with which editors complete and check while one types."""
    return {"$schema": SCHEMA_DIALECT, **Config.model_json_schema()}


def _make_absolute(settings: dict[str, Any], base: Path) -> None:
    """Expand ~ and anchor the data paths of settings as they were written, wherever they have the expected form."""
    if isinstance(run := settings.get("run"), str) and run.startswith("~"):
        settings["run"] = str(_expand(run))
    data = settings.get("data")
    if isinstance(data, dict) and isinstance(cache := data.get("cache"), str) and cache:
        data["cache"] = _absolute(cache, base)
    for split in ("train", "validation", "test"):
        given = data.get(split) if isinstance(data, dict) else None
        for entry in given if isinstance(given, list) else [given]:
            if isinstance(entry, dict):
                for key in ("source", "target", "tsv"):
                    if isinstance(path := entry.get(key), str) and path:
                        entry[key] = _absolute(path, base)


def _absolute(path: str, base: Path) -> str:
    """Resolve the folder and keep the name: behind a link, train.en.gz may be a blob without its telling suffix."""
    full = base / _expand(path)
    # realpath, unlike Path.resolve, lives with links in a circle; reading the file will tell of them.
    return os.path.realpath(full) if full.name in ("", "..") else str(Path(os.path.realpath(full.parent)) / full.name)


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user: a file may be called ~name
        return Path(path)


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting of nested groups by its whole key, such as ("attention.heads", 4)."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.1, which PyYAML follows, or YAML 1.2, which is read here, would take for more."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # Only double quotes keep every kind of line break as it is.
        style = '"' if not data.isprintable() else None if isinstance(plain_value(data), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
