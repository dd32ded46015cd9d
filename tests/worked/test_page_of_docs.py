"""docs/worked.md says all there is to say of formulas, and its example and its limits are those of the code."""

import re
from pathlib import Path

import pytest

from regard.support.errors import Misuse
from regard.worked import limits, problem_from, solve
from regard.worked.functions import FUNCTIONS
from regard.worked.layers import LAYERS

PAGE = (Path(__file__).parents[2] / "docs" / "worked.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("```yaml\n")[2].partition("```")[0]


@pytest.mark.parametrize("name", [*FUNCTIONS, *LAYERS])
def test_every_function_and_every_layer_is_told(name: str) -> None:
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    assert re.search(rf"\b{name}\b", tables)


def test_every_option_of_a_layer_is_told() -> None:
    told = PAGE[PAGE.index("## Whole layers") : PAGE.index("## Showing")]
    names = {parameter.name for layer in LAYERS.values() for parameter in layer.function.parameters if parameter.option}
    beyond = {name for name in names if re.search(r"_[23]$", name)}  # gain_2 and the like follow gain_1, …
    assert [name for name in names - beyond if not re.search(rf"\b{name}\b", told)] == []


def test_the_example_is_worked() -> None:
    values = solve(problem_from(EXAMPLE)).values
    assert values["E"].tolist() == [
        [pytest.approx(20.06), pytest.approx(51.53)],
        [pytest.approx(45.38), pytest.approx(116.99)],
    ]


def test_the_error_it_shows_is_the_one_that_is_told() -> None:
    shown = PAGE.partition("    regard: masked.yaml")[2].partition("\n")[0]
    with pytest.raises(Misuse, match="the shapes do not fit") as raised:
        solve(problem_from(EXAMPLE.replace("Q @ K.T", "Q @ K"), "masked.yaml"))
    assert f"masked.yaml{shown}" == str(raised.value)


def test_the_limits_it_names_are_those_that_hold() -> None:
    told = PAGE[PAGE.index("Limits,") :]
    for number in (
        limits.MOST_CELLS, limits.MOST_CELLS_IN_ALL, limits.MOST_NAMES, limits.MOST_CHARACTERS, limits.DEEPEST,
        limits.MOST_PARTS, limits.HIGHEST_POWER,
    ):  # fmt: skip
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,]*\d)", told), number
    assert (limits.MOST_AXES, limits.MOST_BYTES) == (3, 500_000)
