"""The translator: text in, text out, line for line.

A blank line stays blank. A line of more pieces than the model was trained on is split at the ends of sentences, else
between words, and its parts are translated one by one; nothing of it is dropped. Lines are translated in batches of
similar length, and the order of the input is kept.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.lines import clean
from seq2seq.corpus.tokenizer import BOS, EOS, Tokenizer
from seq2seq.errors import RunError
from seq2seq.model.compact import compact
from seq2seq.model.device import choose_device, in_halves
from seq2seq.model.shortlist import Shortlist, Shortlisted
from seq2seq.model.translation_model import TranslationModel
from seq2seq.runs import RunFolder, run_of
from seq2seq.translation.beam import SearchSettings
from seq2seq.translation.long_lines import joined, passages, split_long
from seq2seq.translation.opening import model_from, open_checkpoint, open_shortlist, run_config
from seq2seq.translation.ranking import Finished, finished, ranked, with_coverage
from seq2seq.translation.risk import LeastRisk
from seq2seq.translation.sampling import sample
from seq2seq.translation.search import Hypothesis, StepModel, search
from seq2seq.translation.tuned import tuned_decoding
from seq2seq.translation.unknown_words import UnknownWords

if TYPE_CHECKING:
    from seq2seq.config.schema import DataConfig, DecodingConfig

Found = TypeVar("Found")
Parts = list[list[Finished]]  # what was finished for each part of a line

# Every translation may be this much longer than the ratio allows, so that short lines are not cut.
_SPARE_LENGTH = 10


@dataclass(frozen=True)
class Candidate:
    """One translation of a line: its text and the score it is ranked by; of split lines the mean.

    That is log-probability / length^penalty, with what coverage adds, or the expected chrF where least risk decides.
    """

    text: str
    score: float


@dataclass(frozen=True)
class Translation:
    """The n best translations of one line, best first; `parts` > 1 says that the line had to be split.

    `ids` holds for each part the pieces that the model read and those of the best translation, without end marks.
    """

    source: str
    candidates: list[Candidate] = field(default_factory=list)
    parts: int = 1
    ids: list[tuple[list[int], list[int]]] = field(default_factory=list)

    @property
    def is_finite(self) -> bool:
        """Whether the model's numbers were; a translation made of others is none."""
        return all(math.isfinite(candidate.score) for candidate in self.candidates[:1])

    @property
    def text(self) -> str:
        """The best translation; blank for a blank line."""
        return self.candidates[0].text if self.candidates else ""


class Translator:
    """A model with its tokenizer, ready to translate on one device.

    `decoding` may be exchanged at any time; `risk` chooses by minimum Bayes risk in place of the model's own score.
    `told` hears after each batch how many parts of lines are translated, and of how many: a line may be a book.
    """

    def __init__(
        self,
        model: TranslationModel,
        tokenizer: Tokenizer,
        decoding: DecodingConfig,
        data: DataConfig,
        device: torch.device,
    ) -> None:
        self.model, self.tokenizer, self.decoding = model, tokenizer, decoding
        self.search_model: StepModel[Any] = model
        self.members = [model]  # several in an ensemble
        self.shortlist: Shortlist | None = None
        self.risk: LeastRisk | None = None
        self.unknown_words: UnknownWords | None = None
        self.told: Callable[[int, int], None] = lambda done, of: None
        self.target_language, self.longest_source = data.target_language, data.max_length
        self.device = device

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        device: str = "auto",
        precision: str = "fp32",
        shortlist: bool = False,
        replace_unknown: Mapping[str, str] | None = None,
    ) -> Translator:
        """The translator of a run folder (its best checkpoint) or of a checkpoint (RUN/best, RUN/last).

        `precision` is fp32, bf16 or int8; with `shortlist` it chooses among the words that the run's shortlist names;
        with `replace_unknown` the source's own word, or what this dictionary has for it, takes the place of an unknown
        one, and RunError says where that cannot be.
        """
        folder, name = run_of(path)
        run = RunFolder.open(folder)
        if folder == path and not run.has("best") and run.has("last"):
            name = "last"  # nothing has been validated yet; RUN/best by name means that one or none
        config = run_config(run)
        chosen = choose_device(device)
        checkpoint, tokenizer = open_checkpoint(run, name, config)
        model = model_from(checkpoint, config, tokenizer, run.path / name).to(chosen).eval()
        decoding = tuned_decoding(run, config.decoding)
        translator = cls(compact(model, precision), tokenizer, decoding, config.data, chosen)
        if replace_unknown is not None:
            if config.model.attention.kind == "none":
                raise RunError(f"{path} was trained without attention, which would tell the word that was looked at.")
            translator.unknown_words = UnknownWords(tokenizer, replace_unknown)
        if shortlist:
            translator.shortlist = open_shortlist(run, checkpoint.facts, tokenizer).to(chosen)
            translator.search_model = Shortlisted(translator.model, translator.shortlist)
        return translator

    def compacted(self, precision: str) -> Translator:
        """The same translator with its model, as it is now, in another precision."""
        other = copy.copy(self)
        other.model = other.search_model = compact(self.model, precision)
        other.members = [other.model]
        return other

    def translate(
        self,
        lines: Sequence[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        batch_size: int | None = None,
    ) -> Iterator[Translation]:
        """Translate the lines, in their order. All of them are translated before the first comes back.

        A batch for which memory does not suffice is translated in halves; MemoryError where it does not for one line.
        """
        jobs = self._found(lines, batch_size, lambda rows: self._search(rows, beam_size, n_best))
        for job in jobs:
            yield self._finish(job, n_best)

    def finished(self, lines: Sequence[str], beam_size: int, batch_size: int | None = None) -> list[Parts]:
        """For each line and each of its parts all that a beam of this width finished, with coverage, to be ranked."""
        jobs = self._found(lines, batch_size, lambda rows: self._all_finished(rows, beam_size))
        return [[job.found[place] for place in range(len(job.parts))] for job in jobs]

    def candidates(self, rows: Sequence[list[int]], count: int) -> list[list[Hypothesis]]:
        """The `count` best of a beam of that width for each source, given in ids without an end mark, best first.

        Fewer come back where a beam holds no more.
        """
        return list(chain.from_iterable(in_halves(rows, lambda some: self._beam(some, count, count)[0])))

    def text_of(self, parts: Sequence[Hypothesis | Finished]) -> str:
        """The text of a line, from one hypothesis for each of its parts."""
        # A model can spell any byte, a line break too; one line in is one line out.
        return joined([clean(self.tokenizer.decode_target(part.ids)) for part in parts], self.target_language)

    def _with_source_words(self, job: _Job[Any], parts: Sequence[Hypothesis]) -> str:
        """As `text_of`, with the words of the source, or the dictionary's for them, where the model knew none."""
        assert self.unknown_words is not None
        words = [word for text in passages(clean(job.line)) for word in self.unknown_words.source_words(text)]
        texts, start = [], 0
        for own, hypothesis in zip(job.parts, parts, strict=True):
            texts.append(self.unknown_words.decode(self.model, own, words[start : start + len(own)], hypothesis.ids))
            start += len(own)
        return joined(texts, self.target_language)

    def _found(
        self,
        lines: Sequence[str],
        batch_size: int | None,
        search_rows: Callable[[Sequence[list[int]]], list[list[Found]]],
    ) -> list[_Job[Found]]:
        """What a search finds for each part of each line."""
        jobs: list[_Job[Found]] = [_Job(line, parts) for line, parts in zip(lines, self._parts(lines), strict=True)]
        parts = [(job, place) for job in jobs for place in range(len(job.parts))]
        # Similar lengths together, equal lengths in the order of the input: little padding, and the same every time.
        parts.sort(key=lambda part: len(part[0].parts[part[1]]))
        size = self.decoding.batch_size if batch_size is None else batch_size
        for first in range(0, len(parts), size):
            batch = parts[first : first + size]
            rows = [job.parts[place] for job, place in batch]
            found = chain.from_iterable(in_halves(rows, search_rows))
            for (job, place), hypotheses in zip(batch, found, strict=True):
                job.found[place] = hypotheses
            self.told(first + len(batch), len(parts))
        return jobs

    def _parts(self, lines: Sequence[str]) -> list[list[list[int]]]:
        """The pieces of each line in parts that the model can read; none for a blank line."""
        texts = [list(passages(clean(line))) for line in lines]
        encoded = iter(self.tokenizer.encode_source(list(chain.from_iterable(texts))))  # at once: five times as fast
        return [[part for ids in islice(encoded, len(own)) for part in self._readable(ids)] for own in texts]

    def _readable(self, ids: list[int]) -> list[list[int]]:
        if len(ids) <= self.longest_source:
            return [ids]
        return split_long(ids, self.tokenizer.source_pieces(ids), self.longest_source)

    def _search(self, rows: Sequence[list[int]], beam_size: int | None, n_best: int) -> list[list[Hypothesis]]:
        beam = self.decoding.beam_size if beam_size is None else beam_size
        if self.risk is not None:
            return [
                self.risk.ranked(pool, lambda one: self.text_of([one]), self.decoding.length_penalty)[:n_best]
                for pool in self._pool(rows, beam, self.risk)
            ]
        length, coverage = self.decoding.length_penalty, self.decoding.coverage_penalty
        widest = max(beam, n_best)
        if not coverage or widest == 1:
            return self._beam(rows, beam, n_best)[0]
        found = self._all_finished(rows, widest)
        return [ranked(these, length, coverage)[:n_best] for these in found]

    def _pool(self, rows: Sequence[list[int]], beam_size: int, risk: LeastRisk) -> list[list[Finished]]:
        """The candidates among which least risk chooses: samples, or the best of a beam."""
        if not risk.sampled:
            hypotheses, limits = self._beam(rows, max(beam_size, risk.candidates), risk.candidates)
            return [finished(these, limit) for these, limit in zip(hypotheses, limits, strict=True)]
        src_BS, mask_BS, limits = self._read(rows)
        with torch.inference_mode():
            return sample(self.search_model, src_BS, mask_BS, limits, risk.candidates, risk.seed)  # type: ignore[arg-type]

    def _all_finished(self, rows: Sequence[list[int]], beam_size: int) -> list[list[Finished]]:
        """Everything that a beam holds at its end, with coverage."""
        hypotheses, limits = self._beam(rows, beam_size, beam_size)
        found = [finished(these, limit) for these, limit in zip(hypotheses, limits, strict=True)]
        src_BS, mask_BS, _ = self._read(rows)
        with torch.inference_mode():
            return with_coverage(found, self.members, src_BS, mask_BS)

    def _beam(self, rows: Sequence[list[int]], beam_size: int, n_best: int) -> tuple[list[list[Hypothesis]], list[int]]:
        """What search finds, and the limits that it kept."""
        settings = SearchSettings(
            bos=BOS,
            eos=EOS,
            beam_size=beam_size,
            length_penalty=self.decoding.length_penalty,
            n_best=n_best,
        )
        src_BS, mask_BS, limits = self._read(rows)
        with torch.inference_mode():
            return search(self.search_model, src_BS, mask_BS, limits, settings), limits

    def _read(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor, list[int]]:
        """Sources and their mask on the device, and how long each translation may become."""
        src_BS, mask_BS = collate_sources(rows)
        limits = [math.ceil(self.decoding.max_length_ratio * len(row)) + _SPARE_LENGTH for row in rows]
        return src_BS.to(self.device), mask_BS.to(self.device), limits

    def _finish(self, job: _Job[Hypothesis], n_best: int) -> Translation:
        """Texts from ids. The n-th candidate of a split line joins the n-th (or last) candidates of its parts."""
        candidates = []
        most = min(n_best, max((len(found) for found in job.found.values()), default=0))
        for rank in range(most):
            chosen = [job.found[place][min(rank, len(job.found[place]) - 1)] for place in range(len(job.parts))]
            score = sum(hypothesis.score for hypothesis in chosen) / len(chosen)
            text = self.text_of(chosen) if self.unknown_words is None else self._with_source_words(job, chosen)
            candidates.append(Candidate(text, score))
        ids = [(part, job.found[place][0].ids) for place, part in enumerate(job.parts)]
        return Translation(job.line, candidates, max(1, len(job.parts)), ids)


@dataclass
class _Job(Generic[Found]):
    """A line on its way: its parts in ids and what the search found for each."""

    line: str
    parts: list[list[int]]
    found: dict[int, list[Found]] = field(default_factory=dict)
