"""Claims about aligned pairs: line i belongs to line i whatever happens, nothing goes missing in silence, and a split
never puts one source on two sides.

A name with c018 and the like in it is a claim about a failure that users of comparable tools reported.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import numbered_pairs, run_python, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq.config.schema import DataConfig, PairFiles
from seq2seq.corpus.lines import BadLines
from seq2seq.corpus.pairs import ParallelCorpus
from seq2seq.corpus.splits import Corpora, open_corpora
from seq2seq.errors import CorpusError

BASE = numbered_pairs()
SOURCES, TARGETS = [source for source, _ in BASE], [target for _, target in BASE]

Content = bytes | Sequence[str]


def as_bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else "".join(f"{line}\n" for line in content).encode()


def two_files(folder: Path, source: Content = SOURCES, target: Content = TARGETS, suffix: str = "") -> PairFiles:
    paths = folder / f"train.en{suffix}", folder / f"train.de{suffix}"
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(as_bytes(content))
    return PairFiles(source=str(paths[0]), target=str(paths[1]))


def table(folder: Path, rows: Sequence[str], columns: tuple[int, int] = (1, 2)) -> PairFiles:
    path = folder / "train.tsv"
    path.write_bytes(as_bytes(rows))
    return PairFiles(tsv=str(path), columns=columns)


def corpus_of(*files: PairFiles, bad_lines: BadLines = "refuse") -> ParallelCorpus:
    return ParallelCorpus(files, key="data.train", bad_lines=bad_lines)


def aligned(pairs: list[tuple[str, str]]) -> bool:
    """Whether both sides of every pair carry the same number."""
    return all(re.findall(r"\d+", source)[0] == re.findall(r"\d+", target)[0] for source, target in pairs)


def changed(lines: list[str], changes: dict[int, str]) -> list[str]:
    """The lines with some of them, counted from 1, replaced."""
    return [changes.get(number, line) for number, line in enumerate(lines, start=1)]


# ---- two files


def test_a_corpus_reads_as_it_was_written_again_and_again(tmp_path: Path) -> None:
    corpus = corpus_of(two_files(tmp_path))
    for _ in range(2):
        assert list(corpus) == BASE
        assert (corpus.report.read, corpus.report.kept) == (160, 160)
        assert corpus.report.messages() == []


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\v", "\f", "\r", "\x1c", "\x1e", "\t", " \u00a0 "])
def test_what_looks_like_a_line_end_is_a_blank_c001_c007_c032(tmp_path: Path, separator: str) -> None:
    with_separators = [
        line.replace(" ", separator, 1) if n in (3, 80, 160) else line for n, line in enumerate(SOURCES, 1)
    ]
    assert list(corpus_of(two_files(tmp_path, with_separators))) == BASE


def test_line_ends_marks_and_outer_blanks_change_no_pair_c005_c009_c011_c034(tmp_path: Path) -> None:
    spaced = changed(SOURCES, {7: f"  {SOURCES[6]}", 8: f"{SOURCES[7]}   ", 9: SOURCES[8].replace(" ", "  ")})
    variants: list[tuple[Content, Content]] = [
        ("\r\n".join([*SOURCES, ""]).encode(), TARGETS),
        (SOURCES, "\n".join(TARGETS).encode()),
        (b"\xef\xbb\xbf" + as_bytes(SOURCES), TARGETS),
        (spaced, TARGETS),
    ]
    for source, target in variants:
        assert list(corpus_of(two_files(tmp_path, source, target))) == BASE


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        (SOURCES, TARGETS[:159], ("160", "159")),
        (SOURCES[:1], TARGETS, ("1", "160")),
        (b"", TARGETS, ("0", "160")),
        (SOURCES, b"", ("160", "0")),
        (SOURCES * 200, TARGETS, ("32,000", "160")),
    ],
)
def test_unequal_counts_are_refused_with_both_paths_and_counts_c018(
    tmp_path: Path, source: Content, target: Content, counts: tuple[str, str]
) -> None:
    files = two_files(tmp_path, source, target)
    with pytest.raises(CorpusError) as refused:
        list(corpus_of(files))
    assert f"{files.source} has {counts[0]} lines and {files.target} has {counts[1]};" in str(refused.value)


def test_a_pair_with_a_blank_side_is_dropped_as_a_pair_and_counted_c021(tmp_path: Path) -> None:
    source = changed(SOURCES, {10: "", 50: " \t ", 90: "\u3000"})
    corpus = corpus_of(two_files(tmp_path, source))
    pairs = list(corpus)
    assert len(pairs) == 157
    assert aligned(pairs)
    assert (corpus.report.read, corpus.report.kept, corpus.report.blank) == (160, 157, 3)
    assert corpus.report.messages() == ["3 pairs dropped: one side is blank (data.train.source lines 10, 50, 90)"]


def test_only_the_first_places_are_named_and_each_side_by_its_setting_c021(tmp_path: Path) -> None:
    corpus = corpus_of(two_files(tmp_path, changed(SOURCES, {5: ""}), changed(TARGETS, dict.fromkeys(range(1, 9), ""))))
    assert len(list(corpus)) == 152
    places = "data.train.target lines 1, 2, 3, 4; data.train.source line 5, ..."
    assert corpus.report.messages() == [f"8 pairs dropped: one side is blank ({places})"]


def test_repeated_pairs_and_second_translations_are_kept_c036(tmp_path: Path) -> None:
    more = [BASE[0], BASE[0], BASE[1], (SOURCES[2], "Etwas anderes.")]
    files = two_files(tmp_path, SOURCES + [s for s, _ in more], TARGETS + [t for _, t in more])
    assert list(corpus_of(files)) == BASE + more


def test_both_spellings_of_an_accent_make_the_same_pair_c052(tmp_path: Path) -> None:
    files = two_files(tmp_path, ["cafe\u0301", "café"], ["Ka\u0308se", "Käse"])
    first, second = corpus_of(files)
    assert first == second == ("café", "Käse")


def test_an_empty_corpus_is_refused_c043(tmp_path: Path) -> None:
    files = two_files(tmp_path, b"", b"")
    with pytest.raises(CorpusError, match="There are no training pairs") as refused:
        list(corpus_of(files))
    assert str(files.source) in str(refused.value)
    assert str(files.target) in str(refused.value)


def test_a_corpus_of_blank_pairs_is_refused_with_the_reason_c043(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"There are no training pairs .* 2 pairs dropped: one side is blank"):
        list(corpus_of(two_files(tmp_path, ["", "a"], ["b", " "])))


def test_packed_files_pair_like_plain_ones_c038_c040(tmp_path: Path) -> None:
    half = len(as_bytes(SOURCES)) // 2
    for pack in (gzip.compress, lambda content: gzip.compress(content[:half]) + gzip.compress(content[half:])):
        packed = two_files(tmp_path, pack(as_bytes(SOURCES)), pack(as_bytes(TARGETS)), ".gz")
        assert list(corpus_of(packed)) == BASE


@pytest.mark.parametrize("cut_side", ["source", "target"])
def test_a_cut_archive_is_called_that_and_not_a_count_mismatch_c039(tmp_path: Path, cut_side: str) -> None:
    content = {"source": gzip.compress(as_bytes(SOURCES)), "target": gzip.compress(as_bytes(TARGETS))}
    content[cut_side] = content[cut_side][: len(content[cut_side]) * 6 // 10]
    files = two_files(tmp_path, content["source"], content["target"], ".gz")
    with pytest.raises(CorpusError, match=re.escape(f"{getattr(files, cut_side)} is cut short")):
        list(corpus_of(files))


def test_several_files_follow_one_another_and_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    corpus = corpus_of(two_files(tmp_path), table(tmp_path / "more", ["eins\tone", "\tnothing"]))
    assert list(corpus) == [*BASE, ("eins", "one")]
    assert corpus.report.messages() == ["1 pair dropped: one side is blank (data.train[1].tsv line 2)"]


def test_one_file_as_both_sides_is_said(tmp_path: Path) -> None:
    path = str(write_lines(tmp_path / "same.en", ["a", "b"]))
    corpus = corpus_of(PairFiles(source=path, target=path))
    assert list(corpus) == [("a", "a"), ("b", "b")]
    assert "the same file" in corpus.report.messages()[0]


# ---- bad lines


def test_bad_lines_are_refused_dropped_as_pairs_or_repaired_and_counted_c014_c056(tmp_path: Path) -> None:
    source = as_bytes(SOURCES).replace(b" 30 ", b" 30\0 ").replace(b" 31 ", b" 31\0 ")
    target = as_bytes(TARGETS).replace(b" 30 ", b" \xe9 30 ").replace(b" 42 ", b" 42 \0")
    files = two_files(tmp_path, source, target)
    with pytest.raises(CorpusError, match=re.escape(f"{files.source} line 30 holds a NUL byte")):
        list(corpus_of(files))

    dropping = corpus_of(files, bad_lines="drop")
    pairs = list(dropping)
    assert pairs == [pair for number, pair in enumerate(BASE, 1) if number not in (30, 31, 42)]
    assert (dropping.report.read, dropping.report.kept, dropping.report.bad) == (160, 157, 3)
    assert dropping.report.messages()[0].startswith("3 pairs dropped: a line is not UTF-8")

    repairing = corpus_of(files, bad_lines="repair")
    pairs = list(repairing)
    assert len(pairs) == 160
    assert aligned(pairs)
    assert pairs[29] == (SOURCES[29], TARGETS[29].replace(" 30 ", " \ufffd 30 "))
    assert repairing.report.repaired == 4
    assert repairing.report.messages()[0].startswith("4 lines repaired")


# ---- tables


def test_two_columns_are_the_pairs_and_further_ones_are_not_read_c024_c025(tmp_path: Path) -> None:
    assert list(corpus_of(table(tmp_path, [f"{s}\t{t}" for s, t in BASE]))) == BASE
    assert (
        list(corpus_of(table(tmp_path, [f"{s}\t{t}\tCC-BY attribution #{i}" for i, (s, t) in enumerate(BASE)]))) == BASE
    )


def test_columns_are_chosen_by_number_from_one(tmp_path: Path) -> None:
    rows = [f"id {i}\t{t}\t\t{s}" for i, (s, t) in enumerate(BASE)]
    assert list(corpus_of(table(tmp_path, rows, columns=(4, 2)))) == BASE


def test_a_row_without_the_columns_is_refused_or_dropped_c026(tmp_path: Path) -> None:
    files = table(tmp_path, changed([f"{s}\t{t}" for s, t in BASE], {34: "no tab here", 121: "nor here"}))
    with pytest.raises(CorpusError, match=re.escape(f"{files.tsv} line 34 has no column 2")):
        list(corpus_of(files))
    for bad_lines in ("drop", "repair"):
        corpus = corpus_of(files, bad_lines=bad_lines)
        pairs = list(corpus)
        assert len(pairs) == 158
        assert aligned(pairs)
        assert corpus.report.bad == 2
        assert "data.train.tsv lines 34, 121" in corpus.report.messages()[0]


def test_quotes_are_text_c029(tmp_path: Path) -> None:
    quoted = [('"' + s if n in (5, 60) else s, t + '"' if n == 100 else t) for n, (s, t) in enumerate(BASE, 1)]
    assert list(corpus_of(table(tmp_path, [f"{s}\t{t}" for s, t in quoted]))) == quoted


def test_empty_rows_and_cells_of_a_table_are_blank_pairs_c021(tmp_path: Path) -> None:
    corpus = corpus_of(table(tmp_path, ["a\tb", "", "\t", "c\t", "\td", "e\tf", ""]))
    assert list(corpus) == [("a", "b"), ("e", "f")]
    assert (corpus.report.read, corpus.report.blank, corpus.report.bad) == (7, 5, 0)


# ---- splits


def data_config(**parts: object) -> DataConfig:
    return DataConfig.model_validate({"source_language": "en", "target_language": "de", **parts})


def as_settings(files: PairFiles) -> dict[str, object]:
    return files.model_dump()


def sides(corpora: Corpora) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[tuple[str, str]]]:
    return list(corpora.train), list(corpora.validation), list(corpora.test or ())


@given(
    sources=st.lists(st.sampled_from("abcdefghijklmnop"), min_size=12, max_size=60),
    validation=st.floats(0.01, 0.4),
    test=st.floats(0.01, 0.4),
    seed=st.integers(0, 2**31 - 1),
)
@settings(max_examples=40, deadline=None)
def test_fractions_part_the_sources_and_lose_no_pair(
    tmp_path_factory: pytest.TempPathFactory, sources: list[str], validation: float, test: float, seed: int
) -> None:
    distinct = len(set(sources))
    wanted = [max(1, round(validation * distinct)), max(1, round(test * distinct))]
    files = two_files(tmp_path_factory.mktemp("split"), sources, [f"{s}{n}" for n, s in enumerate(sources)])
    data = data_config(train=as_settings(files), validation={"fraction": validation}, test={"fraction": test})
    if sum(wanted) >= distinct:
        with pytest.raises(CorpusError, match="leave none to train on"):
            open_corpora(data, seed)
        return
    parts = sides(open_corpora(data, seed))
    held = [{source for source, _ in part} for part in parts]
    assert [len(held[1]), len(held[2])] == wanted
    assert not held[0] & held[1]
    assert not held[0] & held[2]
    assert not held[1] & held[2]
    assert sorted(pair for part in parts for pair in part) == sorted(
        zip(sources, [f"{s}{n}" for n, s in enumerate(sources)], strict=True)
    )


def test_sources_that_differ_in_case_or_blanks_only_stay_together(tmp_path: Path) -> None:
    sources = [form for n in range(40) for form in (f"Satz {n}", f"SATZ  {n}", f" satz {n} ")]
    files = two_files(tmp_path, sources, [f"t{n}" for n in range(120)])
    parts = sides(open_corpora(data_config(train=as_settings(files), validation={"fraction": 0.25}), seed=3))
    assert len(parts[1]) == 30
    assert not {s.casefold() for s, _ in parts[0]} & {s.casefold() for s, _ in parts[1]}


def test_a_split_depends_on_the_seed_and_on_nothing_else(tmp_path: Path) -> None:
    files = two_files(tmp_path)
    data = data_config(train=as_settings(files), validation={"fraction": 0.1})
    first = list(open_corpora(data, seed=1).validation)
    assert len(first) == 16
    assert first == list(open_corpora(data, seed=1).validation)
    assert first != list(open_corpora(data, seed=2).validation)
    code = (
        "from seq2seq.config.schema import DataConfig\n"
        "from seq2seq.corpus.splits import open_corpora\n"
        f"data = DataConfig.model_validate_json({data.model_dump_json()!r})\n"
        "print([source for source, _ in open_corpora(data, 1).validation])\n"
    )
    for hash_seed in ("0", "7"):
        assert run_python("-c", code, env={"PYTHONHASHSEED": hash_seed}).out.strip() == str([s for s, _ in first])


def test_what_is_dropped_is_counted_on_one_side_of_a_split_only(tmp_path: Path) -> None:
    source = as_bytes(changed(SOURCES, {10: "", 11: ""})).replace(b" 42 ", b" \xff ").replace(b" 43 ", b" \xff ")
    files = two_files(tmp_path, source, changed(TARGETS, {90: ""}))
    data = data_config(train=as_settings(files), validation={"fraction": 0.2}, test={"fraction": 0.2}, bad_lines="drop")
    corpora = open_corpora(data, seed=1)
    parts = sides(corpora)
    assert corpora.test is not None
    reports = [corpora.train.report, corpora.validation.report, corpora.test.report]
    assert sum(report.read for report in reports) == 160
    assert sum(report.blank for report in reports) == 3
    assert sum(report.bad for report in reports) == 2
    assert sum(map(len, parts)) == 155
    # The files are named by the setting that names them, whichever part lost the pair.
    assert all("(data.train." in message for report in reports for message in report.messages())


def test_validation_and_test_files_are_read_as_they_are(tmp_path: Path, base_corpus: Path) -> None:
    def named(part: str) -> dict[str, str]:
        return {"source": str(base_corpus / f"{part}.en"), "target": str(base_corpus / f"{part}.de")}

    corpora = open_corpora(data_config(train=named("train"), validation=named("val"), test=[named("test")]), seed=1)
    assert tuple(map(len, sides(corpora))) == (160, 20, 20)
    assert open_corpora(data_config(train=named("train"), validation=named("val")), seed=1).test is None
    half = open_corpora(data_config(train=named("train"), validation=named("val"), test={"fraction": 0.5}), seed=1)
    assert tuple(map(len, sides(half))) == (80, 20, 80)


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ({"train": {"source": "{}/gone.en", "target": "{}/train.de"}}, "data.train.source"),
        ({"train": [{"tsv": "{}/t.tsv"}, {"tsv": "{}/gone.tsv"}]}, "data.train[1].tsv"),
        ({"validation": {"source": "{}/train.en", "target": "{}/gone.de"}}, "data.validation.target"),
        ({"test": [{"source": "{}/train.en", "target": "{}"}]}, "data.test.target"),
    ],
)
def test_a_missing_file_is_refused_by_key_and_full_path_before_anything_is_read_c135(
    tmp_path: Path, part: dict[str, object], key: str
) -> None:
    files = two_files(tmp_path, SOURCES, TARGETS[:3])  # reading them would be refused for another reason
    write_lines(tmp_path / "t.tsv", ["a\tb"])
    settings = {"train": as_settings(files), "validation": as_settings(files), **part}
    data = DataConfig.model_validate_json(data_config(**settings).model_dump_json().replace("{}", str(tmp_path)))
    with pytest.raises(CorpusError) as refused:
        open_corpora(data, seed=1)
    assert str(refused.value).startswith(f"{key}: ")
    assert str(tmp_path) in str(refused.value)


def test_a_fraction_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    files = two_files(tmp_path, ["same"] * 5, list("abcde"))
    with pytest.raises(CorpusError, match=r"data\.validation\.fraction 0\.02 of 1 different source"):
        open_corpora(data_config(train=as_settings(files), validation={"fraction": 0.02}), seed=1)


# ---- real corpora


def test_tatoeba_splits_with_no_source_on_two_sides_c025(corpora: Path) -> None:
    data = data_config(
        train={"tsv": str(corpora / "tatoeba" / "cmn-eng.tsv")}, validation={"fraction": 0.02}, test={"fraction": 0.02}
    )
    parts = sides(open_corpora(data, seed=1))
    assert sum(map(len, parts)) == 26_388
    held = [{source.casefold() for source, _ in part} for part in parts]
    assert not held[0] & held[1]
    assert not held[0] & held[2]
    assert not held[1] & held[2]
    everything = len(held[0]) + len(held[1]) + len(held[2])
    assert len(held[1]) == len(held[2]) == round(0.02 * everything)
    assert not any("tatoeba.org" in target for part in parts for _, target in part)


def test_multi30k_reads_whole(corpora: Path) -> None:
    folder = corpora / "multi30k"
    corpus = corpus_of(PairFiles(source=str(folder / "train.en"), target=str(folder / "train.de")))
    assert sum(1 for _ in corpus) == 29_000
    assert corpus.report.messages() == []
