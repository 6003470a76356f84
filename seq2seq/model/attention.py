"""Attention: how the decoder looks back at the source.

Every source position stores a key and a value. The decoder asks with a query; the query is compared with all keys; the
similarities become a probability distribution (softmax over the source positions); the distribution weights the values.
The weighted sum is the context: a summary of the source made for this one target step.

Letters: B sentences, T target steps (queries), S source tokens, N heads, Q/K/V/O the query, key, value and output
sizes, H the hidden size where all of them are equal, A the size of the additive comparison.
Masks: `mask_BS` is bool, True = a real token. A padded position gets weight exactly 0; a row without any real token
gets weights and a weighted sum of zeros, so nothing in it can become NaN.

How to read this file: each class says in `remember` what is computed once per source sentence (keys and values), and in
`scores` how a query meets a key. The rest (masking, softmax, weighted sum) is the same for all and stands once, in
`Attention`. The decoder knows only `remember` and `attend`; `forward` is for people, with the signatures that a lesson
uses. `python -m seq2seq.model.attention` prints a worked example of each.

This file is longer than its neighbours on purpose: all kinds side by side are the lesson.
"""

from __future__ import annotations

import math
import signal
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2seq.errors import ConfigError
from seq2seq.model.device import autocast_dtype
from seq2seq.model.kernels import products_for

if TYPE_CHECKING:
    from seq2seq.config.schema import AttentionConfig


@dataclass(frozen=True)
class Memory:
    """What attention keeps of B source sentences: projected keys and values, and which positions are real tokens.

    keys and values are (B,S,·), or (B,N,S,·) with heads; mask_BS may be None, which means that every position is real.
    """

    keys: Tensor
    values: Tensor
    mask_BS: Tensor | None

    def select(self, sentences_b: Tensor) -> Memory:
        """The memory of the named sentences only, in that order; a sentence may be named several times."""
        mask = None if self.mask_BS is None else self.mask_BS.index_select(0, sentences_b)
        return Memory(self.keys.index_select(0, sentences_b), self.values.index_select(0, sentences_b), mask)


def masked_softmax(scores: Tensor, mask_BS: Tensor | None) -> Tensor:
    """Softmax over the last axis (the source positions) in which padding gets exactly 0.

    scores is (B,T,S) or (B,N,T,S). The fill is the lowest finite number, not -inf: a row with nothing but padding then
    has a defined softmax, which the second mask turns into zeros, and its gradient is zero instead of NaN.
    """
    if mask_BS is None:
        return scores.softmax(dim=-1)
    padding = ~mask_BS.view(mask_BS.shape[0], *([1] * (scores.dim() - 2)), mask_BS.shape[1])
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(padding, lowest).softmax(dim=-1).masked_fill(padding, 0.0)


def wide(memory: Tensor) -> Tensor:
    """What is remembered, in fp32 on a processor; see `product`."""
    return memory.float() if memory.device.type == "cpu" and memory.dtype == torch.bfloat16 else memory


def product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right, sentence by sentence.

    On a processor it is in fp32 even where the layers compute in bf16: these products are small and nearly each has a
    shape of its own, and a library of bf16 products makes new machine code for every shape, and keeps it. Where no
    gradient is wanted they are our own (kernels/products.c).
    """
    if left.device.type != "cpu":
        return left @ right
    if autocast_dtype("cpu") is None:
        return _each(wide(left), wide(right)).to(left.dtype)
    with torch.autocast("cpu", enabled=False):
        return _each(wide(left), wide(right))


def _each(left: Tensor, right: Tensor) -> Tensor:
    products = None if torch.is_grad_enabled() else products_for(left.device, left.dtype)
    if products is None or left.shape[:-2] != right.shape[:-2]:
        return left @ right
    if left.dim() == 3:
        return products.multiply_each(left.unsqueeze(1), right.unsqueeze(1)).squeeze(1)
    return products.multiply_each(left, right)


def _scale(width: int, scaled: bool) -> float:
    """What a dot product of so many numbers is multiplied by: it grows with the root of their count."""
    return 1.0 / math.sqrt(width) if scaled else 1.0


class Attention(nn.Module, ABC):
    """One attention of any kind. A subclass says what it remembers and how it scores; everything else is shared.

    `context_size` is the width of the context that `attend` returns, `scale` what dot products are multiplied by.
    """

    context_size: int
    scale = 1.0

    def __init__(self, context_size: int) -> None:
        super().__init__()
        self.context_size = context_size
        self._attn_weights: Tensor | None = None

    # -- what a kind defines ------------------------------------------------------------------------------------------

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        """Project keys and values, once per source sentence."""
        return Memory(wide(keys_BSK), wide(values_BSV), mask_BS)

    @abstractmethod
    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        """Compare every query with every key: (B,T,S), or (B,N,T,S) with heads. Before masking and softmax."""

    def combine(self, weights: Tensor, memory: Memory) -> Tensor:
        """Weight the values: the context, (B,T,C)."""
        return product(weights, memory.values)

    # -- what the decoder calls ---------------------------------------------------------------------------------------

    def attend_heads(self, query_BTQ: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """All T queries at once (training) or one of them (search): context (B,T,C) and weights per head (B,N,T,S)."""
        context_BTC, weights = self._look(query_BTQ, memory)
        return context_BTC, weights if weights.dim() == 4 else weights.unsqueeze(1)

    def attend(self, query_BTQ: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """As `attend_heads`, with the mean over the heads: weights are (B,T,S) for every kind."""
        context_BTC, weights = self._look(query_BTQ, memory)
        return context_BTC, weights.mean(dim=1) if weights.dim() == 4 else weights

    def _look(self, query_BTQ: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        weights = masked_softmax(self.scores(query_BTQ, memory), memory.mask_BS)
        return self.combine(weights, memory), weights

    # -- what a person calls ------------------------------------------------------------------------------------------

    @property
    def attn_weights(self) -> Tensor | None:
        """The weights of the latest call of the module, detached, to look at. Nothing computes with them."""
        return self._attn_weights

    def _show(self, weights: Tensor) -> Tensor:
        self._attn_weights = weights.detach()
        return weights


class _QueryKeyValue(Attention):
    """Kinds that are called as in the textbooks: `module(Q, K, V, mask)` returns `(output, attn_weights)`."""

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Q (B,T,Dq), K (B,S,Dk), V (B,S,Dv) and mask (B,S) give the output (B,T,Do) and the weights (B,T,S)."""
        output_BTO, weights_BTS = self.attend(Q, self.remember(K, V, mask))
        return output_BTO, self._show(weights_BTS)


class _HiddenState(Attention):
    """Kinds that are called with the encoder's outputs and a decoder state: `module(encoder_outputs, hidden_state)`."""

    def forward(
        self, encoder_outputs: Tensor, hidden_state: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """encoder_outputs (B,S,H), mask (B,S), and hidden_state (B,H) for one step or (B,T,H) for all.

        The class says the shapes that come back.
        """
        one_step = hidden_state.dim() == 2
        query_BTH = hidden_state.unsqueeze(1) if one_step else hidden_state
        memory = self.remember(encoder_outputs, encoder_outputs, mask)
        context_BTH, weights = self._look(query_BTH, memory)
        return self._as_called(context_BTH, weights, one_step)

    def _as_called(self, context_BTH: Tensor, weights: Tensor, one_step: bool) -> tuple[Tensor, Tensor]:
        return (context_BTH.squeeze(1) if one_step else context_BTH), self._show(weights)


class MyAttention(_QueryKeyValue):
    """A query brought to the key's size, compared by dot product; the weighted values pass through an output layer.

    The bilinear form of Luong et al. 2015 (section 3.1, "general") with keys and values apart. The query has its own
    size, so it must be projected to the key's before the two can be multiplied: `query_layer`, the step that is
    forgotten most often. Not scaled, unless `scaled` divides by the square root of the key size, as the decoder has it.
    """

    def __init__(
        self, query_size: int, key_size: int, value_size: int, output_size: int, *, scaled: bool = False
    ) -> None:
        super().__init__(output_size)
        self.query_layer = nn.Linear(query_size, key_size)
        self.output_layer = nn.Linear(value_size, output_size)
        self.scale = _scale(key_size, scaled)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        query_BTK: Tensor = self.query_layer(query_BTQ)
        return product(query_BTK * self.scale, memory.keys.mT)

    def combine(self, weights: Tensor, memory: Memory) -> Tensor:
        output: Tensor = self.output_layer(product(weights, memory.values))
        return output


class AdditiveAttention(_QueryKeyValue):
    """score = v · tanh(W_q q + W_k k): a small network compares the two (Bahdanau et al. 2015, section 3, A.1.2).

    It needs no common size of query and key, and costs B·T·S·A instead of a matrix product.
    """

    def __init__(
        self,
        query_size: int,
        key_size: int,
        value_size: int,
        output_size: int,
        *,
        attention_size: int | None = None,
    ) -> None:
        super().__init__(output_size)
        size = key_size if attention_size is None else attention_size
        self.query_layer = nn.Linear(query_size, size)
        self.key_layer = nn.Linear(key_size, size, bias=False)
        self.score_layer = nn.Linear(size, 1, bias=False)
        self.output_layer = nn.Linear(value_size, output_size)

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return Memory(self.key_layer(keys_BSK), wide(values_BSV), mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        query_BT1A = self.query_layer(query_BTQ).unsqueeze(2)
        scores_BTS1 = self.score_layer(torch.tanh(query_BT1A + memory.keys.unsqueeze(1)))
        return torch.squeeze(scores_BTS1, -1)

    def combine(self, weights: Tensor, memory: Memory) -> Tensor:
        output: Tensor = self.output_layer(product(weights, memory.values))
        return output


class TanhAttention(_HiddenState):
    """score(q, h) = tanh(W h) · q; the context is the weighted sum of the encoder outputs themselves.

    Not scaled, unless `scaled` divides by the square root of H.
    One step: hidden_state (B,H) gives context (B,H) and weights (B,S). All steps: (B,T,H) and (B,T,S).
    """

    def __init__(self, hidden_dim: int, *, scaled: bool = False) -> None:
        super().__init__(hidden_dim)
        self.W = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.scale = _scale(hidden_dim, scaled)

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return Memory(wide(torch.tanh(self.W(keys_BSK))), wide(values_BSV), mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        return product(query_BTQ * self.scale, memory.keys.mT)

    def _as_called(self, context_BTH: Tensor, weights: Tensor, one_step: bool) -> tuple[Tensor, Tensor]:
        if one_step:
            return context_BTH.squeeze(1), self._show(weights.squeeze(1))
        return context_BTH, self._show(weights)


class QKVAttention(_HiddenState):
    """Queries, keys and values each with a projection of their own (Vaswani et al. 2017, section 3.2, one head).

    Not scaled, unless `scaled` divides by the square root of H.
    One step: hidden_state (B,H) gives context (B,H) and weights (B,1,S). All steps: (B,T,H) and (B,T,S).
    """

    def __init__(self, hidden_dim: int, *, scaled: bool = False) -> None:
        super().__init__(hidden_dim)
        self.W_q = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.W_k = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.W_v = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.scale = _scale(hidden_dim, scaled)

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return Memory(wide(self.W_k(keys_BSK)), wide(self.W_v(values_BSV)), mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        query_BTH: Tensor = self.W_q(query_BTQ)
        return product(query_BTH * self.scale, memory.keys.mT)


class MultiHeadAttention(_HiddenState):
    """N small attentions side by side, each looking for something else (Vaswani et al. 2017, section 3.2.2).

    Each head works on H/N numbers, scaled by 1/√(H/N); the heads are concatenated and mixed by `W_o`.
    One step: hidden_state (B,H) gives output (B,1,H) and weights per head (B,N,1,S). All steps: (B,T,H) and (B,N,T,S).
    A hidden_dim that num_heads does not divide is refused.
    """

    def __init__(self, hidden_dim: int, num_heads: int) -> None:
        super().__init__(hidden_dim)
        if num_heads < 1 or hidden_dim % num_heads:
            raise ConfigError(
                f"hidden_dim {hidden_dim} cannot be split evenly over {num_heads} heads; "
                "choose a hidden size that the number of heads divides."
            )
        self.num_heads = num_heads
        self.scale = _scale(hidden_dim // num_heads, True)
        self.W_q = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.W_k = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.W_v = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.W_o = nn.Linear(hidden_dim, hidden_dim, bias=False)

    def _split(self, x_BLH: Tensor) -> Tensor:
        """(B,L,H) becomes (B,N,L,H/N): a head is a slice of the width."""
        B, L, H = x_BLH.shape
        return x_BLH.view(B, L, self.num_heads, H // self.num_heads).transpose(1, 2)

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return Memory(self._split(wide(self.W_k(keys_BSK))), self._split(wide(self.W_v(values_BSV))), mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        query_BNTD = self._split(self.W_q(query_BTQ))
        return product(query_BNTD * self.scale, memory.keys.mT)

    def combine(self, weights: Tensor, memory: Memory) -> Tensor:
        heads_BNTD = product(weights, memory.values)
        output: Tensor = self.W_o(heads_BNTD.transpose(1, 2).flatten(2))
        return output

    def _as_called(self, context_BTH: Tensor, weights: Tensor, one_step: bool) -> tuple[Tensor, Tensor]:
        return context_BTH, self._show(weights)


class DotAttention(_QueryKeyValue):
    """score = q · k, without a parameter (Luong et al. 2015, section 3.1, "dot"): query and key must have one size.

    Not scaled, unless `scaled` divides by the square root of that size.
    """

    def __init__(self, size: int, *, scaled: bool = False) -> None:
        super().__init__(size)
        self.scale = _scale(size, scaled)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        return product(query_BTQ * self.scale, memory.keys.mT)


class GeneralAttention(_QueryKeyValue):
    """score = qᵀ W k (Luong et al. 2015, section 3.1, "general"); the context is the weighted sum of the values.

    Not scaled, unless `scaled` divides by the square root of the query size.
    """

    def __init__(self, query_size: int, key_size: int, value_size: int, *, scaled: bool = False) -> None:
        super().__init__(value_size)
        self.key_layer = nn.Linear(key_size, query_size, bias=False)
        self.scale = _scale(query_size, scaled)

    def remember(self, keys_BSK: Tensor, values_BSV: Tensor, mask_BS: Tensor | None = None) -> Memory:
        return Memory(wide(self.key_layer(keys_BSK)), wide(values_BSV), mask_BS)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        return product(query_BTQ * self.scale, memory.keys.mT)


class NoAttention(_QueryKeyValue):
    """The plain encoder-decoder, to measure what attention is worth: every step sees the same summary of the source.

    All positions weigh the same, so the context is the mean of the values whatever the query (in the place of the
    constant summary vector of Cho et al. 2014).
    """

    def __init__(self, value_size: int) -> None:
        super().__init__(value_size)

    def scores(self, query_BTQ: Tensor, memory: Memory) -> Tensor:
        return query_BTQ.new_zeros(query_BTQ.shape[0], query_BTQ.shape[1], memory.values.shape[1])


KINDS = ("my", "additive", "tanh", "qkv", "multi_head", "dot", "general", "none")


def build_attention(settings: AttentionConfig, hidden_size: int) -> Attention:
    """The attention that one word in the YAML names, between decoder states and encoder outputs of one hidden size."""
    H, scaled = hidden_size, settings.scaled
    match settings.kind:
        case "my":
            return MyAttention(H, H, H, H, scaled=scaled)
        case "additive":
            return AdditiveAttention(H, H, H, H)
        case "tanh":
            return TanhAttention(H, scaled=scaled)
        case "qkv":
            return QKVAttention(H, scaled=scaled)
        case "multi_head":
            return MultiHeadAttention(H, settings.heads)
        case "dot":
            return DotAttention(H, scaled=scaled)
        case "general":
            return GeneralAttention(H, H, H, scaled=scaled)
        case "none":
            return NoAttention(H)
    raise ConfigError(f"model.attention.kind is {settings.kind!r}; the kinds are {', '.join(KINDS)}.")


def _demonstrate() -> None:
    """Print what goes into each module, what comes out, and the weights, which sum to one."""
    torch.manual_seed(0)
    S, D, wide = 32, 4, 64
    Q, K, V = torch.randn(1, 1, D), torch.randn(1, S, D), torch.randn(1, S, D)
    encoder_outputs, hidden_state = torch.randn(1, S, D), torch.randn(1, D)
    query_key_value = {"Q": Q, "K": K, "V": V}
    hidden = {"encoder_outputs": encoder_outputs, "hidden_state": hidden_state}
    examples: list[tuple[str, nn.Module, dict[str, Tensor]]] = [
        (f"MyAttention({D}, {D}, {D}, {wide})", MyAttention(D, D, D, wide), query_key_value),
        (f"AdditiveAttention({D}, {D}, {D}, {wide})", AdditiveAttention(D, D, D, wide), query_key_value),
        (f"TanhAttention({D})", TanhAttention(D), hidden),
        (f"QKVAttention({D})", QKVAttention(D), hidden),
        (f"MultiHeadAttention({D}, 2)", MultiHeadAttention(D, 2), hidden),
        (f"DotAttention({D})", DotAttention(D), query_key_value),
        (f"GeneralAttention({D}, {D}, {D})", GeneralAttention(D, D, D), query_key_value),
        (f"NoAttention({D})", NoAttention(D), query_key_value),
    ]
    for name, module, inputs in examples:
        output, weights = module(*inputs.values())
        print(name)
        print("  in      " + "  ".join(f"{letter} {tuple(tensor.shape)}" for letter, tensor in inputs.items()))
        print(f"  out     {tuple(output.shape)}   weights {tuple(weights.shape)}")
        first = weights.flatten(0, -2)[0]
        shown = " ".join(f"{weight:.3f}" for weight in first[:6].tolist())
        print(f"  weights {shown} ...  they sum to {first.sum().item():.6f}\n")


if __name__ == "__main__":
    # A reader who has seen enough, such as `head`, ends it quietly, as it ends any other command.
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    _demonstrate()
