"""The words that the settings are declared with: types, the two kinds of groups, and how a contradiction is refused."""

from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

MILLION = 1_000_000
BILLION = 1_000_000_000
MOST_AVERAGED = 20  # copies of the weights in a checkpoint


class Expected(str):
    """Metadata of a field whose range needs its own words in an error message ("it must be ...")."""


# Strict: a quoted number is text, `true` is not 1. An integer is accepted where a number with a fraction is expected.
Integer = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, StringConstraints(strict=True, min_length=1)]
LanguageCode = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}$")]


class Settings(BaseModel):
    """A group of settings: unknown keys are refused, and nobody changes a setting after it has been read."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def _may_be_blank(schema: dict[str, Any]) -> None:
    schema["type"] = ["object", "null"]


class Section(Settings):
    """A group with a heading of its own in the YAML; when all below the heading is commented out, defaults hold."""

    model_config = ConfigDict(json_schema_extra=_may_be_blank)

    @model_validator(mode="before")
    @classmethod
    def _blank_means_defaults(cls, value: object) -> object:
        return {} if value is None else value


def contradict(settings: Mapping[str, object], rule: str) -> NoReturn:
    """Refuse settings that are each fine but do not go together, naming every one of them with its value."""
    facts = " and ".join(f"{key} is {as_yaml(value)}" for key, value in settings.items())
    raise PydanticCustomError("contradiction", "{facts}; {rule}", {"facts": facts, "rule": rule, "settings": settings})


def as_yaml(value: object) -> str:
    """Return a plain value as one would write it in YAML."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
