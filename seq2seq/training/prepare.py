"""From settings to numbers: corpora are read, the tokenizer is trained on the training text, all is encoded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seq2seq.corpus.cache import CorpusCache, open_cache
from seq2seq.corpus.encoded import EncodedCorpus, encode_corpus
from seq2seq.corpus.pairs import PairReport, ParallelCorpus
from seq2seq.corpus.sampling import SampledCorpus
from seq2seq.corpus.splits import find_files, open_corpora
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.errors import CacheError, CorpusError
from seq2seq.evaluation.scores import refuse_pieces
from seq2seq.evaluation.test_set import TestSet, configured_test_set
from seq2seq.training.validation import ValidationSet

if TYPE_CHECKING:
    from seq2seq.config.schema import Config, TrainingConfig

_TOLD = 50_000  # pairs read from one report of progress to the next


def advice(settings: TrainingConfig, updates: int) -> list[str]:
    """What is allowed and yet cannot be meant, in sentences; none for most trainings."""
    if settings.warmup_steps < updates:
        return []
    return [
        f"training.warmup_steps is {settings.warmup_steps:,} and there are only about {updates:,} updates, so the "
        "learning rate never reaches its full size; lower it, raise training.epochs, or lower training.batch_tokens"
    ]


@dataclass(frozen=True)
class Prepared:
    """All that a training reads, and what was left out on the way, in sentences with counts."""

    tokenizer: Tokenizer
    train: EncodedCorpus
    validation: ValidationSet
    test: TestSet | None
    messages: list[str]

    def fingerprint(self) -> str:
        """The same for two training corpora only if their pairs are the same, in the same order (SHA-256)."""
        return self.train.fingerprint()


def sampled_corpus(config: Config, prepared: Prepared) -> SampledCorpus | None:
    """The training pairs as they are cut anew for every epoch, if the settings ask for it."""
    strength, sides = config.training.subword_sampling, config.training.sampled_sides
    if strength is None:
        return None
    models = list(prepared.tokenizer.files().values())
    return SampledCorpus(
        prepared.train,
        (models[0] if sides != "target" else None, models[-1] if sides != "source" else None),
        config.tokenizer.model_type,
        strength,
        longest=config.data.max_length,
        seed=config.seed,
        epochs=config.training.epochs,
    )


def prepare(
    config: Config,
    tokenizer: Tokenizer | None = None,
    *,
    stage: Callable[[str], None] = lambda _: None,
    progress: Callable[[str, int, int | None], None] = lambda _what, _done, _whole: None,
) -> Prepared:
    """Read and encode all corpora. `tokenizer` is given when a run goes on; otherwise it is trained here.

    A large corpus is kept in a cache, encoded, and then found there (corpus/cache.py). `stage` is told what begins
    ("reading the corpora") and what else a person should know, `progress` what is done ("encoded"), to how many
    training pairs, and of how many, if that is known. All corpora are read before the tokenizer is trained, so that a
    fault in the last of them costs no time. Raises CorpusError and TokenizerError.
    """
    stage("reading the corpora")
    find_files(config.data)
    with contextlib.ExitStack() as stack:
        cache, kept = _look_into_cache(config, tokenizer, stage, stack)
        corpora = open_corpora(config.data, config.seed, cache)
        if kept is None:
            _read(corpora.train, progress)
        else:
            corpora.train.read_before(kept.report)
            stage(f"the training pairs lie ready in {kept.train.folder}")
        validation = list(corpora.validation)
        if corpora.test is not None:
            for _ in corpora.test:
                pass
        test = None if corpora.test is None else configured_test_set(config, corpora)
        refuse_pieces([target for _, target in validation], "data.validation")
        messages = []
        for corpus in (corpora.train, corpora.validation):
            messages += [f"{corpus.key}: {message}" for message in corpus.report.messages()]
        messages += [] if test is None else test.messages
        ready = _make(cache, config, tokenizer, corpora.train, stage, progress) if kept is None else kept
    messages += _left_out(ready.train, config.data.max_length)
    encoded = encode_corpus(validation, ready.tokenizer, config.data.max_length)
    if encoded.too_long:
        messages.append(
            f"data.validation: {_pairs(encoded.too_long)} left out of the loss but translated: a side has more than "
            f"{config.data.max_length} pieces (data.max_length)"
        )
    sources, targets = [source for source, _ in validation], [target for _, target in validation]
    return Prepared(ready.tokenizer, ready.train, ValidationSet(encoded, sources, targets), test, messages)


def _left_out(train: EncodedCorpus, longest: int) -> list[str]:
    """How many training pairs are too long, in a sentence. CorpusError where they all are."""
    if not len(train):
        raise CorpusError(
            f"No training pair is left: every one has a side of more than {longest} pieces; raise data.max_length."
        )
    if not train.too_long:
        return []
    return [f"data.train: {_pairs(train.too_long)} dropped: a side has more than {longest} pieces (data.max_length)"]


def _pairs(count: int) -> str:
    return "1 pair" if count == 1 else f"{count:,} pairs"


@dataclass(frozen=True)
class _Ready:
    """The training pairs, encoded, with the tokenizer that has done it and what was met in the text."""

    tokenizer: Tokenizer
    train: EncodedCorpus
    report: PairReport


def _look_into_cache(
    config: Config, tokenizer: Tokenizer | None, stage: Callable[[str], None], stack: contextlib.ExitStack
) -> tuple[CorpusCache | None, _Ready | None]:
    """The cache, if there is to be one, and what lies ready in it. Where nothing does, it is this process's alone until
    the stack is closed."""
    cache = open_cache(config.data, config.seed, stage)
    kept = None if cache is None else _find(cache, config, tokenizer)
    if cache is not None and kept is None:
        try:
            stack.enter_context(cache.alone())
            kept = _find(cache, config, tokenizer)  # another process may have been there
        except CacheError as error:
            if config.data.cache is not None:
                raise
            stage(f"{error} The corpus is held in memory.")
            cache = None
    return cache, kept


def _find(cache: CorpusCache, config: Config, tokenizer: Tokenizer | None) -> _Ready | None:
    """What an earlier preparation has left in the cache, if that is all of it."""
    tokenizer = tokenizer or cache.tokenizer(config.tokenizer)
    pairs = None if tokenizer is None else cache.pairs(tokenizer, config.data.max_length)
    return None if tokenizer is None or pairs is None else _Ready(tokenizer, *pairs)


def _read(train: ParallelCorpus, progress: Callable[[str, int, int | None], None]) -> None:
    """A pass over the training pairs, which finds their faults and counts them."""
    for number, _ in enumerate(train):
        if number % _TOLD == 0:
            progress("read", number, None)


def _make(
    cache: CorpusCache | None,
    config: Config,
    tokenizer: Tokenizer | None,
    train: ParallelCorpus,
    stage: Callable[[str], None],
    progress: Callable[[str, int, int | None], None],
) -> _Ready:
    """Train the tokenizer where there is none, and encode the training pairs, into the cache if there is one."""
    if tokenizer is None and cache is not None:
        tokenizer = cache.tokenizer(config.tokenizer)
    if tokenizer is None:
        stage("training the tokenizer")
        tokenizer = Tokenizer.train(train, config.tokenizer, train.report.kept)
        if cache is not None:
            cache.keep_tokenizer(config.tokenizer, tokenizer)
    stage("encoding the training pairs")
    whole, longest = train.report.kept, config.data.max_length
    if cache is None:
        encoded = encode_corpus(train, tokenizer, longest, lambda done: progress("encoded", done, whole))
    else:
        stage(f"they are kept in {cache.folder}, ready for the next start (data.cache)")
        encoded = cache.encode(train, tokenizer, longest, lambda done: progress("encoded", done, whole))
    return _Ready(tokenizer, encoded, train.report)
