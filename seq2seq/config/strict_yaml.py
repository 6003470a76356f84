"""A small, safe part of YAML: mappings, lists, text, numbers, true, false and null, each with the line where it stands.

PyYAML scans and parses; what it would then build is built here instead, for three reasons. An error message needs the
line of every key. Tags and aliases, which can run code or fill the memory, have no use in settings and are refused. And
scalars follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), in which `1e-3` is a number
while `no`, `12:30` and `2024-01-01` are text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from seq2seq.errors import ConfigError

DEEPEST = 20  # levels of nesting; the settings need five
MOST_VALUES = 10_000  # reading stops there, so that a hostile file takes a second and not a minute
LONGEST_KEY = 100  # characters
LONGEST_NUMBER = 100  # characters; Python refuses to read integers of more than 4,300 digits

KeyPath = tuple[str | int, ...]

NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
BEYOND_UNICODE = re.compile(r"\\U(?!000[0-9A-Fa-f]|0010)[0-9A-Fa-f]{8}")
WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


@dataclass(frozen=True)
class Origin:
    """Where a setting was written: the words for an error message, its value as spelt, its rank in reading order."""

    where: str
    written: str
    rank: int


@dataclass
class Document:
    """Plain values with the origin of each, by its path such as ("data", "train", 0, "source")."""

    value: Any
    origins: dict[KeyPath, Origin]


def read_document(text: str, name: str, numbered: bool = True) -> Document:
    """Return the one document of a YAML text; `name` is what an error calls it, followed by the line if `numbered`.

    An empty text has the value None. Raises ConfigError for all that is not in the small part of YAML described above.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    place = _Place(text, name, numbered)
    try:
        return _Reader(place).document()
    except yaml.reader.ReaderError as error:
        code = ord(error.character) if isinstance(error.character, str) else error.character
        place.refuse(error.position, f"the character U+{code:04X} may not stand in YAML")
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(place, error)
    except (ValueError, OverflowError):  # PyYAML makes numbers of these without a look at their size
        beyond = BEYOND_UNICODE.search(text)
        what = "this escape is no character" if beyond else "this is not valid YAML (the number after %YAML)"
        place.refuse(beyond.start() if beyond else 0, what)


def plain_value(text: str) -> str | int | float | bool | None:
    """Return what an unquoted scalar means in YAML 1.2; a whole number is an int however it is spelt, such as 1e5."""
    if text in WORDS:
        return WORDS[text]
    if NOT_FINITE.fullmatch(text):
        return float(text.replace(".", "", 1))
    if len(text) > LONGEST_NUMBER or not NUMBER.fullmatch(text):
        return text
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    return int(number) if number.is_integer() else number


class _Place:
    """A text with its name, to say where in it something stands."""

    def __init__(self, text: str, name: str, numbered: bool) -> None:
        self.text, self.name, self.numbered = text, name, numbered
        # The parser counts lines too, but also at separators that an editor does not show as a new line.
        self.line_ends = [match.start() for match in re.finditer("\n", text)]

    def line(self, index: int) -> int:
        return bisect_left(self.line_ends, index) + 1

    def column(self, index: int) -> int:
        return index - self.text.rfind("\n", 0, index)

    def words(self, index: int) -> str:
        return f"{self.name}, line {self.line(index)}" if self.numbered else self.name

    def refuse(self, index: int, problem: str) -> NoReturn:
        column = f", column {self.column(index)}" if self.numbered else f", character {index + 1} of the value"
        raise ConfigError(f"{self.words(index)}{column}: {problem}.")


# What PyYAML's complaints mean to somebody who writes settings; the first that is found in the complaint is told.
PLAIN_WORDS = {
    "quoted scalar": "a quote is opened and not closed",
    "but found '<stream end>'": "the text ends inside a list or mapping; a bracket is not closed",
    "but got '<stream end>'": "the text ends inside a list or mapping; a bracket is not closed",
    "expected ',' or": "a comma or a closing bracket is missing",
    "mapping values are not allowed": "a colon stands where none can; check the indentation, or quote the text",
    "could not find expected ':'": "a key lacks its colon, or the colon lacks a space after it",
    "but found '?'": "the indentation differs from the lines above",
    "<block mapping start>": "the indentation differs from the lines above",
    "<block end>": "the indentation or the punctuation does not fit the lines above",
}


def _refuse_syntax(place: _Place, error: yaml.MarkedYAMLError) -> NoReturn:
    """Say in one sentence what PyYAML says in five lines; a tab is behind many a complaint that does not name it."""
    mark = error.problem_mark or error.context_mark
    index = min(mark.index, len(place.text)) if mark else 0
    indent = re.compile(r" *\t").match(place.text, place.text.rfind("\n", 0, index) + 1)
    if indent:
        place.refuse(indent.end() - 1, "the line is indented with a tab; indent with spaces")
    if place.text[index : index + 1] == "\t":
        place.refuse(index, "a tab stands here; use spaces")
    complaint = " ".join(f"{error.context or ''} {error.problem or ''}".split())
    known = (words for fragment, words in PLAIN_WORDS.items() if fragment in complaint)
    place.refuse(index, next(known, f"this is not valid YAML ({error.problem or complaint})"))


class _Reader:
    """Builds a Document from the events of PyYAML's parser."""

    def __init__(self, place: _Place) -> None:
        self.place = place
        self.events: Iterator[yaml.Event] = yaml.parse(place.text, Loader=yaml.SafeLoader)
        self.origins: dict[KeyPath, Origin] = {}

    def document(self) -> Document:
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return Document(None, {})
        value = self._value((), next(self.events))
        next(self.events)  # the end of the document
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._refuse(event, "a second document begins here; settings are one document")
        return Document(value, self.origins)

    def _refuse(self, event: yaml.Event, problem: str) -> NoReturn:
        raise ConfigError(f"{self.place.words(_start(event))}: {problem}.")

    def _value(self, path: KeyPath, event: yaml.Event) -> Any:
        """Read the value that begins with this event, whatever it is, and note its origin."""
        self._check(event, len(path))
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value, end = self._scalar(event), _end(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value, end = self._list(path)
        else:
            value, end = self._mapping(path)
        # The line to name for a setting is the line of its key, which the mapping around it has noted.
        rank = self.origins[path].rank if path in self.origins else _start(event)
        written = _shorten(self.place.text[_start(event) : end], value)
        self.origins[path] = Origin(self.place.words(rank), written, rank)
        return value

    def _check(self, event: yaml.Event, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._refuse(
                event, f"the alias *{(event.anchor or '')[:60]} is not accepted in settings; write the value out"
            )
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._refuse(
                event, f"the anchor &{(event.anchor or '')[:60]} is not accepted in settings; write each value out"
            )
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")[:60]
            self._refuse(event, f"the tag {tag} is not accepted in settings; write a plain value")
        if len(self.origins) > MOST_VALUES:
            self._refuse(event, f"the text holds more than {MOST_VALUES:,} values; settings are fewer than a hundred")
        if depth > DEEPEST:
            self._refuse(event, f"values are nested more than {DEEPEST} levels deep; the settings need five")

    def _scalar(self, event: yaml.ScalarEvent) -> str | int | float | bool | None:
        text = str(event.value)
        if event.style is None:
            return plain_value(text)
        for character in text:
            # Escapes in double quotes can write what a text file cannot hold.
            if character == "\0" or "\ud800" <= character <= "\udfff":
                self._refuse(event, f"the text holds the character U+{ord(character):04X}, which is not accepted")
        return text

    def _list(self, path: KeyPath) -> tuple[list[Any], int]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._value((*path, len(items)), event))
        return items, _end(event)

    def _mapping(self, path: KeyPath) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(path, event)
            if key in items:
                self._refuse_twice((*path, key), _start(event))
            self.origins[(*path, key)] = Origin("", "", _start(event))
            items[key] = self._value((*path, key), next(self.events))
        return items, _end(event)

    def _key(self, path: KeyPath, event: yaml.Event) -> str:
        self._check(event, len(path))
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key must be a word; found a list or a mapping in its place")
        if event.style is None and event.value == "<<":
            self._refuse(event, "the merge key << is not accepted in settings; write the values out")
        if len(event.value) > LONGEST_KEY:
            self._refuse(event, f"a key must be a word; found {len(event.value)} characters")
        key = self._scalar(event)
        if not isinstance(key, str):
            self._refuse(event, f"a key must be a word; found {event.value or 'nothing'}")
        if control := CONTROL.search(key):  # written as an escape; it would be carried out where the key is printed
            self._refuse(event, f"a key must be a word; found one with the character U+{ord(control[0]):04X}")
        return key

    def _refuse_twice(self, path: KeyPath, second: int) -> NoReturn:
        first = self.origins[path].rank
        lines = f", lines {self.place.line(first)} and {self.place.line(second)}" if self.place.numbered else ""
        raise ConfigError(f"{self.place.name}{lines}: {dotted(path)} is given twice; keep one of the two.")


def _start(event: yaml.Event) -> int:
    assert event.start_mark is not None, "PyYAML's parser marks every event"
    return event.start_mark.index


def _end(event: yaml.Event) -> int:
    assert event.end_mark is not None, "PyYAML's parser marks every event"
    return event.end_mark.index


def _shorten(written: str, value: object) -> str:
    """Return a value as it was spelt, on one line and not too long for a message."""
    written = written.strip()
    if isinstance(value, dict) and not written.startswith("{"):
        return "a mapping"
    if isinstance(value, list) and not written.startswith("["):
        return "a list"
    written = " ".join(written.split())
    return written if len(written) <= 60 else written[:57] + "..."


def dotted(path: KeyPath) -> str:
    """Return the key of a setting as an error names it, such as data.train[1].source."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
