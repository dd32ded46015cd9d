"""Fonts that have the letters of a text, in every script; and in words what is missing, where something is.

Bengali, Hindi or Arabic need more than letters: signs join, change and stand before the letters they follow. matplotlib
does that from version 3.11 on. Where it cannot, or where no font here has a script, the picture says so.
"""

import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from regard.support.errors import Misuse

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

PLAIN = "DejaVu Sans"
LIKED = (
    "Noto Sans",
    "Noto Serif",
    "Lohit",
    "FreeSans",
    "Nirmala",
    "Mangal",
    "Vrinda",
    "Kohinoor",
    "Mukta",
    "Droid Sans",
)
"""Families that are tried first, in this order, where several have a script."""
JOINING = (
    "ARABIC", "SYRIAC", "THAANA", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU",
    "KANNADA", "MALAYALAM", "SINHALA", "TIBETAN", "MYANMAR", "KHMER", "MONGOLIAN",
)  # fmt: skip
"""Scripts whose letters change with their neighbours."""


class PictureWarning(UserWarning):
    """A picture does not show all as it should."""


class Fonts(NamedTuple):
    """Families, tried letter by letter in this order, and what a person should know; empty where all is well."""

    families: tuple[str, ...]
    note: str

    def properties(self, size: float) -> "FontProperties":
        from matplotlib.font_manager import FontProperties

        return FontProperties(family=list(self.families), size=size)


def fonts(texts: Iterable[str]) -> Fonts:
    """The fonts for these texts. What is missing is warned of, and stands in the note."""
    letters = {ord(each) for text in texts for each in text if not each.isspace() and each.isprintable()}
    families, left = [PLAIN], letters - _letters_of(PLAIN)
    while left:
        best = max(_known(), key=lambda name: (len(left & _letters_of(name)), -_rank(name)), default=None)
        if best is None or not left & _letters_of(best):
            break
        families.append(best)
        left = left - _letters_of(best)
    note = _note(letters, left)
    if note:
        warnings.warn(note, PictureWarning, stacklevel=3)
    return Fonts(tuple(families), note)


def add(path: str | Path) -> None:
    """Take a font file into account."""
    from matplotlib.font_manager import fontManager

    try:
        fontManager.addfont(str(path))
    except (OSError, RuntimeError) as error:
        raise Misuse(f"{path}: not a font that can be read ({error})") from None
    _known.cache_clear()
    _letters_of.cache_clear()


def joins() -> bool:
    """Whether this matplotlib shapes text."""
    from matplotlib import ft2font

    return hasattr(ft2font, "__libraqm_version__")


def scripts(letters: Iterable[int]) -> list[str]:
    """Their scripts by name, such as Bengali."""
    found = {
        unicodedata.name(chr(each), "").split(" ")[0] for each in letters if unicodedata.category(chr(each))[0] in "LM"
    }
    return sorted(name.capitalize() for name in found if name)


def _note(letters: set[int], left: set[int]) -> str:
    parts = []
    if left:
        names = scripts(left) or [f"U+{min(left):04X}"]
        said = ", ".join(names[:4])
        parts.append(
            f"no font here has {said}: install one (such as Noto Sans {names[0]}) or name its file with --font; an SVG "
            "shows it wherever it is looked at with such a font"
        )
    drawn = [name for name in scripts(letters - left) if name.upper() in JOINING]
    if drawn and not joins():
        parts.append(f"this matplotlib draws {', '.join(drawn)} letter by letter, unjoined; version 3.11 joins them")
    return "; ".join(parts)


@cache
def _known() -> dict[str, str]:
    """The families there are, each with the file of its plain style; the one with a box for every letter is none."""
    from matplotlib.font_manager import fontManager

    found: dict[str, tuple[bool, int, str]] = {}
    for each in fontManager.ttflist:
        weight = each.weight if isinstance(each.weight, int) else 400
        rank = each.style != "normal", abs(weight - 400), each.fname
        if "Last Resort" not in each.name and (each.name not in found or rank < found[each.name]):
            found[each.name] = rank
    return {name: file for name, (_, _, file) in sorted(found.items())}


@cache
def _letters_of(family: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(_known()[family]).get_charmap())
    except (KeyError, OSError, RuntimeError, ValueError):
        return frozenset()


def _rank(family: str) -> int:
    return next((place for place, liked in enumerate(LIKED) if family.startswith(liked)), len(LIKED))
