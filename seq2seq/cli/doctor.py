"""`seq2seq doctor`: examine a corpus before it costs a night, say what is wrong with it and where; change nothing."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seq2seq.config.schema import Config, DataConfig, TokenizerConfig
    from seq2seq.diagnosis.examination import Corpus, Examined
    from seq2seq.diagnosis.findings import Finding

SUMMARY = "Examines a corpus: slips, duplicates, leaks, wrong languages, damage; can write a clean copy."
EXAMPLES = """
seq2seq doctor my.yaml
seq2seq doctor train.en train.de --source-language en --target-language de
seq2seq doctor pairs.tsv --columns 1,2 --source-language en --target-language zh --vocab-size 4000 --vocab-size 8000
seq2seq doctor my.yaml --write-clean clean
"""

_CONFIG_SUFFIXES = (".yaml", ".yml")
_TRAIN_READS = 200_000  # lines of a file that `train` and `check` have examined
_TABLE_SHOWS = 100  # lines in which a table has a tab
_TRAIN_SAYS = 5  # lines about them at the most


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "corpus",
        nargs="+",
        metavar="CORPUS",
        help="a config (.yaml), or a source and a target file, or a table of tab-separated columns",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting of a config"
    )
    parser.add_argument(
        "--source-language", type=_language, metavar="CODE", help="such as en (default: the suffix of the file)"
    )
    parser.add_argument("--target-language", type=_language, metavar="CODE", help="such as de (default: the same)")
    parser.add_argument(
        "--columns", type=table_columns, metavar="S,T", help="the columns of a table, counted from 1 (default: 1,2)"
    )
    parser.add_argument("--examples", type=_count, default=3, metavar="N", help="lines shown of a finding (default: 3)")
    parser.add_argument(
        "--vocab-size",
        type=_count,
        action="append",
        default=[],
        metavar="N",
        help="try a vocabulary of this size; may be given again (default: tokenizer.vocab_size)",
    )
    parser.add_argument("--no-vocabulary", action="store_true", help="try none, which takes the longest")
    parser.add_argument(
        "--write-clean", metavar="DIR", help="write the sound training pairs to DIR, and a list of the others"
    )
    parser.add_argument("--strict", action="store_true", help="end with status 2 if there is an error")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _language(text: str) -> str:
    if not re.fullmatch("[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language code such as en, zh or pt_BR")
    return text


def table_columns(text: str) -> tuple[int, int]:
    """1,2 as numbers."""
    found = re.fullmatch("([1-9][0-9]{0,5}),([1-9][0-9]{0,5})", text)
    if found is None or found[1] == found[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is not two different column numbers such as 1,2")
    return int(found[1]), int(found[2])


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,7}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number such as 8000")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Examines and prints."""
    began, worked = time.monotonic(), time.process_time()
    config = _config(args)
    from seq2seq.cli.doctor_report import as_json, report, visible
    from seq2seq.diagnosis.examination import Corpus, examine

    corpus = _corpus(args) if config is None else Corpus.of(config.data)
    folder = None if args.write_clean is None else _clean_folder(Path(args.write_clean), corpus)
    examined = examine(corpus, shown=args.examples, stage=_stage)
    if not args.no_vocabulary:
        _try_vocabularies(args, config, examined)
    cleaned = None
    if folder is not None:
        from seq2seq.diagnosis.cleaning import write_clean

        _stage("writing a clean copy")
        cleaned = write_clean(examined, folder, corpus.languages)
    cost = {
        "seconds": round(time.monotonic() - began, 2),
        "processor_seconds": round(time.process_time() - worked, 2),
        "peak_memory_mb": _peak_memory(),
    }
    _stage("")
    if args.json:
        print(json.dumps(as_json(examined, cleaned, cost), ensure_ascii=False))
    else:
        for line in report(examined, cleaned):
            print(visible(line))
        memory = "" if cost["peak_memory_mb"] is None else f", {cost['peak_memory_mb']:,.0f} MiB of memory"
        print(f"\nExamined in {cost['seconds']:.1f} s ({cost['processor_seconds']:.1f} s of processor time){memory}.")
    return 2 if args.strict and examined.diagnosis.count("error") else 0


# -- what is examined -------------------------------------------------------------------------------------------------


def _config(args: argparse.Namespace) -> Config | None:
    """The config that was named, or None where files were."""
    from seq2seq.errors import ConfigError

    given = args.corpus
    if len(given) > 2:
        raise ConfigError(
            f"Two files are compared, source and target; {len(given)} are given. See: seq2seq doctor --help"
        )
    if len(given) == 1 and given[0].lower().endswith(_CONFIG_SUFFIXES):
        for option, value in (
            ("--columns", args.columns),
            ("--source-language", args.source_language),
            ("--target-language", args.target_language),
        ):
            if value is not None:
                raise ConfigError(f"{option} belongs to files; {given[0]} is a config, which says it itself.")
        from seq2seq.config.loading import load_config

        return load_config(Path(given[0]), args.set)
    if args.set:
        raise ConfigError(
            f"--set {args.set[0]} belongs to a config, and {given[0]} is none (it does not end in .yaml)."
        )
    if args.columns is not None and len(given) == 2:
        raise ConfigError("--columns belongs to a table; two files are given.")
    return None


def _corpus(args: argparse.Namespace) -> Corpus:
    from seq2seq.config.schema import PairFiles
    from seq2seq.diagnosis.characters import scripts_of
    from seq2seq.diagnosis.examination import Corpus

    def suffix(path: str) -> str | None:
        name = re.sub(r"\.(gz|xz)$", "", path)
        code = Path(name).suffix[1:]
        return code if scripts_of(code) is not None else None

    given = args.corpus
    if len(given) == 1:
        if args.columns is None:
            _refuse_half_a_corpus(given[0])
        files = PairFiles(tsv=given[0], columns=args.columns or (1, 2))
        return Corpus({"train": (files,)}, (args.source_language, args.target_language))
    files = PairFiles(source=given[0], target=given[1])
    languages = args.source_language or suffix(given[0]), args.target_language or suffix(given[1])
    return Corpus({"train": (files,)}, languages)


def _refuse_half_a_corpus(path: str) -> None:
    """ConfigError where a file that is given alone has no tab in its first lines: its translation was forgotten."""
    from seq2seq.corpus.lines import read_lines
    from seq2seq.errors import ConfigError, CorpusError

    if Path(path).exists() and not Path(path).is_file():
        return  # a folder or a pipe, which is refused as such
    first: list[str] = []
    # What cannot be read is examined as far as it goes.
    with closing(read_lines(path, bad_lines="repair")) as lines, contextlib.suppress(CorpusError):
        first += filter(None, islice(lines, _TABLE_SHOWS))
    if first and not any("\t" in line for line in first):
        raise ConfigError(
            f"{path} has no tab in its first lines, as a table would: give the second file too, or --columns if it is "
            "a table all the same."
        )


def _clean_folder(folder: Path, corpus: Corpus) -> Path:
    """The folder for a clean copy, made if need be; RunError where it would take the place of anything else."""
    from seq2seq.diagnosis.cleaning import clean_files
    from seq2seq.errors import RunError

    written = clean_files(folder, corpus.languages)
    for files in (one for part in corpus.parts.values() for one in part):
        for _, path in files.files():
            for output in written:
                if output.exists() and path.exists() and output.samefile(path):
                    raise RunError(
                        f"--write-clean {folder} would write over {path}, which is read; name another folder."
                    )
    for output in written:
        if output.exists():
            raise RunError(f"--write-clean {folder} holds a file {output.name} already; name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _try_vocabularies(args: argparse.Namespace, config: Config | None, examined: Examined) -> None:
    from seq2seq.config.schema import TokenizerConfig
    from seq2seq.diagnosis.vocabulary import sample, try_vocabulary

    settings: TokenizerConfig = TokenizerConfig() if config is None else config.tokenizer
    if settings.kind != "sentencepiece":
        return  # its pieces are words, and their number follows from the text
    max_length = 100 if config is None else config.data.max_length
    train = examined.texts["train"]
    held_out = [text for part, texts in examined.texts.items() if part != "train" for text in texts]
    learnt, measured = sample(train, held_out)
    if not learnt or not measured:
        return
    for size in args.vocab_size or [settings.vocab_size]:
        _stage(f"trying a vocabulary of {size:,}")
        examined.vocabularies.append(try_vocabulary(settings, size, learnt, measured, max_length))


def _stage(what: str) -> None:
    """What is being done, for a person who waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _peak_memory() -> float | None:
    """The most memory that this process has held, in MiB; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


# -- for `train` and `check` -------------------------------------------------------------------------------------------


def quick_warnings(data: DataConfig, where: Sequence[str]) -> tuple[list[str], int]:
    """What the quick part of the examination finds that is worth a look, in five lines at the most, and how many of
    all findings are errors; often nothing.

    `where` are the arguments with which `seq2seq doctor` says more.
    """
    from seq2seq.cli.doctor_report import visible
    from seq2seq.diagnosis.examination import Corpus, examine

    findings = examine(Corpus.of(data), shown=1, most=_TRAIN_READS).diagnosis.findings
    grave = [finding for finding in findings if finding.level != "note"]
    if not grave:
        return [], 0
    room = _TRAIN_SAYS - 1
    lines = [visible(_in_a_line(finding)) for finding in grave[:room]]
    errors = sum(finding.level == "error" for finding in grave)
    more = f"{len(grave) - room} more, and where: " if len(grave) > room else "where: "
    return [*lines, f"doctor      {more}{shlex.join(['seq2seq', 'doctor', *where])}"], errors


def _in_a_line(finding: Finding) -> str:
    from seq2seq.cli.doctor_report import where

    first = f", first line {finding.places[0].line:,}" if finding.places else ""
    return f"doctor      {finding.level}: {finding.count:,} {finding.title} ({where(finding)}{first})"
