"""From pydantic's account of what is wrong with a config to sentences that name key, value, line and expectation."""

import difflib
import re
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from seq2seq.config.data_section import FILES_TAG, FRACTION_TAG
from seq2seq.config.fields import as_yaml
from seq2seq.config.known_settings import (
    expectation,
    known_settings,
    models_in,
    names_in,
    nearest_setting,
    plain_types,
    unknown_setting,
)
from seq2seq.config.strict_yaml import Document, KeyPath, Origin, dotted, plain_value
from seq2seq.errors import ConfigError

MOST_REPORTED = 5
MOST_READ = 100  # mistakes of one file; the search for the nearest key takes a millisecond each
MISSING_DATA = "it needs at least `data:` with source_language, target_language, train, validation"


def refusal(error: ValidationError, document: Document, name: str) -> ConfigError:
    """Return the error to raise: one line for each of the first few mistakes, in the order of the file."""
    report = _Report(document, name)
    for details in error.errors(include_url=False, include_input=False)[:MOST_READ]:
        report.add(details)
    return ConfigError(report.text())


@dataclass
class _Report:
    """Collects sentences about one config, by the place where each mistake was written."""

    document: Document
    name: str
    sentences: dict[KeyPath, tuple[float, str]] = field(default_factory=dict)
    missing: dict[KeyPath, list[str]] = field(default_factory=dict)
    meant: set[str | None] = field(default_factory=set)

    def text(self) -> str:
        for section, names in self.missing.items():
            # A misspelt key is one mistake, not also the lack of the right one.
            lacking = [name for name in names if dotted((*section, name)) not in self.meant]
            if lacking:
                what = (
                    f"{dotted(section)} lacks {_enumerate(lacking)}" if section else f"data is missing; {MISSING_DATA}"
                )
                self._say(section, what)
        sentences = [sentence for _, sentence in sorted(self.sentences.values())]
        more = len(sentences) - MOST_REPORTED
        rest = [f"There are at least {more} more mistakes."] if more > 1 else sentences[MOST_REPORTED:]
        return "\n".join(sentences[:MOST_REPORTED] + rest)

    def add(self, details: ErrorDetails) -> None:
        path = self._path(details["loc"])
        context = details.get("ctx", {})
        match details["type"]:
            case "missing" if isinstance(path[-1], str):
                self.missing.setdefault(path[:-1], []).append(str(path[-1]))
            case "extra_forbidden":
                self.meant.add(nearest_setting(path))
                self._say(path, unknown_setting(path))
            case "contradiction":
                self._contradiction(context["settings"], context["rule"])
            case "form":
                written = [inner for inner in self.document.origins if inner[: len(path)] == path]
                self._say(path, f"{dotted(path)} {details['msg']}", self._last(written))
            case _:
                self._wrong_value(path)

    def _say(self, path: KeyPath, sentence: str, origin: Origin | None = None) -> None:
        """Keep a sentence about a setting, with its origin or that of the nearest written setting around it."""
        around = (self.document.origins.get(path[:size]) for size in range(len(path), 0, -1))
        origin = origin or next((found for found in around if found), Origin(self.name, "", -1))
        self.sentences.setdefault(path, (origin.rank, f"{origin.where}: {sentence}."))

    def _last(self, paths: list[KeyPath]) -> Origin | None:
        """Return where the last of some settings was written: the others stood before it was added."""
        return max((self.document.origins[path] for path in paths), key=lambda origin: origin.rank, default=None)

    def _path(self, location: tuple[int | str, ...]) -> KeyPath:
        """Return the path as written: pydantic's has union tags, and a 0 where one pair of files stands alone."""
        path: KeyPath = ()
        value = self.document.value
        for part in location:
            if part in (FILES_TAG, FRACTION_TAG) or (isinstance(part, int) and isinstance(value, dict)):
                continue
            value = _child(value, part)
            path = (*path, part)
        return path

    def _contradiction(self, settings: dict[str, object], rule: str) -> None:
        paths: list[KeyPath] = [tuple(key.split(".")) for key in settings]
        written = [path for path in paths if path in self.document.origins]
        facts = [
            f"{key} is {as_yaml(value)}" + ("" if path in written else " (the default)")
            for (key, value), path in zip(settings.items(), paths, strict=True)
        ]
        self._say(paths[0], f"{' and '.join(facts)}; {rule}", self._last(written))

    def _wrong_value(self, path: KeyPath) -> None:
        # Below a setting pydantic tells of the parts of its type, which are one mistake to whoever wrote it.
        while names_in(path) not in known_settings():
            path = path[:-1]
        info = known_settings()[names_in(path)]
        if isinstance(path[-1], int) and not any(models_in(info.annotation)):
            path = path[:-1]
        value = _lookup(self.document.value, path)
        origin = self.document.origins.get(path)
        written = origin.written if origin else str(value)
        found = f"is {written}" if written else "is empty"
        self._say(path, f"{dotted(path)} {found}; it must be {expectation(info)}{_hint(info, value)}")


def _hint(info: FieldInfo, value: object) -> str:
    """Say what may have gone wrong in writing a value that is not accepted."""
    kinds = list(plain_types(info.annotation))
    if isinstance(value, str) and (int in kinds or float in kinds):
        digits = re.sub("[_, ]", "", value)
        number = "" if isinstance(plain_value(digits), str) or not digits else digits
        return ", without quotes" if number == value else f", such as {number}" if number else ""
    if isinstance(value, (bool, int, float)) and str in kinds:
        return ", in quotes"
    words = [kind for kind in kinds if isinstance(kind, str)]
    near = difflib.get_close_matches(value.lower(), words, n=1) if isinstance(value, str) else []
    return f" (the nearest is {near[0]})" if near else ""


def _enumerate(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _child(value: Any, part: int | str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def _lookup(value: Any, path: KeyPath) -> Any:
    for part in path:
        value = _child(value, part)
    return value
