"""`seq2seq suggest`: look at a corpus, and write a config that suits it."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.cli.doctor import table_columns

if TYPE_CHECKING:
    from seq2seq.config.schema import PairFiles

SUMMARY = "Looks at a corpus and writes a config for it, with a reason beside each choice."
EXAMPLES = """
seq2seq suggest train.en train.de --output my.yaml
seq2seq suggest train.en train.de --validation val.en val.de --test test.en test.de --output my.yaml
seq2seq suggest pairs.tsv --source-language en --target-language zh
seq2seq suggest pairs.tsv --columns 2,1 --source-language zh --target-language en
"""

_LOOKED_AT = 100  # lines of what should be a table
_CODE = re.compile(r"[a-z]{2,3}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="two files, source and target, of which line n translates line n; or one table with tabs",
    )
    parser.add_argument("--source-language", metavar="CODE", help="such as en (default: as the file's name ends)")
    parser.add_argument("--target-language", metavar="CODE", help="such as de")
    parser.add_argument(
        "--columns", type=table_columns, metavar="S,T", default=(1, 2), help="of a table, from 1 (default: 1,2)"
    )
    parser.add_argument(
        "--validation", nargs="+", metavar="FILE", help="files of their own; otherwise a part is split off"
    )
    parser.add_argument("--test", nargs="+", metavar="FILE", help="the same for the test set")
    parser.add_argument("--run", metavar="DIR", help="the run folder to write down (default: runs/SOURCE-TARGET)")
    parser.add_argument("--output", metavar="FILE", help="where the config goes (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Surveys, and prints or writes the config."""
    from seq2seq.cli.outputs import check_output
    from seq2seq.config.loading import parse_config
    from seq2seq.errors import ConfigError, CorpusError
    from seq2seq.files import write_file
    from seq2seq.suggestion.writing import Request, suggest

    named = [*args.files, *(args.validation or []), *(args.test or [])]
    for path in named:
        if Path(path).is_dir():
            raise CorpusError(f"{path} is a folder; a text file is expected.")
    output = None if args.output is None else Path(args.output)
    check_output(args.output, named)
    if output is not None and output.exists():
        raise ConfigError(f"--output {output} exists already; give another name, or remove it.")
    train = _pair_files(args.files, args.columns, "The corpus")
    request = Request(
        *_languages(args),
        train,
        None if args.validation is None else _pair_files(args.validation, args.columns, "--validation"),
        None if args.test is None else _pair_files(args.test, args.columns, "--test"),
        args.run,
        ["Suggested by `seq2seq suggest`: a place to start from. Settings that are not here have their defaults."],
    )
    text = suggest(request, None if output is None else output.absolute().parent)
    parse_config(text, "the suggestion")  # a language or a path that no config can have is said at once
    if output is None:
        print(text, end="")
        return 0
    write_file(output, text)
    print(f"Wrote {output}. Next: seq2seq check {shlex.quote(str(output))} --time")
    return 0


def _pair_files(files: list[str], columns: tuple[int, int], what: str) -> PairFiles:
    from seq2seq.config.schema import PairFiles
    from seq2seq.errors import ConfigError

    if len(files) > 2:
        raise ConfigError(f"{what} is two files, source and target, or one table; {len(files)} were given.")
    if len(files) == 2:
        return PairFiles(source=files[0], target=files[1])
    _check_table(files[0])
    return PairFiles(tsv=files[0], columns=columns)


def _check_table(path: str) -> None:
    """ConfigError where the only file of a corpus is no table, but one of its two sides."""
    from itertools import islice

    from seq2seq.corpus.lines import read_lines
    from seq2seq.errors import ConfigError

    if not Path(path).is_file():  # a pipe is read once, and a file that is not there has a refusal of its own
        return
    first = [line for line in islice(read_lines(path, bad_lines="drop"), _LOOKED_AT) if line]
    if first and not any("\t" in line for line in first):
        raise ConfigError(
            f"{path} is the only file, so it is read as a table, and its first lines hold no tab; give the file of the "
            "other language as well."
        )


def _languages(args: argparse.Namespace) -> tuple[str, str]:
    """As given, or as the names of the files end; ConfigError where neither says it."""
    from seq2seq.errors import ConfigError

    found = [args.source_language, args.target_language]
    guesses = [_ending(path) for path in args.files] if len(args.files) == 2 else _in_name(args.files[0])
    for side, guess in enumerate(guesses):
        found[side] = found[side] or guess
    for name, language in zip(("--source-language", "--target-language"), found, strict=True):
        if language is None:
            raise ConfigError(f"The names of the files do not tell the languages; give {name}, such as {name} en.")
    return found[0], found[1]


def _ending(path: str) -> str | None:
    """The de of train.de and of train.de.gz."""
    ending = Path(path.removesuffix(".gz").removesuffix(".xz")).suffix[1:].lower()
    return ending if _CODE.fullmatch(ending) and ending not in ("txt", "tsv", "csv") else None


def _in_name(path: str) -> list[str | None]:
    """The en and de of pairs.en-de.tsv and of en-de.tsv."""
    found = re.fullmatch(r"(?:.*[._])?([a-z]{2,3})[-_]([a-z]{2,3})(?:\.(?:tsv|txt|gz|xz))*", Path(path).name)
    return [None, None] if found is None else [found[1], found[2]]
