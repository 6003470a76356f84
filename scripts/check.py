"""All checks with one command: `python scripts/check.py`. With --fix, ruff first mends what it can.

Needs the extra `dev`. What follows `--` goes to pytest: `python scripts/check.py -- -k scores`. The status is 0 only if
every check passed and at least one test ran.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Runs every check, the quick ones first, and ends with a line for each."""
    parser = argparse.ArgumentParser(description="Style, types and tests.")
    parser.add_argument("--fix", action="store_true", help="let ruff mend and format the files first")
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST_ARGUMENT", help="for pytest")
    args = parser.parse_args()
    if args.fix:
        # What ruff cannot mend it will say again below.
        subprocess.run([sys.executable, "-m", "ruff", "check", "--fix", "--quiet", "."], cwd=ROOT, check=False)
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", "."], cwd=ROOT, check=False)
    checks = {
        "style": ["ruff", "check", "."],
        "format": ["ruff", "format", "--check", "."],
        "types": ["mypy"],
        # Tests last and verdict last: a program that reads this output looks for pytest's closing line.
        "tests": ["pytest", *args.pytest],
    }
    verdicts = {name: _passes(name, command) for name, command in checks.items()}
    failed = [name for name, passed in verdicts.items() if not passed]
    print(f"check: {', '.join(failed)} failed" if failed else "check: all passed")
    return 1 if failed else 0


def _passes(name: str, command: list[str]) -> bool:
    print(f"== {name}: {' '.join(command)}", flush=True)
    start = time.monotonic()
    # A run of pytest that found no test ends with status 5, and so counts as failed like any other status.
    status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
    print(f"== {name}: {'passed' if status == 0 else f'FAILED, status {status}'}, {time.monotonic() - start:.0f} s\n")
    sys.stdout.flush()
    return status == 0


if __name__ == "__main__":
    sys.exit(main())
