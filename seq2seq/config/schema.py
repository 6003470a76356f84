"""What may be written in the YAML: every setting with its meaning, its range and its default.

The order is the order of the pipeline: data, tokenizer, model, training, decoding. Defaults stand here, nowhere else.
A section is a frozen pydantic model that knows no other key: a misspelt setting is refused and never trains silently.
The file is long because there are many settings; their descriptions become the JSON Schema that editors show.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from seq2seq.config.data_section import DataConfig, Fraction, PairFiles
from seq2seq.config.fields import (
    BILLION,
    MILLION,
    MOST_AVERAGED,
    Expected,
    Flag,
    Integer,
    Number,
    Section,
    Settings,
    Text,
    contradict,
)

__all__ = [
    "AttentionConfig",
    "AttentionKind",
    "Config",
    "DataConfig",
    "DecoderConfig",
    "DecodingConfig",
    "EncoderConfig",
    "Fraction",
    "ModelConfig",
    "PairFiles",
    "TiedEmbeddings",
    "TokenizerConfig",
    "TrainingConfig",
    "data_files",
]

AttentionKind = Literal["my", "additive", "tanh", "qkv", "multi_head", "dot", "general", "none"]
TiedEmbeddings = Literal["all", "decoder", "none"]
Device = Annotated[str, StringConstraints(strict=True, pattern=r"^(auto|cpu|mps|cuda(:(0|[1-9][0-9]{0,2}))?)$")]

# Above zero, in a pattern without lookahead, which neither pydantic nor every editor knows.
_ABOVE_ZERO = r"([1-9][0-9]{0,5}(\.[0-9]{1,6})?|0\.[0-9]{0,5}[1-9]0{0,5})"
Minutes = Annotated[str, StringConstraints(strict=True, pattern=rf"^{_ABOVE_ZERO} ?min(utes?)?$")]


# A model of spaCy is named as a package is; a path could be anybody's.
TORCHTEXT_NAME = r"^(split|basic_english|moses|toktok|spacy(:[A-Za-z][A-Za-z0-9_]{0,100})?)$"
TorchtextTokenizer = Annotated[str, StringConstraints(strict=True, pattern=TORCHTEXT_NAME)]
TORCHTEXT_TOKENIZERS = "one of split, basic_english, moses, toktok, or spacy:MODEL"


class TokenizerConfig(Section):
    """How text is cut into pieces, and how many different pieces there are."""

    kind: Literal["sentencepiece", "torchtext"] = Field(
        default="sentencepiece",
        description="Library that cuts text into pieces: sentencepiece (Kudo and Richardson 2018), or torchtext, "
        "which knows whole words only.",
    )
    model_type: Literal["bpe", "unigram", "char", "word"] = Field(
        default="bpe",
        description="SentencePiece model: bpe (Sennrich et al. 2016), unigram (Kudo 2018), char or word.",
    )
    vocab_size: Integer = Field(
        default=6000,
        ge=8,
        le=MILLION,
        description="Number of different pieces, the four special ones included; the most that kind torchtext keeps.",
    )
    shared: Flag = Field(default=True, description="Whether source and target share one vocabulary.")
    byte_fallback: Flag = Field(
        default=True, description="Whether an unseen character becomes its UTF-8 bytes instead of an unknown mark."
    )
    character_coverage: Number | None = Field(
        default=None,
        ge=0.9,
        le=1,
        description="Share of the corpus's characters that get a piece of their own; "
        "null means 0.9995 with byte_fallback and 1.0 without.",
    )
    name: Annotated[TorchtextTokenizer | None, Expected(TORCHTEXT_TOKENIZERS)] = Field(
        default=None,
        description="Tokenizer of torchtext: split (at blanks; the default), basic_english, moses, toktok, or spacy "
        "with its model, such as spacy:de_core_news_sm; only with kind torchtext.",
    )
    target_name: Annotated[TorchtextTokenizer | None, Expected(TORCHTEXT_TOKENIZERS)] = Field(
        default=None,
        description="Tokenizer of the target where it is another one (null: the same); only with kind torchtext and "
        "shared: false.",
    )
    min_frequency: Integer = Field(
        default=1, ge=1, le=BILLION, description="Rarer words become the unknown mark; only with kind torchtext."
    )

    @property
    def source_tokenizer(self) -> str:
        """The torchtext tokenizer that cuts the source."""
        return self.name or "split"

    @property
    def target_tokenizer(self) -> str:
        """The torchtext tokenizer that cuts the target."""
        return self.target_name or self.source_tokenizer

    @property
    def cut_by(self) -> str:
        """What cuts the text, in a word or two for a person."""
        if self.kind == "sentencepiece":
            return self.model_type
        names = dict.fromkeys([self.source_tokenizer, self.target_tokenizer])
        return f"words cut by torchtext's {' and '.join(names)}"

    @model_validator(mode="after")
    def _each_kind_has_its_own_settings(self) -> "TokenizerConfig":
        own: dict[str, tuple[str, ...]] = {
            "torchtext": ("name", "target_name", "min_frequency"),
            "sentencepiece": ("model_type", "byte_fallback", "character_coverage"),
        }
        for kind, keys in own.items():
            for key in keys:
                value = getattr(self, key)
                if self.kind != kind and value != type(self).model_fields[key].default:
                    settings = {f"tokenizer.{key}": value, "tokenizer.kind": self.kind}
                    contradict(settings, f"{key} has a meaning only with kind {kind}")
        if self.shared and self.target_tokenizer != self.source_tokenizer:
            contradict(
                {"tokenizer.target_name": self.target_name, "tokenizer.shared": self.shared},
                "one vocabulary for both languages is cut by one tokenizer",
            )
        return self


class EncoderConfig(Section):
    """The bidirectional GRU that reads the source sentence."""

    layers: Integer = Field(default=1, ge=1, le=16, description="Number of bidirectional GRU layers.")


class DecoderConfig(Section):
    """The GRU that writes the target sentence."""

    kind: Literal["parallel", "step"] = Field(
        default="parallel",
        description="parallel computes the whole target sentence at once in training; step feeds each attention result "
        "into the next word (input feeding, Luong et al. 2015), which is slower.",
    )
    layers: Integer = Field(default=1, ge=1, le=16, description="Number of GRU layers.")
    attend: Literal["after", "between"] = Field(
        default="after",
        description="Where a parallel decoder looks at the source: after its layers, or between the first two.",
    )


class AttentionConfig(Section):
    """How the decoder looks back at the source."""

    kind: AttentionKind = Field(
        default="multi_head",
        description="How a query is compared with the source: my, additive (Bahdanau et al. 2015), tanh, qkv, "
        "multi_head (Vaswani et al. 2017), dot or general (Luong et al. 2015), or none for a plain encoder-decoder.",
    )
    heads: Integer = Field(
        default=4, ge=1, le=1024, description="Number of heads of multi_head attention; the other kinds do not use it."
    )
    scaled: Flag = Field(
        default=True,
        description="Divide the dot products of my, tanh, qkv, dot and general by the square root of their width, as "
        "multi_head always does (Vaswani et al. 2017, section 3.2.1). Undivided they are so large at first that the "
        "softmax chooses before anything is learnt, and learning is slower by far.",
    )


class ModelConfig(Section):
    """The network: sizes, layers, attention and regularisation."""

    embedding_size: Integer = Field(default=256, ge=1, le=65_536, description="Width of a piece's embedding.")
    hidden_size: Integer = Field(
        default=512,
        ge=2,
        le=65_536,
        multiple_of=2,
        description="Width of the decoder's state and of the encoder's output, of which each direction gives half.",
    )
    encoder: EncoderConfig = Field(default_factory=EncoderConfig, description="The GRU that reads the source.")
    decoder: DecoderConfig = Field(default_factory=DecoderConfig, description="The GRU that writes the target.")
    attention: AttentionConfig = Field(default_factory=AttentionConfig, description="How the decoder sees the source.")
    dropout: Number = Field(
        default=0.3, ge=0, lt=1, description="Share of activations set to zero in training (Srivastava et al. 2014)."
    )
    dropout_embeddings: Number | None = Field(
        default=None, ge=0, lt=1, description="Dropout of the embedded words, where it is not model.dropout."
    )
    dropout_states: Number | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Dropout between layers and in what the decoder sees of the source, where it is not model.dropout.",
    )
    dropout_readout: Number | None = Field(
        default=None, ge=0, lt=1, description="Dropout before the output layer, where it is not model.dropout."
    )
    dropout_recurrent: Number = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the weights between a GRU's steps that are set to zero in training, others in each batch "
        "(Merity et al. 2018, section 2).",
    )
    variational_dropout: Flag = Field(
        default=False,
        description="Whether dropout takes the same activations at all steps of a sentence "
        "(Gal and Ghahramani 2016, section 4; here not within the recurrence).",
    )
    layer_norm: Flag = Field(
        default=False,
        description="Whether the states of every GRU layer are normalised where they leave it (Ba et al. 2016).",
    )
    residual: Flag = Field(
        default=False,
        description="Whether layers from the second on add what they read to what they say (Wu et al. 2016, "
        "section 3.1), which deep ones need to learn at all.",
    )
    lexical_model: Flag = Field(
        default=False,
        description="Whether the source words that attention looks at also choose the next word directly, through "
        "their embeddings (Nguyen and Chiang 2018): a dictionary inside the model, which helps most on little text.",
    )
    tie_embeddings: Annotated[TiedEmbeddings | Flag, Expected("true, false, or one of all, decoder, none")] = Field(
        default=True,
        description="Which tables are one: all (source, target, output), decoder (target, output; Press and Wolf 2017) "
        "or none; true means all with a shared vocabulary and else decoder, false means none.",
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelConfig":
        attention, decoder = self.attention, self.decoder
        if attention.kind == "multi_head" and self.hidden_size % attention.heads:
            contradict(
                {"model.hidden_size": self.hidden_size, "model.attention.heads": attention.heads},
                "multi_head attention needs a hidden_size that is a multiple of its heads",
            )
        if self.residual and max(self.encoder.layers, decoder.layers) < 2:
            contradict(
                {
                    "model.residual": self.residual,
                    "model.encoder.layers": self.encoder.layers,
                    "model.decoder.layers": decoder.layers,
                },
                "there is no second layer for it",
            )
        if decoder.attend == "between" and decoder.kind != "parallel":
            contradict(
                {"model.decoder.attend": decoder.attend, "model.decoder.kind": decoder.kind},
                "attention between the layers needs kind parallel",
            )
        if decoder.attend == "between" and decoder.layers < 2:
            contradict(
                {"model.decoder.attend": decoder.attend, "model.decoder.layers": decoder.layers},
                "attention between the layers needs at least 2 of them",
            )
        return self

    def dropout_of(self, place: Literal["embeddings", "states", "readout"]) -> float:
        """Return the dropout of a place: its own, or else that of the whole model."""
        own: float | None = getattr(self, f"dropout_{place}")
        return self.dropout if own is None else own

    def tied(self, shared_vocabulary: bool) -> TiedEmbeddings:
        """Return what tie_embeddings means for this vocabulary, in one word."""
        if isinstance(self.tie_embeddings, str):
            return self.tie_embeddings
        return "none" if not self.tie_embeddings else "all" if shared_vocabulary else "decoder"


class TrainingConfig(Section):
    """How long, how fast and on what the weights are trained."""

    epochs: Integer = Field(default=30, ge=1, le=MILLION, description="How often the training pairs are gone through.")
    max_steps: Integer | None = Field(default=None, ge=1, le=BILLION, description="Stop after this many updates.")
    max_minutes: Number | None = Field(default=None, gt=0, description="Stop after this many minutes of training.")
    batch_tokens: Integer = Field(
        default=2000, ge=1, le=BILLION, description="Most target tokens in a batch, padding included."
    )
    batch_sentences: Integer | None = Field(
        default=None, ge=1, le=MILLION, description="Most sentence pairs in a batch; null sets no such limit."
    )
    accumulate: Integer = Field(default=1, ge=1, le=100_000, description="Number of batches that make one update.")
    optimizer: Literal["adam", "adamw"] = Field(
        default="adam", description="Update rule: adam (Kingma and Ba 2015) or adamw (Loshchilov and Hutter 2019)."
    )
    beta1: Number = Field(default=0.9, ge=0, lt=1, description="Adam's memory of the mean of the gradients.")
    beta2: Number = Field(default=0.999, ge=0, lt=1, description="Adam's memory of the mean of their squares.")
    weight_decay: Number = Field(default=0.0, ge=0, description="Pull of the weights towards zero at each update.")
    learning_rate: Number = Field(default=1e-3, gt=0, description="Step size of an update once the warm-up is over.")
    schedule: Literal["constant", "cosine", "inverse_sqrt", "plateau"] = Field(
        default="cosine",
        description="Course of the learning rate after the warm-up: constant, cosine (Loshchilov and Hutter 2017), "
        "inverse_sqrt (Vaswani et al. 2017), or plateau, which lowers it when validation stops improving.",
    )
    warmup_steps: Integer = Field(
        default=300,
        ge=0,
        le=BILLION,
        description="Updates in which the learning rate rises from zero to its full size.",
    )
    min_learning_rate: Number = Field(default=0.0, ge=0, description="No schedule goes below this learning rate.")
    plateau_factor: Number = Field(
        default=0.5, gt=0, lt=1, description="The plateau schedule multiplies the learning rate by this."
    )
    plateau_patience: Integer = Field(
        default=1, ge=0, le=MILLION, description="Validations without a better one before the plateau schedule acts."
    )
    label_smoothing: Number = Field(
        default=0.1, ge=0, lt=1, description="Share of probability given to the other pieces (Szegedy et al. 2016)."
    )
    subword_sampling: Number | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Cuts the training sentences into other pieces every epoch: with bpe the share of merges left out "
        "(Provilkov et al. 2020; 0.1 there), with unigram the power of the probabilities sampled by (Kudo 2018; 0.2 to "
        "0.5 there). null: never.",
    )
    sampled_sides: Literal["both", "source", "target"] = Field(
        default="both", description="Which sides subword_sampling cuts anew."
    )
    source_word_dropout: Number = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the source's words whose whole embedding is set to zero in training (Gal and Ghahramani "
        "2016; 0.1 to 0.3 on little text in Sennrich and Zhang 2019).",
    )
    target_word_dropout: Number = Field(
        default=0.0, ge=0, lt=1, description="The same for the words that the decoder reads."
    )
    r_drop: Number = Field(
        default=0.0,
        ge=0,
        le=1000,
        description="Weight of R-Drop (Liang et al. 2021, section 2; 5 in their translations): each batch is read "
        "twice under different dropout, and both are to say the same. An update takes about twice the time; 0 is off.",
    )
    risk_epochs: Integer = Field(
        default=0,
        ge=0,
        le=MILLION,
        description="Epochs of minimum risk training (Shen et al. 2016; Edunov et al. 2018) after the others, from the "
        "best weights: the model's own translations are compared with the reference, and the better ones become more "
        "probable. What is best is then chosen among these epochs.",
    )
    risk_candidates: Integer = Field(
        default=6, ge=2, le=1024, description="Translations of each sentence that are compared, the best of a beam."
    )
    risk_learning_rate: Number = Field(
        default=1e-4, gt=0, description="Learning rate that these epochs begin with; it falls to zero along a cosine."
    )
    average: Literal["none", "ema", "last"] = Field(
        default="none",
        description="Average of the weights that is validated and becomes the best: ema, a moving one over all updates "
        "(Polyak and Juditsky 1992), or last, the mean of the last validations' (Vaswani et al. 2017).",
    )
    average_decay: Number = Field(
        default=0.999, gt=0, lt=1, description="Share of the old average that stays at each update; only with ema."
    )
    average_warmup: Integer = Field(
        default=10,
        ge=1,
        le=MILLION,
        description="At update n no more than (1 + n) / (average_warmup + n) of it stays; 1 is no warm-up. Only with "
        "ema.",
    )
    average_last: Integer = Field(
        default=5,
        ge=2,
        le=MOST_AVERAGED,
        description="Number of validations whose weights are averaged; only with last.",
    )
    clip_norm: Number | None = Field(
        default=1.0, gt=0, description="Longest gradient; a longer one is shortened to it (Pascanu et al. 2013)."
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        default="auto",
        description="Numbers to compute in; auto takes bf16 where the processor computes in it, and fp16 (with a "
        "scaled loss) on GPUs that have only that.",
    )
    device: Annotated[Device, Expected("auto, cpu, cuda, cuda:N or mps")] = Field(
        default="auto", description="Where to compute: auto, cpu, cuda, cuda:N (the GPU of that number) or mps."
    )
    threads: Integer | None = Field(
        default=None, ge=1, le=1024, description="Number of processor threads; null leaves the choice to PyTorch."
    )
    validate_every: Integer | None = Field(
        default=None, ge=1, le=BILLION, description="Updates from one validation to the next; null means once an epoch."
    )
    choose_by: Literal["bleu", "chrf", "loss"] = Field(
        default="bleu", description="Validation score that decides which checkpoint is the best."
    )
    patience: Integer | None = Field(
        default=5,
        ge=1,
        le=MILLION,
        description="Validations without a better score or a lower loss after which training stops; null: never.",
    )
    checkpoint_every: Annotated[
        Annotated[Integer, Field(ge=1, le=BILLION)] | Minutes | None,
        Expected("a number of updates from 1 to 1,000,000,000, or minutes such as 10 min, or null"),
    ] = Field(
        default=None,
        description="Updates, or minutes such as 10 min, from one saved state to the next; null means each validation.",
    )
    log_every: Integer = Field(default=50, ge=1, le=BILLION, description="Updates from one report to the next.")
    tensorboard: Flag = Field(
        default=False,
        description="Whether the run folder also gets a folder for TensorBoard: curves, translations, attention.",
    )

    @property
    def checkpoint_minutes(self) -> float | None:
        """The minutes of checkpoint_every, where it is given in minutes."""
        return float(self.checkpoint_every.split("m")[0]) if isinstance(self.checkpoint_every, str) else None

    @model_validator(mode="after")
    def _averages_are_of_one_kind(self) -> "TrainingConfig":
        for name, kind in (("average_decay", "ema"), ("average_warmup", "ema"), ("average_last", "last")):
            value = getattr(self, name)
            if self.average != kind and value != type(self).model_fields[name].default:
                settings = {f"training.{name}": value, "training.average": self.average}
                contradict(settings, f"{name} has a meaning only with average {kind}")
        return self

    @model_validator(mode="after")
    def _sides_are_of_samples(self) -> "TrainingConfig":
        if self.subword_sampling is None and self.sampled_sides != "both":
            settings = {
                "training.sampled_sides": self.sampled_sides,
                "training.subword_sampling": self.subword_sampling,
            }
            contradict(settings, "without sampling there are no sides to sample")
        return self

    @model_validator(mode="after")
    def _learning_rates_are_ordered(self) -> "TrainingConfig":
        if self.min_learning_rate > self.learning_rate:
            contradict(
                {"training.min_learning_rate": self.min_learning_rate, "training.learning_rate": self.learning_rate},
                "the lowest learning rate must not be above the highest",
            )
        return self


class DecodingConfig(Section):
    """How a translation is searched for."""

    beam_size: Integer = Field(
        default=5, ge=1, le=1024, description="Hypotheses kept side by side; 1 is greedy search."
    )
    length_penalty: Number = Field(
        default=1.0, ge=0, le=100, description="Power of the length that divides a score; higher favours longer output."
    )
    coverage_penalty: Number = Field(
        default=0.0,
        ge=0,
        le=100,
        description="Weight of the source words that no target word has attended to when finished hypotheses are "
        "ranked (Wu et al. 2016, section 7); 0 ranks without it, and faster.",
    )
    max_length_ratio: Number = Field(
        default=2.0, gt=0, le=1000, description="Longest translation as a multiple of the source's length in pieces."
    )
    batch_size: Integer = Field(default=256, ge=1, le=MILLION, description="Sentences translated together.")
    shortlist: Integer = Field(
        default=40,
        ge=0,
        le=10_000,
        description="Likeliest translations of each source piece that a run keeps for `translate --shortlist`; "
        "0 keeps none.",
    )


class Config(Settings):
    """Everything that defines a run; only `data` has to be given."""

    run: Annotated[Text | None, Expected("the path of a folder")] = Field(
        default=None, description="Folder of the run, relative to the working directory."
    )
    seed: Integer = Field(
        default=1, ge=0, le=2**31 - 1, description="Start of all randomness: weights, order of pairs, dropout, splits."
    )
    data: DataConfig = Field(description="The parallel corpus.")
    tokenizer: TokenizerConfig = Field(default_factory=TokenizerConfig, description="How text is cut into pieces.")
    model: ModelConfig = Field(default_factory=ModelConfig, description="The network.")
    training: TrainingConfig = Field(default_factory=TrainingConfig, description="How the network is trained.")
    decoding: DecodingConfig = Field(default_factory=DecodingConfig, description="How a translation is searched for.")

    @model_validator(mode="after")
    def _samples_differ(self) -> "Config":
        tokenizer, training = self.tokenizer, self.training
        if training.subword_sampling is not None and tokenizer.model_type not in ("bpe", "unigram"):
            contradict(
                {
                    "training.subword_sampling": training.subword_sampling,
                    "tokenizer.model_type": tokenizer.model_type,
                },
                "only bpe and unigram can cut a word in several ways",
            )
        return self

    @model_validator(mode="after")
    def _two_readings_differ(self) -> "Config":
        model, training = self.model, self.training
        places = [model.dropout_of(place) for place in ("embeddings", "states", "readout")]
        if training.r_drop and not any((*places, training.source_word_dropout, training.target_word_dropout)):
            contradict(
                {"training.r_drop": training.r_drop, "model.dropout": model.dropout},
                "without any dropout both readings are the same",
            )
        return self

    @model_validator(mode="after")
    def _resolve_tied_embeddings(self) -> "Config":
        if self.model.tie_embeddings == "all" and not self.tokenizer.shared:
            contradict(
                {"model.tie_embeddings": self.model.tie_embeddings, "tokenizer.shared": self.tokenizer.shared},
                "one table for both languages needs one vocabulary for both",
            )
        # The model's section must not need the tokenizer's: after reading, it says in a word what true or false meant.
        tied = self.model.tied(self.tokenizer.shared)
        self.__dict__["model"] = self.model.model_copy(update={"tie_embeddings": tied})
        return self


def data_files(config: Config) -> Iterator[tuple[str, Path]]:
    """Yield every data file of a config with its key, such as ("data.train[1].source", Path("/corpus/b.en"))."""
    for split in ("train", "validation", "test"):
        given = getattr(config.data, split)
        if given is None or isinstance(given, Fraction):
            continue
        entries = given if isinstance(given, tuple) else (given,)
        for number, pair in enumerate(entries):
            place = f"data.{split}[{number}]" if len(entries) > 1 else f"data.{split}"
            for name, path in pair.files():
                yield f"{place}.{name}", path
