"""Whatever is claimed, it is marked: strange numbers, other shapes, places that are none."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.worked import mark, problem_from, reach, read_problem, solve
from regard.worked.marking import MOST_EQUATIONS
from regard.worked.nodes import Node
from regard.worked.reach import MOST_SLOPES
from regard.worked.report import told
from regard.worked.shipped import shipped
from tests.worked.answers import as_claimed, written_out

STRANGE = (
    "0", "-0", "1e300", "-1e300", "1e-300", "-inf", "inf", "99999999999999999999", "0.000000000000000000001", "1.",
    "-.5", "+3", "1e5", "1.50e-3", "12345.678901234567",
)  # fmt: skip

# Steps that take a place from the step before, divide by it, take its root: much of what is claimed leads nowhere.
LOOKED_UP = problem_from("""\
title: looked up
given:
  T: [[1, 2], [3, 4], [5, 6]]
  p: [0.2, 0.5, 0.3]
given_rounded: [T, p]
steps:
  w: argmax(p)
  e: embed(T, w)
  h: one_hot(w, 3)
  d: e / norm(e)
  s: sqrt(sum(d))
  l: log(p)
  q: s ** 2
  c: cross_entropy(p, w)
  r: e[0] - h[1]
""")


def cells(chance: random.Random, shape: tuple[int, ...]) -> Any:
    if shape:
        return [cells(chance, shape[1:]) for _ in range(shape[0])]
    kind = chance.random()
    if kind < 0.3:
        return chance.choice(STRANGE)
    return str(chance.randint(-20, 20)) if kind < 0.6 else f"{chance.uniform(-5, 5):.{chance.randint(0, 6)}f}"


@pytest.mark.parametrize("group", range(6))
def test_anything_that_is_claimed_is_marked_and_told(group: int) -> None:
    chance = random.Random(group)
    for _ in range(25):
        problem = LOOKED_UP if chance.random() < 0.3 else read_problem(chance.choice([*shipped()]))
        values = solve(problem).values
        claims = {}
        for step in problem.steps:
            shape = tuple(values[step.name].shape)
            other = tuple(chance.randint(1, 4) for _ in range(chance.randint(0, 3)))
            claims[step.name] = as_claimed(cells(chance, shape if chance.random() < 0.8 else other))
        chosen = {name: claim for name, claim in claims.items() if chance.random() < 0.6}
        marks = mark(replace(problem, claimed=chosen))
        assert {step.name for step in marks.steps if step.verdict != "unclaimed"} == set(chosen)
        json.dumps(marks.as_json(), allow_nan=False)
        assert max(map(len, told(marks).splitlines())) <= 80


def test_thousands_of_wrong_cells_are_marked_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    size = 60
    x, w = (torch.randn(size, size, generator=generator, dtype=torch.float64).round(decimals=2) for _ in range(2))
    problem = problem_from(
        f"title: big\ngiven:\n  X: {x.tolist()}\n  W: {w.tolist()}\nsteps:\n  Q: X @ W\n  E: scale(Q @ X.T, 4)\n"
        "  M: mask(E, causal)\n  A: softmax(M)\n  O: A @ X\n"
    )
    values = solve(problem).values
    wrong = {name: as_claimed(written_out(values[name] + 0.7, 2)) for name in ("Q", "E", "A", "O")}
    asked: list[int] = []
    gradient = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **named: asked.append(1) or gradient(*args, **named))
    marks = mark(replace(problem, claimed=wrong))
    assert sum(len(step.wrong) for step in marks.steps) > 2 * MOST_SLOPES
    # In a step of 3,600 cells a gradient counts for 4.6.
    assert MOST_SLOPES / 5 < len(asked) < MOST_SLOPES / 4


@pytest.mark.parametrize("rounded", ["", "given_rounded: [X]\n"])
def test_a_chain_of_hundreds_of_steps_is_marked_by_its_last(rounded: str) -> None:
    lines = "".join(f"  A{n}: softmax(A{n - 1}) + X\n" for n in range(1, 390))
    text = f"given: {{X: [[1.37, 2.2], [3.1, 0.4]]}}\n{rounded}steps:\n  A0: X\n{lines}claimed: {{A389: [9, 9]}}\n"
    marks = mark(problem_from(text))
    assert marks.counts == {"right": 0, "follows": 0, "wrong": 1, "unclaimed": 389}


def test_hundreds_of_wrong_steps_are_marked_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"  A{n}: softmax(A{n - 1}) + X\n" for n in range(1, 150))
    claims = "".join(f"  A{n}: [[9, 9], [9, 9]]\n" for n in range(1, 150))
    text = f"given: {{X: [[1.37, 2.2], [3.1, 0.4]]}}\ngiven_rounded: [X]\nsteps:\n  A0: X\n{lines}claimed:\n{claims}"
    monkeypatch.setattr(reach, "MOST_CARRIES", 400)
    asked: list[int] = []
    gradient = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **named: asked.append(1) or gradient(*args, **named))
    marks = mark(problem_from(text))
    assert marks.counts["wrong"] == 149
    assert len([step for step in marks.steps if step.missed]) == MOST_EQUATIONS
    carried = len(asked)
    monkeypatch.setattr(reach, "MOST_CARRIES", 0)
    asked.clear()
    mark(problem_from(text))
    assert 20 < carried - len(asked) < 300  # each reaches back through more and more steps


def test_the_search_for_slips_ends_where_steps_left_out_make_long_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third step is left out and the rest wrong, so that each is tried with many before it put in."""
    lines = "".join(f"  A{n}: softmax(A{n - 1} @ W) @ W\n" for n in range(1, 300))
    claims = "".join(f"  A{n}: [[0.91, 0.92], [0.93, 0.94]]\n" for n in range(1, 300) if n % 3)
    given = "given: {X: [[1.3, 2], [3, 0.4]], W: [[0.3, 0.8], [0.5, 0.1]]}\n"
    worked: list[int] = []
    compute = Node.compute
    monkeypatch.setattr(Node, "compute", lambda *args: worked.append(1) or compute(*args))
    marks = mark(problem_from(f"{given}steps:\n  A0: X\n{lines}claimed:\n{claims}"))
    assert marks.counts["wrong"] == 200
    assert len(worked) < 110_000
