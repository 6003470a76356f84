"""`seq2seq plot`: the curves of one or more trainings in one picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seq2seq.cli.outputs import check_output

SUMMARY = "Draws the curves of trainings, several in one picture: loss, BLEU, rate, speed."
EXAMPLES = """
seq2seq plot runs/en-de
seq2seq plot runs/baseline runs/wider --output curves.svg
seq2seq plot runs/en-de --show loss,bleu,rate,speed --along minutes
"""

_SHOWN, _ALONG, _FORMATS = (
    ("loss", "bleu", "chrf", "perplexity", "rate", "speed", "gradient"),
    ("updates", "minutes", "tokens"),
    (".png", ".svg", ".pdf"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the folder of a run, finished or not")
    parser.add_argument(
        "--output",
        type=_picture_file,
        default="curves.png",
        metavar="FILE",
        help="where the picture goes: .png, .svg or .pdf (default: curves.png)",
    )
    parser.add_argument(
        "--show",
        type=_panels,
        default=["loss", "bleu"],
        metavar="LIST",
        help=f"what to draw, of {', '.join(_SHOWN)} (default: loss,bleu)",
    )
    parser.add_argument(
        "--along", choices=_ALONG, default="updates", help="what runs from left to right (default: updates)"
    )


def _picture_file(text: str) -> str:
    if Path(text).suffix.lower() not in _FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in one of {', '.join(_FORMATS)}")
    return text


def _panels(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in _SHOWN:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(_SHOWN)}")
    return names


def run(args: argparse.Namespace) -> int:
    """Reads the records, draws, writes."""
    from seq2seq.errors import RunError
    from seq2seq.evaluation.curves import Course, draw_curves, require_matplotlib
    from seq2seq.files import write_file
    from seq2seq.runs import RunFolder, run_of

    require_matplotlib()
    output = Path(args.output)
    folders = [run_of(Path(path))[0] for path in args.runs]
    check_output(args.output, [str(folder / "metrics.jsonl") for folder in folders])
    courses = [
        Course(name, RunFolder.open(folder).metrics()) for name, folder in zip(_names(folders), folders, strict=True)
    ]
    for folder, course in zip(folders, courses, strict=True):
        if not course.events:
            raise RunError(f"{folder} has no record of its training yet: metrics.jsonl is missing or empty.")
    picture = draw_curves(courses, args.show, along=args.along, kind=output.suffix[1:].lower())
    write_file(output, picture)
    print(f"wrote {output}")
    return 0


def _names(folders: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as it takes to tell them apart."""
    parts = [folder.absolute().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return [str(folder) for folder in folders]
