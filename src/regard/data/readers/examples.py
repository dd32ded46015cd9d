"""What readers give: examples, and lines that cannot be used."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Reason = Literal[
    "not UTF-8",
    "control characters",
    "an empty side",
    "wrong number of columns",
    "words and tags that do not pair up",
    "words out of order",
    "tags that make no spans",
    "not a JSON object",
    "a field that is missing or no text",
    "a language that is missing",
    "a second segment in one language",
    "numbers that cannot be read",
    "an image that cannot be used",
    "an image without a caption or label",
]
"""Why a line cannot be used, as it is counted and told."""

Field = str | list[str] | NDArray[np.float32] | NDArray[np.uint8]
"""What a column holds: a text or a label, words or tags, steps [length, width], pixels [height, width, channels]."""


class Example(NamedTuple):
    """One example: the line it begins on (from 1) and a field for each column, in the order of the source's sorts."""

    line: int
    fields: tuple[Any, ...]
    lines: Sequence[int] = ()
    """Where each word has a line of its own: which."""


class Bad(NamedTuple):
    """A line that cannot be used: why, in the words it is counted under; what exactly is wrong; the text."""

    line: int
    reason: Reason
    said: str
    text: str
    file: int = 0
    """Which of the source's files."""


Read = Iterator[Example | Bad]
