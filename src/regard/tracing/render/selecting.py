"""What of a derivation is shown: its steps, or those asked for, each whole or a slice of it.

    "A"  ·  "A, O"  ·  "A[0, 1], O[:, 2:8]"  ·  ["A[0]", "layers.0.O"]

Indices count from 0, negative ones from the end; axes that are not spoken of are whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.tracing.derivation import Derivation, place
from regard.tracing.step import Step

WHOLE_GIVEN, FEW_GIVEN = 100, 10
"""Cells up to which something given is shown without being asked for; and how many of them, parameters included."""

SLICED = re.compile(r"\s*(?P<name>.*\S)\s*\[(?P<index>[^\[\]]*)\]\s*", re.DOTALL)
INDEX = re.compile(r"\s*(?:(?P<at>-?\d+)|(?P<start>-?\d+)?\s*:\s*(?P<stop>-?\d+)?)\s*")


@dataclass(frozen=True)
class Selected:
    """A step, and for each of its axes the places of it that are shown."""

    step: Step
    places: tuple[range, ...]
    fixed: tuple[bool, ...]
    """For each axis whether one place on it was asked for, so that it is no axis of what is shown."""


Only = str | Sequence[str] | None


def selected(derivation: Derivation, only: Only = None) -> tuple[Selected, ...]:
    """What is shown, in the order of the derivation; by default every step and what is small of the givens."""
    if only is None:
        return tuple(_whole(step) for step in (*small_givens(derivation), *derivation.steps))
    asked = _apart(only) if isinstance(only, str) else list(only)
    if not asked or not all(isinstance(each, str) for each in asked):
        raise ValueError(f"only: expected names of steps, as 'A, O[0]'; got {only!r}")
    found = [_named(derivation, each) for each in asked]
    return tuple(sorted(found, key=lambda each: each.step.position))


def small_givens(derivation: Derivation) -> tuple[Step, ...]:
    """What is given and small; of a model with many parameters only its inputs."""
    few = len(derivation.givens) <= FEW_GIVEN
    return tuple(
        step for step in derivation.givens if step.size <= WHOLE_GIVEN and (few or step.role in ("given", "random"))
    )


def other_givens(derivation: Derivation) -> tuple[Step, ...]:
    """What is given and only named, unless it is asked for."""
    shown = {step.position for step in small_givens(derivation)}
    return tuple(step for step in derivation.givens if step.position not in shown)


def _apart(text: str) -> list[str]:
    """Cut at the commas outside brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [each.strip() for each in pieces if each.strip()]


def _whole(step: Step) -> Selected:
    return Selected(step, tuple(range(size) for size in step.shape), (False,) * len(step.shape))


def _named(derivation: Derivation, text: str) -> Selected:
    sliced = SLICED.fullmatch(text)
    if text in derivation or sliced is None:
        return _whole(derivation[text])
    step = derivation[sliced["name"]]
    parts = [each for each in sliced["index"].split(",") if each.strip()]
    if len(parts) > len(step.shape):
        raise ValueError(f"only: {step.name!r} has the shape {list(step.shape)}; {text!r} speaks of {len(parts)} axes")
    chosen = [_places(step, axis, part, text) for axis, part in enumerate(parts)]
    rest = [(range(size), False) for size in step.shape[len(parts) :]]
    places, fixed = zip(*chosen, *rest, strict=True) if step.shape else ((), ())
    return Selected(step, places, fixed)


def _places(step: Step, axis: int, part: str, text: str) -> tuple[range, bool]:
    found = INDEX.fullmatch(part)
    if found is None:
        raise ValueError(f"only: {text!r}: expected an index as 2, or a slice as 3:8 or :; got {part.strip()!r}")
    if found["at"] is not None:
        index = tuple(int(found["at"]) if each == axis else 0 for each in range(len(step.shape)))
        at = place(step, index)[axis]
        return range(at, at + 1), True
    start, stop = (None if found[each] is None else int(found[each]) for each in ("start", "stop"))
    places = range(*slice(start, stop).indices(step.shape[axis]))
    if not places:
        raise ValueError(f"only: {text!r}: nothing of axis {axis} of {step.name!r} {list(step.shape)} is in that slice")
    return places, False
