"""How a number is written, and when what is written is all of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from regard.tracing.render.numbers import checked_digits, shown, small

CASES = [
    (0.5, "float64", "0.5", True),
    (1 / 3, "float64", "0.3333", False),
    (0.1 + 0.2, "float64", "0.3", True),  # as on paper: the rest is the precision's, not the number's
    (0.82, "float32", "0.82", True),
    (float(np.float32(0.82)), "float32", "0.82", True),
    (float(np.float32(0.82)), "float64", "0.8200", False),
    (0.9, "float16", "0.9", True),
    (2 / 3 * 1e-6, "float64", "6.667e-7", False),
    (0.00012345, "float64", "0.0001234", False),  # the half goes to the even digit
    (0.00012355, "float64", "0.0001236", False),
    (12345.678, "float64", "1.235e4", False),
    (1234.5, "float64", "1234", False),
    (9999.96, "float64", "1.000e4", False),
    (123456.0, "float64", "123456", True),
    (1e20, "float64", "1e20", True),
    (-0.0, "float64", "0", True),
    (-17.25, "float64", "-17.25", True),
    (7, "int64", "7", True),
    (2**62 + 1, "int64", str(2**62 + 1), True),
    (True, "bool", "True", True),
    (65504.0, "float16", "65504", True),
    (math.inf, "float32", "∞", True),
    (-math.inf, "float32", "-∞", True),
    (math.nan, "float32", "NaN", False),
    (1 - 0.5j, "complex64", "(1 - 0.5i)", False),
]


@pytest.mark.parametrize(("value", "dtype", "text", "exact"), CASES)
def test_four_significant_digits_and_short_decimals_in_full(value: float, dtype: str, text: str, exact: bool) -> None:
    got = shown(value, 4, dtype)
    assert (got.text, got.exact is not None) == (text, exact)


def test_what_counts_as_exact_is_what_is_written() -> None:
    rng = np.random.default_rng(0)
    for value in (*rng.normal(size=300), *np.round(rng.normal(size=300) * 10, 1)):
        for digits in range(2, 7):
            text, exact = shown(float(value), digits)
            assert float(text) == pytest.approx(value, rel=0.5 * 10 ** (1 - digits), abs=0)
            assert exact is None or exact == Fraction(text)


def test_a_table_of_weights_tells_nothing_from_next_to_nothing() -> None:
    assert [small(each) for each in (0.0, 1e-4, 9e-5, 1e-30, -1e-9, 1.0)] == [
        "0", "0.0001", "<0.0001", "<0.0001", ">-0.0001", "1",
    ]  # fmt: skip


@pytest.mark.parametrize("digits", [1, 7, 4.0, True, "4"])
def test_digits_are_from_2_to_6(digits: object) -> None:
    with pytest.raises(ValueError, match="digits: expected a whole number from 2 to 6; got"):
        checked_digits(digits)  # type: ignore[arg-type]
