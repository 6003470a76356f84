"""Ranking: which of the finished hypotheses of a sentence is the best one?

Letters: B sentences, K hypotheses of each, R = B·K rows, T target steps, S source tokens.

Search keeps what is probable; the order among what it has finished may also weigh length and coverage:

    score = log-probability / length^a + b · Σ_i log(min(Σ_j attention of target word j to source word i, 1))

after Wu et al. 2016 (section 7, equation 14, with the plain power of the length that search uses). A source word to
which no target word attended costs much: it has probably been left out. The attention of finished hypotheses is
computed once they are there, all steps in one call, so a search without this penalty pays nothing for it. Since the
beam itself grows by probability alone, the same hypotheses can be ranked again with other penalties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.corpus.subwords import BOS, PAD
from seq2seq.model.translation_model import TranslationModel
from seq2seq.translation.search import Hypothesis


@dataclass(frozen=True)
class Finished:
    """A hypothesis with all that its rank may depend on; `closed` says that it has written its end mark.

    `coverage` is 0 where every source word has been attended to, and negative otherwise.
    """

    ids: list[int]
    log_probability: float
    closed: bool
    coverage: float = 0.0

    @property
    def length(self) -> int:
        """Tokens, the end mark included; at least one."""
        return max(1, len(self.ids) + self.closed)

    def score(self, length_penalty: float, coverage_penalty: float) -> float:
        """What it is ranked by; higher is better."""
        covered = coverage_penalty * self.coverage if coverage_penalty else 0.0
        return float(self.log_probability / self.length**length_penalty + covered)


def finished(hypotheses: Sequence[Hypothesis], limit: int) -> list[Finished]:
    """What a search for as many hypotheses as its beam has slots found: only the limit can have kept one open."""
    return [Finished(found.ids, found.log_probability, len(found.ids) < limit) for found in hypotheses]


def ranked(found: Sequence[Finished], length_penalty: float, coverage_penalty: float) -> list[Hypothesis]:
    """Best first. As in search, those that the limit cut off come last, and equal scores keep their order."""
    scored = [(one, one.score(length_penalty, coverage_penalty)) for one in found]
    scored.sort(key=lambda pair: (not pair[0].closed, -pair[1]))
    return [Hypothesis(one.ids, one.log_probability, score) for one, score in scored]


def with_coverage(
    found: Sequence[Sequence[Finished]], members: Sequence[TranslationModel], src_BS: Tensor, mask_BS: Tensor
) -> list[list[Finished]]:
    """The same hypotheses with their coverage, by the mean attention of the models (and of their heads)."""
    K = max(map(len, found))
    tgt_RT, real_RT = _as_read(found, K)
    tgt_RT, real_RT = tgt_RT.to(src_BS.device), real_RT.to(src_BS.device)
    row_R = torch.arange(len(found), device=src_BS.device).repeat_interleave(K)
    covered_RS = torch.zeros((len(row_R), src_BS.shape[1]), device=src_BS.device)
    for member in members:
        _, weights_RTS, _ = member.decode(tgt_RT, member.start(src_BS, mask_BS).select(row_R))
        covered_RS += (weights_RTS.float() * real_RT.unsqueeze(2)).sum(dim=1) / len(members)
    coverage_BK = log_coverage(covered_RS, mask_BS.index_select(0, row_R)).view(-1, K).tolist()
    return [
        [Finished(one.ids, one.log_probability, one.closed, own) for one, own in zip(these, coverages, strict=False)]
        for these, coverages in zip(found, coverage_BK, strict=True)
    ]


def log_coverage(covered_RS: Tensor, mask_RS: Tensor) -> Tensor:
    """Σ_i log(min(covered_i, 1)) over the real source tokens, (R,); covered is the sum of the attention to each."""
    # Nothing at all would be minus infinity, and beyond all comparison.
    share_RS = covered_RS.clamp(min=torch.finfo(torch.float32).tiny, max=1.0)
    return share_RS.log().masked_fill(~mask_RS, 0.0).sum(dim=1)


def _as_read(found: Sequence[Sequence[Finished]], K: int) -> tuple[Tensor, Tensor]:
    """What the decoder reads to say these hypotheses, (R,T), a begin mark first, and which steps are real."""
    steps = max(one.length for these in found for one in these)
    tgt_RT = torch.full((len(found) * K, steps), PAD, dtype=torch.long)
    tgt_RT[:, 0] = BOS
    real_RT = torch.zeros((len(found) * K, steps), dtype=torch.bool)
    for b, these in enumerate(found):
        for k, one in enumerate(these):
            row, read = b * K + k, one.ids[: one.length - 1]
            tgt_RT[row, 1 : 1 + len(read)] = torch.tensor(read, dtype=torch.long)
            real_RT[row, : one.length] = True
    return tgt_RT, real_RT
