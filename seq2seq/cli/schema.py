"""`seq2seq schema`: the settings, as a JSON Schema for editors or as a table for people."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

SUMMARY = "Writes the JSON Schema of the settings, for editors, or a table of them."
EXAMPLES = """
seq2seq schema --output settings.schema.json
seq2seq schema --markdown
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("--output", metavar="FILE", help="write to FILE (default: standard output)")
    parser.add_argument("--markdown", action="store_true", help="a table of all settings with their defaults")


def run(args: argparse.Namespace) -> int:
    """Prints or writes the schema."""
    from seq2seq.cli.outputs import check_output
    from seq2seq.config.loading import json_schema
    from seq2seq.files import write_file

    check_output(args.output, [])
    if args.markdown:
        text = "\n".join(_table()) + "\n"
    else:
        text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        print(text, end="")
    else:
        write_file(Path(args.output), text)
    return 0


def _table() -> Iterator[str]:
    from seq2seq.config.known_settings import expectation, known_settings, models_in

    yield "# Settings"
    yield ""
    yield "Written by `seq2seq schema --markdown`. Only `data` has to be given; a config says only what differs."
    yield ""
    yield "| setting | must be | default | what it is |"
    yield "|---|---|---|---|"
    for path, info in known_settings().items():
        if list(models_in(info.annotation)):
            continue
        default = "required" if info.is_required() else f"`{json.dumps(info.get_default(call_default_factory=True))}`"
        cells = (f"`{'.'.join(path)}`", expectation(info), default, info.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
