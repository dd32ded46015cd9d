"""The scripts that letters belong to, by the names Unicode gives its characters (LATIN SMALL LETTER A)."""

import unicodedata
from functools import cache
from typing import Final

SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    **{name: (name.upper(),) for name in (
        "latin", "greek", "cyrillic", "armenian", "hebrew", "arabic", "syriac", "thaana", "devanagari", "bengali",
        "gurmukhi", "gujarati", "oriya", "tamil", "telugu", "kannada", "malayalam", "sinhala", "thai", "lao",
        "tibetan", "myanmar", "georgian", "hangul", "ethiopic", "cherokee", "khmer", "mongolian",
    )},
    "han": ("CJK",),
    "japanese": ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"),
    "korean": ("HANGUL", "CJK"),
}  # fmt: skip
"""What can be asked for, and the first words of the names of its characters."""


def share(text: str, script: str) -> float:
    """How many of the letters of a text are of a script, from 0 to 1; 1 where there are no letters."""
    marked = text.translate(_marks(script))
    letters = marked.count("+") + marked.count("-")
    return marked.count("+") / letters if letters else 1.0


class _Marks(dict[int, str]):
    """For str.translate: + for a letter of the script, - for another, nothing for what is no letter."""

    def __init__(self, firsts: tuple[str, ...]) -> None:
        super().__init__()
        self._firsts = firsts

    def __missing__(self, code: int) -> str:
        character = chr(code)
        mark = ""
        if unicodedata.category(character).startswith("L"):
            first = unicodedata.name(character, "").replace("FULLWIDTH ", "").replace("HALFWIDTH ", "").split(" ")[0]
            mark = "+" if first in self._firsts else "-"
        self[code] = mark
        return mark


@cache
def _marks(script: str) -> _Marks:
    return _Marks(SCRIPTS[script])
