"""Words in two dimensions before and after attention: each is drawn towards those it has to do with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.pictures import COLOURS, MARKERS, figure, told
from regard.evaluation.pictures.fonts import fonts
from regard.evaluation.pictures.labels import apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """A sentence whose words attention moved."""

    words: tuple[str, ...]
    before: NDArray[Any]
    """[n, d]."""
    after: NDArray[Any]
    """[n, d]."""
    weights: NDArray[Any] | None = None
    """[n, n]: what each word (row) is made of."""


def plane(vectors: NDArray[Any]) -> tuple[Vectors, Vectors, float]:
    """The plane through vectors [N, d] that keeps most of their differences: its centre, its axes [d, 2], and the share
    that it keeps. Vectors of two numbers are in it already."""
    vectors = np.asarray(vectors, float)
    if vectors.shape[1] == 2:
        return np.zeros(2), np.eye(2), 1.0
    centre = vectors.mean(0)
    _, sizes, axes = np.linalg.svd(vectors - centre, full_matrices=False)
    found = np.zeros((vectors.shape[1], 2))
    found[:, : min(2, len(axes))] = axes[:2].T
    found *= np.where(found.sum(0) < 0, -1, 1)  # a sign that does not depend on the library
    total = float((sizes**2).sum())
    return centre, found, float((sizes[:2] ** 2).sum()) / total if total else 1.0


def moved(sentences: Sequence[Moved], *, title: str = "", note: str = "") -> "Figure":
    """All sentences in one plane: hollow marks before, full ones after, an arrow between. note: what was done to the
    vectors."""
    chosen = fonts([title, *(word for each in sentences for word in each.words)])
    everything = np.concatenate([np.concatenate([each.before, each.after]) for each in sentences])
    centre, axes_of, kept = plane(everything)
    made = figure(7.0, 5.2)
    axes = made.subplots()
    font = chosen.properties(10)
    for number, each in enumerate(sentences):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        before, after = ((np.asarray(points, float) - centre) @ axes_of for points in (each.before, each.after))
        axes.plot(*before.T, marker, markerfacecolor="white", color=colour, linestyle="none", markersize=6)
        axes.plot(*after.T, marker, color=colour, linestyle="none", markersize=8, label=" ".join(each.words))
        for word, start, end in zip(each.words, before, after, strict=True):
            axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "alpha": 0.5, "lw": 1.2})
            onward = -1 if end[0] < start[0] else 1  # the word stands where its arrow does not come from
            axes.annotate(
                word, end, (7 * onward, 5 - 15 * (number % 2)), textcoords="offset points", color=colour,
                fontproperties=font, horizontalalignment="left" if onward > 0 else "right",
            )  # fmt: skip
    axes.margins(0.15)
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelsize=8)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(prop=chosen.properties(9), frameon=False)
    still = all(np.array_equal(each.before, each.after) for each in sentences)
    said = "without attention nothing moves" if still else "hollow: before attention, full: after"
    parts = [said, note, f"this plane keeps {kept:.0%} of the differences"]
    axes.set_xlabel("; ".join(filter(None, parts)), fontsize=8)
    if title:
        axes.set_title(title, loc="left", fontproperties=chosen.properties(11))
    told(made, chosen.note)
    marks = np.concatenate([(np.asarray(each.after, float) - centre) @ axes_of for each in sentences])
    apart(made, [text for text in axes.texts if text.get_text()], marks)
    return made
