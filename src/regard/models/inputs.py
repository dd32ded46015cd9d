"""How a source comes in: words as vectors or one-hot, words with their characters, rows of numbers, images.

Shape letters: B sentences, S places, C characters of a word, d width.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, one_hot

from regard.models.characters import Characters
from regard.models.contract import Encoded, Encoder
from regard.models.images import Grid, Patches
from regard.models.input_settings import ImageSettings, RowSettings, WordSettings
from regard.models.padding import only_real
from regard.models.sizes import Sizes
from regard.models.words import Words
from regard.text.specials import SPECIALS, UNKNOWN


def make_input(settings: WordSettings | RowSettings | ImageSettings, sizes: Sizes, *, scaled: bool = False) -> Encoder:
    """The input that the settings describe. scaled: vectors of words are multiplied by √width."""
    if isinstance(settings, RowSettings):
        return Rows(sizes.need("input_width", "an input of rows of numbers"), settings.width)
    if isinstance(settings, ImageSettings):
        return (Grid if settings.cut == "convolution" else Patches)(settings, sizes)
    return make_words(settings, sizes, scaled=scaled)


def make_words(settings: WordSettings, sizes: Sizes, *, scaled: bool = False) -> Encoder:
    vocabulary = sizes.need("source", "an input of words")
    words: Encoder
    if settings.embedding == "one_hot":
        words = OneHot(vocabulary)
    else:
        words = Words(vocabulary, settings.width, scaled=scaled)
        words.vectors.weight.requires_grad_(not settings.freeze)
    if settings.characters is not None:
        characters = sizes.need("characters", "an input of words with their characters")
        words = Spelled(words, Characters(settings.characters, characters))
    return Forgetting(words, settings.word_dropout) if settings.word_dropout else words


def words_of(encoder: Encoder) -> Words | None:
    """The table of word vectors somewhere under an encoder, if there is one: to share it, or to put vectors in."""
    return next((part for part in encoder.modules() if isinstance(part, Words)), None)


def begin_with(words: Words, vectors: Tensor) -> None:
    """Put pretrained vectors [V, d] where those of the words stand."""
    own = words.vectors.weight
    if vectors.shape != own.shape:
        raise ValueError(f"vectors: expected {list(own.shape)}, one row for each word; got {list(vectors.shape)}")
    with torch.no_grad():
        own.copy_(vectors)


class OneHot(Encoder):
    """x_i has a 1 at the word's own place and 0 elsewhere: the vocabulary is the width."""

    one: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.width = vocabulary
        self.register_buffer("one", torch.ones(()), persistent=False)  # says in which kind of numbers

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        return Encoded(one_hot(source, self.width).to(self.one.dtype), lengths)


class Rows(Encoder):
    """x_i = W r_i + b for rows of numbers [B, S, numbers]."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(numbers, width)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        numbers = self.linear.in_features
        if source.ndim != 3 or source.shape[-1] != numbers or not source.is_floating_point():
            came = f"{str(source.dtype).removeprefix('torch.')} {list(source.shape)}"
            raise ValueError(f"source: expected rows of numbers [batch, places, {numbers}]; got {came}")
        source = only_real(source, lengths)
        return Encoded(linear(source, self.linear.weight, self.linear.bias), lengths)


class Spelled(Encoder):
    """x_i = [word vector; what its characters say], from [B, S, 1 + C]: a word's number, then its characters'."""

    def __init__(self, words: Encoder, characters: Characters) -> None:
        super().__init__()
        self.words, self.characters = words, characters
        self.width = words.width + characters.width

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        if source.ndim != 3 or source.shape[-1] < 2:
            raise ValueError(
                "source: this model reads words with their characters, [batch, places, 1 + characters]; "
                f"got {list(source.shape)}"
            )
        words = self.words(source[..., 0]).states
        return Encoded(torch.cat([words, self.characters(source[..., 1:])], -1), lengths)


class Forgetting(Encoder):
    """In training some words are taken for unknown ones, whose vector is trained by that (special tokens stay)."""

    def __init__(self, words: Encoder, share: float) -> None:
        super().__init__()
        self.words, self.share, self.width = words, share, words.width

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        return self.words(self._forgotten(source) if self.training else source, lengths)  # type: ignore[no-any-return]

    def _forgotten(self, source: Tensor) -> Tensor:
        words = source[..., 0] if source.ndim == 3 else source
        gone = (torch.rand(words.shape, device=words.device) < self.share) & (words >= len(SPECIALS))
        words = torch.where(gone, UNKNOWN, words)
        return torch.cat([words.unsqueeze(-1), source[..., 1:]], -1) if source.ndim == 3 else words
