"""The slots of a beam between two steps of the model, by beams.c.

Letters: B sentences, b those that stay, K slots, C continuations of a row, R rows (the open slots), U steps so far.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

_P, _N, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class Beams:
    """The functions of beams.c, for contiguous tensors on the processor; log-probabilities are fp32."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._extend, self._open_rows = library.extend_beams, library.open_rows
        self._extend.argtypes, self._extend.restype = [_N] * 9 + [_F] + [_P] * 14, None
        self._open_rows.argtypes, self._open_rows.restype = [_N] * 4 + [_P] * 10, _N
        library.most_slots.argtypes, library.most_slots.restype = [], _N
        self.most_slots: int = library.most_slots()

    def extend(
        self, beam: tuple[Tensor, ...], answers: tuple[Tensor, Tensor], place_R: Tensor, limit_B: Tensor, *facts: float
    ) -> tuple[Tensor, ...]:
        """A beam's totals, lengths, closed slots (B,K) and tokens (B,K,U) after a step; the slot that each slot came
        from (B,K); and which sentences need no further step (B,).

        `answers` are log-probabilities and ids (R,C). The facts: the end mark, how many hypotheses are wanted, whether
        search is greedy, the number of the step, and the length penalty.
        """
        total_BK, length_BK, closed_BK, tokens_BKU = beam
        (B, K, U), (R, C) = tokens_BKU.shape, answers[0].shape
        assert self.most_slots >= K
        held = [place_R, *(one.contiguous() for one in answers), limit_B, total_BK, length_BK, closed_BK, tokens_BKU]
        new = (
            torch.empty_like(total_BK),
            torch.empty_like(length_BK),
            torch.empty_like(closed_BK),
            tokens_BKU.new_empty(B, K, U + 1),
            torch.empty_like(length_BK),
            closed_BK.new_empty(B),
        )
        self._extend(B, K, C, R, U, *facts, *(one.data_ptr() for one in (*held, *new)))
        return new

    def open_rows(
        self, beam: tuple[Tensor, ...], parent_BK: Tensor, staying_b: Tensor | None, place_R: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The slots that go on: which old row each continues, its place, and its last token.

        The beam: totals, closed slots (b,K), which sentences are collected (b,), and tokens (b,K,U).
        """
        b, K, U = beam[3].shape
        found = torch.empty(3, b * K, dtype=torch.int64)
        staying = None if staying_b is None else staying_b.data_ptr()
        held = (one.data_ptr() for one in (place_R, parent_BK, *beam, *found))
        count = self._open_rows(b, K, U, len(place_R), staying, *held)
        row_R, place_R, last_R = found[:, :count].unbind()
        return row_R, place_R, last_R
