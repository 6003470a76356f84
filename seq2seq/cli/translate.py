"""`seq2seq translate`: text in, one line of text out per line in; at a terminal a prompt."""

from __future__ import annotations

import argparse
import contextlib
import functools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from seq2seq.cli.decoding import (
    add_model_arguments,
    add_search_arguments,
    beam_width,
    check_search_arguments,
    load_translator,
    open_runs,
    runs_and_file,
)
from seq2seq.cli.outputs import check_output

if TYPE_CHECKING:
    from seq2seq.translation.translator import Translation, Translator

    Work = Callable[[Sequence[str]], Iterator[Translation]]  # lines become translations, in their order

SUMMARY = "Translates a file, standard input, or what is typed at the prompt."
EXAMPLES = """
seq2seq translate runs/en-de test.en --output test.out.de
echo 'A man sleeps on a couch.' | seq2seq translate runs/en-de
seq2seq translate runs/en-de                                   (a prompt; leave it with Ctrl-D)
seq2seq translate runs/en-de test.en --beam 8 --n-best 3
seq2seq translate runs/one runs/two runs/three test.en         (an ensemble)
seq2seq translate runs/en-de test.en --mbr chrf --candidates 40
seq2seq translate runs/en-de book.en --processes 8 --precision int8 --shortlist --output book.de
"""

# So many batches are collected before lines are sorted by length and translated.
_BATCHES_AHEAD = 8
# A pipe that pauses longer than this, in seconds, gets its answers at once; one that never pauses gets them after this.
_PATIENCE = 0.1
_LONGEST_WAIT = 1.0
# Characters that are collected at the most, of lines as long as books.
_MOST_TEXT = 4_000_000
# Times as many parts as lines, from which on parts are counted as well.
_MANY_PARTS = 2
# Numbers of lines named in a message.
_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument(
        "run_folder", metavar="RUN", help="the folder of a run (its best checkpoint), or RUN/best or RUN/last"
    )
    parser.add_argument(
        "more",
        nargs="*",
        default=[],
        metavar="RUN|FILE",
        help="further runs make an ensemble; what is no folder and comes last is the text to translate, also .gz or "
        ".xz (default: standard input)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="where the translations go, also .gz or .xz (default: standard output)"
    )
    parser.add_argument(
        "--n-best",
        type=beam_width,
        default=1,
        metavar="N",
        help="the N best of each line, as `line ||| translation ||| score`; the beam is then N wide at the least",
    )
    parser.add_argument(
        "--processes",
        type=beam_width,
        default=1,
        metavar="N",
        help="so many processes share a big FILE, each with the whole model (default: 1)",
    )
    add_search_arguments(parser)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Translates everything that comes in."""
    from seq2seq.corpus.lines import read_lines

    runs, file = runs_and_file([args.run_folder, *args.more])
    check_search_arguments(args)
    open_runs(runs)  # a misspelt run is said at once, before anything is read
    check_output(args.output, [file, args.dictionary], packs=True)
    total = None
    # A bad line near the end must not cost the work before it, so the whole file is read once before; what a pipe has
    # given it will not give again.
    if file is not None and (Path(file).is_file() or not Path(file).exists()):
        total = sum(1 for _ in read_lines(file, advice="Convert the text to UTF-8."))
    from seq2seq.model.device import keep_freed_memory

    keep_freed_memory()
    translator = load_translator(args, runs)
    if file is None and args.output is None and sys.stdin.isatty():
        return _prompt(translator, args)
    source: str | BinaryIO = _standard_input() if file is None else file
    name = "standard input" if file is None else file
    lines = (line or "" for line in read_lines(source, name=name, advice="Convert the text to UTF-8."))
    with _work(translator, args, runs, several=file is not None) as work:
        if args.output is None:
            _translate_all(translator, work, lines, sys.stdout, args, total)
            return 0
        from seq2seq.files import whole_file

        with whole_file(Path(args.output)) as output:
            _translate_all(translator, work, lines, output, args, total)
    return 0


@contextlib.contextmanager
def _work(translator: Translator, args: argparse.Namespace, runs: list[str], *, several: bool) -> Iterator[Work]:
    """What translates a list of lines: this process, or several."""
    size = args.batch_size or translator.decoding.batch_size
    how = {"beam_size": args.beam, "n_best": args.n_best, "batch_size": size}
    if args.processes == 1 or not several:
        yield lambda lines: translator.translate(lines, **how)
        return
    from seq2seq.translation.processes import SeveralProcesses

    told = argparse.Namespace(**{name: value for name, value in vars(args).items() if not callable(value)})
    processes = SeveralProcesses(functools.partial(load_translator, told, runs), args.processes)
    try:
        yield lambda lines: processes.translate(lines, **how)
    finally:
        processes.end()


def _standard_input() -> BinaryIO:
    """Standard input without Python's own buffer: a thread that waits inside that buffer makes Python abort at exit."""
    return cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


def _translate_all(
    translator: Translator,
    work: Work,
    lines: Iterable[str],
    output: IO[str],
    args: argparse.Namespace,
    total: int | None,
) -> None:
    from tqdm import tqdm

    most = _BATCHES_AHEAD * args.processes * (args.batch_size or translator.decoding.batch_size)
    split: list[int] = []  # the first of them
    number = splits = unscored = 0
    hidden = not sys.stderr.isatty() or (output is sys.stdout and sys.stdout.isatty())
    with tqdm(total=total, unit=" lines", disable=hidden, dynamic_ncols=True, file=sys.stderr) as bar:
        lines_ahead = 0

        def told(done: int, of: int) -> None:
            # The bar counts lines; it would stand still where a line is a book.
            if of > _MANY_PARTS * lines_ahead:
                bar.set_postfix_str(f"{done:,} of {of:,} parts" if done < of else "")

        translator.told = told
        for chunk in _as_they_come(lines, most):
            lines_ahead = len(chunk)
            for translation in work(chunk):
                number += 1
                unscored += not translation.is_finite
                if translation.parts > 1:
                    splits += 1
                    split = split if len(split) == _SHOWN else [*split, number]
                for line in _written(translation, number, args.n_best):
                    output.write(line + "\n")
                bar.update()
            output.flush()
    if splits:
        print(f"seq2seq: {in_parts(splits, split, translator.longest_source)}", file=sys.stderr)
    refuse_nonsense(unscored, args.run_folder)


def refuse_nonsense(count: int, run: str) -> None:
    """CheckpointError where translations were made of numbers that are not finite: they are no translations."""
    if count:
        from seq2seq.errors import CheckpointError

        lines = "1 line" if count == 1 else f"{count:,} lines"
        raise CheckpointError(
            f"The model of {run} gave numbers that are not finite for {lines}, so what it says is no translation; its "
            "training has diverged. Train again with a lower training.learning_rate."
        )


def in_parts(count: int, first: Sequence[int], longest: int) -> str:
    """The warning that so many lines, of which the numbers of the first are given, were too long for the model."""
    shown = ", ".join(map(str, first[:_SHOWN])) + (", ..." if count > _SHOWN else "")
    lines, were = ("1 line", "was") if count == 1 else (f"{count:,} lines", "were")
    return f"{lines} of more than {longest} pieces {were} translated in parts (line {shown})"


def _written(translation: Translation, number: int, n_best: int) -> list[str]:
    """The lines of output for one line of input, counted from 1."""
    if n_best == 1:
        return [translation.text]
    candidates = [(candidate.text, candidate.score) for candidate in translation.candidates] or [("", 0.0)]
    return [f"{number} ||| {text} ||| {score:.4f}" for text, score in candidates]


def _as_they_come(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Chunks of at most `most` lines: as many as have come when the input pauses, so that a pipe is answered soon."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=min(most, 256))
    taken = threading.Event()

    def read() -> None:
        end: BaseException | None = None
        try:
            for line in lines:
                taken.clear()
                waiting.put(line)
                # A line as long as a book waits alone: a queue of them would fill the memory.
                while len(line) > _MOST_TEXT // 256 and not waiting.empty():
                    taken.wait(0.05)
        except BaseException as error:  # it belongs to the thread that translates, which raises it again
            end = error
        waiting.put(end)

    threading.Thread(target=read, daemon=True).start()
    while True:
        taken.set()
        item = waiting.get()
        chunk: list[str] = []
        room, latest = _MOST_TEXT, time.monotonic() + _LONGEST_WAIT
        while isinstance(item, str):
            chunk.append(item)
            room -= len(item)
            if len(chunk) == most or room <= 0 or time.monotonic() >= latest:
                break
            try:
                taken.set()
                item = waiting.get(timeout=_PATIENCE)
            except queue.Empty:
                break
        if chunk:
            yield chunk
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item


def _prompt(translator: Translator, args: argparse.Namespace, ask: Callable[[str], str] = input) -> int:
    """Line by line at a terminal. Ctrl-C forgets the line, Ctrl-D ends."""
    print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
    # Where the translations go to a file, it must not hold the prompt's signs as well.
    prompt = "> " if sys.stdout.isatty() else ""
    number = 0
    while True:
        try:
            line = ask(prompt)
        except EOFError:
            print(file=sys.stderr)
            return 0
        except KeyboardInterrupt:
            print(file=sys.stderr)
            continue
        number += 1
        try:
            for translation in translator.translate([line], beam_size=args.beam, n_best=args.n_best):
                print(*_written(translation, number, args.n_best), sep="\n", flush=True)
        except KeyboardInterrupt:
            print(file=sys.stderr)
