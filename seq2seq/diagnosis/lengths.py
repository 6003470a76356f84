"""Lengths: do the sides keep step, and which pairs have one side that is far too long for the other?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seq2seq.diagnosis.alignment import Course, Slip, follow
from seq2seq.diagnosis.found import NO_LINES, Found, Text
from seq2seq.diagnosis.signs import Sign
from seq2seq.diagnosis.words import confirms, sharpen

FEWEST = 50  # pairs; of fewer nobody knows what is usual
ODD = 6.0  # robust standard deviations
ODD_FACTOR = 2.5
LONG, LONG_FACTOR = 500, 10  # characters, and times the median
UNRELATED = 0.1  # correlation of lengths below which the sides cannot belong together
TRIES = 4  # shifts that lengths may propose and words refuse
TOLD = 3  # slips that are described
MANY = 200  # pairs from which on that is said


def in_step(text: Text) -> list[Found]:
    """Unequal sides, and the places where the sides slip."""
    source, target = text.source, text.target
    course = _course(text)
    found = []
    if len(source) != len(target) and not text.is_unread:
        found.append(
            Found("unequal", text, "pair", NO_LINES, _unequal(text, course), count=abs(len(source) - len(target)))
        )
    shifted = [slip for slip in course.slips if slip.shift is not None]
    if shifted:
        first = course.slips[0]
        where = sorted({max(0, first.line - 1), first.line, min(first.line + 1, len(text) - 1)})
        detail = "; then ".join(_in_words(slip) for slip in course.slips[:TOLD])
        detail += f"; and {len(course.slips) - TOLD} more" if len(course.slips) > TOLD else ""
        lines = np.asarray([line for line in where if line < len(text)], dtype=np.int64)
        count = len(course.slips)
        found.append(Found("slip", text, "pair", lines, detail, count=count, removes=_out_of_step(text, course)))
    elif course.slips:
        lines = _out_of_step(text, course)
        found.append(Found("apart", text, "pair", lines, _in_words(course.slips[0]), removes=NO_LINES))
    elif not course.is_telling and len(text) >= MANY and _correlation(text) < UNRELATED:
        detail = f"their correlation is {_correlation(text):.2f}; of translations it is above 0.5"
        found.append(Found("unrelated", text, "pair", NO_LINES, detail, count=len(text)))
    return found


def _course(text: Text) -> Course:
    """The course that lengths tell and words confirm; words also tell the exact lines of the first slips."""
    without: set[int] = set()
    source, target = text.source, text.target
    for _ in range(TRIES):
        course = follow(source.lengths, target.lengths, source.cues, target.cues, without)
        number, first = next(((n, slip) for n, slip in enumerate(course.slips) if slip.shift), (0, None))
        ends = [slip.line for slip in course.slips[1:]] + [len(source)]
        if first is None or first.shift is None or confirms(text, first, ends[number]):
            told = [sharpen(text, slip) for slip in course.slips[:TOLD]]
            return replace(course, slips=told + course.slips[TOLD:])
        without.add(first.shift)
    return replace(course, slips=[])


def _unequal(text: Text, course: Course) -> str:
    source, target = len(text.source), len(text.target)
    counts = f"{source:,} source and {target:,} target lines"
    more, less = ("source", "target") if source > target else ("target", "source")
    if course.slips:
        return f"{counts}; they part at about line {course.slips[0].line + 1:,}"
    if course.is_telling:
        return f"{counts}; they go together up to line {len(text):,}: the {more} goes on where the {less} ends"
    return f"{counts}; nothing in the lengths tells where they part"


def _in_words(slip: Slip) -> str:
    line = f"{slip.line + 1:,}"
    if slip.shift is None:
        return f"from about line {line} on the sides do not seem to belong together"
    if slip.shift == 0:
        return f"from line {line} on they keep step again"
    moved = slip.shift - (slip.before or 0)
    lines = f"{abs(moved):,} line{'' if abs(moved) == 1 else 's'}"
    short, long = ("target", "source") if moved < 0 else ("source", "target")
    facing = f"{abs(slip.shift):,} {'earlier' if slip.shift < 0 else 'later'}"
    return f"at line {line} the {short} lacks {lines}, or the {long} has {lines} too many; what follows stands {facing}"


def _out_of_step(text: Text, course: Course) -> NDArray[np.int64]:
    """All lines that are not faced by the line of their own number."""
    out = np.zeros(len(text), dtype=bool)
    for slip in course.slips:
        # Some lines before the place as well: it is known to a few lines only.
        out[max(0, slip.line - 5) if slip.shift != 0 else slip.line + 5 :] = slip.shift != 0
    return np.flatnonzero(out)


def _correlation(text: Text) -> float:
    rows = np.flatnonzero(text.filled)
    if len(rows) < 2:
        return 1.0
    source, target = (np.log1p(side.lengths[rows]) for side in (text.source, text.target))
    if source.std() == 0 or target.std() == 0:
        return 1.0  # lines of one length each: nothing to say
    return float(np.corrcoef(source, target)[0, 1])


def outliers(text: Text, skip: NDArray[np.int64]) -> list[Found]:
    """Pairs with a ratio of lengths that is far from the usual one, and lines that are far longer than the others.

    The ratio's logarithm is compared with its median, in units of the median absolute deviation. `skip` are lines that
    are known to be out of step.
    """
    usable = text.filled.copy()
    usable[skip] = False
    rows = np.flatnonzero(usable)
    found = []
    if len(rows) >= FEWEST:
        source, target = (side.lengths[rows].astype(np.float64) for side in (text.source, text.target))
        ratio = np.log((target + 1) / (source + 1))
        usual = float(np.median(ratio))
        deviation = max(0.05, 1.4826 * float(np.median(np.abs(ratio - usual))))
        odd = np.abs(ratio - usual) > max(ODD * deviation, np.log(ODD_FACTOR))
        if odd.any():
            factors = np.exp(np.abs(ratio - usual))
            notes = {
                int(
                    rows[index]
                ): f"{'target' if ratio[index] > usual else 'source'} {factors[index]:.1f} times too long"
                for index in np.flatnonzero(odd)[:100]
            }
            found.append(Found("ratio", text, "pair", rows[odd], _usual(usual), notes))
    for name, side in text.sides:
        filled = side.lengths[(side.signs & np.uint32(Sign.BLANK)) == 0]
        if len(filled) >= FEWEST:
            median = float(np.median(filled))
            lines = np.flatnonzero(side.lengths > max(LONG, LONG_FACTOR * median))
            if len(lines):
                detail = f"up to {side.lengths.max():,} characters; the median is {median:,.0f}"
                found.append(Found("long", text, name, lines, detail))
    return found


def _usual(log_ratio: float) -> str:
    factor = np.exp(log_ratio)
    return f"usually the target has {factor:.2f} times the characters of the source"
