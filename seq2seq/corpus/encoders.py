"""Processes that encode text side by side, and give it back in order.

SentencePiece takes longer than anything else in the preparation of a corpus. Each process is a Python of its own, fed
through a pipe by a thread of this one: it needs nothing of the program that starts it, neither a guarded main module
nor a state that can be copied, and ends when its pipe does, whatever becomes of us. A Ctrl-C at the terminal does not
reach it.

    python -m seq2seq.corpus.encoders TOKENIZER_FOLDER MAX_LENGTH
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np

from seq2seq.corpus.encoded import EncodedChunk, Encoder, chunks, encode_chunk
from seq2seq.errors import CorpusError

Pairs = list[tuple[str, str]]

MOST_PROCESSES = 8  # more are not fed fast enough: reading and cleaning take a fifth of the time of encoding
# Pairs sent at a time. From 512 lines on SentencePiece starts threads of its own, and here the processes are enough.
CHUNK = 500


def encode_in_parallel(
    corpus: Iterable[tuple[str, str]], tokenizer: Encoder, folder: Path, max_length: int, processes: int | None = None
) -> Generator[EncodedChunk, None, None]:
    """The pairs encoded, in their order, by as many processes as there are processors, or in this one if that is one.

    `folder` is where the files of the tokenizer lie. Raises CorpusError when a process dies, and what reading raises.
    """
    processes = processes or min(_processors(), MOST_PROCESSES)
    if processes == 1:
        for chunk in chunks(corpus):
            yield encode_chunk(chunk, tokenizer, max_length)
        return
    team = _Team(folder, max_length, processes)
    waiting: deque[Future[EncodedChunk]] = deque()
    try:
        for chunk in chunks(corpus, CHUNK):
            waiting.append(team.encode(chunk))
            if len(waiting) > 4 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        team.end()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Team:
    """Some processes, and as many threads that speak with them."""

    def __init__(self, folder: Path, max_length: int, processes: int) -> None:
        self._command = [sys.executable, "-m", __name__, str(folder), str(max_length)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}  # by the thread that speaks with it
        self._ended = False
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="seq2seq-encoders")

    def encode(self, pairs: Pairs) -> Future[EncodedChunk]:
        return self._threads.submit(self._encode, pairs)

    def _encode(self, pairs: Pairs) -> EncodedChunk:
        process = self._process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, json.dumps(pairs).encode("ascii"))
            return _receive_chunk(process.stdout)
        except (OSError, EOFError, ValueError):
            raise CorpusError(
                "A process that encodes the corpus has died"
                f" ({_how(process)}). Check that there is memory for it, and start again."
            ) from None

    def _process(self) -> subprocess.Popen[bytes]:
        """The process of this thread, started when it is first needed."""
        thread = threading.get_ident()
        if thread not in self._processes:
            with self._lock:
                if self._ended:
                    raise CorpusError("The encoding has ended.")
                try:
                    self._processes[thread] = subprocess.Popen(
                        self._command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        env=_environment(),
                        start_new_session=True,
                    )
                except OSError as error:
                    raise CorpusError(f"No process can be started to encode the corpus: {error.strerror}.") from None
        return self._processes[thread]

    def end(self) -> None:
        """Now, even in the middle of a chunk: threads that wait for their processes must not be waited for."""
        with self._lock:
            self._ended = True
            for process in self._processes.values():
                process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes.values():
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()


def _environment() -> dict[str, str]:
    """Ours, in which the child finds this very program, and no more threads than processes."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _how(process: subprocess.Popen[bytes]) -> str:
    try:
        status = process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return "its answer was cut short"
    return f"signal {-status}" if status < 0 else f"status {status}"


def _send(stream: IO[bytes], *parts: bytes) -> None:
    """Each part after its length in 8 bytes."""
    for part in parts:
        stream.write(len(part).to_bytes(8, "little"))
        stream.write(part)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """One part. EOFError where the other process has ended."""
    head = stream.read(8)
    size = int.from_bytes(head, "little")
    part = stream.read(size) if len(head) == 8 else b""
    if len(head) < 8 or len(part) < size:
        raise EOFError
    return part


def _send_chunk(stream: IO[bytes], chunk: EncodedChunk) -> None:
    types = [chunk.source_ids.dtype.str, chunk.target_ids.dtype.str]
    arrays = chunk.source_ids, chunk.source_lengths, chunk.target_ids, chunk.target_lengths
    _send(stream, json.dumps([types, chunk.read, chunk.too_long]).encode("ascii"), *(a.tobytes() for a in arrays))


def _receive_chunk(stream: IO[bytes]) -> EncodedChunk:
    types, read, too_long = json.loads(_receive(stream))
    sides = []
    for kind in types:
        ids, lengths = _receive(stream), _receive(stream)
        sides.append((np.frombuffer(ids, dtype=kind), np.frombuffer(lengths, dtype=np.int32)))
    (source_ids, source_lengths), (target_ids, target_lengths) = sides
    return EncodedChunk(source_ids, source_lengths, target_ids, target_lengths, read, too_long)


def _serve(folder: str, max_length: int) -> None:
    """What such a process does: it encodes what it reads until there is no more."""
    from seq2seq.corpus.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(Path(folder))
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # no library shall write between the answers
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pairs = [(source, target) for source, target in json.loads(_receive(asked))]
            _send_chunk(answers, encode_chunk(pairs, tokenizer, max_length))


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
