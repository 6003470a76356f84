"""The `data` section: where the parallel corpus stands, in files or as a part that is split off."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from seq2seq.config.fields import MILLION, Expected, Integer, LanguageCode, Number, Section, Settings, Text, contradict

# The tags under which pydantic files the two forms of a validation or test set; they are never written in the YAML.
FILES_TAG, FRACTION_TAG = "<files>", "<fraction>"


def _pair_files_schema(schema: dict[str, Any]) -> None:
    """Tell editors that the two forms exclude each other; the plain list of fields would let them mix."""
    known = schema.pop("properties")
    known["columns"].pop("default")
    path = {name: {"type": "string", "minLength": 1, "description": known[name]["description"]} for name in known}
    two_files = {
        "source": path["source"],
        "target": path["target"],
        "tsv": {"type": "null"},
        "columns": {"const": [1, 2]},
    }
    one_file = {"tsv": path["tsv"], "columns": known["columns"], "source": {"type": "null"}, "target": {"type": "null"}}
    schema["oneOf"] = [
        {"properties": two_files, "required": ["source", "target"], "additionalProperties": False},
        {"properties": one_file, "required": ["tsv"], "additionalProperties": False},
    ]
    # The two forms say it better: this one, beside a oneOf, would refuse every key.
    del schema["additionalProperties"]


def _columns_as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class PairFiles(Settings):
    """Where sentence pairs stand: two files whose lines correspond, or one file of tab-separated columns."""

    model_config = ConfigDict(json_schema_extra=_pair_files_schema)

    source: Annotated[Text | None, Expected("the path of a file")] = Field(
        default=None, description="File of source sentences, one a line; .gz and .xz are unpacked while reading."
    )
    target: Annotated[Text | None, Expected("the path of a file")] = Field(
        default=None, description="File of target sentences: its line i translates line i of the source."
    )
    tsv: Annotated[Text | None, Expected("the path of a file")] = Field(
        default=None, description="File of tab-separated columns without quoting, in place of source and target."
    )
    columns: Annotated[
        tuple[Annotated[Integer, Field(ge=1, le=MILLION)], Annotated[Integer, Field(ge=1, le=MILLION)]],
        BeforeValidator(_columns_as_tuple),
        Expected("a list of two different column numbers counted from 1, such as [1, 2]"),
    ] = Field(default=(1, 2), description="Columns of the source and of the target in the tsv file, counted from 1.")

    @field_validator("columns")
    @classmethod
    def _columns_differ(cls, columns: tuple[int, int]) -> tuple[int, int]:
        if columns[0] == columns[1]:
            raise ValueError("the source and the target stand in different columns")
        return columns

    @model_validator(mode="after")
    def _is_of_one_form(self) -> "PairFiles":
        given = [name for name in ("source", "target", "tsv") if getattr(self, name) is not None]
        if self.tsv is None and "columns" in self.model_fields_set and self.columns != (1, 2):
            given.append("columns")
        if given not in (["source", "target"], ["tsv"]):
            found = "no file" if not given else f"only {given[0]}" if len(given) == 1 else ", ".join(given)
            rule = "it needs source and target, or tsv alone"
            raise PydanticCustomError("form", "has {found}; {rule}", {"found": found, "rule": rule})
        return self

    @model_serializer(mode="wrap")
    def _only_its_form(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        form = ("source", "target") if self.tsv is None else ("tsv", "columns")
        return {name: value for name, value in handler(self).items() if name in form}

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield (setting, path) of every file, the source first."""
        for name in ("source", "target", "tsv"):
            if (path := getattr(self, name)) is not None:
                yield name, Path(path)


class Fraction(Settings):
    """A part of the training pairs that is split off; all pairs of one source sentence go to the same side."""

    fraction: Number = Field(gt=0, lt=1, description="Share of the training pairs to hold out, such as 0.02.")

    @model_validator(mode="before")
    @classmethod
    def _has_no_files(cls, value: object) -> object:
        files = [key for key in PairFiles.model_fields if isinstance(value, Mapping) and key in value]
        if files:
            rule = "it needs either files or a fraction"
            raise PydanticCustomError("form", "has fraction and {found}; {rule}", {"found": files[0], "rule": rule})
        return value


def _form_of(value: object) -> str:
    is_fraction = isinstance(value, Fraction) or (isinstance(value, Mapping) and "fraction" in value)
    return FRACTION_TAG if is_fraction else FILES_TAG


def _as_tuple(value: object) -> object:
    """One pair of files is a list of one; a fraction, or a mistake, is left for the field itself to judge."""
    if isinstance(value, PairFiles) or (isinstance(value, Mapping) and "fraction" not in value):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _not_empty(entries: tuple[PairFiles, ...]) -> tuple[PairFiles, ...]:
    if not entries:
        raise ValueError("an empty list names no file")
    return entries


PairFilesInput = PairFiles | Annotated[list[PairFiles], Field(min_length=1)]
ManyPairFiles = Annotated[tuple[PairFiles, ...], AfterValidator(_not_empty)]
FilesOrFraction = Annotated[
    Annotated[PairFiles, Tag(FILES_TAG)] | Annotated[Fraction, Tag(FRACTION_TAG)], Discriminator(_form_of)
]
ManyFilesOrFraction = Annotated[
    Annotated[ManyPairFiles, Tag(FILES_TAG)] | Annotated[Fraction, Tag(FRACTION_TAG)], Discriminator(_form_of)
]


class DataConfig(Section):
    """The parallel corpus: its languages, its files and what is done with lines that cannot be used."""

    source_language: Annotated[LanguageCode, Expected("a language code such as en, no or pt_BR")] = Field(
        description="Code of the language that is translated, such as en."
    )
    target_language: Annotated[LanguageCode, Expected("a language code such as de, zh or pt_BR")] = Field(
        description="Code of the language that is produced, such as de; it chooses the tokenizer of the scorer."
    )
    train: Annotated[
        ManyPairFiles,
        BeforeValidator(_as_tuple, json_schema_input_type=PairFilesInput),
        Expected("source and target files, a tsv file, or a list of such"),
    ] = Field(
        description="Training pairs: {source: FILE, target: FILE}, {tsv: FILE, columns: [1, 2]}, or a list of them."
    )
    validation: Annotated[
        FilesOrFraction,
        Expected("source and target files, a tsv file, or a fraction such as {fraction: 0.02}"),
    ] = Field(description="Pairs that choose the best checkpoint: files, or {fraction: 0.02} of the training pairs.")
    test: Annotated[
        ManyFilesOrFraction | None,
        BeforeValidator(_as_tuple, json_schema_input_type=PairFilesInput | Fraction | None),
        Expected("source and target files, a tsv file, a list of such, or a fraction such as {fraction: 0.02}"),
    ] = Field(default=None, description="Pairs for the final score, never trained on: files, a list, or a fraction.")
    max_length: Integer = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Most pieces on a side of a pair; longer pairs are dropped and counted.",
    )
    bad_lines: Literal["refuse", "drop", "repair"] = Field(
        default="refuse",
        description="What to do with a line of undecodable bytes, a NUL or missing columns: refuse the corpus, "
        "drop the pair, or repair the line; drops and repairs are counted.",
    )

    cache: Annotated[Text | None, Expected("the path of a folder")] = Field(
        default=None,
        description="Folder where the training pairs are kept ready, encoded, for every later start; null: the user's "
        "cache folder for a corpus of more than 256 MiB of text, and memory for a smaller one.",
    )

    @model_validator(mode="after")
    def _fractions_leave_something(self) -> "DataConfig":
        validation, test = self.validation, self.test
        if isinstance(validation, Fraction) and isinstance(test, Fraction) and validation.fraction + test.fraction >= 1:
            fractions = {"data.validation.fraction": validation.fraction, "data.test.fraction": test.fraction}
            contradict(fractions, "together they must be below 1, to leave pairs for training")
        return self
