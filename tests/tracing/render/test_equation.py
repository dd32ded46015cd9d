"""Equations: written so that they read back to what they say, with `=` only where they are true to the letter."""

import math
import re
from fractions import Fraction

import pytest
import torch

import regard
from regard.tracing.derivation import Derivation
from regard.tracing.forms import cell as operand
from regard.tracing.forms import choose, divided, function, minus, negative, number, plus, power, times
from regard.tracing.render.equation import Writer
from tests.tracing.render.samples import Builder, attention, every_form

a, b, c = operand(0), operand(1), operand(2)


def of(body: object, value: float, *numbers: float) -> Derivation:
    to = Builder()
    given = [to.add(name, torch.tensor(each, dtype=torch.float64)) for name, each in zip("abc", numbers, strict=False)]
    to.cellwise("y", torch.tensor(value, dtype=torch.float64), body, given)  # type: ignore[arg-type]
    return to.derivation()


CASES = [
    (plus(a, b), 0.5, (1.5, -1.0), "0.5 = 1.5 - 1"),
    (minus(a, minus(b, c)), 4.0, (1.0, -1.0, 2.0), "4 = 1 - (-1 - 2)"),
    (times(plus(a, b), c), 9.0, (1.0, 2.0, 3.0), "9 = (1 + 2)·3"),
    (times(a, b), -2.0, (2.0, -1.0), "-2 = 2·(-1)"),
    (divided(a, times(b, c)), 0.5, (3.0, 2.0, 3.0), "0.5 = 3 / (2·3)"),
    (divided(a, b), 1 / 3, (1.0, 3.0), "0.3333 ≈ 1 / 3"),
    (power(negative(a), number(2)), 9.0, (3.0,), "9 = (-3)^2"),
    (negative(power(a, number(2))), -9.0, (3.0,), "-9 = -3^2"),
    (function("exp", a), math.exp(-1.0), (-1.0,), "0.3679 ≈ e^(-1)"),
    (function("exp", a), 1.0, (0.0,), "1 = e^0"),
    (function("sigmoid", a), 0.5, (0.0,), "0.5 = 1 / (1 + e^(-0))"),
    (function("rsqrt", plus(a, b)), 0.5, (3.0, 1.0), "0.5 ≈ 1 / √(3 + 1)"),
    (function("sqrt", a), 2.0, (4.0,), "2 ≈ √4"),
    (function("maximum", a, b), 1 / 3, (1 / 3, -2.0), "0.3333 ≈ max(0.3333, -2)"),
    (function("relu", a), 0.0, (-1 / 3,), "0 ≈ max(0, -0.3333)"),
]


@pytest.mark.parametrize(("body", "value", "numbers", "text"), CASES, ids=[case[-1] for case in CASES])
def test_equations_are_written_as_on_paper(body: object, value: float, numbers: tuple[float, ...], text: str) -> None:
    assert of(body, value, *numbers).why("y").text == text


def test_an_equals_sign_stands_only_where_what_is_written_is_exactly_so() -> None:
    """Every equation of sums and products, read back from its text and worked out as fractions."""
    seen = {"=": 0, "≈": 0}
    for derivation in (attention(4, 3), every_form()):
        for name in ("Q", "E", "O", "plus", "times", "nested", "minus", "divided", "power"):
            if name not in derivation:
                continue
            step = derivation[name]
            for flat in range(step.size):
                index = (flat // step.shape[-1], flat % step.shape[-1]) if len(step.shape) == 2 else (flat,)
                text = derivation.why(name, *index).show(4, None)
                if "√" in text or "∞" in text or "NaN" in text:
                    continue
                left, sign, right = re.fullmatch(r"(\S+) ([=≈]) (.*)", text).groups()  # type: ignore[union-attr]
                seen[sign] += 1
                difference = abs(Fraction(left) - worked(right))
                assert (difference == 0) or sign == "≈", text
                assert sign == "=" or difference > 0 or "e" in text or rounded_off(text), text
    assert seen["="] > 20
    assert seen["≈"] > 20


def worked(text: str) -> Fraction:
    python = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?(?:e-?\d+)?)", r"F('\1')", text.replace("·", "*").replace("^", "**"))
    value: Fraction = eval(re.sub(r"\*\*F\('(\d+)'\)", r"**\1", python), {"F": Fraction})
    return value


def rounded_off(text: str) -> bool:
    """Whether some number in it was rounded, so that it is true by accident alone."""
    return bool(re.search(r"\d\.\d*0\b|\d{4,}|\.\d{3,}", text))


def test_a_long_sum_shows_its_first_terms_and_says_how_many_more() -> None:
    derivation = attention(2, 12)
    text = derivation.why("Q", 0, 0).text
    assert text.endswith("… (4 more)")
    assert text.count("·") == 8
    assert derivation.why("Q", 0, 0).show(4, None).count("·") == 12
    assert derivation.why("Q", 0, 0).show(4, 11).count("·") == 12  # one more takes no more room than saying so


def test_a_number_of_terms_is_one_or_more() -> None:
    with pytest.raises(ValueError, match="terms: expected 1 or more, or None for all; got 0"):
        Writer(4, 0)


def test_a_masked_score_and_its_weight_are_exact() -> None:
    derivation = attention(3, 3)
    assert derivation.why("M", 0, 1).text == "-∞ = " + derivation.why("M", 0, 1).text.split(" = ")[1]
    assert derivation.why("A", 0, 1).text.startswith("0 = e^(-∞) / (")
    assert derivation.why("A", 0, 0).text.startswith("1 = e^")


def test_a_number_that_is_handed_on_equals_itself_where_it_is_written_in_full() -> None:
    derivation = attention(3, 3)
    assert derivation.why("M", 1, 0).text == "-0.2280 ≈ -0.2280 if True else -∞"
    to = Builder()
    x, keep = to.add("x", torch.tensor([1 / 3, 2 / 3])), to.add("keep", torch.tensor([True, False]))
    to.cellwise("y", torch.tensor([1 / 3, 0.5]), choose(b, a, number(0.5)), [x, keep])
    assert [to.derivation().why("y", k).text for k in (0, 1)] == [
        "0.3333 ≈ 0.3333 if True else 0.5",
        "0.5 = 0.6667 if False else 0.5",
    ]


def test_a_copy_equals_what_it_was_copied_from_where_it_is_written_in_full() -> None:
    x = torch.tensor([1 / 3, 0.5])
    with regard.trace() as tape:
        y = regard.label(x.clone(), "y")
    derivation = tape.derivation(y)
    assert [derivation.why("y", k).text for k in (0, 1)] == ["0.3333 ≈ input[0]", "0.5 = input[1]"]


def test_what_no_arithmetic_made_is_said_in_words() -> None:
    derivation = every_form()
    assert derivation.why("x", 0).text == "0.5 is given"
    assert derivation.why("opaque", 0).text == "0.5 was made by aten.fft, for which no rule is known"
    assert derivation.why("drawn", 0).text == "0.5 was drawn by chance (dropout)"
    assert derivation.why("made", 0).text == "0.5 is made so (arange)"
    assert attention().why("W_Q", 0, 0).text.endswith("is a parameter")
