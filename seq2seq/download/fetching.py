"""Fetching: a whole public corpus into a folder, checked, unpacked, and with a config that trains on it.

    train.en, train.de, ...    the plain texts
    SHA256SUMS                 what they are, as `sha256sum -c` reads it, and `seq2seq download --verify`
    ORIGIN.txt                 where they came from, when, and under which terms
    multi30k_en_de.yaml        the config
    .download/                 archives on their way; it goes when all is in place

Nothing takes its place before everything has come and been checked, and nothing that is there is written over.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seq2seq.config.schema import PairFiles
from seq2seq.download.part import drop_if_useless
from seq2seq.download.table import PublicCorpus, PublicFile
from seq2seq.download.transfer import Patience, Told, fetch, sha256_of
from seq2seq.download.unpack import unpack
from seq2seq.errors import DownloadError
from seq2seq.files import write_file
from seq2seq.suggestion.writing import Request, suggest

SUMS, ORIGIN, WORKSHOP = "SHA256SUMS", "ORIGIN.txt", ".download"
_SUM_LINE = re.compile(r"([0-9a-f]{64})[ ][ *]([^/\\\0]{1,200})")
_MOST_SUMS = 1 << 16  # bytes


@dataclass(frozen=True)
class Arrived:
    """A text that has come: where it was fetched, and what archive and text are."""

    file: PublicFile
    address: str
    archive_sha256: str
    text_sha256: str
    text: Path


def config_name(corpus: PublicCorpus) -> str:
    return f"{corpus.name}_{corpus.source_language}_{corpus.target_language}.yaml"


def download(
    corpus: PublicCorpus,
    folder: Path,
    *,
    archives: Path | None = None,
    begins: Callable[[PublicFile], Told] = lambda file: lambda have, size: None,
    patience: Patience | None = None,
) -> Path:
    """Fetch a corpus into a folder, and return the config that was written. What has come is used the next time.

    `archives` is a folder where its archives lie already; then no network is asked. `begins` is told of each file and
    gives what is to hear of its bytes. DownloadError where a file is in the way, cannot be had, or is not what it
    should be.
    """
    refuse_to_replace(corpus, folder)
    with _all_or_nothing(corpus, folder) as placed:
        workshop = folder / WORKSHOP
        arrived = [_bring(file, workshop, archives, begins(file), patience) for file in corpus.files]
        refuse_to_replace(corpus, folder)  # somebody may have put something there meanwhile
        config = folder / config_name(corpus)
        placed += [config, folder / ORIGIN, *(folder / one.file.name for one in arrived)]
        for one in arrived:
            one.text.replace(folder / one.file.name)
        write_file(config, _config(corpus, folder))
        write_file(folder / ORIGIN, _origin(corpus, arrived))
        # Last, since it says that all is there.
        write_file(folder / SUMS, "".join(f"{one.text_sha256}  {one.file.name}\n" for one in arrived))
    shutil.rmtree(workshop, ignore_errors=True)
    return config


@contextlib.contextmanager
def _all_or_nothing(corpus: PublicCorpus, folder: Path) -> Iterator[list[Path]]:
    """Makes the folder and the workshop in it; where the download fails, only what the next try can use stays.

    Those are archives and parts of them. Texts, the files that have been `placed`, and folders made here that hold
    nothing go again.
    """
    workshop = folder / WORKSHOP
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    placed: list[Path] = []
    workshop.mkdir(parents=True, exist_ok=True)
    try:
        yield placed
    except BaseException:
        for file in corpus.files:
            placed.append(workshop / file.name)
            drop_if_useless(workshop / file.archive)
        for path in placed:
            path.unlink(missing_ok=True)
        for path in (workshop, *made):
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def refuse_to_replace(corpus: PublicCorpus, folder: Path) -> None:
    """DownloadError where a file stands in the way of one that would be written."""
    if folder.exists() and not folder.is_dir():
        raise DownloadError(f"{folder} is a file; --output names a folder.")
    for name in [*(file.name for file in corpus.files), config_name(corpus), SUMS, ORIGIN]:
        if (folder / name).exists():
            raise DownloadError(
                f"{folder / name} is there already and is not written over; choose another --output, or look at what "
                "you have with --verify."
            )


def verify(folder: Path) -> list[str]:
    """The names of the files that a download has left in a folder, each held against SHA256SUMS.

    DownloadError where one is missing or is not as it was.
    """
    path = folder / SUMS
    try:
        with path.open("rb") as stream:
            lines = stream.read(_MOST_SUMS).decode("utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise DownloadError(f"{path} cannot be read ({reason}); only what was downloaded whole has one.") from None
    names = []
    for number, line in enumerate(lines, start=1):
        found = _SUM_LINE.fullmatch(line)
        if found is None:
            raise DownloadError(f"{path} line {number} is no SHA-256 and name of a file; download again.")
        file = folder / found[2]
        if not file.is_file():
            raise DownloadError(f"{file} is missing, which {SUMS} names; download again, to another folder.")
        if sha256_of(file) != found[1]:
            raise DownloadError(f"{file} is not what was downloaded: its SHA-256 is not that in {SUMS}.")
        names.append(found[2])
    if not names:
        raise DownloadError(f"{path} names no file; download again.")
    return names


def _bring(file: PublicFile, workshop: Path, archives: Path | None, told: Told, patience: Patience | None) -> Arrived:
    """One file, fetched or found, checked and unpacked in the workshop. One that is damaged is tried elsewhere."""
    archive, text = workshop / file.archive, workshop / file.name
    if archives is not None:
        given = archives / file.archive
        if not given.is_file():
            raise DownloadError(
                f"There is no {given}, which --from should hold; it is fetched from {file.addresses[0]}"
            )
        return _checked(file, given, text, f"{given.name}, given", str(given))
    kept = _kept(archive)
    if kept is not None:
        return _checked(file, archive, text, kept)
    refused = []
    for number, address in enumerate(file.addresses):
        try:
            # Each address by itself, so that a mirror is asked where this one sends something else.
            fetch([address], archive, largest=file.largest_archive, told=told, patience=patience)
            arrived = _checked(file, archive, text, address)
        except DownloadError as error:
            refused.append(str(error).rstrip("."))
            archive.unlink(missing_ok=True)
            if number + 1 == len(file.addresses):
                raise DownloadError(_no_way(file, refused)) from None
        else:
            write_file(_note(archive), json.dumps({"address": address, "sha256": arrived.archive_sha256}) + "\n")
            return arrived
    raise AssertionError("every file has an address")


def _checked(file: PublicFile, archive: Path, text: Path, address: str, named: str | None = None) -> Arrived:
    """What a file is, once it is known to be right. `named` is the archive for a person, where no address gave it."""
    unpack(archive, text, member=file.member, largest=file.largest_text)
    text_sha256 = sha256_of(text)
    if file.text_sha256 is not None and text_sha256 != file.text_sha256:
        text.unlink()
        named = named or f"{file.archive} from {address}"
        raise DownloadError(
            f"{named} holds another text than is known (SHA-256 {text_sha256[:12]}..., and "
            f"{file.text_sha256[:12]}... was expected)."
        )
    return Arrived(file, address, sha256_of(archive), text_sha256, text)


def _note(archive: Path) -> Path:
    return archive.with_name(archive.name + ".json")


def _kept(archive: Path) -> str | None:
    """The address of an archive that an earlier try brought whole; None where there is none."""
    try:
        note = json.loads(_note(archive).read_bytes())
        address = note["address"]
        return address if isinstance(address, str) and note["sha256"] == sha256_of(archive) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _no_way(file: PublicFile, reasons: list[str]) -> str:
    return (
        f"{file.archive} could not be fetched: {'; '.join(reasons)}. Look at the network and try again, which goes on "
        "where this ended; or fetch the archives otherwise and give their folder with --from."
    )


def _config(corpus: PublicCorpus, folder: Path) -> str:
    """What suits a corpus of this size, as for any other."""
    named = {key: _pair_files(part, folder) for key, part in corpus.data.items()}
    train = named["train"]
    assert train is not None
    request = Request(
        corpus.source_language,
        corpus.target_language,
        train,
        named["validation"],
        named["test"],
        f"runs/{corpus.name}-{corpus.source_language}-{corpus.target_language}",
        [f"{corpus.title}, from {corpus.home} (see {ORIGIN}). Settings that are not here have their defaults."],
    )
    return suggest(request, folder)


def _pair_files(part: object, folder: Path) -> PairFiles | None:
    if not isinstance(part, dict):
        return None
    paths = {key: str(folder / value) if isinstance(value, str) else value for key, value in part.items()}
    return PairFiles.model_validate(paths)


def _origin(corpus: PublicCorpus, arrived: list[Arrived]) -> str:
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    lines = [corpus.terms, "", f"Home: {corpus.home}", f"Fetched on {today}:", ""]
    for one in arrived:
        pinned = "known beforehand" if one.file.text_sha256 else "trusted on first use"
        lines += [
            one.file.name,
            f"  from            {one.address}",
            f"  archive SHA-256 {one.archive_sha256}",
            f"  text SHA-256    {one.text_sha256} ({pinned})",
        ]
    return "\n".join(lines) + "\n"
