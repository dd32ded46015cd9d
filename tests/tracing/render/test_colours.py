"""Colours: cividis as matplotlib has it, signs told apart, and numbers that can be read on all of them."""

import matplotlib
import pytest

from regard.tracing.render.colours import luminance, parsed, signed_colour, weight_colour

STEPS = [step / 500 for step in range(501)]


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(parsed(one)), luminance(parsed(other))), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_weights_are_on_matplotlibs_cividis() -> None:
    cividis = matplotlib.colormaps["cividis"]
    for weight in STEPS:
        expected = [255 * each for each in cividis(weight)[:3]]
        assert max(abs(a - b) for a, b in zip(weight_colour(weight), expected, strict=True)) < 6


def test_a_weight_beyond_the_ends_has_the_colour_of_the_end() -> None:
    assert weight_colour(1.5) == weight_colour(1)
    assert weight_colour(-0.5) == weight_colour(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_signed_numbers_part_at_zero(scheme: str) -> None:
    assert signed_colour(0, 3, scheme) == signed_colour(0, 0, scheme)
    minus, plus = signed_colour(-3, 3, scheme), signed_colour(3, 3, scheme)
    assert minus.blue > minus.red
    assert plus.red > plus.blue
    assert signed_colour(-9, 3, scheme) == minus


def test_numbers_are_readable_on_every_colour() -> None:
    for share in STEPS:
        colours = [weight_colour(share)]
        colours += [signed_colour(2 * share - 1, 1, scheme) for scheme in ("light", "dark")]
        for colour in colours:
            assert contrast(colour.code, colour.ink) >= 4.5
