"""`python scripts/translate.py ...` is `seq2seq translate ...`; it needs no installed package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.argv.insert(1, "translate")

from seq2seq.cli.main import entry

if __name__ == "__main__":
    entry()
