"""Claims about what nobody should feed a program: every input is read by its rules, or refused in words.

Nothing else may come of it: no other exception, no hang, no memory without bounds. Each reader has one way to make
inputs and one set of rules, with an outside authority where there is one. A run of the tests tries a hundred or so of
each; with --long it is 100,000 in all.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import pickle
import random
import shutil
import struct
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from conftest import ROOT, command_environment, in_process, numbered_pairs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from seq2seq.checkpoints import FACTS, WEIGHTS, read_facts, read_tensors, sealed
from seq2seq.config import load_config
from seq2seq.config.known_settings import known_settings
from seq2seq.config.loading import dump_config, parse_config
from seq2seq.config.schema import PairFiles, TokenizerConfig
from seq2seq.config.strict_yaml import dotted, read_document
from seq2seq.corpus.archives import MAGIC
from seq2seq.corpus.lines import BadLines, clean, read_lines
from seq2seq.corpus.pairs import ParallelCorpus
from seq2seq.corpus.tokenizer import StoredTokenizer, Tokenizer
from seq2seq.errors import Seq2SeqError
from seq2seq.model.translation_model import TranslationModel
from seq2seq.runs import Checkpoint
from seq2seq.translation.opening import check_vocabulary, model_from

resource = pytest.importorskip("resource", reason="memory is measured as POSIX tells it")

Result = TypeVar("Result")

LONGEST_SECONDS = 20.0  # for one small input, on a machine that has other work
MOST_MEMORY = 400 << 20  # bytes that one test may add; a hostile xz header may ask for 256 MiB
SENTENCE = numbered_pairs(1)[0][0]


@dataclass(frozen=True)
class Place:
    """Where inputs are put: a folder for single files, and a trained run of one's own to be damaged."""

    folder: Path
    run: Path
    files: dict[str, bytes]  # of the run as it was
    translation: str  # of SENTENCE, by the run as it was

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path


@pytest.fixture(scope="module")
def place(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("fuzz")
    run = Path(shutil.copytree(trained, folder / "run"))
    files = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    done = translated(run)
    assert done.status == 0, done.err
    return Place(folder, run, files, done.out)


@pytest.fixture(autouse=True)
def memory_has_bounds(place: Place) -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < MOST_MEMORY


def read_or_refused(read: Callable[[], Result]) -> Result | None:
    """What reading gives, or None where it is refused in words for a person; any other exception passes."""
    try:
        return read()
    except Seq2SeqError as refusal:
        message = str(refusal)
        assert message.endswith("."), message
        assert "Traceback" not in message
        lines = message.split("\n")  # of a config several mistakes are told, one a line
        assert len(lines) <= 6, message
        assert all(0 < len(line) <= 1_500 for line in lines), message
        return None


# ---- how inputs are made

BYTES = (b"a", b"b c", b" ", b"\t", b"\r", b"\0", b"\xc3\xa9", b"\xc3", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8")
STARTS = (*[b""] * 15, b"\xef\xbb\xbf", b"\xff\xfe", b"\x00\x00\xfe\xff", b"\x1f", b"\x1f\x8b", b"\xfd7zXZ\x00")
POLICIES: tuple[BadLines, ...] = ("refuse", "drop", "repair")

# Mostly lines that are good: one bad one is enough for a refusal.
a_good_line = st.lists(st.sampled_from([b"a", b"b c", b"\xc3\xa9", b" ", b"\t", b"\r"]), min_size=1, max_size=4)
a_line = st.one_of(*[a_good_line] * 9, st.lists(st.sampled_from(BYTES), max_size=4)).map(b"".join)
an_end = st.sampled_from([b"\n", b"\r\n"])
some_bytes = st.one_of(st.sampled_from([*BYTES, b"\n", b"\n", b"\r\n"]), st.binary(max_size=3))
a_text = st.one_of(st.binary(max_size=60), st.lists(some_bytes, max_size=30).map(b"".join))
a_file = st.tuples(st.sampled_from(STARTS), a_text).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, most: int = 3) -> bytes:
    """The bytes with up to `most` wounds: some bytes changed, put in, taken out or repeated, or the end cut off."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, most))):
        at, size = draw(st.integers(0, len(data))), draw(st.integers(1, 8))
        match draw(st.sampled_from(["change", "flip", "insert", "remove", "repeat", "cut"])):
            case "change":
                data[at : at + size] = draw(st.binary(min_size=size, max_size=size))
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                data[at:at] = draw(st.binary(max_size=size))
            case "remove":
                del data[at : at + size]
            case "repeat":
                data[at:at] = data[at : at + size * 16]
            case "cut":
                del data[at:]
    return bytes(data)


json_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["<<", "no", "1e3", "0x1F", "~", "12:30", "a: b", "- a", "\u2028", "x" * 200, "€\U0001f600"]),
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)


# ---- text


class Trickle(io.RawIOBase):
    """A stream that gives one, two or three bytes at a time, as a slow pipe does."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content, self._read = content, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), 1 + self._read % 3, len(self._content) - self._read)
        buffer[:size] = self._content[self._read : self._read + size]
        self._read += size
        return size


def lines_of(content: bytes, packed: bool = False) -> list[bytes] | None:
    """The lines of a text by the written rule, without their ends; None where its first bytes say it is no UTF-8 text.

    `packed` says that the text comes out of an archive and is not unpacked again.
    """
    foreign = [b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff", *([] if packed else MAGIC.values())]
    if content.startswith(tuple(foreign)):
        return None
    *ended, rest = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [line.removesuffix(b"\r") for line in ended] + ([rest] if rest else [])


def is_bad(line: bytes) -> bool:
    try:
        return "\0" in line.decode("utf-8")
    except UnicodeDecodeError:
        return True


def as_read(line: bytes, bad_lines: BadLines) -> str | None:
    """What a policy other than refusal makes of a line."""
    if is_bad(line) and bad_lines == "drop":
        return None
    return line.replace(b"\0", b"").decode("utf-8", "replace")


def text_is_its_lines(place: Place, example: tuple[bytes, BadLines, str]) -> None:
    content, bad_lines, way = example
    path = place.write("text.en", content)
    source = {"file": path, "buffer": io.BytesIO(content), "slow pipe": Trickle(content)}[way]
    lines = read_or_refused(lambda: read_lines(source, bad_lines=bad_lines))
    found = None if lines is None else read_or_refused(lambda: list(lines))
    expected = lines_of(content)
    if expected is None or (bad_lines == "refuse" and any(map(is_bad, expected))):
        assert found is None
        return
    assert found == [as_read(line, bad_lines) for line in expected]
    assert lines is not None
    assert (lines.bad, lines.repaired)[bad_lines == "repair"] == sum(map(is_bad, expected))
    assert (
        lines.number
        == len(expected)
        == content.count(b"\n") + (content.removeprefix(b"\xef\xbb\xbf")[-1:] not in b"\n")
    )


# ---- pairs


@st.composite
def two_texts(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two files that are mostly of one length."""
    rows = draw(st.lists(st.tuples(a_line, a_line), min_size=draw(st.integers(0, 4)), max_size=8))
    sides = []
    for side in (0, 1):
        end = draw(an_end)
        lines = [row[side] for row in rows] + draw(st.sampled_from([[]] * 9 + [[b"more"]]))
        sides.append(draw(st.sampled_from(STARTS)) + end.join(lines) + draw(st.sampled_from([end, end, b""])))
    return sides[0], sides[1]


def pairs_stay_aligned(place: Place, example: tuple[tuple[bytes, bytes], BadLines]) -> None:
    contents, bad_lines = example
    paths = [place.write(name, content) for name, content in zip(("a.en", "a.de"), contents, strict=True)]
    files = PairFiles(source=str(paths[0]), target=str(paths[1]))
    corpus = ParallelCorpus([files], key="data.train", bad_lines=bad_lines)
    found = read_or_refused(lambda: list(corpus))
    sides = [lines_of(content) for content in contents]
    if sides[0] is None or sides[1] is None or len(sides[0]) != len(sides[1]):
        assert found is None
        return
    holds_the_pairs(corpus, found, list(zip(sides[0], sides[1], strict=True)), bad_lines)


def holds_the_pairs(
    corpus: ParallelCorpus,
    found: list[tuple[str, str]] | None,
    rows: Sequence[tuple[bytes | None, bytes | None]],
    bad_lines: BadLines,
) -> None:
    """What a corpus gave and counted, against the rows of its files; a row of None lacks a column."""
    bad = [any(cell is None or is_bad(cell) for cell in row) for row in rows]
    if bad_lines == "refuse" and any(bad):
        assert found is None
        return
    read = [tuple(None if cell is None else as_read(cell, bad_lines) for cell in row) for row in rows]
    whole = [(clean(source), clean(target)) for source, target in read if source is not None and target is not None]
    kept = [pair for pair in whole if all(pair)]
    if not kept:
        assert found is None
        return
    assert found == kept
    report = corpus.report
    assert (report.read, report.kept, report.blank) == (len(rows), len(kept), len(whole) - len(kept))
    assert report.bad == len(rows) - len(whole)


a_table = st.tuples(
    st.sampled_from(STARTS),
    st.lists(st.lists(a_line, min_size=1, max_size=4).map(b"\t".join), max_size=8),
    an_end,
    st.booleans(),
    st.sampled_from([(1, 2), (2, 1), (3, 1)]),
    st.sampled_from(POLICIES),
)


def columns_stay_aligned(place: Place, example: tuple[Any, ...]) -> None:
    start, rows, end, final, columns, bad_lines = example
    content = start + end.join(rows) + (end if final else b"")
    path = place.write("a.tsv", content)
    corpus = ParallelCorpus([PairFiles(tsv=str(path), columns=columns)], key="data.train", bad_lines=bad_lines)
    found = read_or_refused(lambda: list(corpus))
    lines = lines_of(content)
    if lines is None:
        assert found is None
        return
    holds_the_pairs(corpus, found, [cells(line, columns, bad_lines) for line in lines], bad_lines)


def cells(line: bytes, columns: tuple[int, int], bad_lines: BadLines) -> tuple[bytes | None, bytes | None]:
    """The two columns of a row, as bytes; None for a column that it lacks, and blank for a row of nothing."""
    text = as_read(line, bad_lines)
    if text is None or (is_bad(line) and bad_lines == "refuse"):
        return None, None
    found = text.split("\t")
    if len(found) < max(columns):
        return (b"", b"") if not text.strip() else (None, None)
    return found[columns[0] - 1].encode(), found[columns[1] - 1].encode()


# ---- archives


@st.composite
def an_archive(draw: st.DrawFn, form: str, pack: Callable[[bytes], bytes]) -> tuple[bytes | None, bytes]:
    """What the archive holds, or None where it may be damaged; and its bytes."""
    if draw(st.integers(0, 5)) == 0:
        return None, MAGIC[form] + draw(st.binary(max_size=80))
    text = draw(a_file)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=2)))
    members = [pack(text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    padding = draw(st.sampled_from([b"", b"", bytes(4), bytes(5)]))
    whole = padding.join(members) + draw(st.sampled_from([b"", b"", b"", padding, b"junk", bytes(4) + b"junk"]))
    changed = draw(damaged(whole))
    intact = changed == whole and not whole.endswith(b"junk")
    return text if intact else None, changed


def gzip_text_is_its_lines(place: Place, example: tuple[bytes | None, bytes]) -> None:
    holds_the_text(place, *example, gzip.decompress)


def xz_text_is_its_lines(place: Place, example: tuple[bytes | None, bytes]) -> None:
    holds_the_text(place, *example, unpack_xz)


def unpack_xz(content: bytes) -> bytes:
    """All members, padded or not; the standard library's own function stops without a word at the first padding."""
    text, rest = b"", content
    while rest := rest.lstrip(b"\0"):
        member = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
        text += member.decompress(rest)
        assert member.eof
        rest = member.unused_data
    return text


def holds_the_text(place: Place, text: bytes | None, content: bytes, unpack: Callable[[bytes], bytes]) -> None:
    path = place.write("packed", content)
    found = read_or_refused(lambda: list(read_lines(path, bad_lines="repair")))
    if text is not None:
        assert lines_of(text, packed=True) is None or found is not None, "a sound archive is read"
    if found is None:
        return
    # Damage that is not seen, such as another date in the header, must not change the text.
    lines = (
        lines_of(content) if not content.startswith(tuple(MAGIC.values())) else lines_of(unpack(content), packed=True)
    )
    assert lines is not None
    assert found == [as_read(line, "repair") for line in lines]


# ---- settings

SOUND = """\
data:
  source_language: en
  target_language: de
  train: {source: a.en, target: a.de}
  validation: {source: b.en, target: b.de}
"""
YAML_BITS = (
    *r"""a b : - ? { } [ ] , ' " | > |9 # &a *a !!str !x !<x> !<%zz> !%E2 << 0x1F 1e999 -1e-999 .inf""".split(),  # noqa: SIM905
    *r""".nan 1_0 null ~ yes \ "\U00110000" "\UFFFFFFFF" "\uD800" "\x "\e[2J" "\n": "\u2028" %YAML ...""".split(),  # noqa: SIM905
    *("\n", "\n", "\n", " ", "  ", "\t", ": ", "- ", " # c\n", "%YAML 1.2\n", "%YAML 1.", "%TAG ! x\n", "---\n"),
    *("9" * 5000, "a" * 200, "x: " * 30, "[" * 30, "\0", "\x07", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ufeff"),
    *("é", "\U0001f600", "\udce9", "data:\n", "  train:\n", "seed: 1\n", "seed:", "run: ", "training:\n"),
    *("  epochs: 1\n", "model: {hidden_size: 8}\n", "decoding: []\n", "<<: ", SOUND),
)
yaml_value = st.lists(st.one_of(st.sampled_from(YAML_BITS), st.text(max_size=3)), max_size=12).map("".join)
yaml_text = st.tuples(st.sampled_from(["", SOUND, SOUND]), yaml_value).map("".join)


def settings_are_read_or_refused(place: Place, text: str) -> None:
    config = read_or_refused(lambda: parse_config(text, "base.yaml"))
    if config is not None:
        assert parse_config(dump_config(config), "again.yaml") == config


def json_means_in_yaml_what_it_means_in_json(place: Place, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for line_end in "\x85\u2028\u2029":  # in YAML 1.1, and to PyYAML; in JSON these are characters like any other
        text = text.replace(line_end, f"\\u{ord(line_end):04x}")
    document = read_or_refused(lambda: read_document(text, "base.yaml"))
    if document is not None:
        assert document.value == value


@lru_cache
def setting_names() -> list[tuple[str, ...]]:
    return sorted(names for names in known_settings() if names)


@st.composite
def some_settings(draw: st.DrawFn) -> dict[str, Any]:
    """A sound config with a few known settings given any values."""
    data: dict[str, Any] = json.loads(json.dumps(read_document(SOUND, "base.yaml").value))
    for names in draw(st.lists(st.sampled_from(setting_names()), max_size=3)):
        group = data
        for name in names[:-1]:
            inner = group.get(name)
            group[name] = inner if isinstance(inner, dict) else {}
            group = group[name]
        group[names[-1]] = draw(st.one_of(json_values, st.integers(-1, 9), st.sampled_from(["after", "none", "cpu"])))
    return data


def any_values_are_read_or_refused(place: Place, data: dict[str, Any]) -> None:
    settings_are_read_or_refused(place, json.dumps(data, ensure_ascii=False))


SAMPLES = [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]


def a_damaged_sample_is_read_or_refused(place: Place, content: bytes) -> None:
    path = place.write("sample.yaml", content)
    read_or_refused(lambda: load_config(path))


@st.composite
def an_override(draw: st.DrawFn) -> str:
    names = draw(st.sampled_from(setting_names()))
    key = draw(
        st.one_of(
            st.just(dotted(names)),
            st.sampled_from(
                ["data.train.0.source", "data.train[0].tsv", "data.train[9].tsv", "data.test[0]", "a..b", ""]
            ),
            damaged(dotted(names).encode()).map(lambda changed: changed.decode("utf-8", "surrogateescape")),
        )
    )
    value = st.one_of(st.sampled_from(["1", "2", "0.5", "8", "true", "null", "none", "cpu", "a b", "{}"]), yaml_value)
    return key + draw(st.sampled_from([*["="] * 6, "", "=="])) + draw(value)


def overrides_are_read_or_refused(place: Place, overrides: list[str]) -> None:
    read_or_refused(lambda: parse_config(SOUND, "base.yaml", overrides))


# ---- a run folder, file by file


def facts_of(place: Place, checkpoint: str = "best") -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(place.files[f"{checkpoint}/{FACTS}"])
    return facts


def some_facts(place: Place) -> st.SearchStrategy[tuple[bool, bytes]]:
    """Whether they are forged, that is sealed with a digest that is right; and the bytes of a checkpoint.json."""
    facts = facts_of(place)
    names = st.sampled_from([*facts, "new"])
    changes = st.dictionaries(names, json_values, min_size=1, max_size=3)
    forged = changes.map(lambda changed: json.dumps(sealed({**facts, **changed})).encode())
    return st.one_of(
        st.tuples(st.just(False), damaged(place.files[f"best/{FACTS}"])),
        st.tuples(st.just(False), json_values.map(lambda value: json.dumps(value).encode())),
        st.tuples(st.just(True), forged),
    )


def facts_are_those_that_were_written(place: Place, example: tuple[bool, bytes]) -> None:
    forged, content = example
    place.write(FACTS, content)
    found = read_or_refused(lambda: read_facts(place.folder, " Advice."))
    if found is None:
        return
    assert found == (json.loads(content) if forged else facts_of(place))
    weights = read_or_refused(lambda: read_tensors(place.run / "best", WEIGHTS, found, " Advice."))
    read_or_refused(lambda: check_vocabulary(found, StoredTokenizer(place.run), Path("best")))
    if weights is not None:
        read_or_refused(lambda: model_of(place, weights, found))


NUMBER_TYPES = ("F64", "F32", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "F8_E8M0", "F4", "F6_E2M3", "C64", "X9")
SIZES = (0, 1, 2, 3, 7, 2**31, 2**62, 2**63, 2**64 - 1, 2**64)
TORCH_TYPES = (
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.float8_e4m3fn,
    torch.complex64,
)


@st.composite
def a_tensor_file(draw: st.DrawFn) -> bytes:
    """Made by hand: a header that may claim anything, and too little or enough behind it."""
    header: dict[str, Any] = draw(st.sampled_from([{}, {}, {"__metadata__": {"a": "b"}}, {"__metadata__": 3}])).copy()
    end = 0
    for name in draw(st.lists(st.sampled_from(["a", "b", "output_layer.bias", "\0", "é"]), max_size=3, unique=True)):
        begin, end = end, end + draw(st.sampled_from([0, 0, 2, 4, 8, 16, 2**63]))
        shape = draw(st.lists(st.sampled_from(SIZES), max_size=3))
        header[name] = {"dtype": draw(st.sampled_from(NUMBER_TYPES)), "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    size = draw(st.sampled_from([len(text)] * 5 + [0, 2**40, 2**64 - 1]))
    return struct.pack("<Q", size) + text + bytes(min(end, 64))


@st.composite
def another_type(draw: st.DrawFn, whole: bytes) -> bytes:
    """The weights as they were but for one tensor, which has the right name and shape and another type of number."""
    tensors = load_tensors(whole)
    name = draw(st.sampled_from(sorted(tensors)))
    return save_tensors({**tensors, name: tensors[name].to(draw(st.sampled_from(TORCH_TYPES)))})


def some_tensors(place: Place) -> st.SearchStrategy[bytes]:
    whole = place.files[f"best/{WEIGHTS}"]
    return st.one_of(a_tensor_file(), damaged(whole), another_type(whole))


def tensors_are_a_model_or_refused(place: Place, content: bytes) -> None:
    """The digest is right, as a forger would make it."""
    place.write(WEIGHTS, content)
    facts = listing(content, facts_of(place), WEIGHTS)
    weights = read_or_refused(lambda: read_tensors(place.folder, WEIGHTS, facts, " Advice."))
    if weights is None:
        return
    model = read_or_refused(lambda: model_of(place, weights, facts))
    if model is not None:
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def model_of(place: Place, weights: dict[str, torch.Tensor], facts: dict[str, Any]) -> TranslationModel:
    config, tokenizer = config_and_tokenizer(place.run)
    return model_from(Checkpoint(weights, facts, {}), config, tokenizer, Path("best"))


@lru_cache
def config_and_tokenizer(run: Path) -> tuple[Any, Tokenizer]:
    return load_config(run / "config.yaml"), Tokenizer.load(run)


def listing(content: bytes, facts: dict[str, Any], name: str) -> dict[str, Any]:
    """The facts with size and digest of one file put right."""
    listed = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {**facts, "files": {**facts["files"], name: listed}}


def some_models(place: Place) -> st.SearchStrategy[bytes]:
    fields = st.lists(st.binary(max_size=9).map(lambda piece: b"\n" + bytes([len(piece)]) + piece), max_size=5)
    return st.one_of(damaged(place.files["tokenizer.model"]), fields.map(b"".join), st.binary(max_size=60))


def a_stored_tokenizer_is_counted_or_refused(place: Place, content: bytes) -> None:
    whole = place.files["tokenizer.model"]
    place.write("tokenizer.model", content)
    stored = StoredTokenizer(place.folder)
    size = read_or_refused(lambda: stored.source_size)
    same = stored.fingerprint() == StoredTokenizer(place.run).fingerprint()
    assert same == (content == whole)
    if same:
        assert size == facts_of(place)["vocabulary"]["source"]
    assert size is None or 0 < size <= len(content)


# ---- a run folder as a whole


@dataclass(frozen=True)
class Harm:
    """What was done to one file of a run: its new content, or None where it is gone or became a folder."""

    name: str
    content: bytes | None
    is_folder: bool = False


@st.composite
def harmed(draw: st.DrawFn, place: Place) -> tuple[bool, list[Harm]]:
    """Whether a forger put the digests right afterwards; and what was done to some of the files."""
    read = ("config.yaml", "tokenizer.model", f"best/{FACTS}", f"best/{WEIGHTS}")
    harms = []
    for name in draw(st.lists(st.sampled_from([*read, *read, *place.files]), min_size=1, max_size=3, unique=True)):
        match draw(st.sampled_from(["damage", "damage", "damage", "empty", "gone", "folder", "exchange"])):
            case "damage":
                harms.append(Harm(name, draw(damaged(place.files[name]))))
            case "empty":
                harms.append(Harm(name, b""))
            case "exchange":
                harms.append(Harm(name, place.files[draw(st.sampled_from(sorted(place.files)))]))
            case kind:
                harms.append(Harm(name, None, is_folder=kind == "folder"))
    return draw(st.booleans()), harms


def translated(run: Path) -> Any:
    return in_process("translate", run, "--beam", 1, stdin=f"{SENTENCE}\n\n".encode())


def a_harmed_run_translates_as_before_or_is_refused(place: Place, example: tuple[bool, list[Harm]]) -> None:
    forged, harms = example
    try:
        for harm in harms:
            path = place.run / harm.name
            path.unlink()
            if harm.content is not None:
                path.write_bytes(harm.content)
            elif harm.is_folder:
                path.mkdir()
        if forged:
            put_the_digests_right(place.run)
        done = translated(place.run)
    finally:
        for harm in harms:
            shutil.rmtree(place.run / harm.name, ignore_errors=True)
        for name in {harm.name for harm in harms} | {"config.yaml", f"best/{FACTS}", f"last/{FACTS}"}:
            (place.run / name).write_bytes(place.files[name])
    assert b"Traceback" not in done.err_bytes, done.err
    assert b"\x1b" not in done.err_bytes
    if done.status == 0:
        assert done.out.count("\n") == 2
        assert done.out.endswith("\n\n"), "the blank line stays blank"
        assert forged or done.out == place.translation
    else:
        assert done.out == ""
        assert done.status == 2, done.err
        assert done.err.startswith("seq2seq: ")
        assert done.err.count("\n") <= 6


def put_the_digests_right(run: Path) -> None:
    """Seal what can still be sealed, as somebody would who means ill."""
    config = run / "config.yaml"
    if config.is_file():
        lines = config.read_bytes().split(b"\n")
        config.write_bytes(b"\n".join(line for line in lines if b"SHA-256" not in line))
    for folder in (run / "best", run / "last"):
        try:
            facts = json.loads((folder / FACTS).read_bytes())
            for name in facts["files"]:
                facts = listing((folder / name).read_bytes(), facts, name)
            facts["vocabulary"]["fingerprint"] = StoredTokenizer(run).fingerprint()
            (folder / FACTS).write_text(json.dumps(sealed(facts)), encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, Seq2SeqError):
            continue  # too much is broken


# ---- what a model says


@lru_cache
def tokenizers() -> list[Tokenizer]:
    forms = (("bpe", 340, True), ("unigram", 330, True), ("char", 400, True), ("word", 400, True), ("bpe", 150, False))
    return [
        Tokenizer.train(numbered_pairs(), TokenizerConfig(model_type=kind, vocab_size=size, byte_fallback=fallback))
        for kind, size, fallback in forms
    ]


some_ids = st.tuples(
    st.integers(0, 4),
    st.lists(
        st.one_of(st.integers(0, 5000), st.integers(0, 260), st.sampled_from([4, 14, 17, 31, 4 + 0xE2])), max_size=40
    ),
)


def any_ids_are_one_line(place: Place, example: tuple[int, list[int]]) -> None:
    which, numbers = example
    tokenizer = tokenizers()[which]
    ids = [number % tokenizer.target_size for number in numbers]
    for text in (tokenizer.decode_target(ids), tokenizer.decode_source(ids)):
        assert len(text.splitlines()) <= 1
        assert "\0" not in text
        assert text == clean(text)
        assert text.encode("utf-8").decode("utf-8") == text
    assert len(tokenizer.target_pieces(ids)) == len(ids)


# ---- the claims


@dataclass(frozen=True)
class Reader:
    """How inputs for one reader are made, the rules that hold, and how many are tried in the short and long form."""

    inputs: Callable[[Place], st.SearchStrategy[Any]]
    rules: Callable[[Place, Any], None]
    few: int
    many: int


READERS = {
    "text": Reader(
        lambda _: st.tuples(a_file, st.sampled_from(POLICIES), st.sampled_from(["file", "buffer", "slow pipe"])),
        text_is_its_lines,
        300,
        20_000,
    ),
    "pairs": Reader(lambda _: st.tuples(two_texts(), st.sampled_from(POLICIES)), pairs_stay_aligned, 150, 10_000),
    "table": Reader(lambda _: a_table, columns_stay_aligned, 150, 10_000),
    "gzip": Reader(lambda _: an_archive("gzip", gzip.compress), gzip_text_is_its_lines, 150, 9_000),
    "xz": Reader(lambda _: an_archive("xz", lzma.compress), xz_text_is_its_lines, 100, 5_000),
    "yaml text": Reader(lambda _: yaml_text, settings_are_read_or_refused, 200, 12_000),
    "json as yaml": Reader(lambda _: json_values, json_means_in_yaml_what_it_means_in_json, 100, 5_000),
    "values of settings": Reader(lambda _: some_settings(), any_values_are_read_or_refused, 80, 3_000),
    "sample configs": Reader(
        lambda _: st.sampled_from(SAMPLES).flatmap(damaged), a_damaged_sample_is_read_or_refused, 60, 4_000
    ),
    "overrides": Reader(
        lambda _: st.lists(an_override(), min_size=1, max_size=3), overrides_are_read_or_refused, 80, 4_000
    ),
    "facts": Reader(some_facts, facts_are_those_that_were_written, 80, 3_000),
    "tensors": Reader(some_tensors, tensors_are_a_model_or_refused, 80, 4_000),
    "tokenizer": Reader(some_models, a_stored_tokenizer_is_counted_or_refused, 80, 4_000),
    "run folder": Reader(harmed, a_harmed_run_translates_as_before_or_is_refused, 40, 2_000),
    "ids": Reader(lambda _: some_ids, any_ids_are_one_line, 100, 5_000),
}


def try_inputs(reader: Reader, place: Place, count: int) -> int:
    """Hold the rules of a reader against so many inputs; how many it were in the end."""
    tried = 0

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(reader.inputs(place))
    def hold(example: Any) -> None:
        nonlocal tried
        tried += 1
        began = time.monotonic()
        reader.rules(place, example)
        assert time.monotonic() - began < LONGEST_SECONDS

    hold()
    return tried


@pytest.mark.parametrize("name", READERS)
def test_any_input_is_read_by_the_rules_or_refused_in_words(place: Place, name: str) -> None:
    try_inputs(READERS[name], place, READERS[name].few)


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_inputs_are_read_or_refused(
    place: Place, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sum(reader.many for reader in READERS.values()) == 100_000
    began = time.monotonic()
    tried = try_inputs(READERS[name], place, READERS[name].many)
    with capsys.disabled():
        print(f"\n{name}: {tried:,} inputs in {time.monotonic() - began:.0f} s", end="", flush=True)
    assert tried >= READERS[name].many


# SentencePiece is C++, and a model that it does not expect may end the process; so it gets one of its own.
TRY_MODELS = """
import pickle, resource, sys
from seq2seq.corpus.subwords import Subwords
from seq2seq.errors import TokenizerError
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
models = pickle.load(open(sys.argv[1], "rb"))
for number in range(int(sys.argv[2]), len(models)):
    print(number, flush=True)
    try:
        subwords = Subwords(models[number], "The model")
    except TokenizerError as refusal:
        assert str(refusal).endswith(".")
        continue
    for ids in (subwords.encode(["The dog sees 7 old trees.", "", "\\u8a9e <unk>"])):
        text = subwords.decode(ids)
        assert len(text.splitlines()) <= 1 and "\\0" not in text
"""


def test_a_damaged_model_of_sentencepiece_never_ends_the_process(place: Place) -> None:
    try_models(place, 500)


@pytest.mark.long
def test_thousands_of_damaged_models_never_end_the_process(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    try_models(place, 20_000)
    with capsys.disabled():
        print(f"\nmodels of SentencePiece: 20,000 inputs in {time.monotonic() - began:.0f} s", end="", flush=True)


def try_models(place: Place, count: int) -> None:
    """Let another process open so many models of damaged bytes and use what opens; every death of it is told."""
    rng = random.Random(count)
    wholes = [model for tokenizer in tokenizers() for model in tokenizer.files().values()]
    models = [wounded(rng.choice(wholes), rng) for _ in range(count)]
    path = place.write("models.pickle", pickle.dumps(models))
    deaths, first = [], 0
    while first < count:
        done = subprocess.run(
            [sys.executable, "-c", TRY_MODELS, str(path), str(first)],
            capture_output=True,
            env=command_environment(),
            timeout=300,
            check=False,
        )
        last = int(done.stdout.split()[-1])
        if done.returncode == 0:
            break
        deaths.append((last, done.returncode, done.stderr[-2000:].decode("utf-8", "replace")))
        first = last + 1
    assert not deaths, f"{len(deaths)} of {count}: {deaths[:3]}"


def wounded(whole: bytes, rng: random.Random) -> bytes:
    """A model with a few bytes changed: mostly in their place, since what does not parse gets no further."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 3)):
        at, size = rng.randrange(len(data)), rng.randint(1, 8)
        match rng.choice(["flip"] * 12 + ["change"] * 6 + ["insert", "remove", "repeat"]):
            case "flip":
                data[at] ^= 1 << rng.randrange(8)
            case "change":
                data[at : at + size] = rng.randbytes(min(size, len(data) - at))
            case "insert":
                data[at:at] = rng.randbytes(size)
            case "remove":
                del data[at : at + size]
            case "repeat":
                data[at:at] = data[at : at + 16 * size]
    return bytes(data)


# ---- what is printed of an input


def test_a_refusal_never_sends_a_terminal_what_it_would_carry_out(place: Place) -> None:
    clear = "\x1b[2J"
    hidden = place.write("hidden.yaml", f'{SOUND}"\\e[2J": 1\n'.encode())
    named = place.write(f"a{clear}.yaml", b"a: [")
    path = place.write("path.yaml", SOUND.replace("a.en", '"\\e[2J.en"').encode())
    for arguments in (
        ("check", hidden),
        ("check", named),
        ("check", path),
        ("check", hidden, "--set", f"seed{clear}=1"),
        ("check", hidden, "--set", f"seed={clear}"),
        ("translate", place.folder / clear),
        ("translate", place.run, f"no{clear}\r\a"),
        ("score", clear, "--reference", clear),
        (clear,),
    ):
        done = in_process(*arguments)
        assert done.status == 2, done.err
        assert not {"\x1b", "\r", "\a"} & set(done.err + done.out), arguments
    two = in_process("check", place.write("two.yaml", b"sed: 1\ndta: 2\n"))
    assert [line.split(": ")[-1].split()[0] for line in two.err.splitlines()] == ["sed", "dta"], (
        "a line for each mistake"
    )


# ---- inputs that are made to cost time


@pytest.mark.parametrize(
    "line",
    [
        "a" + "\u0315\u0300" * 500_000,  # marks that must be put into another order
        "a" + "\u0300" * 1_000_000,
        "\uac00" * 300_000,
        " " * 1_000_000,
        "x" * 1_000_000,
    ],
    ids=["marks out of order", "marks in order", "syllables", "blanks", "one word"],
)
def test_a_line_of_a_megabyte_is_cleaned_in_seconds(line: str) -> None:
    began = time.monotonic()
    once = clean(line)
    assert time.monotonic() - began < LONGEST_SECONDS
    assert clean(once) == once


@settings(max_examples=30, deadline=None)
@given(text=st.lists(st.sampled_from("a\u0300\u0315\u0323\u0345\u1e69 \uac00\u11a8\u0f71\u0f74\u0344é"), min_size=1))
def test_a_long_line_is_cleaned_as_a_short_one(text: list[str]) -> None:
    line = "".join(text) * (1 + 2_500 // len(text))
    assert clean(line) == unicodedata.normalize("NFC", " ".join(line.split()))
