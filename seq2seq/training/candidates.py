"""What minimum risk training compares: the model's own translations of a batch, as it is now, and how good they are.

Letters: B sentences, K candidates of each, R = B·(1+K) rows, T target positions, S source positions.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch
from torch import Tensor

from seq2seq.corpus.batches import Batch, collate_targets
from seq2seq.evaluation.scores import sentence_bleu
from seq2seq.model.risk import Candidates
from seq2seq.translation.translator import Translator

# Rows for each sentence of a batch that are computed at once.
_ROWS_AT_ONCE = 4
# Target positions are a multiple of this: a matrix library keeps machine code for every shape that it meets.
_POSITIONS = 8


class CandidateSearch:
    """Finds the best of a beam, and compares each with the reference by its BLEU (Shen et al. 2016, section 3).

    `translator` has the model that is trained; it searches in the training's own precision.
    """

    def __init__(self, translator: Translator, count: int, precision: torch.dtype) -> None:
        self.translator, self.count = translator, count
        self._precision = "bf16" if precision == torch.bfloat16 else "fp32"
        self._now: Translator | None = None

    @property
    def pieces(self) -> int:
        """In how many pieces a batch is computed: a sentence has as many rows as candidates, and one more."""
        return -(-(1 + self.count) // _ROWS_AT_ONCE)

    def renew(self) -> None:
        """The weights have changed since the last batch."""
        self._now = None

    def of(self, batch: Batch) -> Candidates:
        """The candidates of a batch, on its device; the model is left in the mode that it was in."""
        model = self.translator.model
        was_training = model.training
        model.eval()
        try:
            if self._now is None:
                self._now = self.translator.compacted(self._precision)
            now = self._now
            found = now.candidates(_rows(batch.src_BS, batch.src_mask_BS), self.count)
        finally:
            model.train(was_training)
        references = _rows(batch.tgt_out_BT, batch.tgt_mask_BT)
        texts = [[now.text_of([one]) for one in hypotheses] for hypotheses in found]
        wanted = map(self.translator.tokenizer.decode_target, references)
        named = [text for text, own in zip(wanted, texts, strict=True) for _ in own]
        scores = sentence_bleu(list(chain.from_iterable(texts)), named, target_language=now.target_language)
        there_BK = np.arange(self.count) < np.array([[len(own)] for own in found])
        quality_BK = np.zeros(there_BK.shape, dtype=np.float32)
        quality_BK[there_BK] = np.array(scores, dtype=np.float32) / 100
        rows: list[list[int] | None] = []
        for reference, hypotheses in zip(references, found, strict=True):
            rows += [reference, *(one.ids for one in hypotheses), *[None] * (self.count - len(hypotheses))]
        tgt_in_RT, tgt_out_RT = collate_targets(rows, _POSITIONS)
        candidates = Candidates(tgt_in_RT, tgt_out_RT, torch.from_numpy(quality_BK), torch.from_numpy(there_BK))
        return candidates.to(batch.src_BS.device)


def _rows(ids_BL: Tensor, mask_BL: Tensor) -> list[list[int]]:
    """The sentences of a batch without their end marks."""
    lengths = (mask_BL.sum(1) - 1).tolist()
    return [row[:length] for row, length in zip(ids_BL.tolist(), lengths, strict=True)]
