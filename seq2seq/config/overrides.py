"""Settings from the command line: `--set training.epochs=1` puts one value in place of the file's."""

import re
from typing import Any

from seq2seq.config.known_settings import known_settings, names_in, unknown_setting
from seq2seq.config.strict_yaml import LONGEST_KEY, Document, KeyPath, Origin, dotted, read_document
from seq2seq.errors import ConfigError

LISTS = {("data", "train"), ("data", "test")}
AFTER_THE_FILE = 2**40  # rank of the first override in the order of reading; no file has so many characters


def apply_override(document: Document, override: str, number: int) -> None:
    """Put the value of one "section.key=value" into the document, in place.

    The value is YAML as in a file, and the value of a section replaces the whole section. An entry of a list is named
    by its position, as in data.train.0.source. Raises ConfigError, with the override in place of file and line.
    """
    key, equals, value = override.partition("=")
    where = f"--set {' '.join(override.split())}"
    where = where if len(where) <= 100 else where[:97] + "..."
    if not equals or "" in key.strip().split("."):
        raise ConfigError(f"{where} lacks a key or a value; write it like --set training.epochs=1.")
    if len(key) > LONGEST_KEY:
        raise ConfigError(f"{where}: a key must be words with dots between them; found {len(key)} characters.")
    path = _parse_key(key)
    if names_in(path) not in known_settings():
        raise ConfigError(f"{where}: {unknown_setting(path)}.")
    group, path = _find_group(document, path, where)
    given = read_document(value, where, numbered=False)
    group[path[-1]] = given.value
    document.origins = {old: origin for old, origin in document.origins.items() if old[: len(path)] != path}
    document.origins[path] = Origin(where, "", AFTER_THE_FILE + number)
    for inner, origin in given.origins.items():
        document.origins[path + inner] = Origin(where, origin.written, AFTER_THE_FILE + number)


def _parse_key(key: str) -> KeyPath:
    """Return the path that a key spells: data.train.0.source and data.train[0].source are the same."""
    parts = re.sub(r"\[([0-9]{1,6})\]", r".\1", key.strip()).split(".")
    return tuple(int(part) if re.fullmatch("[0-9]{1,6}", part) else part for part in parts)


def _find_group(document: Document, path: KeyPath, where: str) -> tuple[Any, KeyPath]:
    """Return the mapping or list that holds a setting, and the setting's path in this document.

    Sections on the way are made where the file has none. One pair of files may be written with or without a list around
    it, and either is found under either name.
    """
    group: Any = document.value
    found: KeyPath = ()
    for depth, part in enumerate(path):
        if isinstance(group, list) and isinstance(part, str):
            if len(group) != 1:
                entry = f"{dotted(found)}.0.{part}"
                raise ConfigError(
                    f"{where}: {dotted(found)} is a list of {len(group)}; name the entry, such as {entry}."
                )
            group, found = _step(group, 0), (*found, 0)
        if isinstance(group, dict) and part == 0 and names_in(found) in LISTS:
            continue
        if isinstance(group, list) and isinstance(part, int) and part >= len(group):
            raise ConfigError(f"{where}: {dotted(found)} has {len(group)} entries, counted from 0.")
        if not isinstance(group, list if isinstance(part, int) else dict):
            kind = "list" if isinstance(part, int) else "group of settings"
            raise ConfigError(f"{where}: {dotted(found) or 'the config'} is not a {kind}, so it holds no {part}.")
        found = (*found, part)
        if depth < len(path) - 1:
            group = _step(group, part)
    return group, found


def _step(group: Any, part: int | str) -> Any:
    if isinstance(group, dict) and group.get(part) is None:
        group[part] = {}
    return group[part]
