"""Fonts: which of the system's can show a text. One font rarely has every script, so matplotlib gets a list."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

# matplotlib's own, with Latin, Greek, Cyrillic and more; it is always there.
FIRST = "DejaVu Sans"
# Looked at before all others: they are made for reading and are on many systems.
_KNOWN = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "SimHei",
    "Noto Sans Arabic",
    "Noto Naskh Arabic",
    "Geeza Pro",
    "Segoe UI",
    "Noto Sans Devanagari",
    "Lohit Devanagari",
    "Kohinoor Devanagari",
    "Nirmala UI",
    "Arial Unicode MS",
)
# Scripts by the first word of Unicode's names, and the Debian package that brings a font.
_SCRIPTS = {
    "CJK": ("Chinese characters", "fonts-noto-cjk"),
    "HIRAGANA": ("Japanese", "fonts-noto-cjk"),
    "KATAKANA": ("Japanese", "fonts-noto-cjk"),
    "HANGUL": ("Korean", "fonts-noto-cjk"),
    "IDEOGRAPHIC": ("Chinese punctuation", "fonts-noto-cjk"),
    "FULLWIDTH": ("Chinese punctuation", "fonts-noto-cjk"),
}
_JOINED = ("ARABIC", "DEVANAGARI", "BENGALI", "TAMIL", "HEBREW")  # letters that join or run the other way


def families_for(text: str) -> tuple[list[str], str | None]:
    """Families that together show the text, in the order to try, and a note where something cannot be shown."""
    missing = {character for character in text if not character.isspace()}
    families = []
    for family, paths in _candidates():
        shown = {character for character in missing if ord(character) in _characters(paths)} if missing else set()
        if shown or family == FIRST:
            families.append(family)
            missing -= shown
        if not missing:
            break
    return families, _note(missing) or _shaping_note(text)


@cache
def _candidates() -> list[tuple[str, tuple[str, int]]]:
    """Every family with one file (and face) of it, the known ones first."""
    from matplotlib.font_manager import fontManager

    files: dict[str, tuple[str, int]] = {}
    for entry in sorted(fontManager.ttflist, key=lambda entry: (entry.style != "normal", abs(_weight(entry) - 400))):
        if not entry.name.startswith("Last Resort"):  # which shows what kind of character is missing, for every one
            files.setdefault(entry.name, (entry.fname, getattr(entry, "index", 0) or 0))
    known = [FIRST, *(family for family in _KNOWN if family in files)]
    return [(family, files[family]) for family in [*known, *sorted(files.keys() - set(known))] if family in files]


def _weight(entry: Any) -> int:
    return entry.weight if isinstance(entry.weight, int) else 400


@cache
def _characters(file: tuple[str, int]) -> frozenset[int]:
    """The code points that a font has a shape for; none if it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(file[0]).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


def _note(missing: set[str]) -> str | None:
    if not missing:
        return None
    found: dict[str, tuple[list[str], str]] = {}
    for character in sorted(missing):
        if unicodedata.category(character)[0] == "C":  # nothing to see, and no font to recommend
            name = "characters that have no shape of their own"
            found.setdefault(name, ([], ""))[0].append(f"U+{ord(character):04X}")
            continue
        word = unicodedata.name(character, "AN UNKNOWN").split()[0]
        name, package = _SCRIPTS.get(word, (word.capitalize(), "fonts-noto-core"))
        found.setdefault(name, ([], package))[0].append(character)
    lacking = " and ".join(f"{name} ({' '.join(characters[:5])})" for name, (characters, _) in found.items())
    packages = " ".join(sorted({package for _, package in found.values() if package}))
    advice = f"Install one (on Debian: {packages}); the" if packages else "The"
    return (
        f"No font of this system shows {lacking}: the picture has boxes there. {advice} page (--output) shows them "
        "wherever the browser can."
    )


def _shaping_note(text: str) -> str | None:
    """Before matplotlib 3.11, letters are set one by one from left to right."""
    from matplotlib import __version_info__ as version

    words = {unicodedata.name(character, "?").split()[0] for character in set(text)}
    if (version[0], version[1]) >= (3, 11) or not words & set(_JOINED):
        return None
    return "matplotlib before 3.11 does not join letters; install a newer one, or use the page (--output)."
