"""The lecture's two baselines, for comparison with attention.

    window    h_i = tanh(Σ_k W_k x_{i+k} + b), k from -w to w        a fully connected layer over each word's neighbours
    fixed     c_t = Σ_j W_tj h_j                                     N states to N' output places by one matrix

Shape letters: B sentences, S source places, T target places, R rows of hypotheses, V vocabulary, d width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, dropout, linear, pad

from regard.models.baseline_settings import FixedSettings, WindowSettings
from regard.models.checks import check_source
from regard.models.contract import Encoded, Encoder, SequenceModel, Step
from regard.models.inputs import make_input
from regard.models.layers import Output
from regard.models.padding import only_real
from regard.models.rnn.encoder import RecurrentEncoder
from regard.models.sizes import Sizes
from regard.tracing.labels import active, label


class WindowEncoder(Encoder):
    """Each place from itself and its neighbours; where there are none, from vectors of 0."""

    def __init__(self, settings: WindowSettings, sizes: Sizes, input: Encoder | None = None) -> None:
        super().__init__()
        self.input = make_input(settings.input, sizes) if input is None else input
        self.width, self.dropout = settings.width, settings.dropout
        self.connected = Connected(self.input.width, settings.width, settings.reach)

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        check_source(source, lengths, places=1)
        x, lengths = self.input(source, lengths)
        x = dropout(x, self.dropout) if self.training and self.dropout > 0 else x
        lengths = None if lengths is None else lengths.to(x.device)
        h = torch.tanh(self.connected(only_real(x, lengths)))
        return Encoded(label(h, "H", "tanh(Σ_k W_k x_{i+k} + b)"), lengths)


class Connected(nn.Module):
    """Σ_k W_k x_{i+k} + b: a layer over x_{i-w}, …, x_{i+w} side by side, which as a convolution joins nothing."""

    def __init__(self, given: int, width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.linear = nn.Linear(given * (2 * reach + 1), width)

    def forward(self, x: Tensor) -> Tensor:
        near = max(0, min(self.reach, x.shape[1] - 1))  # further off there is nothing to see
        weight, bias = self.linear.weight, self.linear.bias
        weight = weight.view(len(weight), 2 * self.reach + 1, -1)[:, self.reach - near : self.reach + near + 1]
        if not active():
            return conv1d(x.mT, weight.mT, bias, padding=near).mT
        windows = pad(x, (0, 0, near, near)).unfold(1, 2 * near + 1, 1).mT.flatten(2)
        return linear(windows, weight.flatten(1), bias)


@dataclass(frozen=True)
class Placed:
    """How many tokens were said: all that this decoder knows of them."""

    place: int = 0

    def select(self, index: Tensor) -> "Placed":
        return self


class Fixed(SequenceModel):
    """What stands at place t of the target is read off one mixture of the source's places, the same for all sentences.

    It does not know what it said before, so its steps need not wait for one another.
    """

    settings: FixedSettings

    def __init__(self, settings: FixedSettings, sizes: Sizes, input: Encoder | None = None) -> None:
        super().__init__()
        self.settings, self.sizes = settings, sizes
        self.vocabulary = sizes.need("target", "a sequence out")
        self.longest = settings.target_places
        self.encoder = RecurrentEncoder(settings.encoder, sizes, input)
        self.W = nn.Parameter(torch.empty(settings.target_places, settings.source_places))
        nn.init.normal_(self.W, std=settings.source_places**-0.5)
        self.output = Output(self.encoder.width, self.vocabulary, bias=True)
        self.dropout = settings.dropout

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        states, lengths = self.encoder(source, lengths)
        if states.shape[1] > self.W.shape[1]:
            raise ValueError(
                f"source: {states.shape[1]} places, but this model's matrix knows {self.W.shape[1]} (source_places)"
            )
        return Encoded(only_real(states, lengths), lengths)

    def start(self, memory: Encoded) -> Placed:  # type: ignore[override]
        return Placed()

    def step(  # type: ignore[override]
        self,
        tokens: Tensor,
        state: Placed,
        memory: Encoded,
        *,
        columns: Tensor | None = None,
        want_weights: bool = False,
    ) -> Step:
        place, sentences = state.place, len(memory.states)
        self._check(place + 1)
        weights = self.W[place, : memory.states.shape[1]]
        name = f"c_{place + 1}" if active() else "c"
        c = label(torch.einsum("s,bsd->bd", weights, memory.states), name, "Σ_j W_tj h_j")
        logits = self.output(self._dropped(c), columns).repeat_interleave(len(tokens) // max(sentences, 1), 0)
        seen = weights.expand(len(tokens), 1, 1, -1) if want_weights else None
        return Step(logits, Placed(place + 1), seen)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        memory = self.encode(source, lengths)
        self._check(target.shape[1])
        c = self.W[: target.shape[1], : memory.states.shape[1]] @ memory.states
        logits: Tensor = self.output(self._dropped(label(c, "c", "W H")))
        return logits

    def _check(self, places: int) -> None:
        if places > self.W.shape[0]:
            raise ValueError(
                f"target: {places} places, but this model's matrix knows {self.W.shape[0]} (target_places)"
            )

    def _dropped(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout) if self.training and self.dropout > 0 else x
