"""Whether what came is text: what is not is named with its place."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def some(texts: Iterable[str]) -> Iterator[str]:
    """The texts, where there is at least one with something in it, and each is text."""
    anything = False
    for number, text in enumerate(texts, 1):
        try:
            text.encode()
        except (AttributeError, UnicodeEncodeError):
            raise ValueError(f"text {number} of those to train on: {_wrong(text)}") from None
        anything = anything or bool(text.strip())
        yield text
    if not anything:
        raise ValueError("there is no text to train a tokenizer on")


def no_text(texts: Sequence[Any]) -> ValueError:
    for number, text in enumerate(texts, 1):
        if said := _wrong(text):
            return ValueError(f"text {number} of {len(texts)}: {said}")
    return ValueError(f"expected a list of texts; got {type(texts).__name__}")


def _wrong(text: Any) -> str:
    """What keeps something from being text that can be encoded; empty where nothing does."""
    if not isinstance(text, str):
        return f"expected text; got {type(text).__name__}"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start} is no text"
    return ""
