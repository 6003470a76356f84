"""From productions to the six files: distinct pairs, split so that no side of a held-out pair is seen in training."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

from . import (  # noqa: F401 (they register their productions)
    abilities,
    asking,
    calendar_times,
    clauses,
    comparing,
    conditions,
    daily,
    describing,
    giving,
    having,
    relative,
    reporting,
    requests,
    shopping,
    weather,
)
from .drawing import PRODUCTIONS, Draw, Pair
from .phrases import PHRASES

SEED = 20240305
VALIDATION = TEST = 500
# A held-out word is known from training at least this often, so that a test asks for new combinations, not new words.
SEEN = 8
# The counts beside the productions are relative; this makes them about 11,000 sentences together.
SHARE = 0.59


def finished(pair: Pair) -> Pair:
    english, chinese = pair
    return english[0].upper() + english[1:], chinese


def sentences() -> list[Pair]:
    """Every production's share of distinct pairs; an English sentence, or a Chinese one, occurs only once."""
    pairs: list[Pair] = list(PHRASES)
    english, chinese = {en for en, _ in pairs}, {zh for _, zh in pairs}
    for production in PRODUCTIONS:
        # A seed of its own, from the name: a change to one production leaves the others as they are.
        draw = Draw(SEED + crc32(production.name.encode()))
        wanted = round(SHARE * production.count)
        for _ in range(30 * production.count):
            pair = finished(production.write(draw))
            if pair[0] in english or pair[1] in chinese:
                continue
            english.add(pair[0])
            chinese.add(pair[1])
            pairs.append(pair)
            wanted -= 1
            if not wanted:
                break
    return pairs


def units(pair: Pair) -> list[str]:
    """What a model must have met: the English words and the Chinese characters, numbers in digits aside."""
    words = pair[0].lower().replace(",", "").rstrip(".?!").split()
    return [unit for unit in (*words, *pair[1]) if not any(letter.isdigit() for letter in unit)]


def english_chinese() -> dict[str, list[Pair]]:
    """The three splits of data/english-chinese, by name."""
    phrases = len(PHRASES)
    pairs = sentences()
    draw = Draw(SEED)
    counts = Counter(unit for pair in pairs for unit in set(units(pair)))
    kept, free = pairs[:phrases], []
    for pair in pairs[phrases:]:
        (free if min(counts[unit] for unit in units(pair)) >= SEEN else kept).append(pair)
    free = draw.shuffled(free)
    train = draw.shuffled(kept + free[VALIDATION + TEST :])
    return {"train": train, "validation": free[:VALIDATION], "test": free[VALIDATION : VALIDATION + TEST]}


def reverse() -> dict[str, list[Pair]]:
    """The three splits of data/reverse: digits and the same digits backwards, 3 to 12 of them."""
    draw = Draw(SEED)
    sizes = {"train": 25_000, "validation": 500, "test": 500}
    seen: set[str] = set()
    splits: dict[str, list[Pair]] = {}
    # The held-out splits draw first: they get their share of the few short strings.
    for name in ("validation", "test", "train"):
        splits[name] = []
        while len(splits[name]) < sizes[name]:
            digits = [str(draw.number(0, 9)) for _ in range(draw.number(3, 12))]
            source = " ".join(digits)
            if source not in seen:
                seen.add(source)
                splits[name].append((source, " ".join(reversed(digits))))
    return splits


def files() -> dict[str, bytes]:
    """Every file of data/ that is generated, by its path under data/."""
    contents = {}
    for folder, splits, (source, target) in (
        ("english-chinese", english_chinese(), ("en", "zh")),
        ("reverse", reverse(), ("source", "target")),
    ):
        for name, pairs in splits.items():
            for side, suffix in enumerate((source, target)):
                text = "".join(pair[side] + "\n" for pair in pairs)
                contents[f"{folder}/{name}.{suffix}"] = text.encode("utf-8")
    return contents
