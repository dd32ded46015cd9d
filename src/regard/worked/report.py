"""Marks as a teacher would write them: short, in order, with the equation that was missed."""

import math
import textwrap
from collections.abc import Iterator, Sequence

from regard.tracing.render.numbers import shown
from regard.worked.marks import CUT, CellMark, Marks, StepMark, digits_for
from regard.worked.tolerance import Interval

MOST_CELLS = 3
"""Wrong cells of one step that are told in full; the others are named."""
WORDS = {"right": "right", "follows": "follows", "wrong": "wrong", "unclaimed": "-"}
INDENT = " " * 11


def told(marks: Marks, name: str = "", width: int = 80) -> str:
    """The report for a terminal; `name` is whose answer it is."""
    title = f"{marks.title}, worked by {name}" if name else marks.title
    lines = [*textwrap.wrap(title, width), "=" * min(len(title), width), *_wrapped(_summary(marks), width), ""]
    for steps in _runs(marks.steps):
        step = steps[0]
        plain = ", ".join(each.name for each in steps)
        said = plain if _nothing_to_say(step) else f"{step.name} = {step.formula}"
        lines += _wrapped(f"  {WORDS[step.verdict]:7}  {said}", width, INDENT)
        lines += [line for said in _details(step) for line in _wrapped(INDENT + said, width, INDENT + "  ")]
    return "\n".join(line.rstrip() for line in lines)


def _runs(steps: Sequence[StepMark]) -> list[list[StepMark]]:
    """Steps one by one, but those in a row of which there is nothing to say together."""
    runs: list[list[StepMark]] = []
    for step in steps:
        if runs and _nothing_to_say(step) and _nothing_to_say(runs[-1][0]) and runs[-1][0].verdict == step.verdict:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _nothing_to_say(step: StepMark) -> bool:
    said = any(cell.remark or cell.verdict != "right" for cell in step.cells)
    return step.verdict == "unclaimed" or (step.verdict == "right" and not said)


def _summary(marks: Marks) -> str:
    counts = marks.counts
    claimed = len(marks.steps) - counts["unclaimed"]
    if not claimed:
        return "No step is answered here; an answer stands under `claimed`, step by step."
    if counts["right"] == claimed:
        if any(step.blank for step in marks.steps):
            return "Everything that is filled in is right."
        return "Everything is right." if claimed == len(marks.steps) else "Every step that is answered is right."
    if claimed == 1:
        return f"The one step that is answered is wrong, first in {_first(marks)}."
    parts = [f"{counts['right'] or 'none'} of {claimed} answered steps {_are(counts['right'])} right"]
    if counts["follows"]:
        parts.append(f"{counts['follows']} {_follow(counts['follows'])} from an earlier mistake")
    if counts["wrong"]:
        parts.append(f"{counts['wrong']} {_are(counts['wrong'])} wrong")
    said = ", ".join(parts)
    return f"{said[0].upper()}{said[1:]}. The first mistake is in {_first(marks)}."


def _first(marks: Marks) -> str:
    first = marks.first_wrong
    assert first is not None, "nothing follows from no mistake"
    return f"{first[0].name}{_at(first[1])}"


def _are(count: int) -> str:
    return "is" if count < 2 else "are"


def _follow(count: int) -> str:
    return "follows" if count < 2 else "follow"


def _details(step: StepMark) -> Iterator[str]:
    if step.misfit:
        yield f"The shape is another: {step.misfit}."
    compared = [cell for cell in step.wrong if not cell.claimed.blank and not math.isnan(cell.true)]
    for number, cell in enumerate(compared[:MOST_CELLS]):
        yield _wrong(cell)
        if number == 0 and step.missed:
            yield f"  {step.missed}"
    if more := compared[MOST_CELLS:]:
        yield f"and {len(more)} more: {_places(more)}"
    if missing := [cell for cell in step.wrong if cell.claimed.blank and not math.isnan(cell.true)]:
        yield f"Missing: {_places(missing)}"
        yield from [f"  {step.missed}"] if step.missed and not compared else []
    if surplus := [cell for cell in step.wrong if math.isnan(cell.true)]:
        yield f"Too many: {_places(surplus)}"
    if step.slip:
        yield f"{step.slip[0].upper()}{step.slip[1:]}."
    elif len(step.wrong) == 1 and not step.misfit and _nearly(step.wrong[0]):
        yield "Only the last digit is off: was a number rounded on the way?"
    if follows := [cell for cell in step.cells if cell.verdict == "follows"]:
        yield f"{_places(follows)} {_follow(len(follows))} from your earlier numbers."
    if cut := [cell for cell in step.cells if cell.remark == CUT]:
        rest = f", and {_places(cut[MOST_CELLS:])}" if len(cut) > MOST_CELLS else ""
        yield f"{CUT.capitalize()}: {', '.join(_cut(cell) for cell in cut[:MOST_CELLS])}{rest}"
    if step.blank:
        yield f"Left blank: {_places(step.blank)}"


def _wrong(cell: CellMark) -> str:
    """What was written, what would have followed, what is true."""
    follows, true = exactly(cell, cell.follows), exactly(cell, cell.true)
    if follows == true:
        return f"{_at(cell)} you wrote {cell.claimed.text}; it is {true}"
    return f"{_at(cell)} you wrote {cell.claimed.text}; from your own numbers it is {follows}, in truth {true}"


def _cut(cell: CellMark) -> str:
    """With the value that it was cut from: the true one, or what its own numbers give."""
    values = (cell.true, cell.follows) if cell.verdict == "right" else (cell.follows, cell.true)
    cut = [value for value in values if cell.claimed.is_cut_from(Interval(value, value))]
    return f"{_at(cell)} {cell.claimed.text} for {exactly(cell, [*cut, *values][0])}"


def exactly(cell: CellMark, value: float) -> str:
    """With as many digits as show that it is not what was written: 7.1349, not 7.135, where 7.14 is wrong."""
    return shown(value, digits_for(cell, value)).text


def _nearly(cell: CellMark) -> bool:
    """Off by the last digit, of two digits or more."""
    nearest = min(abs(cell.claimed.value - cell.true), abs(cell.claimed.value - cell.follows))
    return cell.claimed.digits > 1 and nearest < 1.5 * cell.claimed.unit


def _places(cells: Sequence[CellMark]) -> str:
    named = ", ".join(_at(cell) for cell in cells[: 2 * MOST_CELLS])
    return f"{named}, …" if len(cells) > 2 * MOST_CELLS else named


def _at(cell: CellMark) -> str:
    return f"[{','.join(map(str, cell.place))}]"


def _wrapped(text: str, width: int, then: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=then, break_on_hyphens=False) or [""]
