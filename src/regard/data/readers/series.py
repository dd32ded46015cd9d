"""Rows of numbers: `target TAB step step step`, where a step is one number or several with commas between."""

import numpy as np
from numpy.typing import NDArray

from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.readers.tables import WRONG, numbered
from regard.data.sources import Series


def read(source: Series, files: Files) -> Read:
    """The steps and what they are about; every series has as many numbers a step as the first that can be read."""
    widths: dict[str, int] = {}
    for each in numbered(files):
        if isinstance(each, Bad):
            yield each
            continue
        number, line = each
        target, tab, text = line.partition("\t")
        if not tab:
            yield Bad(number, WRONG, "no tab; expected the target, a tab and the steps", line)
            continue
        try:
            steps = _steps(text, "steps", widths)
            found = _steps(target, "steps of the target", widths) if source.target == "numbers" else target
        except ValueError as error:
            yield Bad(number, "numbers that cannot be read", str(error), line)
        else:
            yield Example(number, (steps, found))


def _steps(text: str, what: str, widths: dict[str, int]) -> NDArray[np.float32]:
    """[length, width]; ValueError says which step is wrong. `widths` remembers that of the first."""
    rows = [step.split(",") for step in text.split()]
    width = widths.get(what, len(rows[0]) if rows else 1)
    for place, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(f"step {place} of the {what} has {len(row)} numbers, expected {width}")
    try:
        values = np.array(rows, np.float64).reshape(len(rows), width)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if not np.isfinite(found).all():
        place = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0]) + 1
        raise ValueError(f"step {place} of the {what} is {text.split()[place - 1]}, expected finite numbers")
    if rows:
        widths.setdefault(what, width)
    return found
