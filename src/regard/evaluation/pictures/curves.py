"""Figures over something: scores over length, losses over steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from regard.evaluation.assessment import Assessment
from regard.evaluation.pictures import COLOURS, MARKERS, figure
from regard.evaluation.pictures.fonts import fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def by_length(found: Sequence[Assessment], *, title: str = "") -> "Figure":
    """The main score of each model by the length of the source; a hollow mark stands for few sentences."""
    chosen = fonts([title, *(each.model for each in found)])
    made = figure(6.4, 4.0)
    axes = made.subplots()
    for number, each in enumerate(found):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        there = [(place, bucket) for place, bucket in enumerate(each.lengths) if bucket.score is not None]
        places = [place for place, _ in there]
        values = [bucket.score.value for _, bucket in there if bucket.score is not None]
        axes.plot(places, values, color=colour, label=each.model, linewidth=2)
        for place, value, (_, bucket) in zip(places, values, there, strict=True):
            axes.plot(
                place, value, marker, color=colour, markerfacecolor="white" if bucket.few else colour, markersize=7
            )
    names = [f"{each.name}\n{each.count:,} sentence{'s' * (each.count != 1)}" for each in found[0].lengths]
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("words of the source")
    axes.set_ylabel(found[0].scores[0].name)
    highest = max((each.score.value for one in found for each in one.lengths if each.score is not None), default=0.0)
    axes.set_ylim(0, 1.06 * highest or 1.0)  # the whole of the highest mark
    axes.set_xlim(-0.4, len(names) - 0.6)
    if len(found) > 1:
        axes.legend(prop=chosen.properties(9), frameon=False)
    _plain(axes, title or "by length")
    return made


def over_steps(curves: Mapping[str, Sequence[tuple[float, float]]], *, title: str = "", unit: str = "loss") -> "Figure":
    """Several curves of (step, value), by their names."""
    chosen = fonts([title, *curves])
    made = figure(6.4, 4.0)
    axes = made.subplots()
    for number, (name, points) in enumerate(curves.items()):
        marker = MARKERS[number % len(MARKERS)] if len(points) <= 40 else ""
        axes.plot(
            *zip(*points, strict=True), color=COLOURS[number % len(COLOURS)], marker=marker, label=name, linewidth=1.6
        )
    axes.set_xlabel("step")
    axes.set_ylabel(unit)
    if len(curves) > 1:
        axes.legend(prop=chosen.properties(9), frameon=False)
    _plain(axes, title)
    return made


def _plain(axes: "Axes", title: str) -> None:
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
