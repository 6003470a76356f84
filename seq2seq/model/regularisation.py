"""What makes training harder than translating, so that less is learnt by heart; each is off at zero.

Dropout hides single activations and is a part of the model (dropout.py). What stands here belongs to the training: it
changes from run to run, and a trained model knows nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Regularisation:
    """Shares of the words that are hidden on either side, and the weight of the consistency of two readings.

    `consistency` is the α of R-Drop (Liang et al. 2021, equation 4); see consistency.py.
    """

    source_words: float = 0.0
    target_words: float = 0.0
    consistency: float = 0.0


NONE = Regularisation()


def hide_words(embedded_BTE: Tensor, share: float) -> Tensor:
    """Set whole embedded words to zero, each with probability `share`, and scale the others up.

    Gal & Ghahramani 2016, section 4.2, in the form of Sennrich & Zhang 2019, section 3.2: every occurrence of a word is
    drawn by itself. The numbers come from the generator of the tensor's own device, which a checkpoint keeps.
    """
    if not share:
        return embedded_BTE
    drawn_BT1 = torch.rand((*embedded_BTE.shape[:2], 1), device=embedded_BTE.device)
    return embedded_BTE * ((drawn_BT1 >= share).to(embedded_BTE.dtype) / (1.0 - share))
