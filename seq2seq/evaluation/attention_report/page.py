"""The page: one HTML file with everything in it, which opens from the disk and asks the network for nothing.

Python writes the texts, the explanation and the numbers; page.js draws heat maps and links from them, page.css says how
they look. The numbers are thousandths, which is more than an eye sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from seq2seq.evaluation.attention_report.explain import Explanation, explain, parameters
from seq2seq.evaluation.attention_report.sentences import END, Part, Sentence
from seq2seq.evaluation.attention_report.units import direction

# Nothing is fetched, whatever a sentence says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class About:
    """What the page says of the model: its name, kind of attention, languages, and a line of facts."""

    run: str
    kind: str
    source_language: str
    target_language: str
    facts: str


def page(sentences: Sequence[Sentence], about: About, units: str = "words") -> str:
    """The whole page; `units` is what it shows first, words or pieces."""
    parts = [part for sentence in sentences for part in sentence.parts]
    data = {
        "units": units,
        "end": END,
        "languages": [about.source_language, about.target_language],
        "parts": [_numbers(part) for part in parts],
    }
    title = f"Attention of {about.run}"
    body = [
        f"<header><h1>{escape(title)}</h1><p class='facts'>{escape(about.facts)}</p><p class='how'>{_HOW}</p></header>",
        _bar(parts[0].look.weights_NTS.shape[0] if parts else 1),
        "<main>",
        _kind(parts[0], about) if parts else "<p>There is no text to look at.</p>",
        *(_sentence(sentence, about) for sentence in sentences),
        "</main>",
        "<footer>Weights say where the model looked, not why it decided; see docs/attention.md.</footer>",
        "<div id='tip' aria-hidden='true' hidden></div>",
        # `<` could end the script.
        "<script type='application/json' id='data'>",
        json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "</script>",
        f"<script>{_beside('page.js')}</script>",
    ]
    head = (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_beside('page.css')}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(body) + "\n</body>\n</html>\n"


_HOW = (
    "Each row is a word that the model wrote, each column a word of the source; the darker the cell, the more the "
    "model looked there when it chose the word (brighter, on a dark screen). Numbers are hundredths; a row adds up to "
    "100. Point at a word or a cell, or go through the map with the arrow keys."
)


def _beside(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _numbers(part: Part) -> dict[str, Any]:
    numbers = {}
    for kind in ("words", "pieces"):
        source, target = part.units(kind)
        thousandths = (part.weights(kind) * 1000).round().int().tolist()
        numbers[kind] = {
            "source": [unit.text for unit in source],
            "target": [unit.text for unit in target],
            "weights": thousandths,
        }
    return numbers


def _bar(heads: int) -> str:
    choices = [("units", "Show", [("words", "words"), ("pieces", "pieces")])]
    if heads > 1:
        names = [("mean", "mean"), *((str(head), str(head + 1)) for head in range(heads))]
        choices.append(("head", "Heads", names))
    fields = [
        f"<fieldset><legend>{legend}</legend><div class='choice'>"
        + "".join(
            f"<label><input type='radio' name='{name}' value='{value}' autocomplete='off'><span>{text}</span></label>"
            for value, text in values
        )
        + "</div></fieldset>"
        for name, legend, values in choices
    ]
    scale = "<div class='scale' aria-hidden='true'>0 <i></i> 1</div>"
    return f"<div class='bar' role='region' aria-label='What is shown'><div>{''.join(fields)}{scale}</div></div>"


def _kind(part: Part, about: About) -> str:
    found = explain(part, about.kind)
    rows = parameters(part.look.attention, found.kind)
    table = _table(["name", "shape", "numbers", "meaning"], rows) if rows else "<p>This kind has no parameters.</p>"
    return (
        "<section class='kind'><details><summary>What this kind of attention computes, and what its parameters mean"
        f"</summary><h2>{escape(found.kind.title)}</h2><p class='formula'>{escape(found.kind.formula)}</p>"
        f"<p>{escape(found.kind.text)}</p>{table}</details></section>"
    )


def _sentence(sentence: Sentence, about: About) -> str:
    number = sentence.number
    body = "".join(_part(sentence, part, about) for part in sentence.parts) or "<p class='facts'>A blank line.</p>"
    return (
        f"<article id='s{number}' aria-labelledby='n{number}'><h2 id='n{number}'>"
        f"<a href='#s{number}'>Sentence {number}</a></h2>{body}</article>"
    )


def _part(sentence: Sentence, part: Part, about: About) -> str:
    whole = len(sentence.parts) == 1
    texts = (sentence.source, sentence.translation) if whole else _texts(part)
    languages = (about.source_language, about.target_language)
    strips = "".join(
        f"<p class='strip {side}' lang='{escape(language)}' dir='{direction(text)}'>{escape(text)}</p>"
        for side, language, text in zip(("source", "target"), languages, texts, strict=True)
    )
    caption = f"Attention, sentence {sentence.number}: a row for each written word, a column for each source word."
    return (
        f"<div class='part' data-direction='{direction(texts[0])}' data-caption='{escape(caption)}'>"
        f"<div class='strips'>{strips}</div><div class='views'><div class='scroll'></div>"
        f"<div class='heads' role='group' aria-label='Heads'></div></div>{_worked(explain(part, about.kind))}</div>"
    )


def _texts(part: Part) -> tuple[str, str]:
    """The texts of one part of a split line."""
    source, target = part.units("words")
    return " ".join(unit.text for unit in source[:-1]), " ".join(unit.text for unit in target[:-1])


def _worked(found: Explanation) -> str:
    stages = "".join(
        f"<h3>{number}. {escape(stage.title)}</h3>"
        + "".join(f"<p>{escape(sentence)}</p>" for sentence in stage.sentences)
        + (_table(stage.header, stage.rows) if stage.rows else "")
        for number, stage in enumerate(found.stages, start=1)
    )
    return f"<details class='worked'><summary>One step of it, in numbers</summary>{stages}</details>"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in header)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll-table'><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
