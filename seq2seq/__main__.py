"""`python -m seq2seq` is the `seq2seq` command."""

from seq2seq.cli.main import entry

if __name__ == "__main__":
    entry()
