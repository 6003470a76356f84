"""The table of public corpora: where each lies, whose it is, under which terms, and what it must be when it has come.

All that would have to change when a server moves stands here. Every file has its addresses in the order in which they
are tried. `text_sha256` is the SHA-256 of the plain text where it is known and does not change; what has none is
trusted on first use: its SHA-256 is recorded beside it (SHA256SUMS), and from then on it is the same or damaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seq2seq.errors import DownloadError

_MIB = 1 << 20


@dataclass(frozen=True)
class PublicFile:
    """One text of a corpus: `name` once it is plain text here, and the archive that it comes in."""

    name: str
    archive: str  # .gz, or .zip with `member` in it
    addresses: Sequence[str]
    member: str | None = None
    text_sha256: str | None = None
    largest_archive: int = 64 * _MIB  # bytes; no server and no archive gives more than this
    largest_text: int = 512 * _MIB


@dataclass(frozen=True)
class PublicCorpus:
    """What a pair of languages needs: its files, and the `data` section that reads them."""

    name: str
    source_language: str
    target_language: str
    files: Sequence[PublicFile]
    data: Mapping[str, Mapping[str, object] | None] = field(default_factory=dict)
    terms: str = ""
    home: str = ""

    @property
    def title(self) -> str:
        return f"{self.name}, {self.source_language} to {self.target_language}"


NAMES = ("multi30k", "tatoeba")

# ---- Multi30k ------------------------------------------------------------------------------------------------------

_MULTI30K_PLACES = (
    "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/",
    "https://cdn.jsdelivr.net/gh/multi30k/dataset@master/data/task1/raw/",  # a public mirror of GitHub's repositories
)
_MULTI30K_LANGUAGES = ("en", "de", "fr", "cs")
_MULTI30K_PARTS = ("train", "val", "test_2016_flickr")
_MULTI30K_TEXTS = {
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
}
_MULTI30K_TERMS = """\
Multi30k (Elliott, Frank, Sima'an and Specia 2016, https://aclanthology.org/W16-3210): 29,000 captions of photographs,
described in English for Flickr30k (Young et al. 2014) and translated by people. For research, not for commerce; the
terms that count are those of its makers and of Flickr30k. Name them where you publish what you made of it."""

# ---- Tatoeba -------------------------------------------------------------------------------------------------------

# English with another language, in tables that manythings.org makes of Tatoeba from time to time (hence no SHA-256).
_TATOEBA_PLACES = ("https://www.manythings.org/anki/",)
_TATOEBA_TABLES = {
    "zh": "cmn",
    "de": "deu",
    "fr": "fra",
    "es": "spa",
    "it": "ita",
    "pt": "por",
    "nl": "nld",
    "sv": "swe",
    "da": "dan",
    "fi": "fin",
    "hu": "hun",
    "pl": "pol",
    "ru": "rus",
    "uk": "ukr",
    "tr": "tur",
    "he": "heb",
    "ja": "jpn",
    "ko": "kor",
}
_TATOEBA_TERMS = """\
Tatoeba (https://tatoeba.org) by way of manythings.org: everyday sentences and their translations by volunteers.
CC BY 2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/): you may use and change it, and name its authors. Who
wrote each sentence stands in the third column of the table, which no training reads; keep it where you pass it on."""


def public_corpus(name: str, pair: str) -> PublicCorpus:
    """A corpus for a pair such as en-de. DownloadError where there is no such pair, with those that there are."""
    source, _, target = pair.partition("-")
    if name == "multi30k":
        return _multi30k(source, target, pair)
    return _tatoeba(source, target, pair)


def _multi30k(source: str, target: str, pair: str) -> PublicCorpus:
    if source == target or not {source, target} <= set(_MULTI30K_LANGUAGES):
        raise DownloadError(
            f"Multi30k has no pair {pair!r}; choose two of {', '.join(_MULTI30K_LANGUAGES)}, such as --pair en-de."
        )
    names = [f"{part}.{language}" for part in _MULTI30K_PARTS for language in (source, target)]
    files = [
        PublicFile(
            name, f"{name}.gz", [f"{place}{name}.gz" for place in _MULTI30K_PLACES], None, _MULTI30K_TEXTS.get(name)
        )
        for name in names
    ]
    data = {
        key: {"source": f"{part}.{source}", "target": f"{part}.{target}"}
        for key, part in zip(("train", "validation", "test"), _MULTI30K_PARTS, strict=True)
    }
    return PublicCorpus("multi30k", source, target, files, data, _MULTI30K_TERMS, "https://github.com/multi30k/dataset")


def _tatoeba(source: str, target: str, pair: str) -> PublicCorpus:
    other = target if source == "en" else source
    if "en" not in (source, target) or other not in _TATOEBA_TABLES:
        raise DownloadError(
            f"There is no table of Tatoeba for {pair!r}; choose en and one of {', '.join(_TATOEBA_TABLES)}, in either "
            "order, such as --pair en-zh."
        )
    code = _TATOEBA_TABLES[other]
    archive = f"{code}-eng.zip"
    file = PublicFile(f"{code}-eng.tsv", archive, [place + archive for place in _TATOEBA_PLACES], f"{code}.txt")
    data: dict[str, Mapping[str, object] | None] = {
        "train": {"tsv": file.name} if source == "en" else {"tsv": file.name, "columns": [2, 1]},
        "validation": None,
        "test": None,
    }
    return PublicCorpus("tatoeba", source, target, [file], data, _TATOEBA_TERMS, "https://www.manythings.org/anki/")
