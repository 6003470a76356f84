"""The frame round every verb: which verbs there are, streams in UTF-8, and how a command ends.

A verb is a module of this room with `SUMMARY`, `EXAMPLES`, `add_arguments(parser)` and `run(args) -> status`. Only the
verb that was asked for is imported, and it keeps torch and its like inside `run`, so help and mistakes answer at once.

Status 0: done. 2: refused, with one or two sentences on standard error. 130, 143, 129 and 141: ended by SIGINT, SIGTERM
or SIGHUP, or because the reader of standard output left (128 plus the signal's number, as a shell counts). 1: a bug of
ours.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import importlib
import io
import os
import re
import sys
import textwrap
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from seq2seq import __version__
from seq2seq.cli.signals import Terminated, interruptible
from seq2seq.errors import Seq2SeqError

VERBS = (
    "download",
    "suggest",
    "doctor",
    "check",
    "train",
    "translate",
    "evaluate",
    "tune",
    "attend",
    "score",
    "compare",
    "plot",
    "schema",
)

# What `pip install` brings; without it the command has been started with another Python.
_NEEDED = {"numpy", "pydantic", "sacrebleu", "safetensors", "sentencepiece", "torch", "tqdm", "yaml"}

# What moves the cursor or turns the direction of what follows; all but the line feed between several mistakes.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_LONGEST_MESSAGE = 2000  # characters
# What the loader of shared libraries says where memory does not suffice for one.
_CANNOT_MAP = re.compile("failed to map segment|annot allocate memory")
REFUSED, BUG, INTERRUPTED, READER_LEFT = 2, 1, 130, 141
# What a full disk, a dying one or a closed stream answers; such an error has no file name when it comes from a write.
_CANNOT_WRITE = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Verb(Protocol):
    """What a verb's module offers."""

    SUMMARY: str  # one line for the list of verbs
    EXAMPLES: str  # commands to copy, one a line

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the verb's own arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Does it; the status of the command."""


class UsageError(Seq2SeqError):
    """The command line itself is wrong: an unknown verb or option, or a missing argument."""


class _Parser(argparse.ArgumentParser):
    """argparse, but a mistake is one sentence in place of a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:].rstrip('.')}. See: {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes help and version; argparse itself would pass over a full disk."""
        (file or sys.stderr).write(message)


def entry() -> NoReturn:
    """The installed command, `python -m seq2seq` and the scripts: `main` in a process of its own."""
    _open_closed_streams()
    _start_again_in_utf8()
    status = main()
    if any(thread.name.startswith("seq2seq-unstoppable") for thread in threading.enumerate()):
        # An interrupt has left work behind in C++. Python's own exit would pull the ground from under it and crash.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


def settle_threads() -> None:
    """How threads wait for one another, unless the user has said; to be called before torch is loaded.

    Threads that spin while they wait take the processor from the very thread they wait for as soon as any other program
    runs; training was seen to become twenty times slower. A little of it is worth its price (GNU's OpenMP counts turns;
    docs/performance.md).
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "6000")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line, such as ["score", "out.de", "--reference", "ref.de"], and gives back its status."""
    _write_utf8()
    settle_threads()
    try:
        with interruptible():
            _refuse_to_stand_nowhere()
            status = _dispatch(sys.argv[1:] if argv is None else list(argv))
            if sys.stdout is not None:
                # Now, not at exit: what cannot be written must still change the status.
                sys.stdout.flush()
            return status
    except Seq2SeqError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except Terminated as ended:
        _say("terminated")
        return 128 + ended.number
    except BrokenPipeError:
        _drop_stdout()
        return READER_LEFT
    except OSError as error:
        return _refuse_or_report_os_error(error)
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            return _report_bug()
        return _refuse(
            f"The package {error.name} is not installed for {sys.executable}. Use the Python of the environment that "
            "scripts/first_run.py makes (.venv), or install everything with: pip install -e ."
        )
    except Exception as error:
        return _refuse_memory() if _is_out_of_memory(error) else _report_bug()


def _refuse_to_stand_nowhere() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError("The working directory has been removed; go to one that exists.") from None


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, ImportError) and _CANNOT_MAP.search(str(error)):
        return True
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from seq2seq.model.device import is_out_of_memory

    return is_out_of_memory(error)


def _refuse_memory() -> int:
    return _refuse("Memory is used up; a smaller batch, model or corpus needs less.")


def _dispatch(argv: list[str]) -> int:
    verb_name = next((argument for argument in argv if not argument.startswith("-")), None)
    choices = ", ".join(VERBS)
    if not argv:
        raise UsageError(f"Say what to do, one of {choices}. See: seq2seq --help")
    if verb_name is not None and verb_name not in VERBS:
        raise UsageError(f"There is no verb {verb_name!r}{_nearest(verb_name, VERBS)}. The verbs are {choices}.")
    verbs = {name: load_verb(name) for name in VERBS if verb_name in (None, name)}
    parser, verb_parsers = _build_parser(verbs)
    try:
        args, unknown = parser.parse_known_args(argv)
    except SystemExit as done:  # --help and --version have printed
        return int(done.code or 0)
    if unknown:
        if not unknown[0].startswith("-"):
            verb_parsers[args.verb].error(f"{unknown[0]!r} is one argument too many")
        known = re.findall(r"--[a-z][a-z-]*", verb_parsers[args.verb].format_help())
        verb_parsers[args.verb].error(f"{unknown[0]!r} is not an argument here{_nearest(unknown[0], known)}")
    return verbs[args.verb].run(args)


def load_verb(name: str) -> Verb:
    """The module of a verb."""
    return cast(Verb, importlib.import_module(f"seq2seq.cli.{name}"))


def _build_parser(verbs: dict[str, Verb]) -> tuple[_Parser, dict[str, _Parser]]:
    parser = _Parser(
        prog="seq2seq",
        usage="seq2seq VERB ...",
        description="Trains and runs translation models: GRU encoder, GRU decoder, attention between them.",
        # A list of our own, since argparse's breaks the line after its longest verb.
        epilog="verbs:\n"
        + "".join(f"  {name:<10} {verb.SUMMARY}\n" for name, verb in verbs.items())
        + "\nseq2seq VERB --help shows the arguments of a verb, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"seq2seq {__version__}")
    doors = parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog="seq2seq", help=argparse.SUPPRESS)
    verb_parsers = {}
    for name, verb in verbs.items():
        verb_parsers[name] = doors.add_parser(
            name,
            description=verb.SUMMARY,
            epilog="examples:\n" + textwrap.indent(textwrap.dedent(verb.EXAMPLES).strip(), "  "),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # A script that says --ref today must not change its meaning when --reference-tags comes.
            allow_abbrev=False,
        )
        verb.add_arguments(verb_parsers[name])
    return parser, verb_parsers


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _start_again_in_utf8() -> None:
    """Starts Python again in UTF-8 mode where the locale's encoding would garble arguments and file names.

    Under LC_ALL=C with PYTHONUTF8=0 an argument such as `--run läufe` arrives as bytes in disguise, and a path in a
    YAML file cannot be opened at all. The process keeps its number, so signals still find it.
    """
    asked = "utf8" in sys._xoptions  # by a person, or by us a moment ago: never start in a circle
    if os.name == "posix" and sys.executable and not asked and sys.getfilesystemencoding().lower() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _open_closed_streams() -> None:
    """Puts a stream that cannot be read or written in the place of one that was closed before the start, as by `>&-`.

    Python has None there: messages for standard error would go to standard output, and the next file to be opened
    would get the stream's number, and with it whatever a library writes to that.
    """
    if os.name != "posix":
        return
    for name, mode, access in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, access), mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _write_utf8() -> None:
    """Makes the three streams UTF-8 with LF line ends, whatever locale, platform and PYTHONIOENCODING say."""
    handlers = {"stdin": "surrogateescape", "stdout": "surrogateescape", "stderr": "backslashreplace"}
    for name, errors in handlers.items():
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # None without a console; another class under a test's capture
            with contextlib.suppress(io.UnsupportedOperation):  # standard input that somebody has begun to read
                stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")


def _say(text: str) -> None:
    # A path or a setting may hold what a terminal would carry out.
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[: _LONGEST_MESSAGE - 500]} ... {text[-500:]}"
    with contextlib.suppress(OSError, ValueError):  # standard error may be gone too
        print(f"seq2seq: {text}", file=sys.stderr, flush=True)


def _refuse(message: str) -> int:
    # Of several processes that torchrun has started, one tells what all of them would; of the others' own mistakes, but
    # for the end of a process that has told its own, each tells itself.
    one_of_many = os.environ.get("RANK", "0") != "0"
    if not one_of_many or (message.startswith("Process ") and "Another process" not in message):
        _say(message)
    return REFUSED


def _refuse_or_report_os_error(error: OSError) -> int:
    cause = error.strerror or str(error)
    if error.filename is not None:
        where = " -> ".join(os.fsdecode(name) for name in (error.filename, error.filename2) if name is not None)
        return _refuse(f"{where}: {cause}.")
    if error.errno in _CANNOT_WRITE:
        return _refuse(f"{'Standard output' if _drop_stdout() else 'The output'} cannot be written: {cause}.")
    return _report_bug()


def _drop_stdout() -> bool:
    """Sends what is left for a broken standard output to nowhere; True if there was something left.

    Otherwise Python tries once more at exit and complains about an error that has been dealt with.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.flush()
        return False
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True


def _report_bug() -> int:
    traceback.print_exc()
    _say(
        "This is a bug in seq2seq and no mistake of yours; please send the lines above and the command to its "
        f"maintainers (version {__version__}, Python {sys.version.split()[0]}, {sys.platform})."
    )
    return BUG
