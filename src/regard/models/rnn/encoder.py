"""The recurrent encoder: a source read once, into one vector for each place and a last state.

Shape letters: B sentences, S places, d width of a state, D width of a vector of the memory.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import dropout

from regard.models.checks import check_source
from regard.models.contract import Encoded, Encoder
from regard.models.inputs import make_input
from regard.models.padding import only_real
from regard.models.rnn.layers import Layers, States
from regard.models.rnn_settings import RecurrentEncoderSettings
from regard.models.sizes import Sizes
from regard.tracing.labels import label


class Read(NamedTuple):
    """A source that was read."""

    encoded: Encoded
    last: States
    """Of each layer and direction; where there are no layers, the mean of the input's vectors."""


class RecurrentEncoder(Encoder):
    """h_t from x_t and h_{t-1}; from both ends, h_t joins (or adds) the two. The input is that of the settings, unless
    another one is given."""

    def __init__(self, settings: RecurrentEncoderSettings, sizes: Sizes, input: Encoder | None = None) -> None:
        super().__init__()
        self.input = make_input(settings.input, sizes) if input is None else input
        self.layers = None
        if settings.layers:
            self.layers = Layers(
                settings.cell, self.input.width, settings.width, settings.layers,
                bidirectional=settings.bidirectional, dropout=settings.dropout,
            )  # fmt: skip
        self.adds = settings.bidirectional and settings.join == "sum"
        self.reversed, self.dropout = settings.reversed, settings.dropout
        self.width = self.input.width
        if self.layers is not None:
            self.width = settings.width * (1 if self.adds else self.layers.directions)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        return self.read(source, lengths).encoded

    def read(self, source: Tensor, lengths: Tensor | None = None) -> Read:
        """The same, and the last state."""
        check_source(source, lengths, places=1)
        x, lengths = self.input(source, lengths)
        x = dropout(x, self.dropout) if self.training and self.dropout > 0 else x
        here = None if lengths is None else lengths.to(x.device)
        if self.layers is None:
            return Read(Encoded(x, here), ((mean(x, here),),))
        # PyTorch packs by lengths that are on the CPU: those that come from there are not sent to and fro.
        outputs, last = self.layers(self._turned(x, here), lengths=lengths)
        states = self._turned(outputs, here)
        if self.adds:
            forwards, backwards = states.chunk(2, -1)
            states = forwards + backwards
        return Read(Encoded(label(states, "H", "[h_1; h_2; …]"), here), last)

    def _turned(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """The real places of each row from the last to the first, where the source is read backwards."""
        if not self.reversed:
            return x
        if lengths is None:
            return x.flip(1)
        places = torch.arange(x.shape[1], device=x.device)
        back = lengths.unsqueeze(-1) - 1 - places
        order = torch.where(back >= 0, back, places)
        return x.gather(1, order.unsqueeze(-1).expand_as(x))


def mean(x: Tensor, lengths: Tensor | None) -> Tensor:
    """[B, d]: of the real places; 0 where there are none."""
    return x.mean(1) if lengths is None else only_real(x, lengths).sum(1) / lengths.clamp(min=1).unsqueeze(-1)
