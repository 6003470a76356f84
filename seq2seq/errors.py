"""Every mistake that a user can make and mend, as one small tree of exceptions.

A message is one or two sentences: what was found (file and line, or key and value), what was expected, what to do.
The command line prints it and leaves with status 2; nobody sees a traceback for a mistake of their own.
"""


class Seq2SeqError(Exception):
    """The root of all refusals; catching it catches everything that a user can mend."""


class ConfigError(Seq2SeqError):
    """The settings are unknown, of the wrong type, out of range, or contradict one another."""


class CorpusError(Seq2SeqError):
    """A text file is missing, damaged, empty, or its lines do not pair up."""


class CacheError(CorpusError):
    """The folder for prepared corpora cannot be written, or is full."""


class DownloadError(Seq2SeqError):
    """A public corpus cannot be fetched, or what has come is not what it should be."""


class TokenizerError(Seq2SeqError):
    """The tokenizer cannot be trained or loaded as asked."""


class VocabularySizeError(TokenizerError):
    """The text cannot give a vocabulary of the size that was asked for; `possible` is the nearest that it can."""

    def __init__(self, message: str, possible: int) -> None:
        super().__init__(message)
        self.possible = possible


class RunError(Seq2SeqError):
    """A run folder is missing, in use, already taken, or cannot be written."""


class CheckpointError(RunError):
    """A checkpoint is damaged, incomplete, foreign, or does not fit the run it is asked to continue."""


class DeviceError(Seq2SeqError):
    """The device that was asked for is not on this machine."""


class DecodingError(Seq2SeqError):
    """Translations cannot be searched for as asked: settings contradict one another."""


class ScoringError(Seq2SeqError):
    """Hypotheses and references cannot be compared."""


class TrainingError(Seq2SeqError):
    """Training cannot go on: the numbers have left the finite range, or there is nothing to learn from."""


class MissingPackageError(Seq2SeqError):
    """An optional package is needed for what was asked; the message says how to install it."""
