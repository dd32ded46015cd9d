"""Sources of models that read words by their letters as well: a token's number, and its spelling beside it."""

from collections.abc import Sequence

import numpy as np
from torch import nn

from regard.data.encoding import spelling
from regard.decoding.many import Source
from regard.models.characters import letters_read
from regard.text.tokenizer import Tokenizer


def of_text(model: nn.Module, tokenizer: Tokenizer, text: str, tokens: list[int]) -> Source:
    """The tokens of a text as the model takes them: with their letters, where it reads any."""
    if letters_read(model) is None:
        return tokens
    return _beside(model, tokens, _pieces(tokenizer, text))


def of_words(
    model: nn.Module, tokenizer: Tokenizer, words: Sequence[str], tokens: list[int], counts: Sequence[int]
) -> Source:
    """The same for words that come as such, of so many tokens each; a word of one token is that token's spelling."""
    if letters_read(model) is None:
        return tokens
    said = []
    for word, count in zip(words, counts, strict=True):
        said += [word] if count == 1 else _pieces(tokenizer, word)
    return _beside(model, tokens, said)


def _pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [text[token.start : token.end] for token in tokenizer.tokens(text)]


def _beside(model: nn.Module, tokens: list[int], said: list[str]) -> Source:
    """[tokens, 1 + letters]; a language's tag in front and the end behind have no letters."""
    before = len(tokens) - len(said) - 1
    letters = spelling([*[""] * before, *said, ""], letters_read(model) or 1)
    return np.concatenate([np.asarray(tokens, np.int64)[:, None], letters.astype(np.int64)], 1)
