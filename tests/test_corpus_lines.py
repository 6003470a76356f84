"""Claims about the one reader of text: what ends a line, what is refused, and what `clean` changes.

A name with c005 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import threading
import tracemalloc
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.corpus import lines as lines_module
from seq2seq.corpus.lines import clean, read_lines
from seq2seq.errors import CorpusError

Pack = Callable[[bytes], bytes]

PLAIN: Pack = bytes
PACKERS = {"": PLAIN, ".gz": gzip.compress, ".xz": lzma.compress}

# Text of a line as a file may hold it: no LF, no NUL, and no mark at its start, since these mean something.
line_text = st.text(
    st.one_of(
        st.sampled_from("ab äé\t\r\v\f\x1c\x85\u00a0\u2028\u2029\u3000\ufeff\u200fשß語𝒳"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"),
    ),
    max_size=12,
)


def written(folder: Path, content: bytes, name: str = "text.en") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refusal(path: Path, **how: object) -> str:
    with pytest.raises(CorpusError) as refused:
        list(read_lines(path, **how))  # type: ignore[arg-type]
    message = str(refused.value)
    assert "\n" not in message
    assert str(path) in message
    return message


# ---- what is a line


@given(st.lists(line_text, max_size=8), st.sampled_from(sorted(PACKERS)), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], suffix: str, crlf: bool, final: bool
) -> None:
    lines = [line.rstrip("\r") for line in lines]  # a CR before LF is part of the line's end, and tested elsewhere
    if lines:
        lines[0] = lines[0].lstrip("\ufeff")
        final = final or not lines[-1]  # an empty last line shows by its LF only
    end = "\r\n" if crlf else "\n"
    content = end.join(lines) + (end if lines and final else "")
    path = tmp_path_factory.mktemp("lines") / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](content.encode("utf-8")))
    assert list(read_lines(path)) == lines


def test_only_lf_ends_a_line_c001_c007(tmp_path: Path) -> None:
    inside = "a\u2028b\u2029c\x85d\ve\ff\x1cg\x1dh\x1ei\rj"
    path = written(tmp_path, f"{inside}\nsecond\n".encode())
    assert list(read_lines(path)) == [inside, "second"]
    assert clean(inside) == "a b c d e f g h i j"


def test_one_cr_before_lf_goes_with_it_c005(tmp_path: Path) -> None:
    assert list(read_lines(written(tmp_path, b"a\r\nb\r\r\n\r\nc\r"))) == ["a", "b\r", "", "c\r"]


def test_a_missing_final_newline_loses_nothing_c009(tmp_path: Path) -> None:
    assert list(read_lines(written(tmp_path, b"a\nlast"))) == ["a", "last"]
    assert list(read_lines(written(tmp_path, b"a\nlast\n"))) == ["a", "last"]
    assert list(read_lines(written(tmp_path, b""))) == []


def test_a_byte_order_mark_is_removed_at_the_start_only_c011(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert list(read_lines(path)) == ["a", "\ufeffb"]
    assert list(read_lines(written(tmp_path, gzip.compress(path.read_bytes()), "text.gz"))) == ["a", "\ufeffb"]
    assert list(read_lines(written(tmp_path, b"\xef\xbb\xbf"))) == []
    assert list(read_lines(written(tmp_path, b"\xef\xbb\xbf\n"))) == [""]


def test_the_locale_changes_nothing_c017(tmp_path: Path) -> None:
    from conftest import run_python

    path = written(tmp_path, "Bär 語\n".encode())
    code = f"from seq2seq.corpus.lines import read_lines; print(ascii(list(read_lines({str(path)!r}))))"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run_python("-c", code, env=plain).out.strip() == ascii(["Bär 語"])


def test_a_line_is_given_as_soon_as_it_has_arrived() -> None:
    """The writer waits for the reader after each line: reading ahead would stop both."""
    read_end, write_end = os.pipe()
    arrived = threading.Event()

    def write() -> None:
        with os.fdopen(write_end, "wb", buffering=0) as pipe:
            for number in range(3):
                pipe.write(f"line {number}\n".encode())
                if not arrived.wait(10):
                    return
                arrived.clear()
            pipe.write(b"no end")

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(read_end, "rb") as stream:
        lines = read_lines(stream, name="standard input")
        for number in range(3):
            assert next(lines) == f"line {number}"
            arrived.set()
        assert list(lines) == ["no end"]
        assert not stream.closed
    writer.join(10)
    assert not writer.is_alive()


def test_a_stream_may_be_packed_and_begin_with_half_a_magic_number() -> None:
    assert list(read_lines(io.BytesIO(gzip.compress(b"a\nb\n")))) == ["a", "b"]
    assert list(read_lines(io.BytesIO(b"\x1f\nb\n"))) == ["\x1f", "b"]
    assert list(read_lines(io.BytesIO(b"\x1f"))) == ["\x1f"]


# ---- what is no text


def test_bytes_that_are_not_utf8_are_refused_by_file_and_line_c014(tmp_path: Path) -> None:
    content = b"".join(b"line\n" if number != 42 else b"caf\xe9 au lait\n" for number in range(1, 161))
    path = written(tmp_path, content, "train.de")
    message = refusal(path)
    assert "line 42 " in message
    assert "0xE9" in message
    assert "number 4 " in message
    assert "data.bad_lines" in message


@pytest.mark.parametrize("bad", [b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf", b"\xff"])
def test_every_kind_of_bad_utf8_is_refused_dropped_or_repaired_as_asked_c014(tmp_path: Path, bad: bytes) -> None:
    path = written(tmp_path, b"one\ntwo" + bad + b"rest\nthree\n")
    assert "line 2 " in refusal(path)
    dropping = read_lines(path, bad_lines="drop")
    assert list(dropping) == ["one", None, "three"]
    assert (dropping.bad, dropping.repaired) == (1, 0)
    repairing = read_lines(path, bad_lines="repair")
    one, two, three = repairing
    assert (one, three) == ("one", "three")
    assert two is not None
    assert two.startswith("two\ufffd")
    assert two.endswith("rest")
    assert (repairing.bad, repairing.repaired) == (0, 1)


def test_a_nul_is_refused_or_removed_and_the_text_after_it_stays_c056(tmp_path: Path) -> None:
    path = written(tmp_path, b"one\ntw\0o an\0d more\nthree\n")
    message = refusal(path)
    assert "line 2 holds a NUL byte (number 3 of the line). Remove it, or set data.bad_lines" in message
    repairing = read_lines(path, bad_lines="repair")
    assert list(repairing) == ["one", "two and more", "three"]
    assert repairing.repaired == 1


def test_the_advice_of_a_refusal_can_be_the_callers_own(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, b"\xff\n"), advice="Convert it.")
    assert message.endswith("Convert it.")
    assert "data.bad_lines" not in message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("bad_lines", ["refuse", "drop", "repair"])
def test_text_in_another_encoding_is_named_c014(tmp_path: Path, encoding: str, bad_lines: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    path = written(tmp_path, (mark + "ein Text\nnoch einer\n").encode(encoding))
    assert f"is {encoding[:6].upper()} text" in refusal(path, bad_lines=bad_lines)


def test_an_endless_line_is_refused_by_number_in_bounded_memory_c046(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 1 << 20)
    longest = b"x" * (1 << 20)
    assert list(map(len, read_lines(written(tmp_path, longest + b"\r\n" + longest)))) == [1 << 20] * 2  # type: ignore[arg-type]
    assert "line 2 is longer than 1 MiB" in refusal(written(tmp_path, b"a\n" + longest + b"x"))
    bomb = written(tmp_path, gzip.compress(b"a\n" + bytes(64 << 20)), "bomb.gz")
    assert bomb.stat().st_size < 100_000
    tracemalloc.start()
    try:
        assert "line 2 is longer than" in refusal(bomb)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


# ---- packed text

PACKED = [(".gz", gzip.compress), (".xz", lzma.compress)]
TEXT = "".join(f"Satz {number} äöü {number * 7919 % 1000}\n" for number in range(1, 2001)).encode()


@pytest.mark.parametrize(("suffix", "pack"), PACKED)
def test_packed_text_is_read_whatever_its_name_c038(tmp_path: Path, suffix: str, pack: Pack) -> None:
    plain = list(read_lines(written(tmp_path, TEXT)))
    assert len(plain) == 2000
    for name in (f"text{suffix}", f"text{suffix.upper()}", "text.en"):
        assert list(read_lines(written(tmp_path, pack(TEXT), name))) == plain


@pytest.mark.parametrize(("suffix", "pack"), PACKED)
def test_members_follow_one_another_even_inside_a_line_c040(tmp_path: Path, suffix: str, pack: Pack) -> None:
    content = pack(TEXT[:1003]) + pack(b"") + pack(TEXT[1003:]) + bytes(16)
    assert b"".join(f"{line}\n".encode() for line in read_lines(written(tmp_path, content, f"t{suffix}"))) == TEXT


@pytest.mark.parametrize(("suffix", "pack"), PACKED)
def test_an_archive_cut_anywhere_is_called_cut_short_c039(tmp_path: Path, suffix: str, pack: Pack) -> None:
    content = pack(TEXT)
    for size in (8, len(content) * 6 // 10, len(content) - 9, len(content) - 1):
        assert "is cut short" in refusal(written(tmp_path, content[:size], f"text{suffix}"))


@pytest.mark.parametrize(("suffix", "pack"), PACKED)
def test_damage_inside_an_archive_is_refused_c039(tmp_path: Path, suffix: str, pack: Pack) -> None:
    content = bytearray(pack(TEXT))
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
    message = refusal(written(tmp_path, bytes(content), f"text{suffix}"))
    assert "is damaged" in message or "is cut short" in message


@pytest.mark.parametrize(("suffix", "pack"), PACKED)
@pytest.mark.parametrize("tail", [b"junk", b"\0\0\0\0junk and more junk", b"line\n" * 30_000])
def test_bytes_after_an_archive_are_refused_c039(tmp_path: Path, suffix: str, pack: Pack, tail: bytes) -> None:
    assert "after the end" in refusal(written(tmp_path, pack(TEXT) + tail, f"text{suffix}"))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("content", [b"", TEXT])
def test_a_name_that_promises_an_archive_must_keep_it(tmp_path: Path, suffix: str, content: bytes) -> None:
    assert f"is named {suffix} but holds no" in refusal(written(tmp_path, content, f"text{suffix}"))


# ---- files that cannot be opened


def test_a_missing_file_a_folder_and_an_impossible_name_are_refused_with_the_full_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorpusError, match=str(tmp_path / "missing.en")):
        read_lines("missing.en")
    with pytest.raises(CorpusError, match="is a folder"):
        read_lines(tmp_path)
    with pytest.raises(CorpusError, match="cannot be opened"):
        read_lines("nul\0inside")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\n")
    path.chmod(0)
    assert "cannot be opened" in refusal(path)


def test_nothing_stays_open(tmp_path: Path) -> None:
    """A ResourceWarning of a file left open fails the test."""
    path = written(tmp_path, gzip.compress(b"a\nb\n\xff\n"), "text.gz")
    with contextlib.suppress(CorpusError):
        list(read_lines(path))
    lines = read_lines(path)
    next(lines)
    lines.close()
    assert next(lines, "ended") == "ended"
    assert lines.count_rest() == 1


# ---- clean


@given(st.text())
def test_cleaning_twice_changes_no_more_than_cleaning_once(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not any(character.isspace() for character in once.replace(" ", ""))
    assert not once.startswith(" ")
    assert not once.endswith(" ")
    assert "  " not in once


@given(st.text(st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"])))
def test_cleaning_only_normalises_what_is_not_blank(text: str) -> None:
    assert clean(text) == unicodedata.normalize("NFC", text)


def test_both_spellings_of_an_accent_are_one_c052() -> None:
    for sentence in ("Äpfel sind süß", "café", "한국어", "Đặng Thị"):
        assert clean(unicodedata.normalize("NFD", sentence)) == clean(sentence)


def test_tabs_and_repeated_blanks_become_one_blank_c032_c034() -> None:
    assert clean("  a\tb \u00a0\u3000 c  ") == "a b c"


def test_direction_marks_joiners_and_case_stay_c048() -> None:
    for text in ("\u200fשלום\u200e", "می\u200cخواهم", "a\u200db", "Ⅷ ½ ﬁ ＡＢ", "a\ufeffb", "\u2066x\u2069"):
        assert clean(text) == text
