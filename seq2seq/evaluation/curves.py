"""Curves: the record of one or more trainings as one picture, by matplotlib (extra `plot`).

A run has a colour and a mark of its own, both: the colours are those of Okabe and Ito (2008), which people with any
kind of colour blindness tell apart, and the marks remain in print. Training is a thin line, validation one with marks;
a ring stands round the best validation.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seq2seq.errors import MissingPackageError, RunError
from seq2seq.evaluation.training_record import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "os^DvPX*"
FORMATS = ("png", "svg", "pdf")
AXES = {"updates": "updates", "minutes": "minutes", "tokens": "target tokens"}
_INK, _SOFT, _GRID = "#1d2126", "#5a6169", "#e3e5e7"


@dataclass(frozen=True)
class Panel:
    """One picture of several: a quantity, and by which keys the events hold it."""

    label: str
    series: tuple[tuple[str, str], ...]  # event and key
    best: str | None = None  # min or max: which validation is ringed
    logarithmic: bool = False


PANELS = {
    "loss": Panel("loss, nats a target piece", (("train", "loss"), ("validation", "loss")), "min"),
    "bleu": Panel("BLEU, validation", (("validation", "bleu"),), "max"),
    "chrf": Panel("chrF2, validation", (("validation", "chrf"),), "max"),
    "perplexity": Panel("perplexity, validation", (("validation", "perplexity"),), "min", logarithmic=True),
    "rate": Panel("learning rate", (("train", "learning_rate"),)),
    "speed": Panel("target tokens a second", (("train", "target_tokens_per_second"),)),
    "gradient": Panel("gradient norm, before clipping", (("train", "gradient_norm"),)),
}


@dataclass(frozen=True)
class Course:
    """A training under a name: the events of its metrics.jsonl."""

    name: str
    events: Sequence[Mapping[str, Any]]

    def points(self, event: str, key: str, along: str) -> tuple[list[float], list[float]]:
        """One curve: where its points stand along the course, and their values; what is not finite is left out."""
        told = [(one["step"], number(one, key)) for one in self.events if one["event"] == event]
        found = [(float(step), value) for step, value in told if value is not None]
        return self._along([step for step, _ in found], along), [value for _, value in found]

    def _along(self, steps: list[float], along: str) -> list[float]:
        """Steps as minutes or tokens; a validation, which counts neither, has those of its update."""
        if along == "updates":
            return steps
        import numpy as np

        key, factor = ("elapsed_seconds", 1 / 60) if along == "minutes" else ("target_tokens", 1.0)
        known = {one["step"]: value * factor for one in self.events if (value := number(one, key)) is not None}
        known = {0: 0.0, **known}
        order = sorted(known)
        return [float(x) for x in np.interp(steps, order, [known[step] for step in order])]


def require_matplotlib() -> None:
    """MissingPackageError where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackageError("Pictures need matplotlib, which is not installed. Run: pip install '.[plot]'")


def draw_curves(courses: Sequence[Course], panels: Sequence[str], *, along: str, kind: str) -> bytes:
    """The picture as a file of `kind` (png, svg or pdf). RunError where none of the runs has anything to show."""
    require_matplotlib()
    from matplotlib import rc_context

    from seq2seq.evaluation.attention_picture import fonts

    style: dict[Any, Any] = {
        "font.size": 10.5,
        "axes.edgecolor": _GRID,
        "axes.labelcolor": _SOFT,
        "axes.labelsize": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": _GRID,
        "grid.linewidth": 0.8,
        "xtick.color": _SOFT,
        "ytick.color": _SOFT,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "text.color": _INK,
        "text.parse_math": False,  # the name of a run may hold a $
        "svg.hashsalt": "seq2seq",  # the same picture is the same file
    }
    with fonts(), rc_context(style):
        figure = _figure(courses, panels, along)
        stream = io.BytesIO()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(stream, format=kind, dpi=160, metadata=stamp)
    return stream.getvalue()


def _figure(courses: Sequence[Course], panels: Sequence[str], along: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, wspace=0.04, hspace=0.05)
    figure = Figure(figsize=(5.6 * columns, 3.7 * rows + 0.45), layout=layout, facecolor="white")
    drawn, first = 0, None
    for place, name in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1, sharex=first)
        first = first or axes
        drawn += _panel(axes, PANELS[name], courses, along)
    if first is not None:
        first.set_xlim(left=0)
    if not drawn:
        raise RunError(
            "There is nothing to draw yet: the records hold no such numbers. Train longer, or choose others."
        )
    handles = [
        Line2D([], [], color=_colour(place), marker=_mark(place), markersize=5.5, linewidth=2, label=one.name)
        for place, one in enumerate(courses)
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)), frameon=False)
    return figure


def _panel(axes: Axes, panel: Panel, courses: Sequence[Course], along: str) -> int:
    """Draw one quantity of all runs; how many curves there were."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    drawn = 0
    axes.margins(x=0.02, y=0.08)
    best: list[tuple[float, float, int]] = []
    for place, course in enumerate(courses):
        for event, key in panel.series:
            x, y = course.points(event, key, along)
            if not x:
                continue
            drawn += 1
            thin = event == "train" and len(panel.series) > 1
            look: dict[str, Any] = {"linewidth": 1.2, "alpha": 0.65} if thin else {"linewidth": 2.0, "alpha": 1.0}
            if event == "validation":
                look |= {"marker": _mark(place), "markersize": 4.5 if len(x) < 40 else 0.0}
            axes.plot(x, y, color=_colour(place), clip_on=False, **look)
            if event == "validation" and panel.best:
                at = y.index(min(y) if panel.best == "min" else max(y))
                best.append((x[at], y[at], place))
    for x_best, y_best, place in best:
        axes.plot([x_best], [y_best], marker="o", markersize=11, fillstyle="none", color=_colour(place), clip_on=False)
    if panel.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif drawn and panel.label.startswith(("BLEU", "chrF", "target", "learning", "gradient")):
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if panel.label.startswith("target"):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel(AXES[along])
    axes.set_title(panel.label, loc="left", fontsize=11, color=_INK)
    _say_best(axes, panel, courses, best)
    if len(panel.series) > 1:
        looks = [
            Line2D([], [], color=_SOFT, linewidth=1.2, alpha=0.65, label="training"),
            Line2D([], [], color=_SOFT, linewidth=2.0, marker="o", markersize=4.5, label="validation"),
        ]
        axes.legend(handles=looks, loc="upper right", frameon=False, labelcolor=_SOFT)
    return drawn


def _say_best(axes: Axes, panel: Panel, courses: Sequence[Course], best: Sequence[tuple[float, float, int]]) -> None:
    """The best value of each run in words, in the corner that its curve leaves free."""
    rising = panel.best == "max"
    lines = sorted(best, key=lambda one: one[1], reverse=rising)[:6]
    for row, (_, value, place) in enumerate(lines if rising else lines[::-1]):
        height = 0.045 + 0.075 * (len(lines) - 1 - row)
        axes.text(
            0.98 if rising else 0.02,
            height,
            f"best {value:.2f}",
            transform=axes.transAxes,
            horizontalalignment="right" if rising else "left",
            color=_colour(place),
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
        )


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _mark(place: int) -> str:
    return MARKS[place % len(MARKS)]
