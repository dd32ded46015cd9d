"""What is shown: all steps, those asked for by name, and slices of them."""

import pytest

from regard.tracing.render.selecting import other_givens, selected
from tests.tracing.render.samples import attention, heads


def names(only: object) -> list[str]:
    return [each.step.name for each in selected(attention(4, 3), only)]  # type: ignore[arg-type]


def test_by_default_every_step_stands_in_order_after_what_is_small_of_the_givens() -> None:
    assert names(None) == ["X", "W_Q", "W_K", "W_V", "Q", "K", "V", "E", "M", "A", "O"]
    large = attention(4, 30)
    assert [each.step.name for each in selected(large)][:1] == ["Q"]
    assert [step.name for step in other_givens(large)] == ["X", "W_Q", "W_K", "W_V"]


@pytest.mark.parametrize("only", ["O, A", "A,O", ["O", "A"], ("A[0]", "O[:, 1]")])
def test_steps_asked_for_stand_in_the_order_of_the_derivation(only: object) -> None:
    assert names(only) == ["A", "O"]


@pytest.mark.parametrize(
    ("only", "places"),
    [
        ("A", [range(2), range(3), range(4), range(4)]),
        ("A[1]", [range(1, 2), range(3), range(4), range(4)]),
        ("A[-1, 0:2]", [range(1, 2), range(2), range(4), range(4)]),
        ("A[:, 2, 1:, :3]", [range(2), range(2, 3), range(1, 4), range(3)]),
        ("A[ 0 , : , -2: ]", [range(1), range(3), range(2, 4), range(4)]),
    ],
)
def test_a_slice_names_the_places_of_its_first_axes(only: str, places: list[range]) -> None:
    [what] = selected(heads(2, 3, 4), only)
    assert list(what.places) == places


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("a", r"unknown step 'a'; did you mean 'A'\?"),
        ("A[0], B", r"unknown step 'B'"),
        ("A[5]", r"'A' has the shape \[2, 3, 4, 4\]: index 5 on axis 0 is out of range \(0 to 1\)"),
        ("A[0, 0, 0, 0, 0]", r"'A\[0, 0, 0, 0, 0\]' speaks of 5 axes"),
        ("A[x]", r"expected an index as 2, or a slice as 3:8 or :; got 'x'"),
        ("A[0:4:2]", r"expected an index as 2"),
        ("A[:, 3:3]", r"nothing of axis 1 of 'A' \[2, 3, 4, 4\] is in that slice"),
        ("", r"only: expected names of steps, as 'A, O\[0\]'; got ''"),
        ([1], r"only: expected names of steps"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(only: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        selected(heads(2, 3, 4), only)  # type: ignore[arg-type]
