"""Words read by their characters, so that a word never seen still says something.

Shape letters: N words, C characters, c width of a character, d width of what they say.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.models.input_settings import CharacterSettings
from regard.text.specials import PAD
from regard.tracing.labels import label

BYTES = 257
"""How many characters there are where bytes stand for them: 256, and the padding."""


class Characters(nn.Module):
    """d_k = max_j tanh(W_k [x_j; …; x_{j+w-1}] + b_k): each feature is looked for at every place of the word."""

    def __init__(self, settings: CharacterSettings, characters: int) -> None:
        super().__init__()
        self.width, self.longest = settings.output, settings.longest
        self.vectors = nn.Embedding(characters, settings.width, padding_idx=PAD)
        self.windows = nn.Conv1d(settings.width, settings.output, settings.window, padding=settings.window - 1)

    def forward(self, characters: Tensor) -> Tensor:
        """[..., C] numbers, 0 behind a word's end → [..., d]; a word without characters says 0."""
        characters = characters[..., : self.longest]
        real = characters != PAD
        x = self.vectors(characters.flatten(0, -2)).transpose(1, 2)
        found = torch.tanh(self.windows(x)).transpose(1, 2)
        # A window that begins behind the word's end sees padding alone, however far the table goes on.
        inside = nn.functional.pad(real, (found.shape[1] - real.shape[-1], 0), value=True).flatten(0, -2)
        found = torch.where(inside.unsqueeze(-1), found, -1.0).amax(1)
        found = torch.where(real.any(-1).flatten().unsqueeze(-1), found, 0.0)
        return label(found.view(*characters.shape[:-1], self.width), "characters", "max_j tanh(W [x_j; …] + b)")


def letters_read(model: nn.Module) -> int | None:
    """How many letters of a word a model reads at most; None where it reads none."""
    return next((part.longest for part in model.modules() if isinstance(part, Characters)), None)


def as_bytes(sentences: Sequence[Sequence[str]], longest: int = 24) -> Tensor:
    """[B, S, C]: the bytes of each word's UTF-8, numbered from 1, 0 behind them; for any script, with no table."""
    spelled = [[list(word.encode())[:longest] for word in words] for words in sentences]
    places = max((len(words) for words in spelled), default=0)
    most = max((len(each) for words in spelled for each in words), default=0)
    table = torch.zeros(len(spelled), places, max(most, 1), dtype=torch.long)
    for row, words in enumerate(spelled):
        for place, each in enumerate(words):
            table[row, place, : len(each)] = torch.tensor([byte + 1 for byte in each], dtype=torch.long)
    return table
