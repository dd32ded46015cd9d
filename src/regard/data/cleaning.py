"""Cleaning: what of the training data is left out, and why; and the normal form that all text is brought to.

cleaner = Cleaner(settings.clean, sorts)
fields, changed = cleaner.formed(fields)        the normal form, and how many texts it changed
cleaner.reason(fields)                          None, or why an example is left out of training
"""

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from regard.data.scripts import share
from regard.data.settings import Cleaning, Side
from regard.data.sources import Sort
from regard.support.errors import Misuse

SHORT: Final = "too short"
LONG: Final = "too long"
RATIO: Final = "one side much longer than the other"
COPY: Final = "source equal to target"
SCRIPT: Final = "another script"
DUPLICATE: Final = "seen before"
HELD_OUT: Final = "also in dev or a test"
TOKENS: Final = "too many tokens"
"""Why an example is left out, as it is counted and told. The last three are found later than here."""


class Cleaner:
    """For examples of given columns."""

    def __init__(self, settings: Cleaning, sorts: Mapping[str, Sort]) -> None:
        self._form = settings.normal_form
        self._sides = [(place, sort) for place, sort in enumerate(sorts.values()) if sort in ("text", "words")]
        self._characters = settings.min_characters or 0, settings.max_characters
        self._words = settings.min_words or 0, settings.max_words
        self._ratio = settings.max_ratio
        self._copies = settings.copies == "drop"
        self._scripts = [(list(sorts).index(side), script) for side, script in _written(settings, sorts).items()]
        self._share = settings.script_share
        self._two = len(self._sides) == 2
        self._limits_characters = self._characters != (0, None)
        self._limits_words = self._words != (0, None)

    def formed(self, fields: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
        """The fields with their text in the normal form, and how many of them that changed."""
        if self._form == "none":
            return fields, 0
        made, changed = list(fields), 0
        for place, sort in self._sides:
            form = unicodedata.normalize
            new = form(self._form, fields[place]) if sort == "text" else [form(self._form, w) for w in fields[place]]
            changed += new != fields[place]
            made[place] = new
        return tuple(made), changed

    def reason(self, fields: tuple[Any, ...]) -> str | None:
        """Why an example is left out; None: it stays."""
        if self._limits_characters and (found := self._outside(fields, _characters, self._characters)):
            return found
        if self._limits_words and (found := self._outside(fields, _words, self._words)):
            return found
        if self._two and (self._ratio or self._copies) and (found := self._pair(fields)):
            return found
        for place, script in self._scripts:
            text = fields[place] if isinstance(fields[place], str) else " ".join(fields[place])
            if share(text, script) < self._share:
                return SCRIPT
        return None

    def _outside(self, fields: tuple[Any, ...], count: Any, bounds: tuple[int, int | None]) -> str | None:
        least, most = bounds
        for place, _ in self._sides:
            size = count(fields[place])
            if size < least:
                return SHORT
            if most is not None and size > most:
                return LONG
        return None

    def _pair(self, fields: tuple[Any, ...]) -> str | None:
        first, second = (fields[place] for place, _ in self._sides)
        if self._copies and first.strip() == second.strip():
            return COPY
        sizes = sorted((_characters(first), _characters(second)))
        return RATIO if self._ratio and sizes[1] > self._ratio * sizes[0] else None


def _characters(field: Any) -> int:
    return len(field.strip()) if isinstance(field, str) else sum(map(len, field))


def _words(field: Any) -> int:
    return len(field.split()) if isinstance(field, str) else len(field)


def _written(settings: Cleaning, sorts: Mapping[str, Sort]) -> Mapping[Side, str]:
    for side in settings.scripts:
        if sorts.get(side) not in ("text", "words"):
            raise Misuse(f"data.clean.scripts: {side}: the data have no text on that side")
    return settings.scripts
