"""Claims about `seq2seq download`: a corpus comes whole, checked and with a config that trains, or not at all."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import in_process, numbered_pairs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seq2seq.download import fetching, table
from seq2seq.download.fetching import download, verify
from seq2seq.download.table import PublicCorpus, PublicFile, public_corpus
from seq2seq.download.unpack import unpack
from seq2seq.errors import DownloadError

PARTS = {"train": numbered_pairs(160), "val": numbered_pairs(20, 161), "test_2016_flickr": numbered_pairs(20, 181)}


def text_of(name: str) -> bytes:
    part, _, language = name.rpartition(".")
    return "".join(pair[language == "de"] + "\n" for pair in PARTS[part]).encode("utf-8")


def small(corpus: PublicCorpus) -> PublicCorpus:
    """Multi30k's files, as they would be if it were the base corpus."""
    files = [replace(file, text_sha256=hashlib.sha256(text_of(file.name)).hexdigest()) for file in corpus.files]
    return replace(corpus, files=files)


@pytest.fixture
def multi30k(monkeypatch: pytest.MonkeyPatch) -> PublicCorpus:
    made = small(public_corpus("multi30k", "en-de"))
    monkeypatch.setattr(
        table, "_MULTI30K_TEXTS", {file.name: file.text_sha256 for file in made.files}
    )  # for the verb, which looks it up itself
    return made


@pytest.fixture
def archives(tmp_path: Path, multi30k: PublicCorpus) -> Path:
    """A folder with its archives, as a person would have fetched them."""
    folder = tmp_path / "archives"
    folder.mkdir()
    for file in multi30k.files:
        (folder / file.archive).write_bytes(gzip.compress(text_of(file.name)))
    return folder


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, archives: Path) -> Web:
    made = Web(archives)
    monkeypatch.setattr(fetching, "fetch", made.fetch)
    return made


class Web:
    """In place of a network: gives what lies in a folder, unless an address is to give something else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.instead: dict[str, bytes | None] = {}

    def fetch(self, addresses: list[str], file: Path, *, told: Callable[..., None], **limits: Any) -> str:
        [address] = addresses
        self.asked.append(address)
        content = self.instead.get(address, (self.folder / file.name).read_bytes())
        if content is None:
            raise DownloadError(f"{address}: HTTP 404")
        file.write_bytes(content)
        told(len(content), len(content))
        return address


def test_a_corpus_comes_with_checksums_origin_and_a_config_that_trains(
    tmp_path: Path, multi30k: PublicCorpus, web: Web
) -> None:
    folder = tmp_path / "data"
    config = download(multi30k, folder)
    names = [file.name for file in multi30k.files]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*names, "ORIGIN.txt", "SHA256SUMS", "multi30k_en_de.yaml"]
    )
    for name in names:
        assert (folder / name).read_bytes() == text_of(name)
    assert verify(folder) == names
    origin = (folder / "ORIGIN.txt").read_text(encoding="utf-8")
    assert multi30k.terms in origin
    assert web.asked[0] in origin
    assert "known beforehand" in origin
    done = in_process("check", config)
    assert done.status == 0, done.err
    assert "training pairs     160" in done.out
    assert "test pairs         20" in done.out


def test_the_verb_shows_the_terms_before_it_fetches_and_says_what_is_next(tmp_path: Path, web: Web) -> None:
    folder = tmp_path / "data"
    done = in_process("download", "multi30k", "--output", folder)
    assert done.status == 0, done.err
    assert done.out.index("Multi30k (Elliott") < done.out.index("fetching train.en.gz")
    assert f"seq2seq train {folder / 'multi30k_en_de.yaml'}" in done.out
    again = in_process("download", "multi30k", "--output", folder)
    again.refused(str(folder / "train.en"), "not written over")
    assert again.out == ""
    assert "as they were downloaded" in in_process("download", "multi30k", "--output", folder, "--verify").out


def test_terms_alone_fetch_nothing_and_name_every_address(tmp_path: Path, web: Web) -> None:
    done = in_process("download", "tatoeba", "--pair", "de-en", "--terms", "--output", tmp_path / "none")
    assert (done.status, web.asked) == (0, [])
    assert "CC BY" in done.out
    assert "https://www.manythings.org/anki/deu-eng.zip" in done.out
    assert not (tmp_path / "none").exists()


def test_archives_that_were_fetched_otherwise_are_taken_and_kept(
    tmp_path: Path, multi30k: PublicCorpus, archives: Path, web: Web
) -> None:
    done = in_process("download", "multi30k", "--output", tmp_path / "data", "--from", archives)
    assert (done.status, web.asked) == (0, [])
    assert len(list(archives.iterdir())) == 6
    (archives / "val.de.gz").unlink()
    in_process("download", "multi30k", "--output", tmp_path / "other", "--from", archives).refused(
        "val.de.gz", "--from"
    )


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"another text\n", mtime=0),
        gzip.compress(text_of("train.de"))[:-9],
        b"<html>Sign in to this wireless network</html>",
        b"",
        gzip.compress(b"", mtime=0),
        gzip.compress(text_of("train.de")) + b"rest",
    ],
)
def test_wrong_bytes_from_one_place_are_fetched_from_the_next(
    tmp_path: Path, multi30k: PublicCorpus, web: Web, content: bytes
) -> None:
    bad, good = multi30k.files[1].addresses
    web.instead = {bad: content}
    download(multi30k, tmp_path / "data")
    assert (tmp_path / "data" / "train.de").read_bytes() == text_of("train.de")
    assert good in (tmp_path / "data" / "ORIGIN.txt").read_text(encoding="utf-8")


def test_wrong_bytes_from_everywhere_are_refused_and_nothing_takes_its_place(
    tmp_path: Path, multi30k: PublicCorpus, web: Web
) -> None:
    web.instead = dict.fromkeys(multi30k.files[1].addresses, gzip.compress(b"another text\n", mtime=0))
    with pytest.raises(DownloadError, match=r"train\.de\.gz could not be fetched: .*another text.*jsdelivr"):
        download(multi30k, tmp_path / "data")
    assert [path.name for path in (tmp_path / "data").iterdir()] == [".download"]


def test_what_has_come_is_not_fetched_again(tmp_path: Path, multi30k: PublicCorpus, web: Web) -> None:
    folder = tmp_path / "data"
    web.instead = dict.fromkeys(multi30k.files[2].addresses, None)
    with pytest.raises(DownloadError, match="HTTP 404"):
        download(multi30k, folder)
    web.instead, web.asked = {}, []
    damaged = folder / ".download" / "train.de.gz"
    damaged.write_bytes(b"damaged since")
    download(multi30k, folder)
    assert multi30k.files[0].addresses[0] not in web.asked
    assert web.asked[0] == multi30k.files[1].addresses[0]
    assert len(web.asked) == 5


def test_without_a_network_nothing_is_left_and_the_ways_out_are_named(tmp_path: Path, web: Web) -> None:
    web.instead = dict.fromkeys(public_corpus("multi30k", "en-de").files[0].addresses, None)
    done = in_process("download", "multi30k", "--output", tmp_path / "data")
    done.refused("train.en.gz could not be fetched", "try again", "--from")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("content", [gzip.compress(b"another text\n", mtime=0), b"damaged"])
def test_archives_that_are_wrong_leave_nothing_behind_and_are_named(
    tmp_path: Path, multi30k: PublicCorpus, archives: Path, content: bytes
) -> None:
    (archives / "val.de.gz").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    done = in_process("download", "multi30k", "--output", tmp_path / "made" / "data", "--from", archives)
    done.refused("val.de.gz")
    assert "given holds" not in done.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_failure_at_the_end_takes_back_what_was_placed(
    tmp_path: Path, multi30k: PublicCorpus, archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> str:
        raise OSError(28, "No space left on device", "ORIGIN.txt")

    monkeypatch.setattr(fetching, "_origin", fails)
    mine = tmp_path / "data" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(OSError, match="No space"):
        download(multi30k, mine.parent, archives=archives)
    assert list(mine.parent.iterdir()) == [mine]


def test_a_part_stays_where_the_rest_can_be_added_and_goes_where_it_cannot(
    tmp_path: Path, multi30k: PublicCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(addresses: list[str], file: Path, **_: Any) -> str:
        file.with_name(f"{file.name}.part").write_bytes(came[-1])
        file.with_name(f"{file.name}.part.json").write_text("{}")
        raise DownloadError("it broke off")

    came: list[bytes] = []
    monkeypatch.setattr(fetching, "fetch", breaks_off)
    for content, left in ((b"", []), (b"half", ["train.en.gz.part", "train.en.gz.part.json"])):
        came.append(content)
        with pytest.raises(DownloadError, match="broke off"):
            download(multi30k, tmp_path / "data")
        assert sorted(path.name for path in (tmp_path / "data" / ".download").glob("*")) == left
        assert (tmp_path / "data").exists() == bool(left)


@pytest.mark.parametrize("name", ["train.en", "SHA256SUMS", "ORIGIN.txt", "multi30k_en_de.yaml"])
def test_nothing_that_is_there_is_written_over(tmp_path: Path, multi30k: PublicCorpus, web: Web, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(DownloadError, match=name):
        download(multi30k, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert web.asked == []


def test_what_changes_after_the_download_is_found(tmp_path: Path, multi30k: PublicCorpus, web: Web) -> None:
    folder = tmp_path / "data"
    download(multi30k, folder)
    (folder / "val.en").write_bytes(text_of("val.en") + b"\n")
    in_process("download", "multi30k", "--output", folder, "--verify").refused("val.en", "SHA-256")
    (folder / "val.en").unlink()
    in_process("download", "multi30k", "--output", folder, "--verify").refused("val.en", "missing")
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  ../outside\n")
    in_process("download", "multi30k", "--output", folder, "--verify").refused("SHA256SUMS line 1")
    (folder / "SHA256SUMS").unlink()
    in_process("download", "multi30k", "--output", folder, "--verify").refused("SHA256SUMS")


# ---- Tatoeba, which comes in a zip


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as box:
        for name, content in members.items():
            box.writestr(name, content)
    return packed.getvalue()


TABLE = "".join(f"{source}\t{target}\tCC-BY 2.0, somebody\n" for source, target in numbered_pairs()).encode("utf-8")


def test_a_table_comes_out_of_its_zip_and_can_be_learnt_in_either_direction(tmp_path: Path) -> None:
    content = zipped({"_about.txt": b"...", "deu.txt": TABLE, "../../outside": b"no", "/outside": b"no"})
    (tmp_path / "deu-eng.zip").write_bytes(content)
    for pair in ("en-de", "de-en"):
        config = download(public_corpus("tatoeba", pair), tmp_path / pair / "data", archives=tmp_path)
        assert (tmp_path / pair / "data" / "deu-eng.tsv").read_bytes() == TABLE
        done = in_process("check", config)
        assert done.status == 0, done.err
        assert not list(tmp_path.rglob("outside"))
        assert "trusted on first use" in (config.parent / "ORIGIN.txt").read_text(encoding="utf-8")
    from seq2seq.config.loading import load_config
    from seq2seq.corpus.splits import open_corpora

    settings = load_config(config)
    source, target = next(iter(open_corpora(settings.data, settings.seed).train))
    assert (source.split()[0], target.split()[0]) == ("Der", "The")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped({"other.txt": TABLE}), "holds no deu.txt"),
        (zipped({"folder/deu.txt": TABLE}), "holds no deu.txt"),
        (zipped({"deu.txt": b""}), "holds no text"),
        (zipped({"deu.txt": b"\0" * 30_000_000}), "unpacks to more than"),
        (zipped({"deu.txt": TABLE})[:-30], "no zip archive"),
        (zipped({"deu.txt": TABLE}).replace(b"\x08\x00", b"\x63\x00"), "damaged"),
        (b"<html>", "no zip archive"),
    ],
)
def test_a_zip_that_is_not_as_it_should_be_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "deu-eng.zip").write_bytes(content)
    with pytest.raises(DownloadError, match=words):
        unpack(tmp_path / "deu-eng.zip", tmp_path / "text", member="deu.txt", largest=20_000_000)
    assert not (tmp_path / "text").exists()


def test_a_zip_with_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped({"deu.txt": TABLE}))
    content[len(content) // 3] ^= 4
    (tmp_path / "deu-eng.zip").write_bytes(content)
    with pytest.raises(DownloadError, match="damaged"):
        unpack(tmp_path / "deu-eng.zip", tmp_path / "text", member="deu.txt", largest=20_000_000)
    assert not (tmp_path / "text").exists()


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_archive_with_any_bytes_changed_is_the_text_or_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    for name, member, whole in (
        ("deu-eng.zip", "deu.txt", zipped({"deu.txt": TABLE})),
        ("a.gz", None, gzip.compress(TABLE, mtime=0)),
    ):
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        (tmp_path / name).write_bytes(content)
        (tmp_path / "text").unlink(missing_ok=True)
        with contextlib.suppress(DownloadError):
            unpack(tmp_path / name, tmp_path / "text", member=member, largest=20_000_000)
            assert (tmp_path / "text").read_bytes() == TABLE


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"\0" * 5_000_000, mtime=0))
    with pytest.raises(DownloadError, match="unpacks to more than 1,000,000 bytes"):
        unpack(tmp_path / "train.en.gz", tmp_path / "text", member=None, largest=1_000_000)
    assert not (tmp_path / "text").exists()


# ---- the table


@pytest.mark.parametrize(("name", "pair"), [("multi30k", "en-zh"), ("multi30k", "en-en"), ("tatoeba", "de-fr")])
def test_a_pair_that_is_not_there_is_answered_with_those_that_are(name: str, pair: str) -> None:
    in_process("download", name, "--pair", pair).refused(pair, "en", "de")


@pytest.mark.parametrize(("name", "pair"), [("multi30k", "cs-fr"), ("tatoeba", "ja-en"), ("tatoeba", "en-zh")])
def test_every_address_is_https_and_every_name_stays_in_the_folder(name: str, pair: str) -> None:
    corpus = public_corpus(name, pair)
    assert corpus.terms
    for file in corpus.files:
        assert isinstance(file, PublicFile)
        assert file.addresses
        assert all(address.startswith("https://") and address.endswith(file.archive) for address in file.addresses)
        assert Path(file.name).name == file.name
        assert Path(file.archive).name == file.archive


def test_the_known_checksums_are_those_of_the_corpus(corpora: Path) -> None:
    for file in public_corpus("multi30k", "en-de").files:
        content = (corpora / "multi30k" / file.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.text_sha256
