"""Writing: a config for a corpus, every choice with its reason in a comment beside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.errors import CorpusError, VocabularySizeError
from seq2seq.suggestion.rules import (
    FEWEST_PAIRS,
    FEWEST_SOURCES,
    MAX_LENGTHS,
    TOO_LONG,
    Recipe,
    fraction_for,
    recipe_for,
    warmup_for,
)
from seq2seq.suggestion.survey import Side, Survey, survey

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles
    from seq2seq.corpus.pairs import ParallelCorpus
    from seq2seq.corpus.tokenizer import Tokenizer

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*\.[A-Za-z][A-Za-z0-9]*")  # a path that YAML takes for nothing else
_SAMPLE = 20_000  # pairs whose pieces are counted
_FARTHEST = 2  # folders up; what is farther away is named from the root
_MOST_SIZES = 4  # tried; too large for one side, then too small for the other, is possible
_COLUMN = 44  # where comments begin, if the setting leaves room
_WHY_RISK = "then whole translations are compared, and the better ones gain"
_WHY_R_DROP = "two readings under other dropout must agree: slower, and better"


@dataclass(frozen=True)
class Request:
    """What a person says of a corpus: its languages, its files (paths as the config is to have them), and the run."""

    source_language: str
    target_language: str
    train: PairFiles
    validation: PairFiles | None = None
    test: PairFiles | None = None
    run: str | None = None
    heading: Sequence[str] = ()


def suggest(request: Request, folder: Path | None) -> str:
    """The YAML of a config that suits the training corpus; paths in it start from `folder`, or stay as they are.

    Reads the corpus twice and learns its vocabulary, so that the size which is written is one that it can have; the
    same text gives the same config. Raises CorpusError and TokenizerError.
    """
    found = survey([request.train])
    if found.pairs < FEWEST_PAIRS:
        pairs = "1 pair is" if found.pairs == 1 else f"{found.pairs} pairs are"
        raise CorpusError(f"{pairs} too few to learn from; {FEWEST_PAIRS} are the least.")
    if found.different_sources < FEWEST_SOURCES:
        alike = "all the same" if found.different_sources == 1 else f"only {found.different_sources} different ones"
        raise CorpusError(f"The {found.pairs:,} source sentences are {alike}; there is nothing to learn from them.")
    if found.is_exchanged(request.source_language, request.target_language):
        how = "give the files the other way round" if request.train.tsv is None else "exchange the numbers of --columns"
        raise CorpusError(
            f"The source is written in {found.source.script} and the target in {found.target.script}, which is not "
            f"{request.source_language} and {request.target_language} but the other way round; {how}, or the languages."
        )
    recipe = recipe_for(found.words)
    train = _training_part(request, found)
    vocab_size, shared, tokenizer = _vocabulary(train, recipe, shared=found.one_script)
    max_length, lost = _max_length(train, tokenizer)
    lines = [
        *(f"# {line}" for line in [*request.heading, *_facts(request, found)]),
        f"run: {_scalar(request.run or f'runs/{request.source_language}-{request.target_language}')}",
        "data:",
        f"  source_language: {_word(request.source_language)}",
        f"  target_language: {_word(request.target_language)}",
        f"  train: {_files(request.train, folder)}",
        *_held_out(request, found, folder),
        *_lengths(max_length, lost),
        *([_line("  bad_lines: drop", f"{found.bad:,} lines cannot be read as text")] if found.bad else []),
        *_tokenizer(found, recipe, vocab_size, shared=shared),
        *_model(recipe),
        *_training(recipe, found),
    ]
    return "\n".join(lines) + "\n"


# ---- what is found out


def _training_part(request: Request, found: Survey) -> ParallelCorpus:
    """The pairs that will be trained on, those aside that the config splits off: a vocabulary is learnt from them."""
    from seq2seq.config.schema import Config, DataConfig, Fraction
    from seq2seq.corpus.splits import open_corpora

    part = Fraction(fraction=fraction_for(found.pairs))
    data = DataConfig(
        source_language="en",  # which languages they are changes nothing here
        target_language="de",
        train=(request.train,),
        validation=request.validation or part,
        test=(request.test,) if request.test is not None else part if request.validation is None else None,
        bad_lines="drop",
    )
    return open_corpora(data, seed=Config(data=data).seed).train


def _vocabulary(corpus: ParallelCorpus, recipe: Recipe, *, shared: bool) -> tuple[int, bool, Tokenizer]:
    """The recipe's size, or the nearest that the text allows, whether it is shared, and the vocabulary itself.

    With a vocabulary each, one language may allow fewer pieces than the other needs; then they share one after all.
    """
    from seq2seq.config.schema import TokenizerConfig
    from seq2seq.corpus.tokenizer import Tokenizer

    size = recipe.vocab_size
    for number in range(1, _MOST_SIZES + 1):
        try:
            return size, shared, Tokenizer.train(corpus, TokenizerConfig(vocab_size=size, shared=shared))
        except VocabularySizeError as error:
            if number == _MOST_SIZES and shared:
                raise
            # Above the least there should be room for more than single characters.
            smaller, roomy = error.possible < size, error.possible * 5 // 4
            size = error.possible if smaller or roomy == size else roomy
    return _vocabulary(corpus, recipe, shared=True)


def _max_length(corpus: ParallelCorpus, tokenizer: Tokenizer) -> tuple[int, float]:
    """The lowest limit that loses hardly a pair, and the share that it loses, on a sample of the first pairs."""
    pairs = list(islice(corpus, _SAMPLE))
    sources = tokenizer.encode_source([source for source, _ in pairs])
    targets = tokenizer.encode_target([target for _, target in pairs])
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    shares = [sum(length > limit for length in lengths) / len(lengths) for limit in MAX_LENGTHS]
    chosen = next((number for number, share in enumerate(shares) if share <= TOO_LONG), len(MAX_LENGTHS) - 1)
    return MAX_LENGTHS[chosen], shares[chosen]


# ---- what is written


def _facts(request: Request, found: Survey) -> list[str]:
    lines = [
        f"{found.pairs:,} pairs.",
        f"{request.source_language}: {_side(found.source, found.pairs)}",
        f"{request.target_language}: {_side(found.target, found.pairs)}",
    ]
    if found.repeated:
        lines.append(f"{found.repeated:,} pairs ({found.repeated / found.pairs:.1%}) occur before; they are kept.")
    if found.retranslated:
        share = found.retranslated / found.pairs
        lines.append(f"{found.retranslated:,} pairs ({share:.1%}) translate a source that has another translation too.")
    return [*lines, *(message[:1].upper() + message[1:] + "." for message in found.messages)]


def _side(side: Side, pairs: int) -> str:
    scripts = ", ".join(f"{script} {share:.0%}" for script, share in side.scripts[:3] if share >= 0.01) or side.script
    return (
        f"{side.words:,} words, {side.words / pairs:.1f} a sentence and {side.longest:,} at the most; "
        f"{side.characters / pairs:.0f} characters a sentence, of {side.different_characters:,} ({scripts})."
    )


def _held_out(request: Request, found: Survey, folder: Path | None) -> list[str]:
    fraction = fraction_for(found.pairs)
    lines = []
    for name, files in (("validation", request.validation), ("test", request.test)):
        if files is not None:
            lines.append(f"  {name}: {_files(files, folder)}")
        elif name == "validation":
            about = f"some {fraction * found.pairs:,.0f} pairs; all pairs of one source stay together"
            lines.append(_line(f"  validation: {{fraction: {fraction:g}}}", about))
        elif request.validation is None:
            lines.append(_line(f"  test: {{fraction: {fraction:g}}}", "as many again, which choose nothing"))
    return lines


def _lengths(max_length: int, lost: float) -> list[str]:
    if max_length == MAX_LENGTHS[0] and not lost:
        return []
    return [_line(f"  max_length: {max_length}", f"pieces; {lost:.1%} of the pairs are longer and left out")]


def _tokenizer(found: Survey, recipe: Recipe, vocab_size: int, *, shared: bool) -> list[str]:
    if vocab_size == recipe.vocab_size:
        why = "few pieces, so that each of them is seen often"
    else:
        side = "more than this text can give" if vocab_size < recipe.vocab_size else "too few for its characters"
        why = f"{recipe.vocab_size:,} would be {side}"
    source, target = found.source.script, found.target.script
    if found.one_script:
        sharing = f"both languages are written in {source}: names and stems meet"
    elif shared:
        sharing = "one of the languages has too little text for a vocabulary of the other's size"
    else:
        sharing = f"{source} and {target} have no piece in common"
    return [
        "tokenizer:",
        _line(f"  vocab_size: {vocab_size}", why),
        _line(f"  shared: {str(shared).lower()}", sharing),
    ]


def _model(recipe: Recipe) -> list[str]:
    layers = recipe.decoder_layers
    return [
        _line("model:", f"sizes for up to {_number(recipe.words)} words ({recipe.basis})"),
        _line(f"  embedding_size: {recipe.embedding_size}", "also the width from which words are chosen"),
        f"  hidden_size: {recipe.hidden_size}",
        *([_line(f"  decoder: {{layers: {layers}}}", "the second builds on what the first has read")] * (layers > 1)),
        _line("  lexical_model: true", "source words speak for themselves, rare ones too"),
        _line(f"  dropout: {recipe.dropout:g}", "the less text, the more: else it is learnt by heart"),
    ]


def _training(recipe: Recipe, found: Survey) -> list[str]:
    warmup = warmup_for(recipe, found.words)
    return [
        "training:",
        _line(f"  epochs: {recipe.epochs}", "patience ends it before, where validation stops improving"),
        _line(f"  batch_tokens: {recipe.batch_tokens}", "small batches make more updates of the same text"),
        *([_line(f"  r_drop: {recipe.r_drop:g}", _WHY_R_DROP)] if recipe.r_drop else []),
        *([_line(f"  risk_epochs: {recipe.risk_epochs}", _WHY_RISK)] if recipe.risk_epochs else []),
        _line(f"  warmup_steps: {warmup}", "" if warmup == recipe.warmup_steps else "a fifth of all updates"),
    ]


def _number(words: float) -> str:
    return "any number of" if words == float("inf") else f"{words:,.0f}"


def _line(setting: str, comment: str) -> str:
    return f"{setting:<{_COLUMN}}# {comment}" if comment else setting


def _files(files: PairFiles, folder: Path | None) -> str:
    return _flow({name: _path(str(path), folder) for name, path in files.files()} | _columns(files))


def _columns(files: PairFiles) -> dict[str, str]:
    usual = files.tsv is None or files.columns == (1, 2)
    return {} if usual else {"columns": f"[{files.columns[0]}, {files.columns[1]}]"}


def _flow(parts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in parts.items()) + "}"


def _path(path: str, folder: Path | None) -> str:
    if folder is not None:
        try:
            near = Path(os.path.relpath(path, folder))
        except ValueError:  # another drive
            near = Path(path).absolute()
        path = (near if near.parts.count("..") <= _FARTHEST else Path(path).absolute()).as_posix()
    return _scalar(path)


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) or re.fullmatch(r"[A-Za-z]+/[A-Za-z0-9_-]+", text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _word(code: str) -> str:
    """A language code; Norwegian's is quoted, since `no` is an answer to many readers of YAML."""
    plain = re.fullmatch("[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*", code)
    return code if plain and code.lower() not in ("no", "on", "yes", "off", "nan", "inf") else json.dumps(code)
