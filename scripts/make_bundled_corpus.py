"""Writes the data that come with the product: data/english-chinese and data/reverse, the same bytes every time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bundled_corpus.building import files

DATA = Path(__file__).resolve().parent.parent / "data"


def write(folder: Path) -> list[Path]:
    """Writes every generated file under `folder` and returns their paths."""
    written = []
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(path)
    return written


def differing(folder: Path) -> list[str]:
    """The names of the files under `folder` that are missing or not what the grammar writes."""
    return [
        name
        for name, content in files().items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != content
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs from the grammar")
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write to (default: data/)")
    options = parser.parse_args()
    if not options.check:
        for path in write(options.output):
            print(path)
        return 0
    names = differing(options.output)
    for name in names:
        print(f"{name} is not what the grammar writes; run scripts/make_bundled_corpus.py", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
