"""How big a worked problem may be. Above these a person could not follow it, and a machine would not answer at once."""

import math
from collections.abc import Sequence

MOST_CHARACTERS = 1_000
"""Of one formula."""
DEEPEST = 30
"""Brackets and signs inside one another in a formula."""
MOST_PARTS = 3_000
"""Names, numbers, signs and calls in all formulas of a problem together."""
MOST_NAMES = 400
"""Of what is given and of steps, those of whole layers among them: so many of each."""
MOST_CELLS = 10_000
"""Of one matrix, also of those made on the way inside a function."""
MOST_CELLS_IN_ALL = 200_000
"""Of everything a problem is given and everything that is made from it."""
HIGHEST_POWER = 100
"""Either way: x ** 100 and x ** -100."""
MOST_AXES = 3
MOST_BYTES = 500_000
"""Of a problem file."""


def spelled(shape: Sequence[int]) -> str:
    """A shape as people say it: `2×3`, `3 numbers`, `one number`."""
    if not shape:
        return "one number"
    return "×".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]} number{'s' if shape[0] != 1 else ''}"


def room(shape: Sequence[int]) -> None:
    """Refuse a value that would be too big, before it is made."""
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise ValueError(f"{spelled(shape)} would be {cells} cells, and a worked matrix has at most {MOST_CELLS}")
    if len(shape) > MOST_AXES:
        raise ValueError(f"{spelled(shape)} has {len(shape)} axes, and a worked value has at most {MOST_AXES}")
