"""The equation that was missed: one cell's arithmetic, read from a trace of the step as it is worked again."""

from collections.abc import Mapping

from torch import Tensor

from regard.tracing import label, trace
from regard.worked.known import Recipe

TERMS = 6
"""Of a long sum that are written out."""
GIVEN = ("given", "parameter", "constant")
UNTOLD = ("opaque", "made", "given", "cell")
"""Forms that say where a number comes from, and no arithmetic."""


def missed(recipe: Recipe, values: Mapping[str, Tensor], name: str, place: int, digits: int = 4) -> str:
    """`12 = 2·2 + 2·3 + 2·1`; nothing where the step cannot be worked from these values."""
    try:
        with trace() as tape:
            named = {each: label(values[each].detach().clone(), each) for each in recipe.names}
            result = label(recipe.compute(named), name)
        derivation = tape.derivation(result)
    except ValueError:
        return ""
    step = derivation.target
    index = []
    for size in reversed(step.shape):
        place, at = divmod(place, size)
        index.append(at)
    cell = derivation.why(step.name, *reversed(index))
    while (made := cell.expression.step) is not None and made.role not in GIVEN:  # only passed on from there
        cell = derivation.why(made.name, *cell.expression.index)
    return cell.show(digits, TERMS) if cell.expression.form not in UNTOLD else ""
