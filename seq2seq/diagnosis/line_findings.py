"""Line findings: the signs of single lines and pairs, gathered; and what only a whole side can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seq2seq.diagnosis.characters import ALL_HAN, FIRST_SCRIPT, Kind, names, table
from seq2seq.diagnosis.findings import Level
from seq2seq.diagnosis.found import NO_LINES, Found, SideName, Text
from seq2seq.diagnosis.languages import known_code, likeliest_language
from seq2seq.diagnosis.scan import Side
from seq2seq.diagnosis.signs import Sign

MOST = 0.5  # of the lines of a side, from which on it is not the lines that are wrong but the side
SHORTEST_COPY = 8  # characters; shorter lines may be names and numbers
BOTH_CHINESE = 0.01

# Signs that mean something by themselves; the rest is read together with the other side below.
_PLAIN = (
    Sign.COLUMN,
    Sign.NOT_UTF8,
    Sign.NUL,
    Sign.BYTE_ORDER_MARK,
    Sign.REPLACEMENT,
    Sign.MOJIBAKE,
    Sign.CONTROL,
    Sign.CARRIAGE_RETURN,
    Sign.LINE_BREAK,
    Sign.PRIVATE,
    Sign.INVISIBLE,
    Sign.COMPATIBLE,
    Sign.NOT_COMPOSED,
    Sign.MARKUP,
    Sign.ENTITY,
    Sign.TOKENISED,
    Sign.PIECES,
    Sign.SPACED,
)
_REFUSED = (Sign.COLUMN, Sign.NOT_UTF8, Sign.NUL)  # what data.bad_lines decides about


def of_files(text: Text) -> list[Found]:
    """What is odd about the files themselves."""
    found = []
    is_table = text.files.tsv is not None
    for name, side in text.sides[:1] if is_table else text.sides:
        if side.failure is not None:
            kind = "unreadable" if side.encoding == "UTF-8" else "encoding"
            found.append(Found(kind, text, name, NO_LINES, side.failure, count=1))
        if side.marked:
            found.append(Found("byte-order-mark", text, name, np.zeros(1, np.int64), "at the start", level="note"))
        if side.carriage_returns:
            level: Level = "note" if side.carriage_returns >= len(side) - 1 else "warning"
            detail = "" if level == "note" else "the others end with LF: were two files joined?"
            found.append(Found("line-ends", text, name, NO_LINES, detail, count=side.carriage_returns, level=level))
    files = text.files
    if files.source is not None and files.target is not None and Path(files.source).samefile(files.target):
        found.append(Found("same-file", text, "pair", NO_LINES, count=len(text)))
    if not text.filled.any() and not text.is_unread:
        found.append(Found("empty", text, "pair", NO_LINES, count=0, level="error"))
    return found


def of_lines(text: Text, languages: tuple[str | None, str | None], bad_lines: str) -> list[Found]:
    """The signs of both sides."""
    found = []
    for (name, side), language in zip(text.sides, languages, strict=True):
        for sign in _PLAIN:
            if sign is Sign.TOKENISED and known_code(language) == "fr":
                continue  # French sets a blank before ! ? : ;
            lines = side.lines_with(sign)
            if sign in (Sign.COLUMN, Sign.NUL, Sign.NOT_UTF8) and text.files.tsv is not None and name == "target":
                continue  # of the whole row, and said of the source
            if len(lines):
                level: Level | None = "warning" if sign in _REFUSED and bad_lines != "refuse" else None
                found.append(Found(sign.kind, text, name, lines, level=level))
    blank = np.flatnonzero(~text.filled)
    missing = text.source.signs[: len(text)] & np.uint32(Sign.COLUMN)
    blank = blank[missing[blank] == 0]
    if len(blank):
        found.append(Found("blank", text, "pair", blank))
    return found


def of_pairs(text: Text) -> list[Found]:
    """Copies, exchanged sides, and lines in another script or in the other side's language."""
    n = len(text)
    source, target = text.source, text.target
    same = (source.hashes[:n] == target.hashes[:n]) & text.filled
    copies = same & (source.lengths[:n] >= SHORTEST_COPY)
    found = [Found("copy", text, "pair", np.flatnonzero(copies))] if copies.any() else []
    for sign in (Sign.SCRIPT, Sign.LANGUAGE):
        ours, theirs = ((side.signs & np.uint32(sign)) > 0 for side in (source, target))
        both = ours[:n] & theirs[:n] & ~same
        if both.sum() > MOST * n:
            detail = "" if sign is Sign.LANGUAGE else "each side is written in the script of the other language"
            return [
                *found,
                Found("swapped-files", text, "pair", np.flatnonzero(both)[:1], detail, count=int(both.sum())),
            ]
        if both.any():
            found.append(Found("swapped", text, "pair", np.flatnonzero(both)))
        for (name, side), odd in zip(text.sides, (ours, theirs), strict=True):
            alone = odd.copy()
            alone[:n] &= ~both & ~same
            if alone.sum() > MOST * len(side):
                detail = f"most letters are {names(frozenset({main_script(side)}))}"
                found.append(
                    Found("other-script", text, name, np.flatnonzero(alone)[:1], detail, count=int(alone.sum()))
                )
            elif alone.any():
                found.append(Found(sign.kind, text, name, np.flatnonzero(alone)))
    return found


def main_script(side: Side) -> Kind:
    """The script of most letters."""
    counts = np.bincount(table()[side.codes], weights=side.counts, minlength=len(Kind))
    counts[Kind.HAN] += counts[Kind.SIMPLIFIED_HAN] + counts[Kind.TRADITIONAL_HAN]
    return Kind(int(counts[FIRST_SCRIPT : Kind.SIMPLIFIED_HAN].argmax()) + FIRST_SCRIPT)


def of_languages(
    text: Text, languages: tuple[str | None, str | None], samples: tuple[Sequence[str], Sequence[str]]
) -> list[Found]:
    """Whether the common words of a side are those of another language than the settings say."""
    likeliest = [likeliest_language(sample)[0] for sample in samples]
    declared = [known_code(language) for language in languages]
    wrong = [
        like is not None and code is not None and like != code for like, code in zip(likeliest, declared, strict=True)
    ]
    if all(wrong) and likeliest == declared[::-1]:
        detail = f"the source reads like {likeliest[0]} and the target like {likeliest[1]}"
        return [Found("swapped-files", text, "pair", np.zeros(1, np.int64), detail, count=len(text))]
    found = []
    for (name, _), like, code, is_wrong in zip(text.sides, likeliest, declared, wrong, strict=True):
        # Danish, Norwegian and Swedish, or Czech and Slovak, are too near to one another to judge by a few words.
        if is_wrong and not {like, code} <= {"da", "no", "sv"}:
            detail = f"it reads like {like}, and the settings say {code}"
            found.append(Found("other-language", text, name, np.zeros(1, np.int64), detail, count=len(text)))
    return found


def of_chinese(text: Text, languages: tuple[str | None, str | None]) -> list[Found]:
    """Simplified and traditional characters, where both occur in a Chinese side."""
    found: list[Found] = []
    for (name, side), language in zip(text.sides, languages, strict=True):
        code = (language or "").lower().replace("-", "_").split("_")[0]
        if code not in ("zh", "") or main_script(side) not in ALL_HAN:
            continue
        simplified, traditional = ((side.signs & np.uint32(sign)) > 0 for sign in (Sign.SIMPLIFIED, Sign.TRADITIONAL))
        both = simplified & traditional
        counts = {"simplified": int(simplified.sum()), "traditional": int(traditional.sum())}
        total = max(1, int((simplified | traditional).sum()))
        rarer: SideName | str = min(counts, key=lambda kind: counts[kind])
        lines = np.flatnonzero((simplified if rarer == "simplified" else traditional) & ~both)
        if len(lines):
            shares = " and ".join(f"{kind} in {count / total:.0%}" for kind, count in counts.items())
            found.append(Found(str(rarer), text, name, lines, f"{shares} of the lines that tell"))
        if both.any():
            found.append(Found("mixed-chinese", text, name, np.flatnonzero(both)))
    return found
