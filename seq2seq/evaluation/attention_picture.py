"""A picture of attention: which source pieces each target piece looked at. Letters: T target, S source pieces."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Families that have the characters which matplotlib's own font lacks; those that are installed are used.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)
_CELL = 0.32  # inches
_WORD_START = "▁"


def attention_picture(
    weights_TS: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str]
) -> NDArray[np.uint8]:
    """A grid, dark where much weight lies; the source runs above it and the target down its side.

    Comes back as a picture of height, width and the three colours.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with fonts():
        figure = Figure(figsize=(2.0 + _CELL * len(source), 1.4 + _CELL * len(target)), dpi=110, layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
        axes.xaxis.tick_top()
        axes.set_xticks(range(len(source)), [_shown(piece) for piece in source], rotation=90)
        axes.set_yticks(range(len(target)), [_shown(piece) for piece in target])
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _shown(piece: str) -> str:
    """A piece without the sign for a blank, and as text: matplotlib takes $ for the beginning of a formula."""
    return piece.replace(_WORD_START, " ").strip().replace("$", r"\$") or "␣"


@contextmanager
def fonts() -> Iterator[None]:
    """Draw with every font that is there; a character that none of them has is a box, and nothing to warn about."""
    import warnings

    from matplotlib import font_manager, rc_context

    there = set(font_manager.get_font_names())
    families = [name for name in _FONTS if name in there]
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), rc_context({"font.family": families}):
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            yield
    finally:
        log.setLevel(before)
