"""The decoder: a GRU that writes the target, looking back at the source through attention.

Letters: B sentences, R rows (hypotheses: up to B·K in beam search, else B), T target steps, S source tokens,
E embedding size, H hidden size, L layers.

Two kinds, one contract: `start` makes the first state from the encoded source, and a call reads T embedded target
tokens and returns T readouts, the attention weights and the next state. Training calls it once with all steps, search
once per step; the results are equal.

`parallel`: attention never feeds back into the recurrence that asks it, so every layer is one fused call over all
    steps. Attention stands `after` the GRU (Luong et al. 2015, without input feeding) or `between` its first layer,
    which asks, and the others, which read state and context together (as GNMT does, Wu et al. 2016).
`step`: input feeding (Luong et al. 2015, section 3.3): each step also reads the readout of the step before, so the
    steps must be computed one after the other.

In both, state, context and the embedded token meet in the readout, from which the next word is chosen; a lexical model
(lexical.py) adds to it what the source words say by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seq2seq.model.attention import Attention, Memory, build_attention
from seq2seq.model.device import autocast_dtype
from seq2seq.model.dropout import Dropout
from seq2seq.model.encoder import Encoded
from seq2seq.model.gru import GRU, GRUCell, stepped
from seq2seq.model.lexical import LexicalModel
from seq2seq.model.places import Places
from seq2seq.model.surroundings import Surroundings

if TYPE_CHECKING:
    from seq2seq.config.schema import ModelConfig


@dataclass(frozen=True)
class DecoderState:
    """All that the next step depends on. memory and source have B sentences; hidden and feed R rows, in order.

    R is B·K, unless `places` says which of these rows are there. The rows of one sentence share its memory: they ask as
    K queries, and nothing is copied per hypothesis. The embedded source is there for a lexical model only.
    """

    memory: Memory
    hidden_LRH: Tensor
    feed_RE: Tensor | None
    source_BSE: Tensor | None
    places: Places | None = None

    def select(self, rows_r: Tensor, sentences_b: Tensor | None = None, places: Places | None = None) -> DecoderState:
        """Keep the named rows, in that order, and the named sentences (None: all of them stay)."""
        memory, source = self.memory, self.source_BSE
        if sentences_b is not None:
            memory = memory.select(sentences_b)
            source = None if source is None else source.index_select(0, sentences_b)
        feed = None if self.feed_RE is None else self.feed_RE.index_select(0, rows_r)
        return DecoderState(memory, self.hidden_LRH.index_select(1, rows_r), feed, source, places)


class Readout(nn.Module):
    """tanh(W [state; context; embedded token]): the vector that the output layer turns into words.

    The attentional vector of Luong et al. 2015 (equation 5), with the previous word as in Bahdanau et al. 2015 (A.2.2).
    """

    def __init__(self, hidden_size: int, context_size: int, embedding_size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(hidden_size + context_size + embedding_size, embedding_size)

    def forward(self, state: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        read = [state, context, embedded]
        dtype = autocast_dtype(state.device.type)
        if dtype is not None:  # the layer would narrow all of it; before they are joined there is less to copy
            read = [part.to(dtype) for part in read]
        return torch.tanh(self.layer(torch.cat(read, dim=-1)))


class Decoder(nn.Module, ABC):
    """What both kinds share: the first state, how rows ask the memory, the readout."""

    def __init__(self, settings: ModelConfig) -> None:
        super().__init__()
        E, H = settings.embedding_size, settings.hidden_size
        self.layer_count = settings.decoder.layers
        self.attention: Attention = build_attention(settings.attention, H)
        self.first_state = nn.Linear(H, self.layer_count * H)
        self.surroundings = Surroundings(H, self.layer_count, settings.layer_norm, settings.residual)
        self.readout = Readout(H, self.attention.context_size, E)
        self.lexical = LexicalModel(E) if settings.lexical_model else None
        self.dropout = Dropout(settings.dropout_of("states"), settings.variational_dropout)
        self.readout_dropout = Dropout(settings.dropout_of("readout"), settings.variational_dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """The first state, tanh(W summary) for each layer (Bahdanau et al. 2015, A.2.2), and the projected memory."""
        memory = self.attention.remember(encoded.memory_BSH, encoded.memory_BSH, encoded.mask_BS)
        hidden_BX = torch.tanh(self.first_state(encoded.summary_BH))
        hidden_LBH = hidden_BX.view(len(hidden_BX), self.layer_count, -1).transpose(0, 1).contiguous()
        source = None if self.lexical is None else encoded.embedded_BSE
        return DecoderState(memory, hidden_LBH, self._first_feed(hidden_BX), source)

    @abstractmethod
    def forward(
        self, embedded_RTE: Tensor, state: DecoderState, made_RTG: Tensor | None = None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """Read T target tokens: readouts (R,T,E), attention weights (R,T,S), and the state after the last of them.

        `made_RTG` is what the word reader makes of the tokens, where that is known already (known_words.py).
        """

    @property
    def word_reader(self) -> nn.Module | None:
        """The layer that reads embedded words and nothing else, if there is one."""
        return None

    def _first_feed(self, like: Tensor) -> Tensor | None:
        return None

    def _ask(self, query_RTH: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """The K hypotheses of a sentence ask its one memory as K·T queries."""
        B, places = state.memory.values.shape[0], state.places
        if places is not None:
            query_RTH = places.spread(query_RTH, B)
        R, T, _ = query_RTH.shape
        context, weights = self.attention.attend(query_RTH.reshape(B, R // B * T, -1), state.memory)
        context_RTH, weights_RTS = context.reshape(R, T, -1), weights.reshape(R, T, -1)
        return (context_RTH, weights_RTS) if places is None else (places.pick(context_RTH), places.pick(weights_RTS))

    def _say_source_words(self, weights_RTS: Tensor, state: DecoderState) -> Tensor:
        """What a lexical model adds to the readouts."""
        assert self.lexical is not None and state.source_BSE is not None
        if state.places is None:
            said: Tensor = self.lexical(weights_RTS, state.source_BSE)
            return said
        B = len(state.source_BSE)
        return state.places.pick(self.lexical(state.places.spread(weights_RTS, B), state.source_BSE))


class ParallelDecoder(Decoder):
    """Every layer over all steps at once; attention after the last layer, or between the first and the others."""

    def __init__(self, settings: ModelConfig) -> None:
        super().__init__(settings)
        E, H = settings.embedding_size, settings.hidden_size
        self.between = settings.decoder.attend == "between"
        deeper = H + self.attention.context_size if self.between else H
        self.layers = nn.ModuleList(
            GRU(deeper if number else E, H, settings.dropout_recurrent) for number in range(self.layer_count)
        )

    @property
    def word_reader(self) -> nn.Module:
        return self.layers[0]

    def forward(
        self, embedded_RTE: Tensor, state: DecoderState, made_RTG: Tensor | None = None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        if made_RTG is None:
            states, last = self._run(0, embedded_RTE, state)
        else:
            states, last_1RH = stepped(self.layers[0])(made_RTG, state.hidden_LRH[:1])
            last = last_1RH.squeeze(0)
        states = self.surroundings(0, states, embedded_RTE)
        hidden = [last]
        if self.between:
            context, weights = self._ask(states, state)
        for number in range(1, self.layer_count):
            before, below = states, self.dropout(states)
            states, last = self._run(number, torch.cat([below, context], -1) if self.between else below, state)
            states = self.surroundings(number, states, before)
            hidden.append(last)
        if not self.between:
            context, weights = self._ask(states, state)
        readout_RTE = self.readout(states, context, embedded_RTE)
        if self.lexical is not None:
            readout_RTE = readout_RTE + self._say_source_words(weights, state)
        next_state = DecoderState(state.memory, torch.stack(hidden), None, state.source_BSE, state.places)
        return self.readout_dropout(readout_RTE), weights, next_state

    def _run(self, number: int, x_RTI: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        states_RTH, last_1RH = self.layers[number](x_RTI, state.hidden_LRH[number : number + 1])
        return states_RTH, last_1RH.squeeze(0)


class StepDecoder(Decoder):
    """One step at a time, each reading the readout of the one before (input feeding)."""

    def __init__(self, settings: ModelConfig) -> None:
        super().__init__(settings)
        E, H = settings.embedding_size, settings.hidden_size
        self.layers = nn.ModuleList(
            GRUCell(H if number else 2 * E, H, settings.dropout_recurrent) for number in range(self.layer_count)
        )
        self.feed_size = E

    def _first_feed(self, like: Tensor) -> Tensor:
        return like.new_zeros(like.shape[0], self.feed_size)

    def forward(
        self, embedded_RTE: Tensor, state: DecoderState, made_RTG: Tensor | None = None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        assert made_RTG is None, "the first layer reads the readout of the step before as well"
        hidden = list(state.hidden_LRH.unbind(0))
        feed_RE = state.feed_RE
        assert feed_RE is not None, "a step decoder's state carries the readout of the step before"
        readouts, all_weights = [], []
        drops = [self.dropout.over_steps() for _ in self.layers]
        cells = [cell.over_steps() if isinstance(cell, GRUCell) else cell for cell in self.layers]
        drop_readout = self.readout_dropout.over_steps()
        for embedded_RE in embedded_RTE.unbind(1):
            before = below = torch.cat([embedded_RE, feed_RE], dim=-1)
            for number, cell in enumerate(cells):
                hidden[number] = cell(below, hidden[number])
                before = self.surroundings(number, hidden[number], before)
                below = drops[number](before) if number + 1 < self.layer_count else before
            context_R1H, weights_R1S = self._ask(below.unsqueeze(1), state)
            feed_RE = drop_readout(self.readout(below, context_R1H.squeeze(1), embedded_RE))
            readouts.append(feed_RE)
            all_weights.append(weights_R1S)
        next_state = DecoderState(state.memory, torch.stack(hidden), feed_RE, state.source_BSE, state.places)
        readout_RTE, weights = torch.stack(readouts, dim=1), torch.cat(all_weights, dim=1)
        if self.lexical is not None:  # it is not fed back
            readout_RTE = readout_RTE + self.readout_dropout(self._say_source_words(weights, state))
        return readout_RTE, weights, next_state


def build_decoder(settings: ModelConfig) -> Decoder:
    """The decoder that `model.decoder.kind` names."""
    return StepDecoder(settings) if settings.decoder.kind == "step" else ParallelDecoder(settings)
