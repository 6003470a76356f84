"""Validation: the loss on held-out pairs, and the scores of their translations."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from seq2seq.corpus.batches import BatchSampler, collate
from seq2seq.corpus.encoded import EncodedCorpus
from seq2seq.evaluation.scores import score
from seq2seq.model.device import give_back_kept_memory, in_halves, precision_context
from seq2seq.training.gradients import wide
from seq2seq.training.team import ALONE, Team
from seq2seq.translation.translator import Translator


class Stopped(Exception):  # noqa: N818  (nothing has gone wrong)
    """Someone asked for an end in the middle; what was begun is not finished."""


@dataclass(frozen=True)
class ValidationSet:
    """Held-out pairs: encoded, for the loss, and as text, for the scores."""

    encoded: EncodedCorpus
    sources: list[str]
    targets: list[str]

    def fingerprint(self, max_length_ratio: float) -> str:
        """The same for two sets only if their scores can be compared (SHA-256)."""
        content = json.dumps([self.sources, self.targets, max_length_ratio])
        return hashlib.sha256(content.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class ValidationResult:
    """Loss per real target token in nats, perplexity, BLEU and chrF of greedy translations, and some of them."""

    loss: float
    perplexity: float
    bleu: float
    chrf: float
    hypotheses: list[str]

    def rank(self, choose_by: str) -> float:
        """One number, the higher the better. A loss that is not finite is worse than everything."""
        value = {"bleu": self.bleu, "chrf": self.chrf, "loss": -self.loss}[choose_by]
        return value if math.isfinite(value) and math.isfinite(self.loss) else -math.inf

    def scores(self) -> dict[str, float | None]:
        """For JSON, which has no NaN: what is not finite is null."""
        values = {"loss": self.loss, "perplexity": self.perplexity, "bleu": self.bleu, "chrf": self.chrf}
        return {name: round(value, 6) if math.isfinite(value) else None for name, value in values.items()}


def rank_of(scores: Mapping[str, float | None], choose_by: str) -> float | None:
    """The rank of a result of which only the scores are left; None where they have none."""
    value = scores.get(choose_by)
    return None if value is None else -value if choose_by == "loss" else value


@dataclass(frozen=True)
class Validator:
    """Measures a model on a validation set; leaves model and random generators as they were.

    `precision` is that of the training's products, float32 or bfloat16; translations are made in the same.
    """

    data: ValidationSet
    translator: Translator
    batch_tokens: int
    precision: torch.dtype = torch.float32
    team: Team = ALONE

    def measure(
        self, should_stop: Callable[[], bool], told: Callable[[int, int], None] = lambda done, of: None
    ) -> ValidationResult:
        """Raises Stopped when `should_stop` says so between two batches; a team goes on, since it must agree.

        `told` hears how many lines this process has translated, and of how many.
        """
        if self.team.size > 1:
            should_stop = _never
        model = self.translator.model
        was_training = model.training
        model.eval()
        give_back_kept_memory()
        try:
            with torch.inference_mode():
                loss = self._loss(should_stop)
                hypotheses = self._translate(should_stop, told)
        finally:
            model.train(was_training)
            give_back_kept_memory()
        scores = score(hypotheses, [self.data.targets], target_language=self.translator.target_language)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return ValidationResult(loss, perplexity, scores.bleu.value, scores.chrf.value, hypotheses)

    def _loss(self, should_stop: Callable[[], bool]) -> float:
        encoded = self.data.encoded
        if not len(encoded):
            return math.nan
        sampler = BatchSampler(encoded.source.lengths, encoded.target.lengths, batch_tokens=self.batch_tokens, seed=0)
        total, tokens = 0.0, 0
        for indices in self.team.share(sampler.epoch(0)):
            if should_stop():
                raise Stopped
            for nll, count in in_halves(indices.tolist(), self._loss_of):
                total += nll
                tokens += count
        counts = torch.tensor([total, tokens], dtype=wide(self.translator.device), device=self.translator.device)
        self.team.add_up(counts)
        return float(counts[0] / counts[1])

    def _loss_of(self, indices: Sequence[int]) -> tuple[float, int]:
        batch = collate(self.data.encoded, indices).to(self.translator.device)
        with precision_context(self.translator.device, self.precision):
            _, nll = self.translator.model.loss(batch, 0.0)
        return nll.item(), batch.tokens

    def _translate(self, should_stop: Callable[[], bool], told: Callable[[int, int], None]) -> list[str]:
        """Greedy translations, a batch at a time, so that a request to stop is heard between two of them."""
        sources, size = self.data.sources, self.translator.decoding.batch_size
        # Similar lengths together, as the translator itself would have it.
        order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        hypotheses = [""] * len(sources)
        translator = self.translator.compacted("bf16" if self.precision == torch.bfloat16 else "fp32")
        own: dict[int, str] = {}
        firsts = self.team.share(list(range(0, len(order), size)))
        whole = sum(min(size, len(order) - first) for first in firsts)
        for first in firsts:
            if should_stop():
                raise Stopped
            told(len(own), whole)
            numbers = order[first : first + size]
            found = translator.translate([sources[number] for number in numbers], beam_size=1)
            for number, translation in zip(numbers, found, strict=True):
                own[number] = translation.text
        for texts in self.team.collect(own):
            for number, text in texts.items():
                hypotheses[number] = text
        return hypotheses


def _never() -> bool:
    return False
