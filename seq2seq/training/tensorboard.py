"""TensorBoard: the record of a training as event files in RUN/tensorboard, beside metrics.jsonl.

Curves of losses, scores, rates, speed and gradients; translations of some validation sentences; and, where matplotlib
is installed, what their words looked at. Nothing here changes a number of the training.

A training that goes on after a crash tells once more what came after its last checkpoint. TensorBoard hides what it
had been told of those steps before: the new file begins with the step from which on the old ones no longer count.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from seq2seq.corpus.batches import collate_sources
from seq2seq.corpus.tokenizer import BOS
from seq2seq.errors import MissingPackageError
from seq2seq.evaluation.training_record import number

if TYPE_CHECKING:
    from torch import Tensor
    from torch.utils.tensorboard import SummaryWriter

    from seq2seq.runs import RunFolder
    from seq2seq.training.progress import Progress
    from seq2seq.training.validation import ValidationResult, ValidationSet
    from seq2seq.translation.translator import Translator

FOLDER = "tensorboard"
_SENTENCES, _PICTURES = 8, 3  # of the validation set
_CURVES = {
    "train": ("loss", "learning_rate", "gradient_norm", "target_tokens_per_second", "epoch"),
    "validation": ("loss", "perplexity", "bleu", "chrf"),
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+.!|~-])")


def require_tensorboard() -> None:
    """MissingPackageError where TensorBoard is not installed, before anything is read."""
    if importlib.util.find_spec("tensorboard") is None:
        raise MissingPackageError(
            "training.tensorboard is true, and TensorBoard is not installed. Run: pip install '.[tensorboard]', or "
            "set it to false."
        )


class Board:
    """A listener that writes for TensorBoard, or one that does nothing where that is not `wanted`."""

    def __init__(self, folder: RunFolder, *, wanted: bool = True) -> None:
        self._folder, self._wanted = folder, wanted
        self._writer: SummaryWriter | None = None
        self._shown: tuple[ValidationSet, Translator] | None = None

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def show(self, validation: ValidationSet, translator: Translator) -> None:
        """Which sentences, and with which model, the translations and the attention are of."""
        self._shown = validation, translator

    # -- what the trainer calls ---------------------------------------------------------------------------------------

    def started(self, progress: Progress, total_updates: int) -> None:
        """Begin a file; one for a run that goes on takes back what others say of the steps that are made again."""
        if not self._wanted:
            return
        from torch.utils.tensorboard import SummaryWriter

        path = self._folder.path / FOLDER
        goes_on = any(path.glob("events*")) if path.is_dir() else False
        # A validation that is still due may have been told and not saved; its update comes from the record again.
        first = progress.step + (0 if progress.validation_due else 1) if goes_on else 0
        self._writer = SummaryWriter(str(path), purge_step=first if goes_on else None)
        # All of it, where the run had no such folder before.
        for event in self._folder.metrics():
            if event["step"] >= first:
                self.reported(event)

    def updated(self, progress: Progress, tokens: int) -> None:
        pass

    def validating(self, done: int, of: int) -> None:
        pass

    def reported(self, event: Mapping[str, Any]) -> None:
        if self._writer is None:
            return
        kind = event["event"]
        for name in _CURVES.get(kind, ()):
            value = number(event, name)
            if value is not None:
                self._writer.add_scalar(f"{kind}/{name}", value, event["step"])
        if kind != "train":
            self._writer.flush()

    def validated(self, step: int, result: ValidationResult) -> None:
        if self._writer is None or self._shown is None:
            return
        data, translator = self._shown
        rows = zip(data.sources, result.hypotheses, data.targets, strict=True)
        lines = ["| source | translation | reference |", "|---|---|---|"]
        lines += ["| " + " | ".join(map(_plain, row)) + " |" for row, _ in zip(rows, range(_SENTENCES), strict=False)]
        self._writer.add_text("validation/translations", "\n".join(lines), step)
        if importlib.util.find_spec("matplotlib") is not None:
            self._draw(step, data.sources, result.hypotheses, translator)
        self._writer.flush()

    def said(self, message: str) -> None:
        pass

    # -- pictures -----------------------------------------------------------------------------------------------------

    def _draw(self, step: int, sources: list[str], hypotheses: list[str], translator: Translator) -> None:
        from seq2seq.evaluation.attention_picture import attention_picture

        assert self._writer is not None
        for place, (source, hypothesis) in enumerate(zip(sources, hypotheses, strict=True), start=1):
            if place > _PICTURES:
                return
            (src,) = translator.tokenizer.encode_source([source])
            (tgt,) = translator.tokenizer.encode_target([hypothesis])
            src, tgt = src[: translator.longest_source], tgt[: translator.longest_source]
            if not src or not tgt:
                continue
            weights_TS = attention_of(translator, src, tgt)
            read = [*translator.tokenizer.source_pieces(src), "(end)"]
            picture = attention_picture(weights_TS.tolist(), read, translator.tokenizer.target_pieces(tgt))
            self._writer.add_image(f"attention/{place}", picture, step, dataformats="HWC")


def attention_of(translator: Translator, src: list[int], tgt: list[int]) -> Tensor:
    """What each piece of a translation looked at when it was written: weights (T,S+1), each row summing to one.

    The last of the columns is the mark that ends the source.
    """
    model, device = translator.model, translator.device
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            src_BS, mask_BS = collate_sources([src])
            state = model.start(src_BS.to(device), mask_BS.to(device))
            _, weights_RTS, _ = model.decode(torch.tensor([[BOS, *tgt[:-1]]], device=device), state)
    finally:
        model.train(was_training)
    return weights_RTS[0].float().cpu()


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return _MARKDOWN.sub(r"\\\1", text)
