"""How exactly a number was written, and whether a value could have been written so.

A number on paper says how far it may be from what was meant: half a unit of its last digit. 0.82 stands for
anything from 0.815 to 0.825, 18 for anything from 17.5 to 18.5, 3.1e-30 for 3.05e-30 to 3.15e-30.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

NUMBER = re.compile(r"[-+−]?(?P<whole>\d*)(?:(?P<point>\.)(?P<part>\d*))?(?:[eE](?P<exponent>[-+−]?\d+))?")

TIE = 1e-9
"""A value this near to the middle between two numbers may be written as either. Next to numbers much smaller than
one it is a thousandth of their unit instead, or it would swallow them."""

ROUNDING = 1e-12
"""What float64 itself may have lost on the way, as a share of the value."""


BLANK = ("", "?", "_", "~", "null", "…", "...")
"""What stands in a cell that nobody has filled in."""


class Interval(NamedTuple):
    """All values from low to high."""

    low: float
    high: float

    def with_(self, value: float) -> "Interval":
        """The smallest one that holds this and `value`; no number changes nothing."""
        return self if math.isnan(value) else Interval(min(self.low, value), max(self.high, value))


@dataclass(frozen=True)
class Written:
    """One number as somebody wrote it."""

    text: str
    value: float
    decimals: int
    """Its last digit stands for 10^-decimals."""
    digits: int
    """From the first that is not zero to the last one written."""
    whole: bool
    """Neither a point nor an exponent."""
    significant: bool = False
    """Whether it was rounded to a count of digits: what is a little under 10 would have been written 9.9."""

    @property
    def blank(self) -> bool:
        """Whether nothing was written; the value is then no number."""
        return math.isnan(self.value)

    @property
    def unit(self) -> float:
        """What its last digit counts; of infinity nothing is rounded."""
        return 10.0**-self.decimals if math.isfinite(self.value) else 0.0

    def is_rounded_from(self, values: Interval) -> bool:
        """Whether one of the values lies within half a unit of what was written."""
        inward = self.unit / 20 if self.significant and math.log10(abs(self.value)) % 1 == 0 else self.unit / 2
        down, up = (inward, self.unit / 2) if self.value > 0 else (self.unit / 2, inward)
        return self._reaches(values, down, up)

    def is_cut_from(self, values: Interval) -> bool:
        """Whether one of the values lies under one unit further from zero: digits cut off instead of rounded.

        With fewer than two digits and two decimals a cut cannot be told from a mistake.
        """
        if not math.isfinite(self.value) or (self.digits < 2 and self.decimals < 2):
            return False
        down = self.unit if self.value <= 0 else 0.0
        up = self.unit if self.value >= 0 else 0.0
        return self._reaches(values, down, up, strictly=True)

    def _reaches(self, values: Interval, down: float, up: float, strictly: bool = False) -> bool:
        if not math.isfinite(self.value):
            return self.value in (values.low, values.high)
        tie = min(TIE, self.unit / 1000) + ROUNDING * abs(self.value)
        # A full unit away the next digit would have been written: there a tie counts against it.
        down, up = (each - tie if strictly and each else each + tie for each in (down, up))
        return values.low <= self.value + up and values.high >= self.value - down

    def rounded(self, value: float) -> str:
        """Another value, with as many decimals as this number has."""
        if not math.isfinite(value):
            return str(value)
        if "e" in self.text.lower():
            return f"{value:.{max(self.digits - 1, 0)}e}"
        return f"{value:.{max(self.decimals, 0)}f}"


def written(texts: Sequence[str]) -> tuple[Written, ...]:
    """The numbers of one step. A whole number among decimals has the decimals of its step: 0 beside 0.99 is 0.00.

    But where all keep as many significant digits, 15 beside 6.0 has two, as it stands.
    """
    read = [_read(text) for text in texts]
    parts = [each for each in read if each.decimals > 0 and not each.whole and "e" not in each.text.lower()]
    if not parts:
        return tuple(read)
    decimals, digits = max(each.decimals for each in parts), _common_digits(read, parts)
    return tuple(
        _settled(each, decimals, digits) if each.whole and math.isfinite(each.value) else each for each in read
    )


def _settled(number: Written, decimals: int, digits: int | None) -> Written:
    """A whole number among decimals."""
    if not digits or not number.value or number.digits < digits:
        return replace(number, decimals=decimals)
    filled = number.digits - digits if _keeps(number, digits) else 0
    return replace(number, decimals=-filled, significant=True)


def _common_digits(read: Sequence[Written], parts: Sequence[Written]) -> int | None:
    """How many significant digits the numbers of a step keep, where it is one count: 6.0, 15 and -35 keep two.

    Where the longest of its decimals end at different places (0.0057, 0.12 and 34.1), shorter ones beside them have
    lost zeros, and it is the digits of the longest. Zero has no significant digits.
    """
    longest = max((each.digits for each in parts if each.value), default=0)
    if longest and all(_keeps(each, longest) for each in read if each.value and math.isfinite(each.value)):
        return longest
    ends = {each.decimals for each in parts if each.digits == longest}
    return longest if longest > 1 and len(ends) > 1 else None


def _keeps(number: Written, digits: int) -> bool:
    """So many, counted from the first that is not zero; a whole number may be filled up with zeros, 120 for 118."""
    if number.digits <= digits or not number.whole or digits < 2:
        return number.digits == digits
    return len(number.text.strip().rstrip("0").lstrip("+-−0")) <= digits


def _read(text: str) -> Written:
    plain = text.strip().replace("−", "-")
    value = math.nan if plain in BLANK else float(plain)
    found = NUMBER.fullmatch(plain)
    if found is None or not math.isfinite(value):  # an infinity, or nothing
        return Written(text, value, 0, 0, True)
    part, exponent = found["part"] or "", int(found["exponent"] or 0)
    digits = ((found["whole"] or "") + part).lstrip("0")
    whole = found["point"] is None and found["exponent"] is None
    return Written(text, value, len(part) - exponent, len(digits), whole)
