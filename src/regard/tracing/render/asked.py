"""Cells asked for one by one: what a page whose JSON was written without its numbers is answered."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.tracing.derivation import Derivation
from regard.tracing.storing import json_number

MOST = 20_000
"""Cells in one answer."""


def answered(derivation: Derivation, step: int, cells: Sequence[int], most: int = MOST) -> dict[str, Any]:
    """`{"values": […], "reach": …}`, ready for JSON, for flat indices of the step at a position.

    The reach is the largest magnitude in the whole step, by which its colours are drawn.
    """
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(derivation.fine):
        raise ValueError(f"step: expected a position from 0 to {len(derivation.fine) - 1}; got {step!r}")
    if len(cells) > most:
        raise ValueError(f"cells: expected at most {most} at once; got {len(cells)}")
    asked = derivation.fine[step]
    wrong = next(
        (at for at in cells if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < asked.size), None
    )
    if wrong is not None:
        raise ValueError(f"cells: {asked.name!r} has {asked.size} cells, counted from 0; got {wrong!r}")
    array = asked.array
    if array is None:
        raise ValueError(f"the values of {asked.name!r} {list(asked.shape)} were left out of the derivation")
    return {"values": [json_number(array[at].item()) for at in cells], "reach": reach(array)}


def reach(array: "np.ndarray[Any, Any]") -> float:
    """The largest magnitude of a finite number."""
    if array.dtype.kind not in "fiu" or array.size == 0:
        return 0.0
    sizes = abs(array[np.isfinite(array)])
    return float(sizes.max()) if sizes.size else 0.0
