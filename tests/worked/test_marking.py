"""Marking: right, follows and wrong, cell by cell, and what makes them so."""

import pytest
import torch

from regard.support.errors import Misuse
from regard.worked import problem_from, solve
from regard.worked.marking import mark
from regard.worked.marks import CUT
from tests.worked.answers import SMALL, answered, answered_truly, asked, with_cell

CHAIN = {"y": "W @ x", "z": "y * y"}
GIVEN = {"W": "[[1, 2], [3, 4]]", "x": "[0.5, 0.25]"}  # y = [1, 2.5], z = [1, 6.25]


def verdicts(problem: object, step: str) -> list[str]:
    return [cell.verdict for cell in mark(problem)[step].cells]  # type: ignore[arg-type]


def test_a_true_answer_is_right() -> None:
    marks = mark(asked(CHAIN, GIVEN, {"y": "[1, 2.5]", "z": "[1, 6.25]"}))
    assert marks.counts == {"right": 2, "follows": 0, "wrong": 0, "unclaimed": 0}
    assert marks.first_wrong is None


def test_what_follows_from_an_earlier_mistake_is_no_second_mistake() -> None:
    marks = mark(asked(CHAIN, GIVEN, {"y": "[1, 3.5]", "z": "[1, 12.25]"}))
    assert [step.verdict for step in marks.steps] == ["wrong", "follows"]
    follows = marks["z"].cells[1]
    assert (follows.claimed.value, follows.true, follows.follows) == (12.25, 6.25, 12.25)
    first = marks.first_wrong
    assert first is not None
    assert (first[0].name, first[1].place) == ("y", (1, 2))


def test_a_cell_is_judged_by_its_own_parents() -> None:
    # z[1] does not hang on the wrong y[2]: a mistake there stays one, and the true value stays right.
    assert verdicts(asked(CHAIN, GIVEN, {"y": "[1, 3.5]", "z": "[4, 12.25]"}), "z") == ["wrong", "follows"]
    assert verdicts(asked(CHAIN, GIVEN, {"y": "[1, 3.5]", "z": "[1, 12.25]"}), "z") == ["right", "follows"]


def test_the_true_value_after_a_mistake_is_right() -> None:
    assert verdicts(asked(CHAIN, GIVEN, {"y": "[1, 3.5]", "z": "[1, 6.25]"}), "z") == ["right", "right"]


def test_a_step_that_was_left_out_is_worked_from_the_claimants_numbers() -> None:
    steps = CHAIN | {"total": "sum(z)"}
    marks = mark(asked(steps, GIVEN, {"y": "[1, 3.5]", "total": "13.25"}))
    assert [step.verdict for step in marks.steps] == ["wrong", "unclaimed", "follows"]


def test_the_worst_cell_says_how_a_step_is() -> None:
    marks = mark(asked(CHAIN, GIVEN, {"y": "[2, 2.5]", "z": "[4, 7]"}))
    assert verdicts(asked(CHAIN, GIVEN, {"y": "[2, 2.5]", "z": "[4, 7]"}), "z") == ["follows", "wrong"]
    assert marks["z"].verdict == "wrong"


def test_a_wrong_input_that_does_not_matter_excuses_nothing() -> None:
    given = {"a": "2", "b": "3"}
    steps = {"p": "a + b", "q": "a * a"}
    assert verdicts(asked(steps, given, {"p": "6", "q": "5"}), "q") == ["wrong"]


def test_exact_inputs_carry_nothing() -> None:
    # Integers throughout: 18 where 12 is true must not pass as rounding of the inputs.
    given = {"q": "[2, 2, 2]", "k": "[2, 3, 1]"}
    marks = mark(asked({"a": "q", "b": "k", "e": "dot(a, b)"}, given, {"a": "[2, 2, 2]", "b": "[2, 3, 1]", "e": "18"}))
    assert marks["e"].verdict == "wrong"


@pytest.mark.parametrize(("claim", "verdict"), [("12", "right"), ("12.4", "wrong"), ("13", "wrong"), ("11", "wrong")])
def test_a_whole_number_stands_for_half_a_unit_to_either_side(claim: str, verdict: str) -> None:
    assert mark(asked({"e": "dot(q, k)"}, {"q": "[2, 2, 2]", "k": "[2, 3, 1]"}, {"e": claim}))["e"].verdict == verdict


@pytest.mark.parametrize("claim", ["0.1", "0.13", "0.125", "0.1250", "1.25e-1", "0.12"])
def test_every_honest_rounding_is_right(claim: str) -> None:
    # 0.125 lies in the middle between 0.12 and 0.13, and either is a way to round it.
    assert mark(asked({"y": "x / 8"}, {"x": "1"}, {"y": claim}))["y"].verdict == "right"


def test_a_tie_that_binary_numbers_blur_is_still_a_tie() -> None:
    # 2.675 is a little less in float64: 2.68 is as honest as 2.67.
    for claim in ("2.67", "2.68"):
        assert mark(asked({"y": "x * 1"}, {"x": "2.675"}, {"y": claim}))["y"].verdict == "right"
    assert mark(asked({"y": "x * 1"}, {"x": "2.67501"}, {"y": "2.67"}))["y"].cells[0].remark == CUT


def test_rounded_inputs_carry_their_rounding_into_the_step() -> None:
    # x / 7 = 0.142857…; from the written 0.1 the product is 0.5, unrounded it is 0.714…
    given, steps = {"x": "1"}, {"y": "x / 7", "z": "y * 5"}
    for claim in ("0.5", "0.7", "0.50", "0.71", "0.6"):
        assert mark(asked(steps, given, {"y": "0.1", "z": claim}))["z"].verdict == "right", claim
    for claim in ("0.4", "0.8", "0.42", "0.73"):
        assert mark(asked(steps, given, {"y": "0.1", "z": claim}))["z"].verdict == "wrong", claim


def test_rounding_carries_its_sign() -> None:
    # Written 0.14 for 0.142857…, the product can be too small and never too large.
    given, steps = {"x": "1"}, {"y": "x / 7", "z": "y * 100"}
    assert mark(asked(steps, given, {"y": "0.14", "z": "14.0"}))["z"].verdict == "right"
    assert mark(asked(steps, given, {"y": "0.14", "z": "14.6"}))["z"].verdict == "wrong"
    assert mark(asked(steps, given, {"y": "0.14", "z": "13.9"}))["z"].verdict == "wrong"


def test_a_results_cells_may_be_taken_each_in_its_own_way() -> None:
    # One neighbour as written (0.3), the other as worked out (0.3333…): the sum is 0.6333.
    given, steps = {"x": "[1, 1]"}, {"y": "x / 3", "z": "sum(y)"}
    assert mark(asked(steps, given, {"y": "[0.3, 0.3]", "z": "0.633"}))["z"].verdict == "right"
    assert mark(asked(steps, given, {"y": "[0.3, 0.3]", "z": "0.59"}))["z"].verdict == "wrong"


@pytest.mark.parametrize(
    ("true", "claim", "verdict", "remark"),
    [
        ("0.328", "0.32", "right", CUT),  # cut after two decimals
        ("3.6975", "3.69", "right", CUT),
        ("-3.6975", "-3.69", "right", CUT),
        ("-3.6975", "-3.70", "right", ""),
        ("129", "12e1", "right", CUT),  # two significant digits
        ("0.0057", "0.00", "right", CUT),
        ("0.79", "0.7", "wrong", ""),  # one digit, one decimal: a cut cannot be told from a mistake
        ("9.7", "9", "wrong", ""),
        ("0.33", "0.32", "wrong", ""),  # a whole unit is no cut
        ("0.3199", "0.33", "wrong", ""),  # away from zero
        ("-3.6975", "-3.71", "wrong", ""),
    ],
)
def test_a_number_cut_instead_of_rounded_is_not_wrong(true: str, claim: str, verdict: str, remark: str) -> None:
    cell = mark(asked({"y": "x * 1"}, {"x": true}, {"y": claim}))["y"].cells[0]
    assert (cell.verdict, cell.remark) == (verdict, remark)


def test_a_whole_number_among_decimals_has_the_decimals_of_its_step() -> None:
    given = {"x": "[0.0057, 0.99, 0.4]"}
    assert [c.claimed.decimals for c in mark(asked({"y": "x * 1"}, given, {"y": "[0, 0.99, 0.4]"}))["y"].cells] == [
        2,
        2,
        1,
    ]
    assert verdicts(asked({"y": "x * 1"}, {"x": "[0.3, 0.99]"}, {"y": "[0, 0.99]"}), "y") == ["wrong", "right"]
    assert verdicts(asked({"y": "x * 1"}, {"x": "[0.3, 12]"}, {"y": "[0, 12]"}), "y") == ["right", "right"]


@pytest.mark.parametrize(
    ("true", "claim"),
    [
        ("[6.02, 14.66, -35.2]", "[6.0, 15, -35]"),
        ("[6.02, 14.66]", "[6.0, 15]"),
        ("[0.0474, 0.953]", "[0.05, 1]"),
        ("[[6.02, -35.2, -4.57], [-6.49, 57.6, 14.66]]", "[[6.0, -35, -4.6], [-6.5, 58, 15]]"),
        ("[6.02, 118.3, 9.97, -9.97, 0]", "[6.0, 120, 10, -10, 0]"),
    ],
)
def test_a_whole_number_may_have_the_significant_digits_of_its_step(true: str, claim: str) -> None:
    assert mark(asked({"y": "x * 1"}, {"x": true}, {"y": claim}))["y"].verdict == "right"


@pytest.mark.parametrize(
    ("true", "claim"),
    [
        ("[6.02, 14.4]", "[6.0, 15]"),
        ("[0.0474, 0.94]", "[0.05, 1]"),  # in one digit this is 0.9
        ("[0.4, 0.6, 0.7]", "[0.4, 0.6, 1]"),
        ("[0.99, 1.04]", "[0.99, 1]"),  # one digit beside two: 1.00
        ("[6.02, 14.66, 117]", "[6.0, 15, 117]"),  # two digits and three
        ("[0.4, 14]", "[0.4, 10]"),
        ("[-6.02, -9.93]", "[-6.0, -10]"),
    ],
)
def test_digits_that_are_not_those_of_the_step_excuse_nothing(true: str, claim: str) -> None:
    assert mark(asked({"y": "x * 1"}, {"x": true}, {"y": claim}))["y"].verdict == "wrong"


def test_printed_givens_carry_half_a_unit_where_the_problem_says_so() -> None:
    steps, given = {"y": "W * 10"}, {"W": "0.4"}  # W may be anything from 0.35 to 0.45
    assert mark(asked(steps, given, {"y": "4.4"}))["y"].verdict == "wrong"
    assert mark(asked(steps, given, {"y": "4.4"}, rounded="W"))["y"].verdict == "right"
    assert mark(asked(steps, given, {"y": "3.5"}, rounded="W"))["y"].verdict == "right"
    assert mark(asked(steps, given, {"y": "4.7"}, rounded="W"))["y"].verdict == "wrong"


def test_half_a_unit_of_the_givens_goes_through_all_steps() -> None:
    steps, given = {"y": "W * 10", "z": "y + 1", "w": "z * 2"}, {"W": "0.4"}
    for claimed in ({"w": "10.8"}, {"y": "4.4", "w": "10.8"}, {"y": "4.4", "z": "5.4", "w": "10.8"}):
        assert mark(asked(steps, given, claimed, rounded="W")).first_wrong is None
    assert mark(asked(steps, given, {"w": "11.3"}, rounded="W"))["w"].verdict == "wrong"


def test_a_blocked_cell_must_be_blocked() -> None:
    marks = mark(answered(SMALL, M="[[2.125, 5.875], [5.375, 14.625]]"))
    assert marks["M"].wrong[0].place == (1, 2)
    assert marks["M"].wrong[0].true == float("-inf")
    assert mark(answered(SMALL, E="[[2.1, 5.9], [5.4, 14.6]]", M="[[2.1, -inf], [5.4, 14.6]]"))["M"].wrong == ()


def test_another_shape_is_wrong_and_what_follows_is_worked_from_the_right_one() -> None:
    marks = mark(asked(CHAIN, GIVEN, {"y": "[[1, 2.5], [1, 2.5]]", "z": "[1, 6.25]"}))
    assert marks["y"].verdict == "wrong"
    assert marks["y"].misfit == "2×2 where there should be 2 numbers"
    assert marks["z"].verdict == "right"


# y is [1, 2.5], and t the matrix [[1, 2], [3, 4]]: each cell claimed, true, what follows, of those that are wrong.
SHAPES = [
    ("y", "[1, 2.5, 7]", [([1, 3], 7, None, None)]),
    ("y", "[1]", [([1, 2], None, 2.5, 2.5)]),
    ("y", "[4, 2.5, _]", [([1, 1], 4, 1, 1), ([1, 3], None, None, None)]),
    ("y", "[[1], [2.5], [9]]", [([1, 3], 9, None, None)]),
    ("y", "[[1, 2.5], [1, 3]]", [([2, 1], 1, None, None), ([2, 2], 3, None, None)]),
    ("t", "[[1, 2]]", [([2, 1], None, 3, 3), ([2, 2], None, 4, 4)]),
    ("t", "[[1, 5, 6], [3, _, 7]]", [([1, 2], 5, 2, 2), ([1, 3], 6, None, None), ([2, 3], 7, None, None)]),
    ("t", "[[[1, 2], [3, 4]], [[1, 2], [3, 4]]]", [([2, row, k], [1, 2, 3, 4][2 * row + k - 3], None, None)
                                                  for row in (1, 2) for k in (1, 2)]),
    ("u", "[1, 3, 2]", [([3, 1], 2, None, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "claim", "wrong"), SHAPES)
def test_an_answer_of_another_shape_lists_no_cell_that_is_right(name: str, claim: str, wrong: list[tuple]) -> None:  # type: ignore[type-arg]
    steps = CHAIN | {"t": "W * 1", "u": "W[:, 0:1]"}
    found = mark(asked(steps, GIVEN, {name: claim})).as_json()
    step = next(step for step in found["steps"] if step["name"] == name)
    assert step["verdict"] == "wrong"
    keys = ("cell", "claimed", "true", "follows")
    assert step["wrong_cells"] == [dict(zip(keys, each, strict=True)) for each in wrong]
    assert " where there should be " in step["shape"]
    assert found["first_wrong"] == {"step": name, "cell": wrong[0][0]}


def test_cells_left_blank_are_unclaimed_and_the_others_marked() -> None:
    claims = {"y": "[_, 3.5]", "z": "[1, _]"}
    marks = mark(asked(CHAIN, GIVEN, claims))
    assert [verdicts(asked(CHAIN, GIVEN, claims), name) for name in "yz"] == [
        ["unclaimed", "wrong"],
        ["right", "unclaimed"],
    ]
    assert [step.verdict for step in marks.steps] == ["wrong", "right"]
    y, z = marks.as_json()["steps"]
    assert (y["wrong_cells"][0]["cell"], y["unclaimed_cells"], z["unclaimed_cells"]) == ([1, 2], [[1, 1]], [[1, 2]])
    assert marks.counts == {"right": 1, "follows": 0, "wrong": 1, "unclaimed": 0}


def test_a_cell_left_blank_stands_as_it_was_worked_out_from_the_claimants_numbers() -> None:
    steps = CHAIN | {"total": "sum(z)"}
    for blank in ("[1, _]", "_"):
        claims = {"y": "[1, 3.5]", "total": "13.25"} | ({"z": blank} if blank != "_" else {})
        assert mark(asked(steps, GIVEN, claims))["total"].verdict == "follows"
    # From y = 0.142857… written 0.14, what was not written down may be 2·0.14 or 0.2857…, and nothing beyond.
    given, steps = {"x": "[1, 1]"}, {"y": "x / 7", "z": "y * 2", "s": "sum(z) * 100"}
    for total, verdict in (("56", "right"), ("56.0", "right"), ("57.1", "right"), ("55.9", "wrong"), ("57.2", "wrong")):
        claims = {"y": "[0.14, 0.14]", "z": "[0.28, _]", "s": total}
        assert mark(asked(steps, given, claims))["s"].verdict == verdict, total


def test_a_slip_is_named_beside_cells_left_blank() -> None:
    problem = problem_from(SMALL)
    values = solve(problem).values
    answer = answered_truly(problem, 4, E=values["Q"] @ values["K"].T)
    marks = mark(with_cell(answer, "E", 1, "_"))
    assert (marks["E"].slip or "").startswith("no scaling")
    assert [step.verdict for step in marks.steps][4:] == ["follows", "follows", "follows"]


def test_weights_with_a_blank_among_them_have_no_sum() -> None:
    marks = mark(asked({"a": "softmax(e)"}, {"e": "[1, 2, 3]"}, {"a": "[0.372, 0.245, _]"}))
    assert (marks["a"].verdict, marks["a"].slip) == ("wrong", None)


@pytest.mark.parametrize("claim", ["[1, 2.5]", "[[1, 2.5]]", "[[1], [2.5]]"])
def test_a_row_of_numbers_may_stand_as_a_row_or_as_a_column(claim: str) -> None:
    assert mark(asked(CHAIN, GIVEN, {"y": claim, "z": "[1, 6.25]"})).counts["right"] == 2


def test_numbers_from_which_nothing_follows_do_not_stop_the_marking() -> None:
    # From y = -1 there is no root; the step is held against the true value alone.
    marks = mark(asked({"y": "x + 3", "z": "sqrt(y)"}, {"x": "1"}, {"y": "-1", "z": "2"}))
    assert [step.verdict for step in marks.steps] == ["wrong", "right"]
    marks = mark(asked({"n": "x + 1", "y": "1 / n"}, {"x": "1"}, {"n": "0", "y": "0.7"}))
    assert [step.verdict for step in marks.steps] == ["wrong", "wrong"]


def test_what_nothing_follows_from_leaves_the_rest_of_a_step_to_follow() -> None:
    # There is no row 7; what v is wrong by is still carried on.
    steps = {"w": "argmax(p)", "v": "x * 2", "e": "embed(T, w)", "r": "sum(e) + v"}
    given = {"p": "[0.2, 0.8]", "T": "[[1, 2], [3, 4]]", "x": "5"}
    marks = mark(asked(steps, given, {"w": "7", "v": "11", "r": "18"}))
    assert [step.verdict for step in marks.steps] == ["wrong", "wrong", "unclaimed", "follows"]


def test_a_problem_that_cannot_be_worked_is_refused_before_it_is_marked() -> None:
    with pytest.raises(Misuse, match="step y"):
        mark(asked({"y": "log(x)"}, {"x": "0"}, {"y": "1"}))


def test_marks_as_json_hold_what_a_program_wants() -> None:
    marks = mark(asked(CHAIN, GIVEN, {"y": "[1, 3.5]"}))
    assert marks.as_json() == {
        "title": "asked",
        "steps": [
            {
                "name": "y",
                "verdict": "wrong",
                "wrong_cells": [{"cell": [1, 2], "claimed": 3.5, "true": 2.5, "follows": 2.5}],
                "slip": "one digit misread: 3.5 stands in [1,2], where 2.5 should",
            },
            {"name": "z", "verdict": "unclaimed", "wrong_cells": [], "slip": None},
        ],
        "first_wrong": {"step": "y", "cell": [1, 2]},
        "counts": {"right": 0, "follows": 0, "wrong": 1, "unclaimed": 1},
    }


def test_marks_as_json_spell_out_what_has_no_end() -> None:
    cells = mark(answered(SMALL, M="[[2.125, 0.5], [5.375, 14.625]]")).as_json()["steps"][4]["wrong_cells"]
    assert [cells[0]["true"], cells[0]["claimed"]] == ["-inf", 0.5]


def test_marking_leaves_gradients_and_its_problem_alone() -> None:
    problem = asked(CHAIN, GIVEN, {"y": "[1, 3.5]"})
    with torch.no_grad():
        first = mark(problem).as_json()
    assert mark(problem).as_json() == first
    assert not any(given.value.requires_grad for given in problem.given.values())
