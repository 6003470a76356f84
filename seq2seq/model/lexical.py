"""The lexical model: source words say directly how they are translated (Nguyen & Chiang 2018).

A readout sums up the sentence so far, and a rare word's translation is easily drowned in it by a frequent word that
fits as well. Here the embeddings of the source words that attention looks at go past the GRUs to the output layer: a
small dictionary inside the model, which learns from few examples because nothing else stands in between.

Letters: B sentences, R rows (hypotheses), T target steps, S source tokens, E embedding size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq.model.attention import product


class LexicalModel(nn.Module):
    """h = tanh(W f) + f with f = tanh(Σ a_s e_s), for attention weights a and source embeddings e.

    In the paper h has an output layer of its own, whose logits are added to the others. Here both share one, which
    comes to adding h to the readout, and costs no second product over the vocabulary.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, weights_RTS: Tensor, source_BSE: Tensor) -> Tensor:
        """(R,T,E), to be added to the readouts; the rows of a sentence share its source, and nothing is copied."""
        R, T, S = weights_RTS.shape
        B = len(source_BSE)
        looked_at = torch.tanh(product(weights_RTS.reshape(B, R // B * T, S), source_BSE)).view(R, T, -1)
        return torch.tanh(self.layer(looked_at)) + looked_at
