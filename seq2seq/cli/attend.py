"""`seq2seq attend`: translate, and show where the model looked while it wrote each word."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from seq2seq.cli.decoding import batch_size, beam_width
from seq2seq.cli.outputs import check_output
from seq2seq.cli.translate import in_parts, refuse_nonsense

if TYPE_CHECKING:
    from seq2seq.config.schema import Config
    from seq2seq.evaluation.attention_report.page import About
    from seq2seq.evaluation.attention_report.sentences import Sentence
    from seq2seq.translation.translator import Translator

SUMMARY = "Translates and shows where the model looked for each word: a page, pictures, links or numbers."
EXAMPLES = """
seq2seq attend runs/en-de test.en --output report.html --png pictures
echo 'A man sleeps on a couch.' | seq2seq attend runs/en-de            (writes attention.html)
seq2seq attend runs/en-de test.en --pharaoh > links.txt
echo 'A man sleeps on a couch.' | seq2seq attend runs/en-de --explain
"""

PAGE = "attention.html"
_BATCHES_AHEAD = 8
# A page of more sentences opens slowly.
_LARGE_PAGE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "run_folder", metavar="RUN", help="the folder of a run (its best checkpoint), or RUN/best or RUN/last"
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="text to translate, also .gz or .xz (default: standard input)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help=f"where the page goes (default: {PAGE}, if nothing else is asked for)",
    )
    parser.add_argument("--png", metavar="DIR", help="a picture of each sentence into this folder (extra `plot`)")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print pieces, words and weights, an object a line")
    printed.add_argument(
        "--pharaoh", action="store_true", help="print the strongest links, such as 0-0 1-2, a line each"
    )
    printed.add_argument("--explain", action="store_true", help="print what is computed, with the numbers of one step")
    parser.add_argument(
        "--units",
        choices=("words", "pieces"),
        default="words",
        help="what is linked and drawn: words (default) or pieces; the page has a switch",
    )
    parser.add_argument("--beam", type=beam_width, metavar="N", help="hypotheses kept side by side; 1 is greedy search")
    parser.add_argument("--batch-size", type=batch_size, metavar="N", help="sentences translated together")
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu, cuda, cuda:N or mps (default: auto)")


def run(args: argparse.Namespace) -> int:
    """Translates everything that comes in and writes what was asked for; without --json and the like it prints the
    translations, as `translate` does."""
    from seq2seq.errors import CorpusError
    from seq2seq.runs import RunFolder, run_of

    folder, _ = run_of(Path(args.run_folder))
    found_run = RunFolder.open(folder)
    only_printed = args.png or args.json or args.pharaoh or args.explain
    page = args.output if args.output is not None else None if only_printed else PAGE
    _check_outputs(page, args)
    from seq2seq.model.device import keep_freed_memory
    from seq2seq.translation.opening import run_config
    from seq2seq.translation.translator import Translator

    config = run_config(found_run)
    keep_freed_memory()
    translator = Translator.load(Path(args.run_folder), device=args.device)
    kept, notes = [], set()
    for sentence in _sentences(translator, args):
        _print(sentence, config, args)
        if args.png is not None:
            notes |= _draw(sentence, args)
        if page is not None:
            kept.append(sentence)
    for note in sorted(notes):
        print(f"seq2seq: {note}", file=sys.stderr)
    if page is not None and not kept:
        raise CorpusError(f"There is no sentence in {args.file or 'standard input'}, so {page} was not written.")
    if page is not None:
        _write_page(Path(page), kept, _about(folder, config), args.units)
    return 0


def _check_outputs(page: str | None, args: argparse.Namespace) -> None:
    """What cannot be written is told before anything is translated."""
    from seq2seq.errors import RunError

    check_output(page, [args.file])
    if args.png is not None:
        from seq2seq.evaluation.curves import require_matplotlib

        require_matplotlib()
        if Path(args.png).exists() and not Path(args.png).is_dir():
            raise RunError(f"--png {args.png} is a file; name a folder for the pictures.")
        Path(args.png).mkdir(parents=True, exist_ok=True)


def _sentences(translator: Translator, args: argparse.Namespace) -> Iterator[Sentence]:
    from seq2seq.evaluation.attention_report.sentences import attended

    most = _BATCHES_AHEAD * (args.batch_size or translator.decoding.batch_size)
    unscored, split = 0, []
    for first, lines in _chunks(args.file, most):
        how = {"beam_size": args.beam, "batch_size": args.batch_size, "first": first}
        for translation, sentence in attended(translator, lines, **how):
            unscored += not translation.is_finite
            if translation.parts > 1:
                split.append(sentence.number)
            yield sentence
    if split:
        print(f"seq2seq: {in_parts(len(split), split, translator.longest_source)}", file=sys.stderr)
    refuse_nonsense(unscored, args.run_folder)


def _chunks(file: str | None, most: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of the input, so many at a time, each time with the number of the first."""
    from seq2seq.corpus.lines import read_lines

    if file is None and sys.stdin.isatty():
        print("Type sentences, one a line; Ctrl-D ends.", file=sys.stderr)
    name = "standard input" if file is None else file
    source = sys.stdin.buffer if file is None else file
    chunk: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(source, name=name, advice="Convert the text to UTF-8."), start=1):
        chunk.append(line or "")
        if len(chunk) == most:
            yield number - most + 1, chunk
            chunk = []
    if chunk:
        yield number - len(chunk) + 1, chunk


def _print(sentence: Sentence, config: Config, args: argparse.Namespace) -> None:
    out: IO[str] = sys.stdout
    if args.json:
        out.write(json.dumps(sentence.as_dict(), ensure_ascii=False) + "\n")
    elif args.pharaoh:
        from seq2seq.evaluation.attention_report.links import pharaoh

        out.write(pharaoh(sentence, args.units) + "\n")
    elif args.explain:
        from seq2seq.evaluation.attention_report.explain import explain, parameters
        from seq2seq.evaluation.attention_report.terminal import as_text

        for part in sentence.parts:
            found = explain(part, config.model.attention.kind)
            out.write(f"{sentence.source}\n{sentence.translation}\n\n")
            out.write(as_text(found, parameters(part.look.attention, found.kind)) + "\n")
    else:
        out.write(sentence.translation + "\n")


def _draw(sentence: Sentence, args: argparse.Namespace) -> set[str]:
    """Draws the sentence; what is to be said about it."""
    from seq2seq.evaluation.attention_report.picture import draw

    notes = set()
    for place, part in enumerate(sentence.parts, start=1):
        name = f"{sentence.number:04}" + (f"-{place}" if len(sentence.parts) > 1 else "") + ".png"
        notes.add(draw(part, Path(args.png) / name, args.units))
    return {note for note in notes if note is not None}


def _about(folder: Path, config: Config) -> About:
    from seq2seq.evaluation.attention_report.page import About

    attention, decoder = config.model.attention, config.model.decoder
    heads = f" with {attention.heads} heads" if attention.kind == "multi_head" else ""
    source, target = config.data.source_language, config.data.target_language
    facts = f"{source} → {target}; {attention.kind} attention{heads}, {decoder.kind} decoder"
    return About(folder.resolve().name, attention.kind, source, target, facts)


def _write_page(path: Path, sentences: list[Sentence], about: About, units: str) -> None:
    from seq2seq.evaluation.attention_report.page import page
    from seq2seq.files import write_file

    if len(sentences) > _LARGE_PAGE:
        print(f"seq2seq: a page of {len(sentences):,} sentences opens slowly; give fewer lines", file=sys.stderr)
    write_file(path, page(sentences, about, units))
    count = "1 sentence" if len(sentences) == 1 else f"{len(sentences):,} sentences"
    print(f"seq2seq: {path} shows {count}; open it in a browser", file=sys.stderr)
