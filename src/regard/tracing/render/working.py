"""The arithmetic that stands beside a step's numbers: that of its most telling cell."""

from regard.tracing.derivation import GIVEN
from regard.tracing.render.equation import PLAIN, Notation, line
from regard.tracing.render.selecting import Selected
from regard.tracing.render.tables import telling_cell


def worked_cell(what: Selected) -> tuple[int, ...] | None:
    """The cell whose arithmetic is shown; None where there is none to show."""
    step = what.step
    shows = step.role not in GIVEN and step.has_values and step.size > 0
    return telling_cell(what) if shows else None


def arithmetic(what: Selected, digits: int, notation: Notation = PLAIN) -> str:
    """`A[1, 0]: 0.2700 ≈ …`, or nothing."""
    index, derivation = worked_cell(what), what.step.derivation
    if index is None or derivation is None:
        return ""
    place = f"[{', '.join(map(str, index))}]" if index else ""
    return f"{what.step.name}{place}: {line(derivation.why(what.step.name, *index), digits, notation=notation)}"
