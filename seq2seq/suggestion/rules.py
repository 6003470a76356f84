"""The rules: which sizes suit which corpus. A table, to be changed when something better has been measured.

Three rows are recipes of configs/: low_resource.yaml, tatoeba_en_zh.yaml and multi30k_en_de.yaml; docs/trials.md has
what was measured. The others continue them by what is known of little data (Sennrich and Zhang 2019,
https://aclanthology.org/P19-1021: fewer pieces, smaller batches, more dropout) and of more; they are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Settings for corpora of up to `words` words on the longer side."""

    words: float
    vocab_size: int
    embedding_size: int
    hidden_size: int
    decoder_layers: int
    dropout: float
    r_drop: float
    risk_epochs: int
    batch_tokens: int
    epochs: int
    warmup_steps: int
    basis: str


RECIPES = (
    Recipe(20_000, 1000, 192, 256, 1, 0.4, 3.0, 0, 400, 60, 100, "very little text: an estimate"),
    Recipe(120_000, 4000, 384, 512, 2, 0.3, 3.0, 0, 500, 30, 200, "as measured on 5,000 pairs of Multi30k"),
    Recipe(250_000, 5000, 384, 512, 2, 0.3, 3.0, 1, 1000, 14, 200, "as measured on Tatoeba, 26,000 pairs"),
    Recipe(800_000, 6000, 384, 512, 2, 0.3, 3.0, 1, 1000, 20, 200, "as measured on Multi30k, 29,000 pairs"),
    Recipe(5_000_000, 8000, 512, 512, 2, 0.2, 0.0, 0, 2000, 10, 400, "much text: an estimate"),
    Recipe(float("inf"), 16_000, 512, 1024, 2, 0.1, 0.0, 0, 4000, 5, 1000, "a great deal of text: an estimate"),
)

VALIDATION_PAIRS = 1000  # enough to tell two checkpoints apart by BLEU
FRACTIONS = (0.01, 0.1)  # no less and no more is split off
FEWEST_PAIRS = 20  # with fewer there is nothing to learn, and nothing to split off
FEWEST_SOURCES = 3  # different ones: one each to train on, to validate with and to test with
MAX_LENGTHS = (100, 150, 200, 300)  # pieces
TOO_LONG = 0.005  # share of pairs that may be lost to max_length
PIECES_A_WORD = 1.4  # about, with vocabularies of this size: to estimate the number of updates
WARMUP_SHARE = 0.2  # of all updates at the most


def recipe_for(words: int) -> Recipe:
    """The row of a corpus of so many words."""
    return next(recipe for recipe in RECIPES if words <= recipe.words)


def fraction_for(pairs: int) -> float:
    """The part to split off for validation, and as much for the test: one digit, so that it reads well."""
    least, most = FRACTIONS
    return float(f"{min(most, max(least, VALIDATION_PAIRS / pairs)):.1g}")


def warmup_for(recipe: Recipe, words: int) -> int:
    """The recipe's warm-up, or less where the whole training is short."""
    updates = words * PIECES_A_WORD / recipe.batch_tokens * recipe.epochs
    return max(1, min(recipe.warmup_steps, int(WARMUP_SHARE * updates)))
