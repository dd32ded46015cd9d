"""The usual slips: each made once as a person makes it, and named by the marker."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.worked import instead, problem_from, solve
from regard.worked.marking import mark
from tests.worked.answers import SMALL, answered_truly, as_claimed, asked, with_cell, written_out

UNMASKED = SMALL.replace("  M: mask(E, causal)\n", "").replace("softmax(M)", "softmax(E)")
IN_ONE = SMALL.replace("  M: mask(E, causal)\n", "").replace("softmax(M)", "softmax(mask(E, causal))")
BY_ROOT = UNMASKED.replace("scale(Q @ K.T, 16)", "Q @ K.T / sqrt(16)")
BY_POWER = UNMASKED.replace("scale(Q @ K.T, 16)", "Q @ K.T / 16 ** 0.5")
IN_STEPS = UNMASKED.replace("  E: scale(Q @ K.T, 16)\n", "  E_raw: Q @ K.T\n  E: scale(E_raw, 16)\n")
OF_FOUR = UNMASKED.replace("[[1, 0.5], [0, 2]]", "[[1, 0.5, 0.25, 1], [0, 2, 1, 0.5]]").replace(
    "[[2, 1], [1, 0]]", "[[2, 1, 0, 1], [1, 0, 0.5, 0.3]]"
)
HALVED, BY_HALF, HALF_BY = (
    OF_FOUR.replace("scale(Q @ K.T, 16)", each) for each in ("Q @ K.T / 2", "Q @ K.T * 0.5", "0.5 * (Q @ K.T)")
)
HALVED_IN_STEPS = OF_FOUR.replace("  E: scale(Q @ K.T, 16)\n", "  E_raw: Q @ K.T\n  E: E_raw / 2\n")
THREE = "title: Three\ngiven:\n  X: [[1, 2.1], [3.3, 4.2], [0.7, 1.9]]\nsteps:\n  E: scale(X @ X.T, 2)\n"
PLACES = "title: Places\ngiven:\n  n: 1\nsteps:\n  P: positional(4, 4)\n  Y: n * P\n"
LOSS = """\
title: Loss
given:
  p: [[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]
  y: [[0, 1, 0], [1, 0, 0]]
steps:
  L: cross_entropy(p, y)
  logs: log(p)
"""

Values = Mapping[str, Tensor]
LOWER = torch.ones(2, 2, dtype=torch.float64).tril()


def places(exponent: Callable[[int], float], unit: float = 1.0) -> Tensor:
    """A positional encoding of four places and four columns, written out."""
    cells = [
        [(math.cos if c % 2 else math.sin)(unit * p / 10000 ** exponent(c)) for c in range(4)] for p in range(4)
    ]  # fmt: skip
    return torch.tensor(cells, dtype=torch.float64)


# The slip's name, the problem, the step it is made in, and what a person works out there.
MADE: list[tuple[str, str, str, Callable[[Values], Tensor]]] = [
    ("no scaling", SMALL, "E", lambda v: v["Q"] @ v["K"].T),
    ("no scaling", BY_ROOT, "E", lambda v: v["Q"] @ v["K"].T),
    ("no scaling", BY_POWER, "E", lambda v: v["Q"] @ v["K"].T),
    ("no scaling", IN_STEPS, "E", lambda v: v["E_raw"]),
    ("no scaling", UNMASKED, "A", lambda v: (v["Q"] @ v["K"].T / 10).mul(10).softmax(-1)),
    ("divided by d instead of its root", SMALL, "E", lambda v: v["Q"] @ v["K"].T / 16),
    ("divided by d instead of its root", BY_ROOT, "E", lambda v: v["Q"] @ v["K"].T / 16),
    *[("no scaling", text, "E", lambda v: v["Q"] @ v["K"].T) for text in (HALVED, BY_HALF, HALF_BY, HALVED_IN_STEPS)],
    *[("divided by d instead of its root", text, "E", lambda v: v["Q"] @ v["K"].T / 4)
      for text in (HALVED, BY_HALF, HALF_BY, HALVED_IN_STEPS)],
    ("softmax along the other axis", UNMASKED, "A", lambda v: v["E"].softmax(0)),
    ("softmax along the other axis", SMALL, "A", lambda v: v["M"].softmax(0)),
    ("mask after softmax", SMALL, "A", lambda v: v["E"].softmax(-1) * LOWER),
    ("mask after softmax", IN_ONE, "A", lambda v: v["E"].softmax(-1) * LOWER),
    ("no mask", SMALL, "M", lambda v: v["E"]),
    ("no mask", SMALL, "A", lambda v: v["E"].softmax(-1)),
    ("no mask", IN_ONE, "A", lambda v: v["E"].softmax(-1)),
    ("transposed weight", SMALL, "Q", lambda v: v["X"] @ v["W_Q"].T),
    ("transposed weight", SMALL, "V", lambda v: v["X"] @ v["W_V"].T),
    ("Q and K swapped", SMALL, "E", lambda v: v["K"] @ v["Q"].T / 4),
    ("Q and K swapped", SMALL, "Q", lambda v: v["X"] @ v["W_K"]),
    ("residual forgotten", SMALL, "Z", lambda v: v["A"] @ v["V"]),
    ("exponent of the sum", UNMASKED, "A", lambda v: v["E"].exp() / v["E"].sum(-1, keepdim=True).exp()),
    ("sines in degrees", PLACES, "P", lambda v: places(lambda c: (c - c % 2) / 4, math.pi / 180)),
    ("the exponent 2i+1 in a cosine", PLACES, "P", lambda v: places(lambda c: c / 4)),
    ("logarithm of base ten", LOSS, "L", lambda v: -(v["y"] * v["p"].log10()).sum(-1)),
    ("logarithm of base ten", LOSS, "logs", lambda v: v["p"].log10()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "step", "worked"), MADE)
@pytest.mark.parametrize("decimals", [3, 6])
def test_a_usual_slip_is_named(
    name: str, text: str, step: str, worked: Callable[[Values], Tensor], decimals: int
) -> None:
    problem = problem_from(text)
    marks = mark(answered_truly(problem, decimals, **{step: worked(solve(problem).values)}))
    marked = marks[step]
    assert marked.verdict == "wrong"
    assert (marked.slip or "").startswith(name)
    assert [each.name for each in marks.steps if each.verdict == "wrong"] == [step]


def test_a_slip_is_found_in_what_was_made_of_wrong_numbers() -> None:
    problem = problem_from(SMALL)
    values = solve(problem).values
    wrong = values["Q"] + 1
    marks = mark(answered_truly(problem, 4, Q=wrong, E=wrong @ values["K"].T))
    assert (marks["E"].slip or "").startswith("no scaling")


def test_a_digit_misread_is_named() -> None:
    problem = answered_truly(problem_from(SMALL), 3)
    assert problem.claimed["E"].cells[1][0] == "5.375"
    slip = mark(with_cell(problem, "E", 2, "5.875"))["E"].slip
    assert slip == "one digit misread: 5.875 stands in [2,1], where 5.375 should"


@pytest.mark.parametrize("claim", ["53.75", "0.5375"])
def test_a_decimal_place_lost_is_a_digit_misread(claim: str) -> None:
    slip = mark(with_cell(answered_truly(problem_from(SMALL), 3), "E", 2, claim))["E"].slip
    assert (slip or "").startswith(f"one digit misread: {claim} in [2,1] is ten times too")


@pytest.mark.parametrize("claim", ["5.935", "9.999", "-5.375", "5.376"])
def test_a_number_that_is_simply_another_is_no_misread_digit(claim: str) -> None:
    # Two digits apart, all of them, the sign; and off by the last decimal, which is rounding.
    marked = mark(with_cell(answered_truly(problem_from(SMALL), 3), "E", 2, claim))["E"]
    assert (marked.verdict, marked.slip) == ("wrong", None)


def test_a_slip_in_the_formula_is_named_before_a_digit_misread() -> None:
    # 2 for 1 may be a digit; it is what comes out without the root of 4, too.
    assert (mark(asked({"e": "scale(s, 4)"}, {"s": "2"}, {"e": "2"}))["e"].slip or "").startswith("no scaling")


def test_two_cells_swapped_are_named() -> None:
    problem = answered_truly(problem_from(SMALL), 3)
    first, second = problem.claimed["E"].cells[0][0], problem.claimed["E"].cells[1][1]
    swapped = with_cell(with_cell(problem, "E", 0, second), "E", 3, first)
    assert mark(swapped)["E"].slip == "two cells swapped: [1,1] and [2,2] stand in each other's place"


def test_weights_that_do_not_sum_to_one_are_named() -> None:
    problem = answered_truly(problem_from(UNMASKED), 3)
    wrong = with_cell(with_cell(problem, "A", 2, "0.300"), "A", 3, "0.800")
    assert mark(wrong)["A"].slip == "a row of weights that does not sum to one: row 2 sums to 1.1"


def test_made_up_weights_that_sum_to_one_have_no_name() -> None:
    problem = answered_truly(problem_from(UNMASKED), 3)
    assert mark(with_cell(with_cell(problem, "A", 2, "0.300"), "A", 3, "0.700"))["A"].slip is None


def test_weights_summed_and_taken_for_one_are_named() -> None:
    marks = mark(
        asked({"total": "sum(w, axis=1)"}, {"w": "[[0.3, 0.7, 0.1], [0.5, 0.4, 0.1]]"}, {"total": "[1.0, 1.0]"})
    )
    assert marks["total"].slip == "a row of weights that does not sum to one: what [1,1] sums is 1.1"


def test_a_slip_that_leaves_a_wrong_cell_unexplained_is_not_named() -> None:
    problem = problem_from(SMALL)
    values = solve(problem).values
    unscaled = values["Q"] @ values["K"].T
    unscaled[0, 1] += 3
    assert mark(answered_truly(problem, 4, E=unscaled))["E"].slip is None


def test_a_slip_made_in_one_row_only_is_named() -> None:
    problem = problem_from(SMALL)
    values = solve(problem).values
    half = values["E"].clone()
    half[1] = (values["Q"] @ values["K"].T)[1]
    assert (mark(answered_truly(problem, 4, E=half))["E"].slip or "").startswith("no scaling")


def test_a_slip_is_not_named_against_right_numbers_before_it() -> None:
    # S is claimed, scaled and right; that two cells of A could come from unscaled scores is chance, the third is none.
    given = {"E": "[[3.94, 4.61, 5.57], [4.87, 5.29, 6.99], [5.44, 6.48, 7.83]]"}
    steps = {"S": "scale(E, 4)", "M": "mask(S, causal)", "A": "softmax(M)"}
    claimed = {
        "S": "[[2.0, 2.3, 2.8], [2.4, 2.6, 3.5], [2.7, 3.2, 3.9]]",
        "M": "[[2.0, -inf, -inf], [2.4, 2.6, -inf], [2.7, 3.2, 3.9]]",
        "A": "[[1.0, 0, 0], [0.4, 0.5, 0], [0.1, 0.2, 0.5]]",
    }
    marks = mark(asked(steps, given, claimed))
    assert [step.verdict for step in marks.steps] == ["right", "right", "wrong"]
    assert not (marks["A"].slip or "").startswith("no scaling")


AGAINST = "title: t\ngiven: {E: [[3.94, 4.61], [4.87, 5.29]]}\nsteps:\n  S: scale(E, 4)\n  A: softmax(S)\n  t: sum(S)\n"


def test_a_slip_against_right_numbers_before_it_says_so() -> None:
    problem = problem_from(AGAINST)
    unscaled = problem.given["E"].value.softmax(-1)
    marked = mark(answered_truly(problem, 3, A=unscaled))["A"]
    assert marked.against == ("S",)
    assert marked.slip == (
        "no scaling: E was not divided by the root of 4; your S has no such slip, so A was not worked from it"
    )
    # What follows from earlier numbers was scaled as well.
    after = {"E_2": "E + 3", "S": "scale(E_2, 4)", "A": "softmax(S)"}
    claims = {"E_2": "[[8, 7], [7, 8]]", "S": "[[4, 3.5], [3.5, 4]]", "A": "[[0.731, 0.269], [0.269, 0.731]]"}
    marks = mark(asked(after, {"E": "[[3.94, 4.61], [4.87, 5.29]]"}, claims))
    assert [step.verdict for step in marks.steps] == ["wrong", "follows", "wrong"]
    assert marks["A"].against == ("S",)


def test_nothing_is_said_against_a_slip_in_a_step_left_out_or_wrong_itself() -> None:
    problem = problem_from(AGAINST)
    answer = answered_truly(problem, 3, A=problem.given["E"].value.softmax(-1))
    alone = {name: claim for name, claim in answer.claimed.items() if name != "S"}
    for claimed in (alone, answer.claimed | {"S": answer.claimed["A"]}):
        marked = mark(replace(answer, claimed=claimed))["A"]
        assert (marked.slip or "").startswith("no scaling: ")
        assert (marked.slip or "").endswith("the root of 4")
        assert marked.against == ()


def test_all_steps_against_a_slip_are_named() -> None:
    problem = problem_from(
        SMALL.replace("  E: scale(Q @ K.T, 16)\n", "  E: Q @ K.T\n  S: scale(E, 16)\n").replace("mask(E", "mask(S")
    )
    values = solve(problem).values
    by_d = (values["E"] / 16).masked_fill(LOWER == 0, -math.inf)
    marked = mark(answered_truly(problem, 6, A=by_d.softmax(-1)))["A"]
    assert (marked.slip or "").startswith("divided by d instead of its root: ")
    assert (marked.slip or "").endswith("; your S and M have no such slip, so A was not worked from them")
    late = mark(answered_truly(problem, 6, A=values["S"].softmax(-1) * LOWER))["A"]
    assert (late.slip or "").startswith("mask after softmax: ")
    assert late.against == ("M",)


def test_one_digit_is_no_evidence_against_right_numbers() -> None:
    # 9 is the sum without scaling, and may be any other mistake; 9.3 is less likely to be one.
    for cells, claim, named in (("[[3, 3], [2, 1]]", "9", False), ("[[3, 3], [2, 1.3]]", "9.3", True)):
        problem = problem_from(AGAINST.replace("[[3.94, 4.61], [4.87, 5.29]]", cells))
        marked = mark(with_cell(answered_truly(problem, 1), "t", 0, claim))["t"]
        assert marked.verdict == "wrong"
        assert (marked.slip or "").startswith("no scaling") == named


def test_a_slip_that_misses_right_cells_of_the_same_row_is_not_named() -> None:
    problem = problem_from(THREE)
    values = solve(problem).values
    some = values["E"].clone()
    some[1, :2] = (values["X"] @ values["X"].T)[1, :2]
    assert mark(answered_truly(problem, 4, E=some))["E"].slip is None


def test_exponent_of_the_sum_is_named_beside_a_blocked_cell() -> None:
    given = {"S": "[[-1, 2, 1], [0, -0.5, 3], [0.2, 0.7, 1.4]]"}
    claim = "[[1, 0, 0], [1.649, 1, 0], [0.168, 0.276, 0.556]]"
    slip = mark(asked({"A": "softmax(mask(S, causal))"}, given, {"A": claim}))["A"].slip
    assert (slip or "").startswith("exponent of the sum")


def test_a_number_that_is_no_root_of_d_is_no_scaling() -> None:
    text = OF_FOUR.replace("scale(Q @ K.T, 16)", "Q @ K.T / 3")
    values = solve(problem_from(text)).values
    slip = mark(answered_truly(problem_from(text), 4, E=values["Q"] @ values["K"].T))["E"].slip
    assert not (slip or "").startswith("no scaling")


def test_the_search_for_slips_ends_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_from(SMALL)
    values = solve(problem).values
    answer = answered_truly(problem, 4, E=values["Q"] @ values["K"].T)
    assert (mark(answer)["E"].slip or "").startswith("no scaling")
    monkeypatch.setattr(instead, "MOST_LOOKS", 3)
    assert [step.slip for step in mark(answer).steps] == [None] * len(answer.steps)


def test_what_looked_cut_is_wrong_where_the_slip_explains_it() -> None:
    # 0.00 is what sin(0.01) = 0.0099998 is cut to, and what 0.000175, its value in degrees, is rounded to.
    problem = problem_from(PLACES)
    degrees = places(lambda c: (c - c % 2) / 4, math.pi / 180)
    marked = mark(answered_truly(problem, 2, P=degrees))["P"]
    cell = next(each for each in marked.cells if each.place == (2, 3))
    assert (cell.claimed.text, cell.verdict, cell.remark) == ("0.00", "wrong", "")


def test_a_right_step_has_no_slip() -> None:
    marks = mark(answered_truly(problem_from(SMALL), 4))
    assert {step.verdict for step in marks.steps} == {"right"}
    assert {step.slip for step in marks.steps} == {None}


def test_residuals_are_what_a_layer_adds_to_its_input_and_nothing_else() -> None:
    # A sum of two givens is no residual, whichever of them is forgotten.
    text = "title: t\ngiven:\n  X: [[1.5, 2.5]]\n  P: [[0.5, 1]]\nsteps:\n  Y: X + P\n"
    problem = problem_from(text)
    for left_out in ("X", "P"):
        claim = {"Y": as_claimed(written_out(problem.given[left_out].value, 1))}
        assert mark(type(problem)(**{**vars(problem), "claimed": claim}))["Y"].slip is None


def test_work_goes_on_from_the_unrounded_value_of_a_slip() -> None:
    # Unscaled scores written as whole numbers, their softmax taken before that: far from the softmax of those numbers.
    text = UNMASKED.replace("[[1, 2], [3, 4]]", "[[0.31, 0.47], [0.22, 0.68]]").replace(
        "[[2, 1], [1, 0]]", "[[7, 1], [1, 6]]"
    )
    values = solve(problem_from(text)).values
    unscaled = values["Q"] @ values["K"].T
    weights = unscaled.softmax(-1)
    assert float((weights - unscaled.round().softmax(-1)).abs().max()) > 0.04
    problem = answered_truly(problem_from(text), 3, E=unscaled, A=weights)
    rounded = as_claimed(written_out(unscaled, 0))
    marks = mark(replace(problem, claimed={**problem.claimed, "E": rounded}))
    assert (marks["E"].slip or "").startswith("no scaling")
    assert [step.verdict for step in marks.steps][3:] == ["wrong", "follows", "follows"]


def test_work_goes_on_unrounded_where_the_digits_kept_between_are_right_by_chance() -> None:
    # Of the scores of a transposed weight come 0.99 and 0.01 in the second row, as of the right ones: 0.9944 and 0.9958
    # are both 0.99. What was made of 0.9944 follows from the weight, and is no mistake of its own.
    problem = problem_from("""\
given:
  X: [[1, 0.5, 2], [0.3, 1.2, -1], [2, 0.1, 0.7]]
  W_Q: [[1, 0.5, 0.2], [0.1, 2, 0.3], [0.7, 0.2, 1]]
  W_K: [[2, 1, 0.4], [1, 0.3, 0.8], [0.5, 1, 0.1]]
  W_V: [[1, 2, 0.3], [3, 0.5, 1], [0.2, 1, 1.5]]
steps: {Q: X @ W_Q, K: X @ W_K, V: X @ W_V, M: 'mask(Q @ K.T / sqrt(3), causal)', A: softmax(M), Z: A @ V}
""")
    given = {name: each.value for name, each in problem.given.items()}
    marks = mark(answered_truly(problem, 2, Q=given["X"] @ given["W_Q"].T))
    assert [step.verdict for step in marks.steps] == ["wrong", "right", "right", "follows", "right", "follows"]
    assert marks["Z"].wrong == ()
