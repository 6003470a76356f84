"""What each kind of attention computes and what its parameters mean, in words.

H is the hidden size, q the decoder's state before it writes a word, h a source position's encoder state, A the size of
the additive comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal


@dataclass(frozen=True)
class Kind:
    """One kind: its formula, a short text, the meaning of each layer, and the names of the layers that a step passes.

    {scale} stands in the formula where dot products may be divided. `compare` says how the query meets a key: a dot
    product, the additive network, or not at all.
    """

    title: str
    formula: str
    text: str
    layers: dict[str, str] = field(default_factory=dict)
    query_layer: str | None = None
    output_layer: str | None = None
    compare: Literal["dot", "additive", "nothing"] = "dot"


_SHARED_KV = "Keys and values are the encoder's states themselves: one vector a position both answers and is read."

KINDS: dict[str, Kind] = {
    "my": Kind(
        title="MyAttention: a projected query, and an output layer",
        formula="score(q, k) = (W q + b) · k{scale}        output = U (Σ weight · v) + c",
        text="The query is brought to the size of the keys and compared with each of them by a dot product. "
        f"{_SHARED_KV} What has been read passes through an output layer.",
        layers={
            "query_layer": "translates the decoder's state into the language of the keys: what to look for",
            "output_layer": "brings what was read into the form that the decoder uses",
        },
        query_layer="query_layer",
        output_layer="output_layer",
    ),
    "additive": Kind(
        title="Additive attention (Bahdanau et al. 2015)",
        formula="score(q, h) = v · tanh(W q + U h)        output = O (Σ weight · h) + c",
        text="A small network with one hidden layer compares query and key: both are projected and added, and v says "
        "how much each of the A features counts. It needs no common size of query and key.",
        layers={
            "query_layer": "W: what the decoder's state asks for, in A features",
            "key_layer": "U: what a source position offers, in the same A features",
            "score_layer": "v: how much each feature counts in the score",
            "output_layer": "O: brings what was read into the form that the decoder uses",
        },
        query_layer="query_layer",
        output_layer="output_layer",
        compare="additive",
    ),
    "tanh": Kind(
        title="TanhAttention",
        formula="score(q, h) = tanh(W h) · q{scale}",
        text="Each encoder state is projected, and tanh keeps its numbers between -1 and 1; the decoder's state is "
        "the query as it is. The context is the weighted sum of the encoder states themselves.",
        layers={"W": "what a source position offers, in the language of the decoder's states"},
    ),
    "qkv": Kind(
        title="Query, key and value, in one head (Vaswani et al. 2017)",
        formula="score(q, h) = (W_q q) · (W_k h){scale}        context = Σ weight · (W_v h)",
        text="Three projections part three roles: what is asked, by what a position is found, and what it then says. "
        "A dot product of H numbers grows like √H, and the division by √H takes that back; without it the softmax is "
        "sharp before anything is learnt.",
        layers={
            "W_q": "the query: what the decoder's state asks for",
            "W_k": "the key: by what a source position is found",
            "W_v": "the value: what a source position says when it is read",
        },
        query_layer="W_q",
    ),
    "multi_head": Kind(
        title="Multi-head attention (Vaswani et al. 2017)",
        formula="score_n(q, h) = (W_q q)_n · (W_k h)_n / √(H/N)        output = W_o [Σ weight_n · (W_v h)_n, n = 1..N]",
        text="N small attentions side by side, each on its own slice of H/N numbers, so that one step can look at "
        "several places for several reasons. A dot product of D numbers grows like √D, and the division by √(H/N) "
        "takes that back. W_o mixes what the heads have read.",
        layers={
            "W_q": "the queries of all heads: what each asks for",
            "W_k": "the keys of all heads: by what a source position is found",
            "W_v": "the values of all heads: what a source position says to each",
            "W_o": "mixes what the heads have read",
        },
        query_layer="W_q",
        output_layer="W_o",
    ),
    "dot": Kind(
        title="Dot product (Luong et al. 2015)",
        formula="score(q, h) = q · h{scale}",
        text="No parameter at all: the decoder's state is compared with the encoder's states as they are, so encoder "
        f"and decoder must learn to speak one language. {_SHARED_KV}",
    ),
    "general": Kind(
        title="General, or bilinear (Luong et al. 2015)",
        formula="score(q, h) = q · (W h){scale}",
        text="One matrix stands between query and key; with W = 1 it is the dot product. The context is the weighted "
        "sum of the encoder states themselves.",
        layers={"key_layer": "W: translates an encoder state into the language of the decoder's states"},
    ),
    "none": Kind(
        title="No attention",
        formula="weight = 1/S",
        text="Every step reads the mean of the source, whatever it would ask: the plain encoder-decoder, to measure "
        "what attention is worth.",
        compare="nothing",
    ),
}


def kind_of(name: str, *, scaled: bool) -> Kind:
    """A kind by its name, its formula with the division by √H or without it (`model.attention.scaled`)."""
    kind = KINDS[name]
    return replace(kind, formula=kind.formula.replace("{scale}", " / √H" if scaled else ""))
