"""Answers for the tests: small problems with a claim or two, and whole answers worked by a program."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.worked import Claimed, Problem, problem_from, solve

SMALL = """\
title: Small
given:
  X: [[1, 2], [3, 4]]
  W_Q: [[1, 0.5], [0, 2]]
  W_K: [[2, 1], [1, 0]]
  W_V: [[1, 2], [3, 5]]
steps:
  Q: X @ W_Q
  K: X @ W_K
  V: X @ W_V
  E: scale(Q @ K.T, 16)
  M: mask(E, causal)
  A: softmax(M)
  Z: X + A @ V
"""


def asked(steps: Mapping[str, str], given: Mapping[str, str], claimed: Mapping[str, str], rounded: str = "") -> Problem:
    """A problem from its pieces, with an answer."""
    text = ["title: asked", "given:", *(f"  {name}: {value}" for name, value in given.items())]
    text += [f"given_rounded: [{rounded}]"] if rounded else []
    text += ["steps:", *(f"  {name}: {formula}" for name, formula in steps.items())]
    text += ["claimed:", *(f'  {name}: "{value}"' for name, value in claimed.items())] if claimed else []
    return problem_from("\n".join(text))


def answered(text: str, **claims: str) -> Problem:
    """A problem's text with these claims."""
    return problem_from(text + "claimed:\n" + "".join(f'  {name}: "{value}"\n' for name, value in claims.items()))


def written_out(value: Tensor, decimals: int, short: bool = False) -> Any:
    """Cells with so many decimals; `short` leaves out zeros at the end, and with them perhaps the point."""
    if value.ndim:
        return [written_out(each, decimals, short) for each in value]
    if math.isinf(float(value)):
        return "-inf"
    text = f"{float(value):.{decimals}f}"
    return text.rstrip("0").rstrip(".") if short else text


def written_in_digits(value: Tensor, digits: int) -> Any:
    """Cells with so many significant digits: 0.012, 6.0, 15; of whole numbers alone nobody could tell that the zeros
    of 120 stand for nothing, and so it is 1.2e+02 there."""
    texts = [_in_digits(float(each), digits) for each in value.flatten()]
    if digits > 1 and any("." in text and "e" not in text for text in texts):
        texts = [f"{float(text):.0f}" if "e+" in text and len(text) < 9 else text for text in texts]
    return _in_rows(texts, tuple(value.shape))


def _in_digits(number: float, digits: int) -> str:
    if math.isinf(number) or number == 0:
        return "-inf" if number else "0"
    return f"{number:#.{digits}g}".rstrip(".")


def _in_rows(texts: list[str], shape: tuple[int, ...]) -> Any:
    cells: Any = texts
    for size in reversed(shape[1:]):
        cells = [cells[at : at + size] for at in range(0, len(cells), size)]
    return cells if shape else texts[0]


def as_claimed(cells: Any) -> Claimed:
    """Cells as written, with the numbers that they are."""
    texts = [math.nan if text == "_" else float(text) for text in flattened(cells)]
    flat = torch.tensor(texts, dtype=torch.float64)
    return Claimed(cells, flat.reshape(shape_of(cells)), 1)


def flattened(cells: Any) -> Iterator[str]:
    if isinstance(cells, list):
        for each in cells:
            yield from flattened(each)
    else:
        yield cells


def shape_of(cells: Any) -> tuple[int, ...]:
    return (len(cells), *shape_of(cells[0])) if isinstance(cells, list) else ()


def honest(
    problem: Problem, chance: random.Random, left_out: float = 0.1, significant: bool = False, blank: float = 0.0
) -> Problem | None:
    """An answer in which every result is rounded to 1, 2 or 3 decimals (or significant digits), and each step takes
    each earlier result as it was rounded or as it was before that. None where such rounding leaves nothing to count
    with (a division by 0). Of the steps some are left out, and of the others some cells left blank."""
    full = {name: given.value for name, given in problem.given.items()}
    rounded, claimed = dict(full), {}
    for step in problem.steps:
        taken = {name: chance.choice((full, rounded))[name] for name in step.formula.names}
        try:
            value = step.formula.compute(taken)
        except ValueError:
            return None
        if bool((value.isnan() | (value == torch.inf)).any()):
            return None
        places = chance.choice((1, 2, 3))
        cells = written_in_digits(value, places) if significant else written_out(value, places, chance.random() < 0.5)
        texts = ["_" if chance.random() < blank else text for text in flattened(cells)]
        claim = as_claimed(_in_rows(texts, tuple(value.shape)))
        full[step.name], rounded[step.name] = value, claim.value.where(~claim.value.isnan(), value)
        if chance.random() < left_out:
            rounded[step.name] = value
        elif {*texts} != {"_"}:
            claimed[step.name] = claim
    return replace(problem, claimed=claimed)


def with_cell(problem: Problem, step: str, place: int, text: str) -> Problem:
    """The same answer with another number in one cell, counted through from 0."""
    texts = [*flattened(problem.claimed[step].cells)]
    texts[place] = text
    cells = _in_rows(texts, shape_of(problem.claimed[step].cells))
    return replace(problem, claimed={**problem.claimed, step: as_claimed(cells)})


def answered_truly(problem: Problem, decimals: int = 4, **others: Tensor) -> Problem:
    """Every step answered from exact numbers; `others` are claimed in place of the true value, and carried on."""
    values = dict(solve(problem).values)
    for step in problem.steps:
        values[step.name] = others.get(step.name, step.formula.compute(values))
    claims = {step.name: as_claimed(written_out(values[step.name], decimals)) for step in problem.steps}
    return replace(problem, claimed=claims)
