"""Findings: what was found, how grave it is, where it stands, and what one may do about it.

Three levels. An error: a training would be refused, or would learn from pairs that do not belong together. A warning:
worth mending, since it will be learnt. A note: true of the text, and perhaps meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
EXAMPLES = 3  # lines that are shown of a finding, unless asked otherwise


@dataclass(frozen=True)
class Kind:
    """A kind of damage: in words, what to do, and from which share of the lines on it is more than a note.

    `level` holds from the first line on if `share` is 0, else from that share; below it the finding is a note. Lines of
    a kind that is `dirt` are left out when a clean copy is written.
    """

    title: str
    advice: str
    level: Level = "warning"
    share: float = 0.0
    dirt: bool = False


KINDS: dict[str, Kind] = {
    # Files.
    "unreadable": Kind("the file cannot be read to its end", "Make or fetch the file again.", "error"),
    "encoding": Kind("the file is not UTF-8 text", "Convert the file to UTF-8.", "error"),
    "unequal": Kind("the two sides have different numbers of lines", "Mend the place that is named.", "error"),
    "same-file": Kind("source and target are the same file", "Name the other file.", "error"),
    "empty": Kind("there is no pair", "Check the path.", "error"),
    "column": Kind("rows without the column", "Mend the rows, or set data.bad_lines: drop.", "error", dirt=True),
    "not-utf8": Kind(
        "lines that are not UTF-8", "Convert the file, or set data.bad_lines: repair or drop.", "error", dirt=True
    ),
    "nul": Kind("lines with a NUL byte", "Remove it, or set data.bad_lines: repair or drop.", "error", dirt=True),
    "byte-order-mark": Kind(
        "a byte order mark", "At the start of a file it is skipped; elsewhere files were joined.", "warning", 0.0
    ),
    "line-ends": Kind("lines that end with CR LF", "Nothing: the CR goes with the line end.", "note"),
    # Pairs that do not belong together.
    "slip": Kind("the sides slip: lines do not face their translations", "Mend the first place first.", "error"),
    "apart": Kind("lines that do not seem to belong together", "Look at them: are they translations?", "warning"),
    "unrelated": Kind("lengths of the sides do not go together", "Check that the files belong together.", "error"),
    "swapped": Kind("pairs whose sides are exchanged", "Exchange the sides of these lines.", "warning", dirt=True),
    "swapped-files": Kind("the two sides are exchanged", "Exchange source and target in the settings.", "error"),
    "language": Kind("lines in the other side's language", "Translate them or leave them out.", "warning", dirt=True),
    "other-language": Kind("the side is in another language", "Check the file and its language code.", "error"),
    "script": Kind("lines in another script", "Leave them out, unless they are meant.", "warning", dirt=True),
    "other-script": Kind("the side is in another script", "Check the file and its language code.", "error"),
    "copy": Kind("sources copied, not translated", "Leave them out: copying is learnt fast.", "warning", dirt=True),
    "ratio": Kind("pairs with one side far too long for the other", "Look: is a part missing?", "warning", dirt=True),
    "long": Kind("lines far longer than the others", "Are several sentences in one line?", "note", dirt=True),
    "blank": Kind("pairs with a blank side", "Nothing: a training leaves them out.", "warning", 0.01, dirt=True),
    # Pairs that occur again.
    "duplicate": Kind("pairs that occur again", "Harmless if few; a clean copy has each once.", "warning", 0.01, True),
    "many-targets": Kind("sources with several targets", "Natural in small numbers.", "note"),
    "many-sources": Kind("targets with several sources", "Natural in small numbers.", "note"),
    "leak": Kind("pairs that are also in the training text", "Leave them out of it, or the score flatters.", "warning"),
    "leak-source": Kind(
        "sources that are also in the training text, translated otherwise",
        "Leave them out of it if there are many.",
        "warning",
        0.05,
    ),
    # Damage to the text.
    "mojibake": Kind("letters garbled by a wrong decoding (Ã¤ for ä)", "Decode the text anew.", dirt=True),
    "replacement": Kind("replacement characters (U+FFFD): letters were lost", "Fetch the text anew.", dirt=True),
    "control": Kind("control characters", "Remove them.", dirt=True),
    "carriage-return": Kind("a CR inside a line", "Was this a line end? Then the file has too few lines."),
    "line-break": Kind(
        "characters at which some programs break lines (U+2028, U+0085, form feed)",
        "Other programs count these lines otherwise; replace them by blanks.",
    ),
    "private": Kind("private-use characters or noncharacters", "They come from a font; find out what they meant."),
    "invisible": Kind(
        "invisible characters (soft hyphens, zero-width blanks, direction marks)", "Remove them.", "note"
    ),
    "compatible": Kind("full-width letters, ligatures and the like", "Normalise with NFKC if you like.", "note"),
    "not-composed": Kind("lines that are not in normalisation form C", "Nothing: training composes them.", "note"),
    "markup": Kind("markup such as <b>", "Remove the tags.", "warning", 0.001, dirt=True),
    "entity": Kind("entities such as &amp;", "Unescape them.", "warning", 0.001),
    "tokenised": Kind("blanks before punctuation, as in tokenised text", "Detokenise it.", "warning", 0.05),
    "pieces": Kind("marks of tokenised or segmented text (@-@, @@, ▁)", "Use the raw text.", "warning", 0.001, True),
    "spaced": Kind("words divided by blanks in a script that has none", "Use the raw text.", "warning", 0.1),
    "traditional": Kind("traditional characters among simplified lines", "Convert one to the other.", "warning", 0.1),
    "simplified": Kind("simplified characters among traditional lines", "Convert one to the other.", "warning", 0.1),
    "mixed-chinese": Kind("simplified and traditional characters in one line", "Convert one to the other.", "note"),
    # Characters.
    "rare": Kind("characters that occur fewer than 3 times", "Too rare to be learnt.", "note"),
    "unseen": Kind("characters that the training text lacks", "The model has never met them.", "note"),
}


@dataclass(frozen=True)
class Place:
    """A line and what it says; `text` may be both sides of a pair, divided by a tab."""

    line: int
    text: str = ""


@dataclass(frozen=True)
class Finding:
    """One finding. `part` is train, validation or test, `side` source, target or pair; lines count from 1."""

    kind: str
    level: Level
    part: str
    side: str
    file: str
    count: int
    detail: str = ""
    places: tuple[Place, ...] = ()

    @property
    def title(self) -> str:
        return KINDS[self.kind].title

    @property
    def advice(self) -> str:
        return KINDS[self.kind].advice

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "title": self.title, "advice": self.advice}


def level_of(kind: str, count: int, of: int) -> Level:
    """The level of `count` lines of this kind among `of` lines."""
    known = KINDS[kind]
    return known.level if count >= known.share * of else "note"


@dataclass
class Diagnosis:
    """All that was found, the worst first, and what was read for it."""

    findings: list[Finding] = field(default_factory=list)
    pairs: dict[str, int] = field(default_factory=dict)

    def add(self, found: Iterable[Finding]) -> None:
        self.findings += found
        self.findings.sort(key=lambda finding: LEVELS.index(finding.level))  # stable: else in the order of the checks

    def count(self, level: Level) -> int:
        return sum(finding.level == level for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence."""
        errors, warnings = self.count("error"), self.count("warning")
        if errors:
            return f"Not fit for training: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}."
        if warnings:
            return f"Fit for training; {_counted(warnings, 'warning')} worth a look first."
        return "Sound: nothing stands in the way of a training."

    def as_dict(self) -> dict[str, Any]:
        levels = {f"{level}s": self.count(level) for level in LEVELS}
        found = [finding.as_dict() for finding in self.findings]
        return {"verdict": self.verdict, **levels, "pairs": self.pairs, "findings": found}


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
