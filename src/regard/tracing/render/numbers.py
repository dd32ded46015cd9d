"""How a number is written: 4 significant digits, and whether what is written is all of it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from regard.tracing.cell import Number

DIGITS = (2, 6)


class Shown(NamedTuple):
    """A number as written, and what is written where that is exact (None where it was rounded)."""

    text: str
    exact: Fraction | float | None


def checked_digits(digits: int) -> int:
    if isinstance(digits, bool) or not isinstance(digits, int) or not DIGITS[0] <= digits <= DIGITS[1]:
        raise ValueError(f"digits: expected a whole number from {DIGITS[0]} to {DIGITS[1]}; got {digits!r}")
    return digits


def shown(value: Number, digits: int = 4, dtype: str = "float64") -> Shown:
    """A number with so many significant digits; short decimals in full, and without zeros at their end.

    A float counts as the shortest decimal that is it in its own dtype: 0.82 in float32 is written 0.82, exactly. Of
    float64 the first 13 digits count: 0.1 + 0.2 is 0.3, as on paper, and not 0.3000 for the sake of 4e-17.
    """
    if isinstance(value, bool):
        return Shown(str(value), Fraction(value))
    if isinstance(value, int):
        return Shown(str(value), Fraction(value))
    if isinstance(value, complex):
        return Shown(_complex(value, digits, dtype), None)
    if math.isnan(value):
        return Shown("NaN", None)
    if math.isinf(value):
        return Shown("∞" if value > 0 else "-∞", value)
    whole = value.is_integer() and abs(value) < 10_000_000
    shortest = Decimal(int(value)) if whole else Decimal(_shortest(value, dtype))
    rounded = _rounded(shortest, digits)
    if whole or shortest == rounded:
        return Shown(_positional(shortest.normalize(), True), Fraction(shortest))
    return Shown(_positional(rounded, False), None)


def small(value: Number, digits: int = 4, dtype: str = "float64") -> str:
    """As `shown`, for a cell of a table of weights: what is too small for four decimals says only that."""
    if isinstance(value, float) and 0 < abs(value) < 1e-4:
        return "<0.0001" if value > 0 else ">-0.0001"
    return shown(value, digits, dtype).text


def _shortest(value: float, dtype: str) -> str:
    if dtype == "float16":
        return str(np.float16(value))
    return f"{value:.13g}" if dtype in ("float64", "complex128") else str(np.float32(value))


def _rounded(value: Decimal, digits: int) -> Decimal:
    with localcontext(prec=digits):
        rounded = +value
    # 0.9 rounds to 0.9000, not to 0.9: the zeros say how far it was rounded.
    return rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - digits + 1))


def _positional(value: Decimal, whole: bool) -> str:
    """Without an exponent where that stays short; zeros that stand for digits rounded away are not written."""
    if value == 0:
        return "0"
    exponent = value.as_tuple().exponent
    if -5 < value.adjusted() < 7 and (whole or (isinstance(exponent, int) and exponent <= 0)):
        return f"{value:f}"
    return f"{value:e}".replace("e+", "e")


def _complex(value: complex, digits: int, dtype: str) -> str:
    real, imaginary = (shown(part, digits, dtype).text for part in (value.real, value.imag))
    return f"({real} + {imaginary}i)".replace("+ -", "- ")
