"""The table of all settings, and what to say of one: what it must be, and which one a misspelt key may have meant."""

import difflib
import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from seq2seq.config.fields import Expected
from seq2seq.config.schema import Config
from seq2seq.config.strict_yaml import KeyPath, dotted

# What other programs call a setting.
FAMILIAR_NAMES = {
    "batch_size": "training.batch_sentences",
    "beam": "decoding.beam_size",
    "grad_clip": "training.clip_norm",
    "gradient_accumulation_steps": "training.accumulate",
    "lr": "training.learning_rate",
    "num_epochs": "training.epochs",
    "num_heads": "model.attention.heads",
    "num_layers": "model.encoder.layers",
    "src": "data.train.source",
    "src_lang": "data.source_language",
    "tgt": "data.train.target",
    "tgt_lang": "data.target_language",
    "trg": "data.train.target",
    "vocabulary_size": "tokenizer.vocab_size",
}


def names_in(path: KeyPath) -> tuple[str, ...]:
    """Return a path without its list positions, which is how the table knows it."""
    return tuple(part for part in path if isinstance(part, str))


@cache
def known_settings() -> dict[tuple[str, ...], FieldInfo]:
    """Return every section and setting by its path, such as ("training", "epochs")."""
    return dict(_settings_below(Config, ()))


def _settings_below(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, info in model.model_fields.items():
        yield (*path, name), info
        for inner in models_in(info.annotation):
            yield from _settings_below(inner, (*path, name))


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the groups of settings that a field may hold; none for a single setting."""
    if get_origin(annotation) in (Annotated, Union, types.UnionType, tuple):
        for part in get_args(annotation):
            yield from models_in(part)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def plain_types(annotation: object) -> Iterator[object]:
    """Yield what a field may hold: bool, int, float, str, None, or each word of a Literal."""
    if get_origin(annotation) is Annotated:
        yield from plain_types(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from plain_types(part)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        yield annotation


def expectation(info: FieldInfo) -> str:
    """Say what a setting must be, from its type and range."""
    own_words = [str(part) for part in info.metadata if isinstance(part, Expected)]
    kinds = list(plain_types(info.annotation))
    inner = list(models_in(info.annotation))
    words = [kind for kind in kinds if isinstance(kind, str)]
    if own_words:
        return own_words[0]
    if inner:
        name, example = next(iter(inner[0].model_fields.items()))
        return f"a group of settings, such as {{{name}: {'...' if example.is_required() else example.default}}}"
    if words:
        expected = f"one of {', '.join(words)}"
    elif int in kinds or float in kinds:
        expected = _range(info, "integer" if int in kinds else "number")
    else:
        expected = "true or false" if bool in kinds else "text"
    return f"{expected}, or null" if type(None) in kinds else expected


def _range(info: FieldInfo, noun: str) -> str:
    bounds: dict[str, Any] = {}
    for part in info.metadata:
        for name in ("ge", "gt", "le", "lt", "multiple_of"):
            if isinstance(part, annotated_types.BaseMetadata) and hasattr(part, name):
                bounds[name] = getattr(part, name)
    noun = f"an even {noun}" if bounds.get("multiple_of") == 2 else "an integer" if noun == "integer" else f"a {noun}"
    if "ge" in bounds and "le" in bounds:
        return f"{noun} from {bounds['ge']} to {_legible(bounds['le'])}"
    low = f" of at least {bounds['ge']}" if "ge" in bounds else f" above {bounds['gt']}" if "gt" in bounds else ""
    high = (
        f" at most {_legible(bounds['le'])}" if "le" in bounds else f" below {bounds['lt']}" if "lt" in bounds else ""
    )
    return noun + low + (" and" if low and high else "") + high


def _legible(number: float) -> str:
    return f"{number:,}" if number >= 1_000_000 else str(number)


def nearest_setting(path: KeyPath) -> str | None:
    """Return the known setting that is spelt most like an unknown one: of the same section, or else of any."""
    name, section = _usual_spelling(path[-1]), names_in(path)[:-1]
    siblings = [other[-1] for other in known_settings() if other[:-1] == section]
    by_name = {other[-1]: dotted(other) for other in known_settings()}
    for candidates, likeness in ((siblings, 0.6), (list(by_name), 0.75), (siblings, 0.55)):
        if near := difflib.get_close_matches(name, candidates, n=1, cutoff=likeness):
            return dotted((*path[:-1], near[0])) if candidates is siblings else by_name[near[0]]
    return None


def unknown_setting(path: KeyPath) -> str:
    """Say that there is no such setting, and which one may have been meant or where it lives."""
    key, names, name = dotted(path), names_in(path), _usual_spelling(path[-1])
    homes = [other[:-1] for other in known_settings() if other[-1] == name and other[:-1] != names[:-1]]
    siblings = [other[-1] for other in known_settings() if other[:-1] == names[:-1]]
    if names in known_settings():
        return f"{key} is not accepted in a list"
    if name in FAMILIAR_NAMES:
        return f"{key} is not a setting; here it is called {FAMILIAR_NAMES[name]}"
    if homes and name not in siblings:
        where = " and ".join(dotted(home) or "the top level" for home in homes[:3])
        return f"{key} is not a setting; {name} belongs to {where}, as in {dotted((*homes[0], name))}"
    if near := nearest_setting(path):
        return f"{key} is not a setting; the nearest known one is {near}"
    if siblings:
        return f"{key} is not a setting; known in {dotted(path[:-1]) or 'this place'} are {', '.join(siblings)}"
    return f"{key} is not a setting; {dotted(path[:-1])} has none below it"


def _usual_spelling(name: str | int) -> str:
    return str(name).lower().replace("-", "_")
