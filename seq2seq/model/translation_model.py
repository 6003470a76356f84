"""The whole model: embeddings, encoder, decoder, output layer, and how its weights begin.

Letters: B sentences, R rows (hypotheses), T target steps, S source tokens, E embedding size, V target vocabulary,
N real target tokens.

Search needs three things of a model: `start` (read the source), `step` (one more token for every row: the best next
ones and the next state) and `select` on the state. Training needs `loss`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from seq2seq.corpus.subwords import BOS, PAD
from seq2seq.model.best_words import best_words
from seq2seq.model.consistency import consistent_loss
from seq2seq.model.decoder import DecoderState, build_decoder
from seq2seq.model.dropout import Dropout
from seq2seq.model.encoder import Encoded, Encoder
from seq2seq.model.known_words import KnownWords
from seq2seq.model.loss import output_loss
from seq2seq.model.regularisation import NONE, Regularisation, hide_words
from seq2seq.model.tied import TiedMatrix

if TYPE_CHECKING:
    from seq2seq.config.schema import ModelConfig
    from seq2seq.corpus.batches import Batch


NEVER_SAID = (PAD, BOS)


class TranslationModel(nn.Module):
    """GRU encoder, attention, GRU decoder; `build_model` makes a new one; an `empty_model` waits for its weights.

    `settings.tie_embeddings` says which embeddings are one matrix: `all` (source, target and output layer: three-way,
    Press & Wolf 2017), `decoder` (target and output layer) or `none`.
    """

    def __init__(self, settings: ModelConfig, source_size: int, target_size: int) -> None:
        super().__init__()
        E = settings.embedding_size
        self.source_embedding = nn.Embedding(source_size, E)
        self.target_embedding = nn.Embedding(target_size, E)
        variational = settings.variational_dropout
        self.encoder = Encoder(
            E,
            settings.hidden_size,
            settings.encoder.layers,
            settings.dropout_of("states"),
            variational=variational,
            layer_norm=settings.layer_norm,
            residual=settings.residual,
            dropped_weights=settings.dropout_recurrent,
        )
        self.decoder = build_decoder(settings)
        self.output_layer = nn.Linear(E, target_size)
        self.dropout = Dropout(settings.dropout_of("embeddings"), variational)
        # A model for search alone (compact.py) remembers what its first layers make of each word.
        self.known_source: KnownWords | None = None
        self.known_target: KnownWords | None = None
        # A word's vector is about one long as an input, whatever the size; see `initialise`.
        self.embedding_scale = math.sqrt(E)
        tying = settings.tie_embeddings
        assert isinstance(tying, str), "what true or false means depends on the vocabulary; a Config says it in a word"
        if tying == "all":
            self.source_embedding.weight = self.target_embedding.weight
        if tying in ("all", "decoder"):
            self.output_layer.weight = self.target_embedding.weight

    @torch.no_grad()
    def initialise(self) -> None:
        """Set all weights from torch's generator.

        Embeddings: normal with deviation 1/√E, multiplied by √E where they are read. A tied matrix serves two masters:
        as an input its numbers should be about 1, as an output layer about 1/√E, so that the first softmax is flat and
        not already sure of itself. Recurrent matrices: orthogonal per gate, so that states neither fade nor explode
        over the steps (Saxe et al. 2014). Other matrices: Xavier uniform (Glorot & Bengio 2010). Biases: zero. Norms:
        one.
        """
        for name, parameter in self.named_parameters():
            if name.endswith("embedding.weight") or name == "output_layer.weight":
                parameter.normal_(0.0, parameter.shape[1] ** -0.5)
            elif "weight_hh" in name:
                for gate in parameter.chunk(3, dim=0):
                    nn.init.orthogonal_(gate)
            elif "weight_ih" in name:
                for gate in parameter.chunk(3, dim=0):
                    nn.init.xavier_uniform_(gate)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif ".norms." in name and name.endswith("weight"):
                parameter.fill_(1.0)
            else:
                parameter.zero_()

    # -- both flows ---------------------------------------------------------------------------------------------------

    def encode(
        self, src_BS: Tensor, mask_BS: Tensor, hidden_words: float = 0.0, tied: TiedMatrix | None = None
    ) -> Encoded:
        """Read the source: a vector per token and a summary per sentence."""
        embedded_BSE = self._embedded(src_BS, self.source_embedding.weight, hidden_words, tied)
        made = None if self.known_source is None else self.known_source.of(src_BS)
        encoded: Encoded = self.encoder(embedded_BSE, mask_BS, made)
        return encoded

    def decode(
        self, tgt_RT: Tensor, state: DecoderState, hidden_words: float = 0.0, tied: TiedMatrix | None = None
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """Read target tokens: readouts (R,T,E), attention weights (R,T,S), next state."""
        embedded_RTE = self._embedded(tgt_RT, self.target_embedding.weight, hidden_words, tied)
        made = None if self.known_target is None else self.known_target.of(tgt_RT)
        result: tuple[Tensor, Tensor, DecoderState] = self.decoder(embedded_RTE, state, made)
        return result

    def _embedded(self, ids_BL: Tensor, weight_VE: Tensor, hidden_words: float, tied: TiedMatrix | None) -> Tensor:
        """The tokens' scaled vectors, some of them hidden, with dropout; from `tied`, if that is the matrix."""
        if tied is not None and weight_VE is self.output_layer.weight:
            vectors_BLE = tied.look_up(ids_BL, self.embedding_scale)
        else:
            vectors_BLE = nn.functional.embedding(ids_BL, weight_VE) * self.embedding_scale
        dropped_BLE: Tensor = self.dropout(hide_words(vectors_BLE, hidden_words))
        return dropped_BLE

    # -- training -----------------------------------------------------------------------------------------------------

    def loss(self, batch: Batch, smoothing: float, harder: Regularisation = NONE) -> tuple[Tensor, Tensor]:
        """Summed smoothed loss and summed plain negative log-likelihood over the real target tokens of a batch.

        The output layer is by far the widest product, so it is computed for real tokens only. `harder` is for training.
        """
        weight_VE, tied = self.output_matrix()
        bias_V = self.output_layer.bias
        src_BS, src_mask_BS, tgt_in_BT = batch.src_BS, batch.src_mask_BS, batch.tgt_in_BT
        if harder.consistency:  # two readings: every sentence twice in one batch, each with masks of its own
            src_BS, src_mask_BS, tgt_in_BT = (side.repeat(2, 1) for side in (src_BS, src_mask_BS, tgt_in_BT))
        state = self.decoder.start(self.encode(src_BS, src_mask_BS, harder.source_words, tied))
        readout_BTE, _, _ = self.decode(tgt_in_BT, state, harder.target_words, tied)
        real_N = batch.tgt_real_N
        if real_N is None:
            real_N = batch.tgt_mask_BT.flatten().nonzero().squeeze(1)
        gold_N = batch.tgt_out_BT.flatten().index_select(0, real_N)
        if harder.consistency:
            readings_2NE = readout_BTE.reshape(2, -1, readout_BTE.shape[2]).index_select(1, real_N)
            return consistent_loss(readings_2NE, weight_VE, bias_V, gold_N, smoothing, harder.consistency)
        readout_NE = readout_BTE.flatten(0, 1).index_select(0, real_N)
        return output_loss(readout_NE, weight_VE, bias_V, gold_N, smoothing)

    def output_matrix(self) -> tuple[Tensor, TiedMatrix | None]:
        """The output layer's matrix (V,E) for one pass of training, and what looks tokens up in it, if it is tied."""
        weight_VE: Tensor = self.output_layer.weight
        if weight_VE.device.type != "cpu":  # a GPU's additions to rows come in no fixed order; it can spare the time
            return weight_VE, None
        tied = TiedMatrix(weight_VE)
        return tied.whole_VE, tied

    # -- search -------------------------------------------------------------------------------------------------------

    def start(self, src_BS: Tensor, mask_BS: Tensor) -> DecoderState:
        """Read the source once; the state has one row per sentence until `select` repeats them."""
        return self.decoder.start(self.encode(src_BS, mask_BS))

    def step(self, previous_R: Tensor, state: DecoderState, count: int) -> tuple[Tensor, Tensor, DecoderState]:
        """One more token in every row: the `count` best next ones, best first, as log-probabilities (R,C) and ids
        (R,C), and the state after it. Padding and the begin mark are never among them."""
        logit_RV, state = self._logits(previous_R, state)
        return *best_words(logit_RV, min(count, logit_RV.shape[1]), NEVER_SAID), state

    def logits(self, previous_R: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """What `step` chooses from: log-probabilities of all words (R,V), up to a constant of each row, in fp32."""
        logit_RV, state = self._logits(previous_R, state)
        return logit_RV.float(), state

    def _logits(self, previous_R: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        readout_R1E, _, state = self.decode(previous_R.unsqueeze(1), state)
        return self.output_layer(readout_R1E.squeeze(1)), state

    def log_probabilities(self, previous_R: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """The log-probabilities of all words after `previous_R` (R,V), in fp32, and the state after it.

        Padding and the begin mark are never said; they get -inf, and nobody gets their share.
        """
        logit_RV, state = self.logits(previous_R, state)
        log_probability_RV = logit_RV.log_softmax(dim=1)
        log_probability_RV[:, list(NEVER_SAID)] = -torch.inf
        return log_probability_RV, state

    def words(self, place_RC: Tensor, state: DecoderState) -> Tensor:
        """The ids of the words at these places of `log_probabilities`: the places themselves."""
        return place_RC

    def parameter_count(self) -> int:
        """Trainable numbers; a tied matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def build_model(settings: ModelConfig, source_size: int, target_size: int, *, seed: int) -> TranslationModel:
    """A new model from settings and vocabulary sizes; equal seeds give equal weights."""
    torch.manual_seed(seed)  # first: the initial weights are part of the experiment
    model = TranslationModel(settings, source_size, target_size)
    model.initialise()
    return model


class _WithoutInitialisation(TorchFunctionMode):
    """Leaves out the random numbers that PyTorch's layers begin with: on `meta`, drawing nothing costs a second."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def empty_model(settings: ModelConfig, source_size: int, target_size: int) -> TranslationModel:
    """A model on the `meta` device: all names and shapes, and no memory for them."""
    with torch.device("meta"), _WithoutInitialisation():
        return TranslationModel(settings, source_size, target_size)


def fill(model: TranslationModel, weights: Mapping[str, Tensor]) -> None:
    """Give an empty model its weights, one for each of its named parameters; they are taken, not copied."""
    filled = {id(empty): nn.Parameter(weights[name].float()) for name, empty in model.named_parameters()}
    for module in model.modules():
        for name, empty in module.named_parameters(recurse=False):
            setattr(module, name, filled[id(empty)])  # tied ones get the same again, and stay tied
