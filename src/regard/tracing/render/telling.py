"""What is said about a step beside its numbers, in the words that all renderings share."""

from collections.abc import Sequence

from regard.tracing.render.tables import Tables, told_shape
from regard.tracing.step import Step

LEGEND = "× is blocked: nothing may be attended to there, and the weight is 0."

ROLES = {
    "given": "is given",
    "parameter": "is a parameter",
    "constant": "is a constant",
    "random": "is drawn by chance",
}


def heading(step: Step) -> str:
    """`A = softmax(E)`, or what it is where no formula stands in the code."""
    if step.formula:
        return f"{step.name} = {step.formula}"
    if step.role in ROLES:
        return f"{step.name} {ROLES[step.role]}"
    return f"{step.name} by {step.operation} of {', '.join(step.inputs)}" if step.inputs else step.name


def note(step: Step) -> str:
    """Its shape, how to read it, and where it was computed."""
    parts = [told_shape(step.shape)]
    if step.kind == "weights" and len(step.shape) > 1:
        parts.append("rows are queries, columns keys")
    if step.module and not step.name.startswith(step.module):
        parts.append(step.module)
    if not step.has_values:
        parts.append("its values were left out")
    return " · ".join(parts)


def left_out(shown: Tables) -> str:
    """That some slices are not shown, and how to ask for one."""
    if not shown.left_out or not shown.slices:
        return ""
    count = len(shown.step.shape) - 2
    last = ", ".join(str(size - 1) for size in shown.step.shape[:count])
    noun = "slice is" if shown.left_out == 1 else "slices are"
    return f"{shown.left_out} more {noun} left out; ask for one by name, as {shown.step.name}[{last}]"


def more_given(steps: Sequence[Step]) -> str:
    """What is given and only named."""
    names = ", ".join(f"{step.name} ({told_shape(step.shape)})" for step in steps[:20])
    more = f", and {len(steps) - 20} more" if len(steps) > 20 else ""
    return f"Also given, and shown when asked for by name: {names}{more}."
