"""Where a verb may write: said before any work is done, and never over what is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def check_output(
    output: str | None, reads: Iterable[str | None], option: str = "--output", *, packs: bool = False
) -> None:
    """RunError where nothing can be written, or it would take the place of what is read, or of a part of a run.

    `packs` says that the writer compresses what goes to a name in .gz or .xz, as `files.whole_file` does.
    """
    from seq2seq.errors import RunError
    from seq2seq.files import PACKED
    from seq2seq.runs import is_part_of_a_run

    if output is None:
        return
    path = Path(output)
    if not output:
        raise RunError(f"{option} is empty; name a file.")
    if path.is_dir():
        raise RunError(f"{option} {output} is a folder; name a file.")
    if not path.absolute().parent.is_dir():
        raise RunError(f"There is no folder for {option} {output}; make it, or choose another place.")
    if path.suffix.lower() in PACKED and not packs:
        raise RunError(f"{option} {output} is named {path.suffix}, and this is not compressed; give a name without it.")
    if not path.is_file():
        return
    for other in reads:
        if other is not None and Path(other).exists() and path.samefile(other):
            raise RunError(f"{option} {output} is the file {other}, which is read here; give another name.")
    if is_part_of_a_run(path):
        raise RunError(f"{option} {output} is part of a run, which needs it; give another name.")
