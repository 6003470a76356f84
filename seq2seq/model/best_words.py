"""The best words of each row of logits, in a few passes over them.

Letters: R rows, V vocabulary, C words wanted, W width of a stretch of the vocabulary, N stretches.

Sorting the whole vocabulary for five words of it costs a processor more than the product that made the logits. The C
largest numbers of a row lie in the C stretches with the largest maxima, so only these are looked at closely; the maxima
are one pass, and the sum of the softmax another.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seq2seq.model.kernels import kernels_for

_WIDTH = 64


def best_words(
    logit_RV: Tensor, count: int, never: Sequence[int] = (), own: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Log-probabilities (R,C) in fp32 and ids (R,C) of the `count` most probable words of each row, best first.

    Words of `never` are not chosen (where nothing else is left they come with -inf), though they keep their share of
    the probability. `own`, if given, says which words a sentence may use at all (B,V), and the sentence of each row
    (R,): the others have no share. `logit_RV` is overwritten.
    """
    kernels = kernels_for(logit_RV.device, logit_RV.dtype)
    if kernels is not None:
        return kernels.best_words(logit_RV.contiguous(), count, never, own)
    logit_RV = logit_RV.float()
    R, V = logit_RV.shape
    if own is not None:
        logit_RV.masked_fill_(~own[0][own[1]], -torch.inf)
    top_R1 = logit_RV.amax(dim=1, keepdim=True)
    log_sum_R1 = (logit_RV - top_R1).exp_().sum(dim=1, keepdim=True).log_() + top_R1
    for word in never:
        logit_RV[:, word] = -torch.inf
    if 4 * _WIDTH * count > V or logit_RV.device.type != "cpu":
        chosen_RC, word_RC = logit_RV.max(dim=1, keepdim=True) if count == 1 else logit_RV.topk(count, dim=1)
        return chosen_RC - log_sum_R1, word_RC
    N = -(-V // _WIDTH)
    whole = V // _WIDTH * _WIDTH
    maxima_RN = logit_RV.new_full((R, N), -torch.inf)
    maxima_RN[:, : V // _WIDTH] = logit_RV[:, :whole].view(R, -1, _WIDTH).amax(dim=2)
    if whole < V:
        maxima_RN[:, -1] = logit_RV[:, whole:].amax(dim=1)
    stretch_RC = maxima_RN.topk(count, dim=1).indices
    place_RCW = stretch_RC.unsqueeze(2) * _WIDTH + torch.arange(_WIDTH)
    near_RX = logit_RV.gather(1, place_RCW.clamp(max=V - 1).view(R, -1))
    near_RX.masked_fill_(place_RCW.view(R, -1) >= V, -torch.inf)
    chosen_RC, found_RC = near_RX.topk(count, dim=1)
    return chosen_RC - log_sum_R1, place_RCW.view(R, -1).gather(1, found_RC)
