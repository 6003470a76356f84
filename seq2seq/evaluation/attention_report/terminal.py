"""The step worked through, as plain text for a terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from seq2seq.evaluation.attention_report.explain import Explanation


def as_text(found: Explanation, rows: Sequence[Sequence[str]]) -> str:
    """The explanation for a terminal; `rows` are the `parameters` of the attention."""
    lines = [found.kind.title, f"  {found.kind.formula}", "", *_wrapped(found.kind.text), ""]
    if rows:
        lines += ["Parameters", *_table(["name", "shape", "numbers", "meaning"], rows), ""]
    for number, stage in enumerate(found.stages, start=1):
        lines.append(f"{number}. {stage.title}")
        for sentence in stage.sentences:
            lines += _wrapped(sentence, "   ")
        if stage.rows:
            lines += ["", *_table(stage.header, stage.rows)]
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=indent)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(_columns(row[place]) for row in [header, *rows]) for place in range(len(header))]
    return [
        (
            "   " + "  ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def _columns(text: str) -> int:
    """How wide a terminal writes a text: Chinese characters take two columns, marks none."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.category(character) in ("Mn", "Me", "Cf") for character in text)
