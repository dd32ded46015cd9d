"""Whatever a problem file holds, it ends in a result or in one sentence. All ten thousand cases: benchmarks/."""

import random
from collections import Counter
from pathlib import Path

import pytest

from regard.support.errors import Misuse
from regard.worked import problem_from, solve
from tests.worked import fuzzing

CASES, PARTS = 360, 6


@pytest.mark.parametrize("part", range(PARTS))
def test_files_made_by_chance_end_in_a_result_or_a_sentence(part: int, tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    for number in range(part * CASES // PARTS, (part + 1) * CASES // PARTS):
        try:
            found = fuzzing.outcome(fuzzing.case(number), tmp_path / "case.yaml", fuzzing.rendering(number))
        except Exception as error:
            raise AssertionError(f"case {number} ends in {type(error).__name__}: {error}") from error
        kinds[found.kind] += 1
    assert kinds["result"] >= 10  # the cases try something, and do not all fall at the first line
    assert kinds["error"] >= 10


def test_a_case_is_told_by_its_number_alone() -> None:
    state = random.getstate()
    assert fuzzing.case(7) == fuzzing.case(7) != fuzzing.case(17)
    assert random.getstate() == state


START = "given: {X: [[1, 2], [3, 4]]}\nsteps:\n  A: "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (START + "(" * 50 + "X" + ")" * 50, None),
        (START + "X" + ".T" * 40, "nested too deeply; 30 levels are allowed"),
        (START + "-" * 900 + "X", "nested too deeply"),
        (START + "X" + " @ X" * 400, "1601 characters, and a formula has at most 1000"),
        (START + "X ** 101", "powers go up to 100, either way; this one is 101"),
        (START + "X ** (X * 50)", "powers go up to 100, either way; this one is 200"),
        (START + "positional(20000, 2)", "20000×2 would be 40000 cells, and a worked matrix has at most 10000"),
        (START + "stack(stack(X, X), stack(X, X))", "has 4 axes, and a worked value has at most 3"),
        (START + "X\n" + "\n".join(f"  A{n}: concat(A{n - 1 or ''}, X)" for n in range(1, 401)), "more than 400 steps"),
        ("given:\n" + "\n".join(f"  X{n}: 1" for n in range(401)) + "\nsteps: {A: X1}", "401 givens"),
        ("given: {X: [" + "1, " * 10_000 + "1]}\nsteps: {A: X}", "more than 10000 cells"),
        ("given: {X: " + "[" * 50 + "1" + "]" * 50 + "}\nsteps: {A: X}", "nested too deeply; 12 levels are allowed"),
        ("given: {X: [[[[1]]]]}\nsteps: {A: X}", "given X has more than 3 axes"),
        ("given: &g {X: *g}\nsteps: {A: X}", r"the alias \*g holds itself"),
        (START + "X" + "".join(f"\n  B{n}: X @ X" for n in range(398)) + "\n  C: X @ X @ X", None),
    ],
)  # fmt: skip
def test_what_is_too_much_is_refused_with_the_limit(text: str, said: str | None) -> None:
    if said is None:
        solve(problem_from(text))
    else:
        with pytest.raises(Misuse, match=said):
            solve(problem_from(text))
