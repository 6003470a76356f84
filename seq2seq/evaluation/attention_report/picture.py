"""Pictures: a heat map of one sentence as PNG, by matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.evaluation.attention_report.sentences import Part
from seq2seq.evaluation.attention_report.units import direction
from seq2seq.evaluation.curves import require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

_CELL = 0.42  # inches
_DOTS = 150  # per inch
# Past so many units a side, cells are too small for numbers and shrink.
_DENSE = 30
_HEADS_A_ROW = 4


def draw(part: Part, path: Path, units: str = "words") -> str | None:
    """Write the picture: the mean of the heads, and under it the heads where there are several.

    Returns a note where the system has no font for something in the texts, else None.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from seq2seq.evaluation.attention_report.fonts import families_for
    from seq2seq.files import write_file

    source, target = ([*(_label(unit.text) for unit in side[:-1]), "end"] for side in part.units(units))
    weights_NTS = part.weights(units)
    families, note = families_for("".join([*source, *target, "head 0123456789"]))
    N, T, S = weights_NTS.shape
    cell = _CELL if max(S, T) <= _DENSE else _CELL * 0.6
    main = (max(2.0, S * cell), max(1.0, T * cell))
    rows = -(-N // _HEADS_A_ROW) if N > 1 else 0
    small = (main[0] / _HEADS_A_ROW, main[0] / _HEADS_A_ROW * T / S)
    figure = Figure(figsize=(main[0], main[1] + rows * (small[1] + 0.3)), dpi=_DOTS)
    FigureCanvasAgg(figure)
    height = figure.get_figheight()
    axes = figure.add_axes((0, 1 - main[1] / height, 1, main[1] / height))
    _heat_map(axes, weights_NTS.mean(dim=0), source, target, families)
    right_to_left = direction("".join(source)) == "rtl"
    if right_to_left:
        axes.invert_xaxis()
        axes.yaxis.tick_right()
    for head in range(N if N > 1 else 0):
        row, column = divmod(head, _HEADS_A_ROW)
        bottom = height - main[1] - (row + 1) * (small[1] + 0.3)
        box = (column / _HEADS_A_ROW, bottom / height, 0.94 / _HEADS_A_ROW, small[1] / height)
        shown_TS = weights_NTS[head].flip(1) if right_to_left else weights_NTS[head]
        _small_map(figure.add_axes(box), shown_TS, f"head {head + 1}")
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the note says it, once and with what to do
        figure.savefig(stream, format="png", bbox_inches="tight", pad_inches=0.15, metadata={"Software": None})
    write_file(path, stream.getvalue())
    return note


def _label(text: str) -> str:
    return text.replace("$", r"\$")  # between dollars matplotlib reads mathematics


def _heat_map(axes: Any, weights_TS: Tensor, source: Sequence[str], target: Sequence[str], families: list[str]) -> None:
    axes.imshow(weights_TS.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    upright = all(len(text) <= 2 for text in source)
    font = {"fontfamily": families, "fontsize": 11}
    axes.set_xticks(
        range(len(source)), source, rotation=0 if upright else 60, ha="center" if upright else "left", **font
    )
    if not upright:
        for label in axes.get_xticklabels():
            label.set_rotation_mode("anchor")
    axes.set_yticks(range(len(target)), target, **font)
    axes.xaxis.tick_top()
    _plain(axes, weights_TS)
    if max(weights_TS.shape) > _DENSE:
        return
    for t, row in enumerate(weights_TS.tolist()):
        for s, weight in enumerate(row):
            if weight >= 0.095:
                color = "white" if weight > 0.55 else "#222222"
                axes.text(s, t, f"{weight:.2f}".lstrip("0"), ha="center", va="center", fontsize=8, color=color)


def _small_map(axes: Any, weights_TS: Tensor, name: str) -> None:
    axes.imshow(weights_TS.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(name, fontsize=8, color="#555555", pad=3)
    for spine in axes.spines.values():
        spine.set_color("#cccccc")


def _plain(axes: Any, weights_TS: Tensor) -> None:
    """No frame and no ticks, and a white line between the cells."""
    T, S = weights_TS.shape
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([place - 0.5 for place in range(1, S)], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, T)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
