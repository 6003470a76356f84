"""Causes: what the numbers of a diagnosis most likely mean, and the setting to try.

Each rule looks at one thing and says nothing below a threshold. What it says carries an estimate of the BLEU points at
stake, so that the two or three most likely causes can stand first; the estimate orders them and is told only where it
is a measured difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.evaluation.diagnosis import Diagnosis
    from seq2seq.evaluation.training_record import TrainingRecord

MOST_CAUSES = 3
# Shares of sentences or words from which on something is worth a word.
_FEW_SENTENCES, _FEW_WORDS, _MANY_SEEN = 0.01, 0.01, 0.1
_SHORT, _LONG = 0.95, 1.08  # length of the translations for each of the references
_LONG_SENTENCES_LOSE = 0.75  # of the BLEU of all
_CASE_POINTS = 1.5
_STILL_GAINING = 1.0  # BLEU
_STILL_FALLING, _POINTS_A_NAT = 0.1, 25.0  # nats of validation loss, and what one of them is worth at least
_RISEN = 1.05  # of the lowest validation loss
_NOTHING = 0.5  # BLEU points; below them nothing is told
_HOPELESS = 5.0


@dataclass(frozen=True)
class Cause:
    """One thing that may have cost points, and what to try."""

    what: str  # what was found, with its number
    advice: str  # what to do about it
    setting: str | None  # the setting that does it, such as decoding.length_penalty
    points: float  # estimated BLEU points at stake

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Known:
    """All that a rule may look at; a score of files has no run."""

    diagnosis: Diagnosis
    beam_size: int | None = None
    config: Config | None = None
    record: TrainingRecord | None = None


def likely_causes(known: Known) -> list[Cause]:
    """The likeliest causes first, at most three; none where nothing stands out."""
    found = [cause for rule in _RULES for cause in rule(known) if cause.points >= _NOTHING]
    return sorted(found, key=lambda cause: -cause.points)[:MOST_CAUSES]


# -- the files ---------------------------------------------------------------------------------------------------------


def _shifted(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    if diagnosis.bleu_off_by_one > max(2 * diagnosis.bleu, _HOPELESS):
        yield Cause(
            f"the lines do not match: compared with the line before or after, BLEU is {diagnosis.bleu_off_by_one:.1f}",
            "look for a line that is missing or too many in one of the files",
            None,
            100.0,
        )


def _seen(known: Known) -> Iterator[Cause]:
    training = known.diagnosis.training
    if training is not None and training.seen >= _MANY_SEEN:
        yield Cause(
            f"{training.seen:.0%} of the sentences stand in the training text word for word, so the score says less "
            "about new ones than it seems to",
            "score sentences that training has not seen",
            "data.test",
            known.diagnosis.bleu * training.seen / 2,
        )


def _unknown(known: Known) -> Iterator[Cause]:
    training = known.diagnosis.training
    if training is None:
        return
    if training.unknown_pieces >= _FEW_WORDS:
        yield Cause(
            f"{training.unknown_pieces:.1%} of the source pieces never came up in training",
            "a smaller vocabulary spells rare words in pieces that did",
            "tokenizer.vocab_size",
            200 * training.unknown_pieces,
        )
    elif training.unknown_words >= _FEW_WORDS:
        kind = "characters" if known.diagnosis.unit == "characters" else "words"
        yield Cause(
            f"{training.unknown_words:.1%} of the source {kind} stand nowhere in the {training.pairs:,} training pairs",
            "more training text of the kind that is tested",
            "data.train",
            100 * training.unknown_words,
        )


# -- the training ------------------------------------------------------------------------------------------------------


def _too_early(known: Known) -> Iterator[Cause]:
    record = known.record
    if record is None:
        return
    gaining, falling = record.still_gaining or 0.0, record.still_falling or 0.0
    if gaining < _STILL_GAINING and falling < _STILL_FALLING:
        return
    what = f"added {gaining:.1f} BLEU" if gaining >= _STILL_GAINING else f"lowered the loss by {falling:.2f} nats"
    setting = {"max_minutes": "training.max_minutes", "max_steps": "training.max_steps"}.get(
        record.reason or "", "training.epochs"
    )
    if record.reason == "patience":
        setting = "training.patience"
    stopped = record.reason == "stopped"
    yield Cause(
        f"training still improved when it ended: its last third {what} in validation",
        "it was stopped: go on with train --resume" if stopped else "train longer",
        None if stopped else setting,
        max(gaining, _POINTS_A_NAT * falling),
    )


def _too_late(known: Known) -> Iterator[Cause]:
    record = known.record
    if record is None or record.best_loss is None or record.last_loss is None:
        return
    if record.last_loss > _RISEN * record.best_loss:
        dropout = "" if known.config is None else f" (now {known.config.model.dropout:g})"
        yield Cause(
            f"the model learnt its training pairs by heart: the validation loss rose from {record.best_loss:.2f} at "
            f"step {record.lowest_at:,} to {record.last_loss:.2f}",
            f"more dropout{dropout}, a smaller model, or more pairs",
            "model.dropout",
            min(10.0, 10 * (record.last_loss / record.best_loss - 1)),
        )


# -- the search --------------------------------------------------------------------------------------------------------


def _too_short(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    if 0 < diagnosis.length_ratio < _SHORT:
        lost = diagnosis.bleu / max(diagnosis.brevity_penalty, 1e-9) - diagnosis.bleu
        yield Cause(
            f"the translations are short, {diagnosis.length_ratio:.0%} of the references, and the brevity penalty "
            f"takes {lost:.1f} BLEU",
            f"favour longer output{_now(known, 'length_penalty')}",
            "decoding.length_penalty",
            lost,
        )


def _too_long(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    if diagnosis.length_ratio > _LONG:
        yield Cause(
            f"the translations are long, {diagnosis.length_ratio:.0%} of the references",
            f"favour shorter output{_now(known, 'length_penalty')}",
            "decoding.length_penalty",
            diagnosis.bleu * (diagnosis.length_ratio - 1) / 2,
        )


def _greedy(known: Known) -> Iterator[Cause]:
    if known.beam_size == 1:
        yield Cause("greedy search, beam 1", "a beam of 5 usually finds better ones", "decoding.beam_size", 1.0)


# -- what is said ------------------------------------------------------------------------------------------------------


def _without_attention(known: Known) -> Iterator[Cause]:
    if known.config is not None and known.config.model.attention.kind == "none":
        yield Cause(
            "the model has no attention, so one vector has to hold the whole source",
            "with attention the model sees what is still to be said",
            "model.attention.kind",
            20.0,
        )


def _long_sentences(known: Known) -> Iterator[Cause]:
    diagnosis, groups = known.diagnosis, known.diagnosis.groups
    if len(groups) < 3 or diagnosis.grouped_by != "source":
        return
    last, middle = groups[-1], groups[len(groups) // 2]
    if last.bleu >= _LONG_SENTENCES_LOSE * middle.bleu:
        return
    what = (
        f"long sentences are the weak ones: BLEU {last.bleu:.1f} from {last.shortest} {diagnosis.unit} on, "
        f"{middle.bleu:.1f} in the middle"
    )
    points = (middle.bleu - last.bleu) / 2  # they are few, and hold many of the words
    if last.length_ratio < _SHORT:
        yield Cause(what + ", where words are left out", "favour longer output", "decoding.length_penalty", points)
    else:
        yield Cause(what, "train on longer pairs, or on more of them", "data.max_length", points)


def _repeated(known: Known) -> Iterator[Cause]:
    share = len(known.diagnosis.repeated) / known.diagnosis.lines
    if share < _FEW_SENTENCES:
        return
    points = 50 * share
    gaining = None if known.record is None else known.record.still_gaining
    if gaining is not None and gaining >= _STILL_GAINING:
        points = min(points, gaining / 2)  # a model that has not learnt enough repeats itself: first the cause
    what = f"{share:.1%} of the translations repeat themselves (line {_places(known.diagnosis.repeated)})"
    config = known.config
    if config is not None and config.model.decoder.kind == "parallel":
        advice = "kind step tells the decoder what it has looked at; training longer helps as well"
        yield Cause(what, advice, "model.decoder.kind", points)
    else:
        yield Cause(what, "train longer, or on more pairs", "training.epochs", points)


def _copied(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    share = len(diagnosis.copied) / diagnosis.lines
    if share < _FEW_SENTENCES:
        return
    training = diagnosis.training
    why = "look for pairs in the training text that are not translated"
    if training is not None and training.untranslated:
        why = f"{training.untranslated:.1%} of the training pairs are the same on both sides; take them out"
    yield Cause(
        f"{share:.1%} of the translations repeat the source (line {_places(diagnosis.copied)})",
        why,
        "data.train",
        100 * share,
    )


def _empty(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    if diagnosis.empty:
        share = len(diagnosis.empty) / diagnosis.lines
        yield Cause(
            f"{len(diagnosis.empty):,} translations are empty (line {_places(diagnosis.empty)})",
            f"favour longer output{_now(known, 'length_penalty')}, and look for pairs in the training text whose "
            "target says nothing",
            "decoding.length_penalty",
            max(_NOTHING, 100 * share),
        )


def _capitals(known: Known) -> Iterator[Cause]:
    diagnosis = known.diagnosis
    points = diagnosis.bleu_lowercase - diagnosis.bleu
    if points >= _CASE_POINTS:
        yield Cause(
            f"capitals cost {points:.1f} BLEU: without regard to them it is {diagnosis.bleu_lowercase:.1f}",
            "see that the training text is written with capitals as the references are",
            "data.train",
            points,
        )


def _now(known: Known, key: str) -> str:
    return "" if known.config is None else f" (now {getattr(known.config.decoding, key):g})"


def _places(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:3])) + (", ..." if len(numbers) > 3 else "")


_RULES: tuple[Callable[[Known], Iterator[Cause]], ...] = (
    _shifted,
    _seen,
    _unknown,
    _too_early,
    _too_late,
    _too_short,
    _too_long,
    _greedy,
    _without_attention,
    _long_sentences,
    _repeated,
    _copied,
    _empty,
    _capitals,
)
