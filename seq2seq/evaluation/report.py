"""The report: one HTML page that explains a score. It needs no network and no script, and prints as well as it shows.

Colours are chosen for light and dark screens alike, text stands out from its ground by 4.5 to 1 at least (WCAG 2.2),
the chart is a picture with a description and a table beside it, and sentences say their language and run in their own
direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.evaluation.causes import Cause
    from seq2seq.evaluation.diagnosis import Diagnosis, Example, LengthGroup
    from seq2seq.evaluation.scores import Score, Scores


@dataclass(frozen=True)
class Explained:
    """Scores with everything that is known of their causes; `languages` are codes such as en, or empty."""

    title: str
    facts: Sequence[str]
    languages: tuple[str, str]
    scores: Scores
    edits: Score | None
    diagnosis: Diagnosis
    causes: Sequence[Cause]

    def as_dict(self) -> dict[str, Any]:
        """What JSON says beside BLEU and chrF."""
        edits = {} if self.edits is None else {"ter": self.edits.as_dict()}
        causes = [cause.as_dict() for cause in self.causes]
        return {**edits, "causes": causes, "diagnosis": self.diagnosis.as_dict()}


_STYLE = """
:root { color-scheme: light dark; --ground: #fbfbf9; --card: #ffffff; --ink: #1d2126; --soft: #565d66; --line: #dfe1e0;
  --accent: #00618f; --bar: #0072b2; --rest: #e6eaee; --good: #00694f; --bad: #a63c00; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e8eaec; --soft: #a3abb4;
  --line: #343a41; --accent: #7cc4ee; --bar: #56b4e9; --rest: #2b3138; --good: #4fd3a8; --bad: #f5a46b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.55;
  font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 3rem 1.5rem 4rem; }
h1 { font-size: 1.9rem; font-weight: 650; letter-spacing: -0.015em; line-height: 1.2; margin: 0;
  overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; font-weight: 650; margin: 2.8rem 0 0.9rem; }
.facts { color: var(--soft); margin: 0.4rem 0 0; overflow-wrap: anywhere; }
.scores { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem; margin: 1.8rem 0 0; }
.score, .causes li, .example { background: var(--card); border: 1px solid var(--line); border-radius: 0.7rem; }
.score { padding: 1rem 1.2rem 0.9rem; }
.score dt { color: var(--soft); }
.score dd { margin: 0; font-size: 2.3rem; font-weight: 650; line-height: 1.2; font-variant-numeric: tabular-nums; }
.score dd.signature { color: var(--soft); font: 0.72rem/1.45 ui-monospace, "SFMono-Regular", Menlo, monospace;
  overflow-wrap: anywhere; margin-top: 0.45rem; }
.causes { list-style: none; counter-reset: cause; padding: 0; margin: 0; display: grid; gap: 0.7rem; }
.causes li { counter-increment: cause; display: grid; grid-template-columns: 2rem 1fr; padding: 0.9rem 1.2rem; }
.causes li::before { content: counter(cause); font-size: 1.15rem; font-weight: 650; color: var(--accent); }
.causes p { margin: 0; }
.causes .try { color: var(--soft); margin-top: 0.25rem; }
code { font: 0.87em ui-monospace, "SFMono-Regular", Menlo, monospace; color: var(--accent); }
.chart { display: grid; grid-template-columns: max-content 1fr max-content; gap: 0.45rem 0.8rem; align-items: center;
  font-variant-numeric: tabular-nums; }
.chart > span:first-child, .chart > b + span { color: var(--soft); text-align: end; }
.chart b { font-weight: 650; text-align: end; }
.track { background: var(--rest); border-radius: 0.3rem; height: 1.35rem; }
.bar { display: block; background: var(--bar); border-radius: 0.3rem; height: 100%; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: start; color: var(--soft); padding-bottom: 0.4rem; }
th, td { text-align: end; padding: 0.4rem 0.6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: start; padding-inline-start: 0; }
thead th { color: var(--soft); font-weight: 500; }
th[scope=row] { font-weight: 500; }
.plain td { text-align: start; }
details { margin-top: 0.8rem; }
summary { cursor: pointer; color: var(--accent); padding: 0.2rem 0; }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 0.2rem; }
.examples { display: grid; gap: 0.7rem; }
.example { padding: 0.8rem 1.2rem 0.9rem; }
.example h3 { font-size: 0.9rem; font-weight: 500; color: var(--soft); margin: 0 0 0.3rem; }
.example h3 b { font-weight: 650; }
.worst b { color: var(--bad); }
.best b { color: var(--good); }
.example dl { display: grid; grid-template-columns: 6.5rem 1fr; gap: 0.15rem 0.8rem; margin: 0; }
.example dt { color: var(--soft); font-size: 0.9rem; }
.example dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: plaintext; text-align: start; }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.88rem; }
@media (max-width: 34rem) { .example dl { grid-template-columns: 1fr; } .example dd { margin-bottom: 0.3rem; }
  main { padding: 1.8rem 1rem 3rem; } }
@media print { main { max-width: none; padding: 0; } .score, .causes li, .example { break-inside: avoid; } }
"""


def page(explained: Explained) -> str:
    """The whole page as text."""
    title = escape(explained.title)
    body = "\n".join(_sections(explained))
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}: what the score is due to</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _sections(explained: Explained) -> Iterator[str]:
    diagnosis = explained.diagnosis
    yield f"<header><h1>{escape(explained.title)}</h1>"
    yield f'<p class="facts">{escape(" · ".join(explained.facts))}</p></header>'
    yield '<dl class="scores">' + "".join(_score_cards(explained)) + "</dl>"
    yield "<section><h2>" + _causes_heading(explained.causes) + "</h2>" + _causes(explained.causes) + "</section>"
    if len(diagnosis.groups) > 1:
        heading = f"BLEU by length of the {diagnosis.grouped_by}, in {diagnosis.unit}"
        yield f"<section><h2>{heading}</h2>{_chart(diagnosis)}{_groups_table(diagnosis)}</section>"
    yield f"<section><h2>Numbers</h2>{_numbers_table(diagnosis)}</section>"
    for name, title, examples in (
        ("worst", "Worst sentences", diagnosis.worst),
        ("best", "Best sentences", diagnosis.best),
    ):
        if examples:
            cards = "".join(_example(example, explained.languages) for example in examples)
            yield f'<section><h2>{title}, by chrF2</h2><div class="examples {name}">{cards}</div></section>'
    yield (
        "<footer>Scores by sacreBLEU on plain text. A cause is a rule’s guess from the numbers below it, ordered by "
        "the points that may be at stake; a training tells whether it was right.</footer>"
    )


def _score_cards(explained: Explained) -> Iterator[str]:
    scores = [explained.scores.bleu, explained.scores.chrf]
    scores += [] if explained.edits is None else [explained.edits]
    for score in scores:
        name = f"{score.name} (lower is better)" if score.name == "TER" else score.name
        yield (
            f'<div class="score"><dt>{escape(name)}</dt><dd>{score.value:.2f}</dd>'
            f'<dd class="signature">{escape(score.signature).replace("|", "|<wbr>")}</dd></div>'
        )


def _causes_heading(causes: Sequence[Cause]) -> str:
    return "Likeliest cause" if len(causes) == 1 else "Likeliest causes"


def _causes(causes: Sequence[Cause]) -> str:
    if not causes:
        return "<p>Nothing stands out; more pairs of the kind that is tested are the surest gain.</p>"
    items = []
    for cause in causes:
        setting = "" if cause.setting is None else f"<code>{escape(cause.setting)}</code>: "
        what = cause.what[:1].upper() + cause.what[1:]
        advice = f'<p class="try">Try {setting}{escape(cause.advice)}.</p>'
        items.append(f"<li><div><p>{escape(what)}.</p>{advice}</div></li>")
    return f'<ol class="causes">{"".join(items)}</ol>'


def length_label(group: LengthGroup) -> str:
    """`7` or `7–9`."""
    return f"{group.shortest}" if group.shortest == group.longest else f"{group.shortest}–{group.longest}"


def _chart(diagnosis: Diagnosis) -> str:
    """Bars from 0 to 100: shares of the best that there could be, so that one page compares with another."""
    said = "; ".join(f"{length_label(group)} {diagnosis.unit}: {group.bleu:.1f}" for group in diagnosis.groups)
    rows = "".join(
        f"<span>{length_label(group)}</span>"
        f'<span class="track"><span class="bar" style="width: {max(0.0, min(100.0, group.bleu)):.1f}%"></span></span>'
        f"<b>{group.bleu:.1f}</b>"
        for group in diagnosis.groups
    )
    return f'<div class="chart" role="img" aria-label="BLEU by length. {escape(said)}">{rows}</div>'


def _groups_table(diagnosis: Diagnosis) -> str:
    rows = "".join(
        f'<tr><th scope="row">{length_label(group)}</th><td>{group.sentences:,}</td><td>{group.bleu:.2f}</td>'
        f"<td>{group.length_ratio:.1%}</td></tr>"
        for group in diagnosis.groups
    )
    return (
        "<details><summary>The same as a table</summary><table>"
        f"<thead><tr><th scope=col>{diagnosis.unit.capitalize()}</th><th scope=col>Sentences</th>"
        "<th scope=col>BLEU</th><th scope=col>Length, of the references</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )


def _numbers_table(diagnosis: Diagnosis) -> str:
    rows = [
        ("Right runs of 1, 2, 3, 4 tokens", " · ".join(f"{value:.1f}%" for value in diagnosis.precisions)),
        (
            "Length, of the references",
            f"{diagnosis.length_ratio:.1%} (brevity penalty {diagnosis.brevity_penalty:.3f})",
        ),
        ("BLEU without regard to capitals", f"{diagnosis.bleu_lowercase:.2f}"),
        ("Translations that repeat themselves", _lines(diagnosis.repeated, diagnosis.lines)),
        ("Translations that repeat the source", _lines(diagnosis.copied, diagnosis.lines)),
        ("Empty translations", _lines(diagnosis.empty, diagnosis.lines)),
    ]
    training = diagnosis.training
    if training is not None:
        rows += [
            ("Training pairs looked at", f"{training.pairs:,}" + ("" if training.complete else " (the first)")),
            ("Sentences that stand in them", f"{training.seen:.1%}"),
            (f"Source {diagnosis.unit} that stand nowhere in them", f"{training.unknown_words:.2%}"),
            ("Source pieces that never came up in training", f"{training.unknown_pieces:.2%}"),
        ]
    cells = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f'<table class="plain"><tbody>{cells}</tbody></table>'


def _lines(numbers: Sequence[int], lines: int) -> str:
    if not numbers:
        return "none"
    places = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
    return f"{len(numbers):,} ({len(numbers) / lines:.1%}): line {places}"


def _example(example: Example, languages: tuple[str, str]) -> str:
    source, target = (f' lang="{escape(code.replace("_", "-"))}"' if code else "" for code in languages)
    rows = [] if example.source is None else [("source", source, example.source)]
    rows += [("translation", target, example.hypothesis), ("reference", target, example.reference)]
    cells = "".join(
        f'<dt>{name}</dt><dd{language} dir="auto">{escape(text) or "<i>empty</i>"}</dd>'
        for name, language, text in rows
    )
    return (
        f'<article class="example"><h3><b>{example.chrf:.1f}</b> · line {example.line:,}</h3><dl>{cells}</dl></article>'
    )
