"""Sampled segmentations: every epoch the training sentences are cut into pieces anew, and differently.

A model that meets one word in several spellings of pieces learns what they have in common, and little text becomes
more: BPE-dropout (Provilkov et al. 2020), which leaves out some merges, and sampling from a unigram model (Kudo 2018).

What an epoch looks like is a function of corpus, seed and number alone, and a training that is resumed in the middle of
it sees the same. A process of its own cuts the next epochs while this one is trained. The two talk through pipes; a
process whose training has ended finds its pipe closed and ends as well.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.corpus.encoded import CHUNK, EncodedCorpus, EncodedSide, growing_side
from seq2seq.corpus.segmentations import KINDS
from seq2seq.corpus.subwords import Subwords
from seq2seq.errors import TokenizerError

Arrays = Mapping[str, NDArray[Any]]
_SIDES = ("source", "target")
# The other process finds its modules where this one has, wherever it stands.
_CHILD = """
import os, sys
sys.path[:] = sys.argv[1].split(os.pathsep)
from seq2seq.corpus.sampling import main
main()
"""


class SampledCorpus:
    """A corpus that is another one every epoch; the sentences and their order stay.

    `models` are SentencePiece's, of source and target, of the given `kind`; a side that has None keeps its pieces. What
    `strength` means, segmentations.py says. A sentence that a sample would make longer than `longest` pieces keeps its
    own. There are `epochs` of them.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        models: tuple[bytes | None, bytes | None],
        kind: str,
        strength: float,
        *,
        longest: int,
        seed: int,
        epochs: int,
    ) -> None:
        self._corpus, self._models, self._kind, self._strength = corpus, models, kind, strength
        self._longest, self._seed, self._epochs = longest, seed, epochs
        # On a GPU an epoch may be over before the next one has been cut.
        self._ahead = 1 if (os.cpu_count() or 1) <= 2 else 3
        self._works: dict[int, _Work] = {}

    def epoch(self, number: int) -> EncodedCorpus:
        """The corpus of an epoch, counted from 0; the next ones are begun. TokenizerError where that failed."""
        following = range(number + 1, min(number + 1 + self._ahead, self._epochs))
        for passed in self._works.keys() - {number, *following}:
            self._works.pop(passed).end()
        for wanted in (number, *following):
            if wanted not in self._works:
                self._works[wanted] = _Work(self._request(wanted))
        cut = self._works.pop(number).result()
        sides = {
            name: EncodedSide(cut[f"{name}.ids"], cut[f"{name}.offsets"])
            if f"{name}.ids" in cut
            else getattr(self._corpus, name)
            for name in _SIDES
        }
        return EncodedCorpus(sides["source"], sides["target"], self._corpus.too_long)

    def close(self) -> None:
        """End the work that nobody waits for."""
        for work in self._works.values():
            work.end()
        self._works.clear()

    def _request(self, number: int) -> Arrays:
        request: dict[str, NDArray[Any]] = {
            "numbers": np.array([self._seed, number, self._longest], dtype=np.int64),
            "kind": np.array(self._kind),
            "strength": np.array(self._strength),
        }
        for name, model in zip(_SIDES, self._models, strict=True):
            if model is not None:
                side: EncodedSide = getattr(self._corpus, name)
                request[f"{name}.model"] = np.frombuffer(model, dtype=np.uint8)
                request[f"{name}.ids"], request[f"{name}.offsets"] = side.ids, side.offsets
        return request


class _Work:
    """One epoch that another process cuts; a thread talks with it, since a pipe holds less than either has to say."""

    def __init__(self, request: Arrays) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, os.pathsep.join(map(os.path.abspath, sys.path))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the training, which ends it
        )
        self._answer: tuple[bytes, bytes] = b"", b""
        self._thread = threading.Thread(target=self._talk, args=(request,), daemon=True, name="seq2seq-sampling")
        self._thread.start()

    def result(self) -> Arrays:
        self._thread.join()
        content, complaint = self._answer
        if self._process.returncode:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            why = lines[-1][:200] if lines else f"the process that does it ended with status {self._process.returncode}"
            raise TokenizerError(
                f"The training sentences could not be cut into pieces anew ({why}); go on with --resume, or without "
                "training.subword_sampling in a new run."
            )
        return unpacked(content)

    def end(self) -> None:
        self._process.kill()
        self._thread.join()

    def _talk(self, request: Arrays) -> None:
        self._answer = self._process.communicate(packed(request))


def packed(arrays: Mapping[str, Any]) -> bytes:
    """Named arrays as bytes."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def unpacked(content: bytes) -> Arrays:
    """What `packed` made bytes of."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def sampled(request: Arrays) -> Arrays:
    """What the other process does: the sides of one epoch, those that have a model."""
    seed, epoch, longest = request["numbers"].tolist()
    answer: dict[str, NDArray[Any]] = {}
    for place, name in enumerate(_SIDES):
        if f"{name}.model" not in request:
            continue
        vocabulary = Subwords(request[f"{name}.model"].tobytes(), f"The {name} tokenizer").vocabulary()
        segmenter = KINDS[str(request["kind"])](vocabulary, float(request["strength"]))
        side = EncodedSide(request[f"{name}.ids"], request[f"{name}.offsets"])
        made = growing_side(len(vocabulary))
        for first in range(0, len(side), CHUNK):
            rows = [side[index].tolist() for index in range(first, min(first + CHUNK, len(side)))]
            others = segmenter.sampled(rows, np.random.Generator(np.random.PCG64([seed, epoch, place, first])))
            chosen = [new if len(new) <= longest else row for row, new in zip(rows, others, strict=True)]
            lengths = np.array([len(row) for row in chosen], dtype=np.int32)
            made.extend(np.array([one for row in chosen for one in row], dtype=side.ids.dtype), lengths)
        finished = made.finish()
        answer[f"{name}.ids"], answer[f"{name}.offsets"] = finished.ids, finished.offsets
    return answer


def main() -> None:
    """The other process: a request comes in, an epoch goes out."""
    if hasattr(os, "nice"):
        os.nice(10)  # the update comes first
    answer = packed(sampled(unpacked(sys.stdin.buffer.read())))
    sys.stdout.buffer.write(answer)
