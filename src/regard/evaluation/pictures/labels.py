"""Words beside their points, moved about their point where they would stand on one another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = (
    (7, 5, "left"), (-7, 5, "right"), (7, -13, "left"), (-7, -13, "right"), (0, 9, "center"), (0, -18, "center"),
    (16, 14, "left"), (-16, 14, "right"), (16, -23, "left"), (-16, -23, "right"), (0, 24, "center"), (0, -33, "center"),
)  # fmt: skip
"""Where a word may stand: points to the right of its mark and above it, and which of its sides is there."""


def apart(picture: "Figure", words: Sequence[Any], marks: NDArray[np.float64], wide: float = 9.0) -> None:
    """Annotations, one after the other, each where it stands if that is free of words and marks [n, 2], else at the
    nearest place that is; where none is, at the one that hides least. wide: how many points a mark measures."""
    from matplotlib.transforms import Bbox

    picture.draw_without_rendering()
    side = wide * picture.dpi / 72
    centres = words[0].axes.transData.transform(marks) if words else []
    taken = [Bbox.from_bounds(x - side / 2, y - side / 2, side, side) for x, y in centres]
    for word in words:
        asked = (*word.get_position(), word.get_horizontalalignment())
        places = (asked, *PLACES)
        hidden = [_hidden(_put(word, place), taken) for place in places]
        taken.append(_put(word, places[hidden.index(min(hidden))]))


def _put(word: Any, place: tuple[float, float, str]) -> Any:
    """Where it is in pixels once it is put there."""
    x, y, side = place
    word.set_position((x, y))
    word.set_horizontalalignment(side)
    return word.get_window_extent()


def _hidden(box: Any, taken: Sequence[Any]) -> float:
    """How much of what is there it would cover."""
    found = 0.0
    for other in taken:
        wide = min(box.x1, other.x1) - max(box.x0, other.x0)
        high = min(box.y1, other.y1) - max(box.y0, other.y0)
        found += wide * high if wide > 0 and high > 0 else 0.0
    return found
