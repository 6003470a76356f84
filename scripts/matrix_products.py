"""How fast this machine makes matrix products: the limit that scripts/benchmark.py compares speeds with.

Letters: B sentences, N heads, R rows, I inputs, O outputs.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from seq2seq.model.device import lacks_bf16
from seq2seq.model.kernels import products_for
from seq2seq.model.packed import can_pack
from seq2seq.training.timing import timed

BYTES = torch.int8
# A matrix that is used again and again competes for the cache with all others of the model: so many numbers.
_MODEL = 4_000_000


class Products(TorchDispatchMode):
    """Records every matrix product that is computed: which, of what shapes, in what layout."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._count(func.overloadpacket.__name__, args)
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> Any:
        ours = products_for(torch.device("cpu"), torch.float32)
        if ours is not None:  # they are no operations of PyTorch's
            vars(ours).update(
                multiply=self._seen(ours.multiply),
                multiply_bytes=self._seen(ours.multiply_bytes, BYTES),
                multiply_each=self._seen_each(ours.multiply_each),
                gru_steps=self._seen_steps(ours.gru_steps, torch.float32),
                gru_steps_of_bytes=self._seen_steps(ours.gru_steps_of_bytes, BYTES),
            )
        return super().__enter__()

    def __exit__(self, *how: Any) -> None:
        super().__exit__(*how)
        ours = products_for(torch.device("cpu"), torch.float32)
        if ours is not None:
            del ours.multiply, ours.multiply_bytes, ours.multiply_each, ours.gru_steps, ours.gru_steps_of_bytes

    def _seen(self, product: Any, dtype: Any = torch.float32) -> Any:
        def counted(x: Any, *others: Any) -> Any:
            y = product(x, *others)
            self._add_layer(x, y.shape[1], x.shape[1], dtype)
            return y

        return counted

    def _seen_each(self, product: Any) -> Any:
        def counted(x: Any, w: Any) -> Any:
            B, N, R, I = x.shape  # noqa: E741
            O = w.shape[3]  # noqa: E741
            inner = (O, 1) if w.stride(3) == 1 else (1, I)
            self._add(((B * N, R, I), (R * I, I, 1), x.dtype), ((B * N, I, O), (I * O, *inner), w.dtype))
            return product(x, w)

        return counted

    def _seen_steps(self, steps: Any, dtype: Any) -> Any:
        def counted(inputs: Any, state: Any, *others: Any) -> Any:
            for _ in range(inputs.shape[1]):
                self._add_layer(state, inputs.shape[2], state.shape[1], dtype)
            return steps(inputs, state, *others)

        return counted

    def _count(self, name: str, args: Any) -> None:
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            operands = args[1:3] if name in ("addmm", "baddbmm") else args[:2]
            self._add(*((tuple(one.shape), one.stride(), one.dtype) for one in operands))
        elif name == "_linear_pointwise":  # with a matrix that has been laid out before (model/packed.py)
            self._add_layer(args[0], *args[1].shape, args[0].dtype)
        elif name == "qlinear_pointwise":
            self._add_layer(args[0], len(args[4]), args[0].shape[1], BYTES)

    def _add_layer(self, rows: Any, outputs: int, inputs: int, dtype: Any) -> None:
        self._add((tuple(rows.shape), rows.stride(), dtype), ((inputs, outputs), (1, inputs), dtype))

    def _add(self, *operands: Any) -> None:
        self.counts[operands] += 1

    def operations(self) -> int:
        """Multiplications and additions, two for each pair of numbers."""
        counted = self.counts.items()
        return sum(2 * count * math.prod(shape) * other[-1] for ((shape, *_), (other, *_)), count in counted)

    def seconds(self, device: torch.device) -> float:
        """The time of all of them, each shape at its best rate here."""
        return sum(count * best_time(key, device) for key, count in self.counts.items())


_BEST: dict[tuple[Any, ...], float] = {}


def best_time(key: tuple[Any, ...], device: torch.device) -> float:
    """Seconds of one matrix product, the best of many tries in a twentieth of a second."""
    if key not in _BEST:
        _BEST[key] = min(best_of(work, device) for work in ways(key, device))
    return _BEST[key]


def best_of(work: Callable[[], object], device: torch.device) -> float:
    work()
    best, until = float("inf"), time.perf_counter() + 0.05
    while time.perf_counter() < until:
        best = min(best, timed(work, device))
    return best


def ways(key: tuple[Any, ...], device: torch.device) -> Iterator[Callable[[], object]]:
    """What a product can be computed by here: PyTorch, or our own with a matrix that is laid out. Bytes also count as
    bf16, which PyTorch multiplies as fast where the processor knows it."""
    (shape, _, dtype), (other, stride, _) = key
    ours = products_for(device, torch.float32)
    if dtype != BYTES or not lacks_bf16(device):
        first, second = (made_like(*operand, device) for operand in key)
        product = torch.bmm if first.dim() == 3 else torch.mm
        out = product(first, second)
        yield lambda: product(first, second, out=out)
    if ours is not None and len(shape) == 3 and dtype == torch.float32:
        left, right = (made_like(*operand, device).unsqueeze(1) for operand in key)
        yield lambda: ours.multiply_each(left, right)
    if ours is not None and stride == (1, other[0]) and dtype in (torch.float32, BYTES):
        rows, weight, zeros = torch.randn(shape), torch.randn(other[1], other[0]), torch.zeros(other[1])
        if dtype == BYTES:
            panels = ours.lay_out_bytes((20 * weight).to(torch.int8))
            yield lambda: ours.multiply_bytes(rows, panels, zeros, zeros)
        else:
            panels = ours.lay_out(weight)
            yield lambda: ours.multiply(rows, panels, len(zeros), zeros)


def made_like(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
    dtype = torch.bfloat16 if dtype == BYTES else dtype
    made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    return made.copy_(torch.randn(shape, device=device).to(dtype))


def rates(rows: int, inputs: int, outputs: int, device: torch.device) -> dict[str, float]:
    """10^9 operations a second of products with matrices that take turns, as they do in a model."""
    count = max(1, _MODEL // (inputs * outputs))
    x_RI, bias_O = torch.randn(rows, inputs, device=device), torch.zeros(outputs, device=device)
    weights = [torch.randn(outputs, inputs, device=device) for _ in range(count)]
    found: dict[str, Callable[[], object]] = {
        "PyTorch": lambda: [torch.nn.functional.linear(x_RI, weight, bias_O) for weight in weights]
    }
    if device.type == "cpu" and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        packed = [torch.ops.mkldnn._reorder_linear_weight(weight, 1) for weight in weights]
        found["oneDNN"] = lambda: [
            torch.ops.mkldnn._linear_pointwise(x_RI, weight, bias_O, "none", [], "") for weight in packed
        ]
    if can_pack(device, torch.bfloat16):
        few, few_O = x_RI.bfloat16(), bias_O.bfloat16()
        short = [torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16(), 1) for weight in weights]
        found["oneDNN_bf16"] = lambda: [
            torch.ops.mkldnn._linear_pointwise(few, weight, few_O, "none", [], "") for weight in short
        ]
    if device.type == "cpu" and "onednn" in torch.backends.quantized.supported_engines:
        whole = [(20 * weight).clamp(-64, 64).to(torch.int8) for weight in weights]
        bytes_RI, zeros_O = (20 * x_RI + 128).to(torch.uint8), torch.zeros(outputs, dtype=torch.int64)
        prepacked = [torch.ops.onednn.qlinear_prepack(weight, None) for weight in whole]
        found["oneDNN_bytes"] = lambda: [
            torch.ops.onednn.qlinear_pointwise(
                bytes_RI, 1.0, 128, weight, bias_O, zeros_O, None, 1.0, 0, torch.float32, "none", [], ""
            )
            for weight in prepacked
        ]
    ours = products_for(device, torch.float32)
    if ours is not None:
        panels = [ours.lay_out(weight) for weight in weights]
        byte_panels = [ours.lay_out_bytes((20 * weight).clamp(-64, 64).to(torch.int8)) for weight in weights]
        found["ours"] = lambda: [ours.multiply(x_RI, one, outputs, bias_O) for one in panels]
        found["ours_bytes"] = lambda: [ours.multiply_bytes(x_RI, one, bias_O, bias_O) for one in byte_panels]
    operations = 2e-9 * rows * inputs * outputs * count
    best = dict.fromkeys(found, float("inf"))
    for _ in range(5):  # they take turns: a busy machine is busy for all of them
        for name, work in found.items():
            best[name] = min(best[name], best_of(work, device))
    return {name: operations / seconds for name, seconds in best.items()}
