"""The colours of numbers, for the terminal and the page alike: cividis from 0 to 1, and a scale about 0.

Cividis is perceptually uniform and looks the same with and without a colour-blind eye. Numbers stand on these colours
in black or white, whichever is read better: at least 4.5 to 1 on any colour.
"""

from typing import NamedTuple

CIVIDIS = (
    "#00224e", "#00285b", "#002e6a", "#053371", "#1a386f", "#273e6e", "#32436d", "#3b496c", "#434e6c", "#4b546c",
    "#535a6d", "#5a5f6e", "#61656f", "#686a71", "#6f7073", "#767676", "#7d7c78", "#848279", "#8c8878", "#938e78",
    "#9b9476", "#a39a74", "#aba072", "#b4a76f", "#bcae6c", "#c4b468", "#cdbb63", "#d5c25e", "#dec958", "#e7d150",
    "#f0d846", "#f9e03a", "#fee838",
)  # fmt: skip
"""Evenly spaced from 0 to 1; what lies between is mixed."""

DIVERGING = {"light": ("#2a6fb0", "#fbfaf8", "#c2453a"), "dark": ("#3f8fe0", "#1d2026", "#e0664f")}
"""Of the most negative number, of 0, and of the most positive."""


class Colour(NamedTuple):
    red: float
    green: float
    blue: float

    @property
    def code(self) -> str:
        return "#" + "".join(f"{round(each):02x}" for each in self)

    @property
    def ink(self) -> str:
        """Black or white, whichever reads better on it."""
        return "#000000" if luminance(self) > 0.179 else "#ffffff"


def parsed(code: str) -> Colour:
    return Colour(*(int(code[at : at + 2], 16) for at in (1, 3, 5)))


def mixed(one: Colour, other: Colour, share: float) -> Colour:
    return Colour(*(a + (b - a) * share for a, b in zip(one, other, strict=True)))


def weight_colour(weight: float) -> Colour:
    """On cividis, which is fixed to 0..1 so that one colour means one weight everywhere."""
    at = min(max(weight, 0.0), 1.0) * (len(CIVIDIS) - 1)
    low = min(int(at), len(CIVIDIS) - 2)
    return mixed(parsed(CIVIDIS[low]), parsed(CIVIDIS[low + 1]), at - low)


def signed_colour(value: float, reach: float, scheme: str = "light") -> Colour:
    """About 0: the farther from it, up to `reach`, the stronger the colour of its sign."""
    negative, zero, positive = (parsed(each) for each in DIVERGING[scheme])
    share = min(abs(value) / reach, 1.0) if reach > 0 else 0.0
    return mixed(zero, negative if value < 0 else positive, share)


def luminance(colour: Colour) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [each / 255 for each in colour]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
