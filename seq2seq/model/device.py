"""Where a model computes and in which precision: the words of the settings become torch's objects.

Precision: weights are always kept in fp32. With bf16 the matrix products take bfloat16 copies of them (autocast), which
is 2 to 4 times faster where the processor has bf16 instructions; softmax and loss stay in fp32.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from seq2seq.errors import DeviceError

Item = TypeVar("Item")
Result = TypeVar("Result")


def choose_device(name: str) -> torch.device:
    """The device for `auto`, `cpu`, `cuda`, `cuda:N` or `mps`. A device that this machine lacks is refused."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    found_name = re.fullmatch(r"cpu|mps|cuda(?::(0|[1-9][0-9]{0,2}))?", name)
    if not found_name:
        raise DeviceError(
            f"There is no device {name!r}; choose auto, cpu, cuda, cuda:N (the GPU of that number) or mps."
        )
    if name.startswith("cuda"):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        # The number as it was written: torch.device keeps it in one byte, where 256 becomes 0.
        if int(found_name[1] or 0) >= count:
            found = (
                f"there are {count}, numbered from 0" if count else "this machine has no CUDA GPU that PyTorch can use"
            )
            raise DeviceError(
                f"The device {name} was asked for, but {found}; use cpu (training.device or --device), or auto."
            )
    if name == "mps" and not torch.backends.mps.is_available():
        raise DeviceError(
            "The device mps was asked for, but this is no Mac with Metal; use cpu (training.device or --device)."
        )
    return torch.device(name)


def computes_in_bf16(device: torch.device) -> bool:
    """Whether the processor itself multiplies in bfloat16; an emulation would be slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        return bool(supported is not None and supported())
    return False


def lacks_bf16(device: torch.device) -> bool:
    """Whether bfloat16 is many times slower than fp32 here: on an x86 processor without products of it."""
    if device.type != "cpu" or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return supported is not None and not supported()


def computes_in_fp16(device: torch.device) -> bool:
    """Whether the device has fast products in float16 (GPUs from Volta on)."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (7, 0)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The dtype of matrix products for `auto`, `fp32`, `bf16` or `fp16` on a device.

    bf16 has the range of fp32 and needs no care, so it comes first; fp16 is for older GPUs. DeviceError for fp16
    elsewhere.
    """
    if name == "bf16" or (name == "auto" and computes_in_bf16(device)):
        return torch.bfloat16
    if name == "fp16" or (name == "auto" and computes_in_fp16(device)):
        if device.type != "cuda":
            raise DeviceError(f"Precision fp16 needs a CUDA GPU, and the device is {device.type}; use bf16 or fp32.")
        return torch.float16
    return torch.float32


@contextlib.contextmanager
def fast_products() -> Iterator[None]:
    """Within it GPUs multiply fp32 numbers in TF32: eight times as fast, to three digits. Good for training."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def precision_context(device: torch.device, precision: torch.dtype) -> torch.autocast:
    """The context in which a forward pass computes at the given precision."""
    if precision == torch.float32:
        return torch.autocast(device.type, enabled=False)
    return torch.autocast(device.type, dtype=precision)


def autocast_dtype(kind: str) -> torch.dtype | None:
    """The precision of matrix products where autocast is on for this kind of device (cpu, cuda, ...), else None."""
    try:
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    except (AttributeError, TypeError):  # PyTorch 2.3 asks about each kind by a function of its own
        if kind == "cpu":
            return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


_NO_MEMORY = re.compile(
    r"out of memory|(can't|not able to) allocate|not enough memory|bad_alloc|"
    r"could not (create|execute) a (primitive(?! desc)|memory)",  # oneDNN
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is used up: each device and allocator has its own way to say so."""
    kinds = (MemoryError, torch.cuda.OutOfMemoryError)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and bool(_NO_MEMORY.search(str(error))))


def in_halves(items: Sequence[Item], compute: Callable[[Sequence[Item]], Result]) -> list[Result]:
    """compute(items), or where memory does not suffice for all of them at once, the results of parts, in order.

    Raises MemoryError where it does not suffice for a single one.
    """
    try:
        return [compute(items)]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    # Only here, when the error and all that its frames hold are gone, is there room again.
    if len(items) < 2:
        raise MemoryError
    give_back_memory()
    middle = len(items) // 2
    return in_halves(items[:middle], compute) + in_halves(items[middle:], compute)


def give_back_memory() -> None:
    """After a refusal: what PyTorch keeps in reserve on a GPU may lie in pieces too small for anything."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def keep_freed_memory() -> None:
    """Let glibc keep the memory of freed tensors for the next ones, where there is a glibc.

    By default every tensor over some hundred kilobytes is given back to the system when it is freed, and the next one
    is mapped and filled with zeros page by page: about a tenth of an update's time on a CPU. Call once, at start.
    """
    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of mallopt(3)
    _tell_glibc("mallopt", mmap_max, 0)
    _tell_glibc("mallopt", trim_threshold, 2**31 - 1)


def give_back_kept_memory() -> None:
    """Give the system what `keep_freed_memory` has kept: before and after work whose tensors have other sizes."""
    _tell_glibc("malloc_trim", 0)


def _tell_glibc(function: str, *numbers: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            getattr(ctypes.CDLL(None), function)(*numbers)
