"""From the encoder's last state to the decoder's first: the context vector with which the notes begin."""

from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.cells import CELLS, State
from regard.models.rnn.layers import States, joined
from regard.models.rnn_settings import RecurrentSettings
from regard.tracing.labels import label


class Bridge(nn.Module):
    """s_0 = h as it is (two directions added), or tanh(W h + b) from the two directions side by side.

    An LSTM's C goes through a matrix without the tanh, for it has no bounds. Where the decoder has another number of
    layers than the encoder, the top ones belong together, and the lowest encoder's serves what is left.
    """

    def __init__(self, settings: RecurrentSettings, given: int) -> None:
        """given: how wide the encoder's last state of a layer is, its directions side by side."""
        super().__init__()
        self.way: Literal["copy", "dense"] = settings.bridge or ("copy" if settings.copies else "dense")
        self.layers, self.parts = settings.layers, CELLS[settings.cell].parts
        self.directions = 2 if settings.bidirectional and settings.encoder.layers else 1
        self.dense = nn.ModuleList()
        if self.way == "dense":
            self.dense.extend(nn.Linear(given, settings.width) for _ in range(self.layers * self.parts))
            for each in self.dense:
                nn.init.xavier_uniform_(each.weight)  # type: ignore[arg-type]
                nn.init.zeros_(each.bias)  # type: ignore[arg-type]

    def forward(self, last: States) -> States:
        """last: of each layer and direction of the encoder, in PyTorch's order."""
        if self.way == "copy":
            return tuple(self._added(last[at : at + self.directions]) for at in range(0, len(last), self.directions))
        layers = [joined(last[at : at + self.directions]) for at in range(0, len(last), self.directions)]
        return tuple(self._through(layer, layers) for layer in range(self.layers))

    @staticmethod
    def _added(ways: States) -> State:
        return ways[0] if len(ways) == 1 else tuple(one + other for one, other in zip(*ways, strict=True))

    def _through(self, layer: int, layers: list[State]) -> State:
        given = layers[max(0, layer + len(layers) - self.layers)]
        made = []
        for part in range(self.parts):
            linear = self.dense[layer * self.parts + part]
            new: Tensor = linear(given[min(part, len(given) - 1)])
            made.append(torch.tanh(new) if part == 0 else new)
        lower = "" if layer == self.layers - 1 else f"^{layer + 1}"
        label(made[0], f"s_0{lower}", "tanh(W h + b)")
        return tuple(made)
