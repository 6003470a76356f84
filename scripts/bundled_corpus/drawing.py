"""Chance, and the list of productions: the only source of randomness in the grammar."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """Draws from lists. Built on `Random.random` alone, whose sequence Python promises not to change."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, items: Sequence[Item]) -> Item:
        return items[int(self._random.random() * len(items))]

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def two(self, items: Sequence[Item]) -> tuple[Item, Item]:
        """Two different items, in drawn order."""
        first = int(self._random.random() * len(items))
        second = int(self._random.random() * (len(items) - 1))
        return items[first], items[second + (second >= first)]

    def negated(self, auxiliary: str) -> str:
        """The negative of an auxiliary, long or short: "does not" or "doesn't"."""
        if auxiliary == "am" or self.chance(0.5):
            return "cannot" if auxiliary == "can" else f"{auxiliary} not"
        return {"can": "can't", "will": "won't"}.get(auxiliary, f"{auxiliary}n't")

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All items in drawn order (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = int(self._random.random() * (last + 1))
            result[last], result[other] = result[other], result[last]
        return result


Pair = tuple[str, str]


@dataclass(frozen=True)
class Production:
    """One way to write a sentence; `count` is how many distinct sentences are asked of it."""

    name: str
    write: Callable[[Draw], Pair]
    count: int


PRODUCTIONS: list[Production] = []


def production(count: int) -> Callable[[Callable[[Draw], Pair]], Callable[[Draw], Pair]]:
    """Adds the decorated function to PRODUCTIONS, in the order of the files."""

    def register(write: Callable[[Draw], Pair]) -> Callable[[Draw], Pair]:
        PRODUCTIONS.append(Production(write.__name__, write, count))
        return write

    return register
