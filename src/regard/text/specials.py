"""The special tokens, from one place: their texts and their numbers in every vocabulary of the package."""

from typing import Final

PAD: Final = 0
UNKNOWN: Final = 1
START: Final = 2
END: Final = 3

SPECIALS: Final = ("<pad>", "<unk>", "<s>", "</s>")
"""In the order of their numbers. Text a person gives never becomes one of them."""
