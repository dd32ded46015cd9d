"""Where each word looked: heat maps of weights, rows the words that look (queries), columns those looked at (keys).

Weights run from 0 to 1 on a scale that is even to the eye and safe for the colour-blind, the same in every picture.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.pictures import figure, told
from regard.evaluation.pictures.fonts import Fonts, fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Weights = NDArray[Any] | Sequence[Sequence[float]]
NUMBERED = 14
"""With so many rows and columns the numbers are printed as well."""


def alignment(
    weights: Weights, rows: Sequence[str], columns: Sequence[str], *, title: str = "", numbers: bool | None = None
) -> "Figure":
    """One heat map. numbers: print them in the cells; unset, where there are few."""
    table = checked(weights, rows, columns)
    chosen = fonts([*rows, *columns, title])
    numbers = max(table.shape) <= NUMBERED if numbers is None else numbers
    made = figure(1.8 + 0.48 * len(columns) + 0.08 * _longest(rows), 1.1 + 0.4 * len(rows) + 0.07 * _longest(columns))
    axes = made.subplots()
    image = _map(axes, table, rows, columns, chosen, 10)
    if numbers:
        _print(axes, table)
    made.colorbar(image, ax=axes, shrink=0.8, pad=0.02, label="weight")
    return _told(made, chosen, title)


def grid(
    weights: Weights,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    names: Sequence[str] = (),
    title: str = "",
    across: int | None = None,
) -> "Figure":
    """Several maps of the same words [N, T, S], such as one a head, each under its name."""
    tables = np.asarray(weights, float)
    if tables.ndim != 3:
        raise ValueError(f"weights: expected [maps, {len(rows)}, {len(columns)}]; got {list(tables.shape)}")
    for table in tables:
        checked(table, rows, columns)
    names = list(names) or [f"head {number + 1}" for number in range(len(tables))]
    chosen = fonts([*rows, *columns, *names, title])
    across = min(len(tables), 4) if across is None else across
    down = -(-len(tables) // across)
    wide, high = 0.9 + 0.3 * len(columns) + 0.05 * _longest(rows), 0.9 + 0.27 * len(rows) + 0.06 * _longest(columns)
    made = figure(across * wide + 0.6, down * high + (0.4 if title else 0.1))
    places = made.subplots(down, across, squeeze=False)
    image: Any = None
    for number, axes in enumerate(places.flat):
        if number >= len(tables):
            axes.set_axis_off()
            continue
        image = _map(axes, tables[number], rows if number % across == 0 else [], columns, chosen, 8)
        axes.set_xlabel(names[number], fontproperties=chosen.properties(9))
    made.colorbar(image, ax=places, shrink=0.5, pad=0.01, label="weight")
    return _told(made, chosen, title)


def across(maps: int, heads: int) -> int:
    """How many maps stand side by side: of one layer four, or three where that leaves no gaps; of several layers as
    many as each has heads, so that a row is a layer."""
    if maps > heads:
        return heads
    return 3 if maps % 4 and maps % 3 == 0 else min(maps, 4)


def checked(weights: Weights, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """The table, if it has a row for each row's word and a column for each column's."""
    table = np.asarray(weights, float)
    if table.shape != (len(rows), len(columns)):
        raise ValueError(
            f"weights: expected [{len(rows)}, {len(columns)}], as there are words; got {list(table.shape)}"
        )
    if not np.isfinite(table).all():
        raise ValueError("weights: there is a number among them that is not finite")
    return table


def _map(
    axes: "Axes", table: NDArray[Any], rows: Sequence[str], columns: Sequence[str], chosen: Fonts, size: float
) -> Any:
    image = axes.imshow(table, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto")
    font = chosen.properties(size)
    axes.set_xticks(range(len(columns)), columns, rotation=_angle(columns), fontproperties=font)
    axes.xaxis.tick_top()
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left" if _angle(columns) else "center")
        label.set_rotation_mode("anchor")
    axes.set_yticks(range(len(rows)), rows, fontproperties=font)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(table.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(table.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image


def _print(axes: "Axes", table: NDArray[Any]) -> None:
    """Two digits in each cell, light on dark and dark on light; 0 stands for less than 0.005."""
    for (row, column), value in np.ndenumerate(table):
        text = f"{value:.2f}".lstrip("0") if value >= 0.005 else "0"
        axes.text(
            column, row, text, ha="center", va="center", fontsize=7.5, color="white" if value < 0.55 else "black",
            alpha=0.55 if text == "0" else 1.0,
        )  # fmt: skip


def _told(made: "Figure", chosen: Fonts, title: str) -> "Figure":
    if title:
        made.suptitle(title, fontproperties=chosen.properties(11))
    return told(made, chosen.note)


def _angle(columns: Sequence[str]) -> int:
    return 0 if _longest(columns) <= 4 else 55


def _longest(words: Sequence[str]) -> int:
    return max(map(len, words), default=0)
