"""`seq2seq schema`: the JSON Schema of the settings, for an editor that checks and completes YAML."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SUMMARY = "Writes the JSON Schema of the settings, for editors."
EXAMPLES = """
seq2seq schema --output settings.schema.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of this verb."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to FILE (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Prints or writes the schema."""
    from seq2seq.config.loading import json_schema

    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        print(text, end="")
    else:
        args.output.write_text(text, encoding="utf-8", newline="\n")
    return 0
