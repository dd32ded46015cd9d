"""Where a caption looked: the image once for each word, dark where nothing was looked at."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.pictures import figure, told
from regard.evaluation.pictures.fonts import fonts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def looked(image: NDArray[Any], weights: NDArray[Any], words: Sequence[str], *, title: str = "") -> "Figure":
    """image [height, width] or [height, width, 3] from 0 to 1; weights [words, height, width], laid over its pixels."""
    image, weights = np.asarray(image, float), np.asarray(weights, float)
    if weights.shape != (len(words), *image.shape[:2]):
        raise ValueError(f"weights: expected {[len(words), *image.shape[:2]]}; got {list(weights.shape)}")
    chosen = fonts([*words, title])
    wide = image.shape[1] / max(image.shape[0], 1)
    across = max(1, min(len(words) + 1, round(9 / max(wide, 0.5))))
    down = -(-(len(words) + 1) // across)
    cell = max(1.1, 0.9 * wide)
    made = figure(across * cell + 0.3, down * (cell / max(wide, 1e-9) + 0.35) + (0.4 if title else 0.1))
    places = made.subplots(down, across, squeeze=False).flat
    for number, axes in enumerate(places):
        axes.set_axis_off()
        if number > len(words):
            continue
        axes.imshow(image, cmap="gray", vmin=0, vmax=1)
        if number:
            spot = weights[number - 1]
            axes.imshow(spot, cmap="magma", alpha=0.65, vmin=0, vmax=max(float(weights.max()), 1e-9))
            axes.set_title(words[number - 1], fontproperties=chosen.properties(10))
    if title:
        made.suptitle(title, fontproperties=chosen.properties(11))
    return told(made, chosen.note)
