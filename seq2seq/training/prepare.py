"""From settings to numbers: corpora are read, the tokenizer is trained on the training text, all is encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seq2seq.corpus.encoded import EncodedCorpus, encode_corpus
from seq2seq.corpus.sampling import SampledCorpus
from seq2seq.corpus.splits import open_corpora
from seq2seq.corpus.tokenizer import Tokenizer
from seq2seq.errors import CorpusError
from seq2seq.evaluation.scores import refuse_pieces
from seq2seq.evaluation.test_set import TestSet, configured_test_set
from seq2seq.training.validation import ValidationSet

if TYPE_CHECKING:
    from seq2seq.config.schema import Config, TrainingConfig


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
        digest = hashlib.sha256()
        for side in (self.train.source, self.train.target):
            digest.update(side.offsets.tobytes() + side.ids.tobytes())
        return digest.hexdigest()


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
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Read and encode all corpora. `tokenizer` is given when a run goes on; otherwise it is trained here.

    `stage` is told what begins ("reading the corpora"), `progress` how many training pairs have been encoded. All
    corpora are read before the tokenizer is trained, so that a fault in the last of them costs no time. Raises
    CorpusError and TokenizerError.
    """
    stage("reading the corpora")
    corpora = open_corpora(config.data, config.seed)
    for _ in corpora.train:
        pass
    validation = list(corpora.validation)
    if corpora.test is not None:
        for _ in corpora.test:
            pass
    test = None if corpora.test is None else configured_test_set(config)
    refuse_pieces([target for _, target in validation], "data.validation")
    messages = []
    for corpus in (corpora.train, corpora.validation):
        messages += [f"{corpus.key}: {message}" for message in corpus.report.messages()]
    messages += [] if test is None else test.messages
    if tokenizer is None:
        stage("training the tokenizer")
        tokenizer = Tokenizer.train(corpora.train, config.tokenizer)
    stage("encoding the training pairs")
    longest = config.data.max_length
    train = encode_corpus(corpora.train, tokenizer, longest, progress)
    if train.too_long:
        count = "1 pair" if train.too_long == 1 else f"{train.too_long:,} pairs"
        messages.append(f"data.train: {count} dropped: a side has more than {longest} pieces (data.max_length)")
    if not len(train):
        raise CorpusError(
            f"No training pair is left: every one has a side of more than {longest} pieces; raise data.max_length."
        )
    encoded = encode_corpus(validation, tokenizer, longest)
    if encoded.too_long:
        count = "1 pair" if encoded.too_long == 1 else f"{encoded.too_long:,} pairs"
        messages.append(
            f"data.validation: {count} left out of the loss but translated: a side has more than {longest} pieces "
            "(data.max_length)"
        )
    sources, targets = [source for source, _ in validation], [target for _, target in validation]
    return Prepared(tokenizer, train, ValidationSet(encoded, sources, targets), test, messages)
