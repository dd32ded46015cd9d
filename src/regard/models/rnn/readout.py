"""What stands under the logits of a recurrent decoder: the attentional vector, or its like."""

import torch
from torch import Tensor, nn

from regard.models.rnn_settings import RecurrentSettings
from regard.tracing.labels import label


class Readout(nn.Module):
    """What stands under the logits: s~ = tanh(W_c [c; s]) with Luong, t = tanh(W [s; c; E y] + b) with Bahdanau.

    Without attention it is s itself, or tanh(W s + b) where a width is asked for (or a tied output needs one).
    """

    def __init__(self, settings: RecurrentSettings, given: int, *, luong: bool) -> None:
        super().__init__()
        plain = given == settings.width
        tied = settings.embedding if settings.tie_output else None
        usual = settings.width if plain or luong else settings.embedding
        self.width = settings.readout or tied or usual
        self.linear = None
        if not plain or self.width != given or settings.readout is not None:
            self.linear = nn.Linear(given, self.width, bias=not luong)
            nn.init.xavier_uniform_(self.linear.weight)
        self.name = "s~" if luong else "t"
        self.formula = "tanh(W_c [c; s])" if luong else "tanh(W s + b)" if plain else "tanh(W [s; c; E y] + b)"

    def forward(self, parts: tuple[Tensor, ...], place: int | None = None) -> Tensor:
        if self.linear is None:
            return parts[0]
        name = self.name if place is None else f"{self.name}_{place}"
        return label(torch.tanh(self.linear(torch.cat(parts, -1))), name, self.formula)
