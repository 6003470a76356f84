"""What `seq2seq doctor` prints: a verdict, a table, examples, vocabularies and the clean copy; or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.diagnosis.cleaning import Cleaned
    from seq2seq.diagnosis.examination import Examined
    from seq2seq.diagnosis.findings import Finding
    from seq2seq.diagnosis.vocabulary import SideUse, VocabularyUse


def as_json(examined: Examined, cleaned: Cleaned | None, cost: dict[str, Any]) -> dict[str, Any]:
    said = examined.diagnosis.as_dict() | {"vocabularies": [use.as_dict() for use in examined.vocabularies]}
    if cleaned is not None:
        said["clean"] = {
            "source": str(cleaned.source),
            "target": str(cleaned.target),
            "log": str(cleaned.log),
            "kept": cleaned.kept,
            "removed": cleaned.removed,
            "left_as_too_common": cleaned.left,
        }
    return said | cost


def report(examined: Examined, cleaned: Cleaned | None) -> Iterator[str]:
    """Verdict, table, examples, vocabulary, clean copy."""
    from seq2seq.diagnosis.examination import PART_NAMES

    diagnosis = examined.diagnosis
    yield diagnosis.verdict
    yield ", ".join(f"{count:,} {PART_NAMES[part]} pairs" for part, count in diagnosis.pairs.items())
    if diagnosis.findings:
        yield ""
        yield from (_row(finding) for finding in diagnosis.findings)
    for finding in diagnosis.findings:
        yield from _details(finding)
    yield from _vocabulary_table(examined.vocabularies)
    if cleaned is not None:
        yield ""
        yield f"Clean copy: {cleaned.kept:,} pairs in {cleaned.source} and {cleaned.target};"
        yield f"the others, and why, in {cleaned.log}:"
        for kind, count in cleaned.removed.items():
            yield f"  {count:>9,}  left out: {kind}"
        for kind in cleaned.left:
            yield f"  kept: {kind}, which more than a tenth of the pairs show; that is no dirt but the text"


def where(finding: Finding) -> str:
    return f"{finding.part} {finding.side}" if finding.side != "pair" else finding.part


def _row(finding: Finding) -> str:
    return f"{finding.level:<8} {finding.count:>9,}  {where(finding):<17}  {finding.title}"


def _details(finding: Finding) -> Iterator[str]:
    if not finding.places and not finding.detail:
        return
    yield ""
    yield f"{finding.level}: {finding.title} ({where(finding)}, {finding.count:,})"
    if finding.detail:
        yield f"  {finding.detail}"
    for place in finding.places:
        yield f"  line {place.line:>7,}  {place.text}"
    if finding.advice:
        yield f"  -> {finding.advice}"


def _vocabulary_table(uses: list[VocabularyUse]) -> Iterator[str]:
    if not uses:
        return
    yield ""
    measured = max(use.measured for use in uses)
    if not measured:
        yield f"No vocabulary could be learnt from {uses[0].sample:,} pairs:"
        yield from (f"  {use.size:>7,}  {use.failure}" for use in uses)
        return
    yield f"Vocabularies, learnt from {uses[0].sample:,} pairs and measured on {measured:,} others:"
    yield "     size  side    pieces/word  letters/piece  mean pieces  99 % within  letters without a piece"
    for use in uses:
        if use.failure is not None:
            yield f"  {use.size:>7,}  {use.failure}"
            continue
        for name, side in (("source", use.source), ("target", use.target)):
            assert side is not None
            yield f"  {use.size:>7,}  {name}  {_numbers(side)}"
        if use.too_long:
            yield f"           {use.too_long:,} pairs are longer than data.max_length and would be left out"


def _numbers(side: SideUse) -> str:
    return (
        f"{side.pieces_per_word:>11.2f}  {side.characters_per_piece:>13.2f}  {side.mean_pieces:>11.1f}  "
        f"{side.longest_percent:>11.0f}  {side.unknown:,} of {side.characters:,}"
    )


def visible(line: str) -> str:
    """A line without what a terminal would carry out; names of files may hold it as well."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
