"""What can be set about a tokenizer."""

from typing import Final, Literal

from pydantic import Field

from regard.config import Settings

Kind = Literal["byte_bpe", "bpe", "unigram", "words", "characters"]

LOSES: Final[dict[Kind, str]] = {
    "byte_bpe": "",
    "bpe": "a character that training never saw becomes <unk>; the character ▁ becomes a space",
    "unigram": "characters that training never saw become <unk>, neighbours one together; the character ▁ becomes "
    "a space",
    "words": "a word that is not in the vocabulary becomes <unk>; white space is forgotten, and decoding puts one "
    "space between all tokens, before punctuation too",
    "characters": "a character that training never saw becomes <unk>",
}
"""What each kind cannot give back: empty where decoding gives back every text."""


class TokenizerSettings(Settings):
    """How text becomes tokens."""

    kind: Kind = "byte_bpe"
    """byte_bpe gives back every text; bpe and unigram work on characters; words and characters learn no
    pieces. (The library's training of unigram is not the same to the last digit from run to run; the others are.)"""

    vocabulary: int = Field(default=8000, ge=5)
    """How many tokens at most, special tokens and language tags counted."""

    joint: bool = True
    """One vocabulary for source and target; false trains one for each side."""

    min_count: int = Field(default=2, ge=1)
    """How often a piece (or a word) must be seen in training to become a token; characters are kept from once on."""

    normal_form: Literal["none", "NFC", "NFKC"] = "none"
    """Unicode normal form that text is brought to first; anything but none changes the text."""

    lowercase: bool = False
    """Make all letters small first: fewer tokens, and what was a capital is not given back."""

    split_digits: bool = True
    """One token a digit, so that any number can be copied; false learns pieces of numbers as of words."""

    split_punctuation: bool = True
    """For words: punctuation stands alone; false splits at white space only (text that is tokenised already)."""
