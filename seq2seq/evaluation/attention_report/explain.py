"""One step of attention with its real numbers: query, scores, softmax, weighted sum, output.

Letters: S source tokens, N heads, D the size in which query and key meet (H, H/N with heads, or A of the additive
comparison), V the size of a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from seq2seq.evaluation.attention_report.kinds import Kind, kind_of
from seq2seq.evaluation.attention_report.sentences import END, Part
from seq2seq.evaluation.attention_report.units import surfaces

_SHOWN = 4  # numbers of a long vector that are printed
_TELLING = 0.7  # a largest weight that shows both a choice and a sum; one of 1.000 leaves nothing to add up


@dataclass(frozen=True)
class Stage:
    """A stage of the step: what happens in it, and perhaps a table of it."""

    title: str
    sentences: list[str]
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Explanation:
    """One step in numbers. `step` counts from 0, `head` is the one that is worked through.

    scores_S to context_V are that head's; output_C is what the decoder gets.
    """

    kind: Kind
    step: int
    head: int
    stages: list[Stage]
    query_D: Tensor
    keys_SD: Tensor
    scores_S: Tensor
    weights_S: Tensor
    values_SV: Tensor
    context_V: Tensor
    output_C: Tensor


def telling_step(part: Part) -> int:
    """A step with a clear choice that is not the only one; the end mark only if there is nothing else."""
    mean_TS = part.look.mean()
    steps = mean_TS[:-1] if len(mean_TS) > 1 else mean_TS
    return _most_telling(steps)


def _most_telling(weights_XS: Tensor) -> int:
    return int((weights_XS.amax(dim=1) - _TELLING).abs().argmin())


def parameters(attention: nn.Module, kind: Kind) -> list[list[str]]:
    """Rows of name, shape, count and meaning, for each parameter of an attention."""
    rows = []
    for name, parameter in attention.named_parameters():
        layer, _, what = name.partition(".")
        meaning = kind.layers.get(layer, "")
        shape = " × ".join(map(str, parameter.shape))
        rows.append([name, shape, f"{parameter.numel():,}", meaning if what != "bias" else f"bias of {layer}"])
    return rows


def explain(part: Part, kind_name: str, step: int | None = None) -> Explanation:
    """Work one step through, in one head; by default a telling one. `kind_name` is model.attention.kind."""
    look = part.look
    kind = kind_of(kind_name, scaled=look.attention.scale != 1.0)
    t = telling_step(part) if step is None else step
    N = look.weights_NTS.shape[0]
    head = _most_telling(look.weights_NTS[:, t])
    with torch.inference_mode():
        query = _projected(look.attention, kind, look.query_1TH[:, t : t + 1])
    D = query.shape[-1] // N
    query_D = query[head * D : (head + 1) * D]
    keys_SD, values_SV = (_of_head(tensor, head) for tensor in (look.memory.keys, look.memory.values))
    scores_S, weights_S = look.scores_NTS[head, t], look.weights_NTS[head, t]
    found = Explanation(
        kind,
        t,
        head,
        [],
        query_D,
        keys_SD,
        scores_S,
        weights_S,
        values_SV,
        weights_S @ values_SV,
        look.output_TC[t],
    )
    found.stages.extend(_stages(part, found, look.query_1TH[0, t].float().cpu()))
    return found


def _projected(attention: nn.Module, kind: Kind, query_11H: Tensor) -> Tensor:
    """The query in the size in which it meets the keys, all heads in a row."""
    if kind.query_layer is not None:
        query_11H = attention.get_submodule(kind.query_layer)(query_11H)
    return query_11H[0, 0].float().cpu()


def _of_head(tensor: Tensor, head: int) -> Tensor:
    """(1,S,·) or (1,N,S,·) becomes (S,·)."""
    return (tensor[0, head] if tensor.dim() == 4 else tensor[0]).float().cpu()


def _stages(part: Part, found: Explanation, state_H: Tensor) -> list[Stage]:
    sources = [_name(piece) for piece in part.source_pieces]
    stages = [_query(part, found, state_H)]
    if found.kind.compare != "nothing":
        stages.append(_scores(sources, found, part.look.attention.scale))
    stages += [_softmax(sources, found, part), _weighted_sum(sources, found), _output(found, part)]
    return stages


def _query(part: Part, found: Explanation, state_H: Tensor) -> Stage:
    N, T = part.look.weights_NTS.shape[:2]
    word = _name(part.target_pieces[found.step])
    sentences = [
        f"Step {found.step + 1} of {T}: the decoder is about to write {word}. Its state is the query, "
        f"q (1, 1, {len(state_H)}) = {_vector(state_H)}."
    ]
    if found.kind.compare == "nothing":
        sentences.append("This kind does not look at it.")
    elif found.kind.query_layer is not None:
        heads = f", of which head {found.head + 1} of {N} gets {len(found.query_D)}" if N > 1 else ""
        sentences.append(
            f"{found.kind.query_layer} brings it to the form of the keys (1, 1, {len(found.query_D) * N}){heads}: "
            f"{_vector(found.query_D)}."
        )
    return Stage("The query", sentences)


def _scores(sources: Sequence[str], found: Explanation, factor: float) -> Stage:
    top = int(found.scores_S.argmax())
    query_D, key_D = found.query_D, found.keys_SD[top]
    D, S = len(query_D), len(sources)
    if found.kind.compare == "additive":
        scores_text = (
            f"The key of {sources[top]} (projected) is {_vector(key_D)}. Added to the query and through tanh: "
            f"{_vector(torch.tanh(query_D + key_D))}; weighted by v and summed over {D} features, the score is "
            f"{_number(found.scores_S[top])}."
        )
    else:
        products = " + ".join(
            f"{_factor(q)}·{_factor(k)}" for q, k in zip(query_D[:3].tolist(), key_D[:3].tolist(), strict=True)
        )
        scale = ""
        dot = float(query_D @ key_D)
        if factor != 1.0:
            scale = f" / √{D} = {_number(found.scores_S[top])}"
        scores_text = (
            f"The key of {sources[top]} is {_vector(key_D)}. Multiplied number by number and summed: {products} + ... "
            f"({D} products) = {_number(dot)}{scale}."
        )
    rows = [
        [source, _vector(key_D), _number(score)]
        for source, key_D, score in zip(sources, found.keys_SD, found.scores_S.tolist(), strict=True)
    ]
    shape = f"Every one of the {S} source pieces has a key; keys (1, {S}, {D}), scores (1, 1, {S})."
    return Stage("Scores: the query meets every key", [shape, scores_text], ["source", "key", "score"], rows)


def _softmax(sources: Sequence[str], found: Explanation, part: Part) -> Stage:
    N = part.look.weights_NTS.shape[0]
    top = int(found.scores_S.argmax())
    exponentials_S = (found.scores_S - found.scores_S.max()).exp()
    total = float(exponentials_S.sum())
    sentences = [
        "Softmax makes scores a distribution: e to the power of each score, divided by the sum of all. The largest "
        "score is taken off first, which changes nothing but keeps the numbers small.",
        f"The sum is {_number(total)}, so {sources[top]} weighs {_number(exponentials_S[top])} / {_number(total)} = "
        f"{_number(found.weights_S[top])}; all weights together are {_number(found.weights_S.sum())}.",
    ]
    header = ["source", "score", "e^(score - max)", "weight"]
    rows = [
        [source, *map(_number, numbers)]
        for source, *numbers in zip(sources, found.scores_S, exponentials_S, found.weights_S, strict=True)
    ]
    if N > 1:
        sentences.append("Each head has its own distribution; their mean is what the heat map shows first.")
        header += [f"head {head + 1}" for head in range(N)] + ["mean"]
        heads_NS = part.look.weights_NTS[:, found.step]
        for row, weights_N in zip(rows, heads_NS.T, strict=True):
            row += [*map(_number, weights_N), _number(weights_N.mean())]
    return Stage("Softmax: scores become weights", sentences, header, rows)


def _weighted_sum(sources: Sequence[str], found: Explanation) -> Stage:
    S, V = found.values_SV.shape
    order = found.weights_S.argsort(descending=True).tolist()
    top = order[0]
    shown = min(3, V)
    terms = " + ".join(f"{_number(found.weights_S[s])}·{_factor(found.values_SV[s, 0])}" for s in order[:3])
    mostly = f"here mostly the value of {sources[top]}" if found.kind.compare != "nothing" else "the mean of all"
    sentences = [
        f"Every source piece also has a value; values (1, {S}, {V}). Each is multiplied by its weight, and all are "
        f"added up: the context (1, 1, {V}), {mostly}.",
        f"Its first number: {terms}{' + ...' if S > 3 else ''} = {_number(found.context_V[0])}.",
    ]
    rows = [
        [
            sources[s],
            _number(found.weights_S[s]),
            _vector(found.values_SV[s], shown),
            _vector(found.weights_S[s] * found.values_SV[s], shown),
        ]
        for s in order
    ]
    rows.append(["sum", _number(found.weights_S.sum()), "", _vector(found.context_V, shown)])
    return Stage("Weighted sum: the values are read", sentences, ["source", "weight", "value", "weight · value"], rows)


def _output(found: Explanation, part: Part) -> Stage:
    N = part.look.weights_NTS.shape[0]
    word = _name(part.target_pieces[found.step])
    layer, C = found.kind.output_layer, len(found.output_C)
    sentences = []
    if layer is not None:
        what = f"what all {N} heads have read, side by side," if N > 1 else "the context"
        sentences.append(f"{layer} takes {what} and gives the output (1, 1, {C}) = {_vector(found.output_C)}.")
    else:
        sentences.append(f"The context is the output (1, 1, {C}) = {_vector(found.output_C)}.")
    sentences.append(
        f"Together with the decoder's state and the word before it decides the next word, which was {word} here."
    )
    return Stage("Output: on to the next word", sentences)


def _name(piece: str) -> str:
    """A piece as a person reads it."""
    if piece == END:
        return "the end mark"
    (text,) = surfaces([piece])
    return f"‘{text.replace('▁', ' ').strip() or piece}’"


def _number(number: Tensor | float) -> str:
    value = float(number)
    if not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{round(value, 3) + 0.0:.3f}"  # -0.000 is written 0.000


def _factor(number: Tensor | float) -> str:
    return f"({_number(number)})" if float(number) < 0 else _number(number)


def _vector(numbers: Tensor, shown: int = _SHOWN) -> str:
    first = ", ".join(f"{round(float(number), 2) + 0.0:.2f}" for number in numbers[:shown])
    return f"[{first}{', ...' if len(numbers) > shown else ''}]"
