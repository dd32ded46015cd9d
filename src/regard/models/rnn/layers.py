"""Cells in layers and in time: PyTorch's own where it can run, and the cells written out where it cannot.

The written-out way is the reference. It also runs while a derivation is recorded (it shows every state), under
torch.compile and in a CUDA graph (PyTorch's own can be captured by neither with rows of different lengths).

Shape letters: B rows, T places, d width of a state, G gates.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.models.cells import CELLS, State
from regard.models.padding import only_real, real_places
from regard.tracing.labels import active, label

MODES = {"rnn": "RNN_TANH", "gru": "GRU", "lstm": "LSTM"}
OWN: dict[str, Callable[..., tuple[Tensor, ...]]] = {"rnn": torch.rnn_tanh, "gru": torch.gru, "lstm": torch.lstm}

States = tuple[State, ...]
"""One for each layer and direction, in PyTorch's order: the directions of a layer stand together."""


class Ran(NamedTuple):
    """What came of a run."""

    outputs: Tensor
    """[B, T, d or 2 d] of the top layer; 0 behind a row's length."""
    last: States
    """After each row's last place (a direction that reads backwards: after its first)."""


class Layers(nn.RNNBase):
    """Recurrent cells, layer on layer, in one direction or both.

    Its parameters have PyTorch's names and order, so weights of nn.RNN, nn.GRU and nn.LSTM can be loaded as they are.
    """

    def __init__(
        self,
        cell: str,
        inputs: int,
        width: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        name: str = "h",
    ) -> None:
        between = dropout if layers > 1 else 0.0
        super().__init__(
            MODES[cell], inputs, width, layers, batch_first=True, bidirectional=bidirectional, dropout=between
        )
        self.kind, self.cell, self.called = cell, CELLS[cell], name
        self.directions = 2 if bidirectional else 1
        self._begin_well()

    def _begin_well(self) -> None:
        """Orthogonal matrices from state to state, and an LSTM that does not forget at first (a bias of 1)."""
        for W_ih, W_hh, b_ih, b_hh in self.all_weights:
            for gate in W_hh.chunk(self.cell.gates):
                nn.init.orthogonal_(gate)
            nn.init.xavier_uniform_(W_ih)
            nn.init.zeros_(b_ih)
            nn.init.zeros_(b_hh)
            if self.kind == "lstm":
                nn.init.ones_(b_ih.detach()[self.hidden_size : 2 * self.hidden_size])

    def forward(self, x: Tensor, states: States | None = None, lengths: Tensor | None = None, *, first: int = 1) -> Ran:
        """x [B, T, inputs] from these states on (0 where none are given). `first`: the number of the first place."""
        states = self.zeros(x.shape[0], x) if states is None else states
        if must_be_written_out(x):
            return self._written_out(x, states, lengths, first)
        return self._own(x, states, lengths)

    def zeros(self, rows: int, like: Tensor) -> States:
        zero = like.new_zeros(rows, self.hidden_size)
        return ((zero,) * self.cell.parts,) * (self.num_layers * self.directions)

    def _own(self, x: Tensor, states: States, lengths: Tensor | None) -> Ran:
        """PyTorch's own, over packed rows where their lengths differ: padding is not even read."""
        given = tuple(torch.stack(part) for part in zip(*states, strict=True))
        packed, empty = packed_rows(x, lengths)
        if packed is None:
            outputs, *last = self._call(x, given)
        else:
            given = given if packed.sorted_indices is None else tuple(h[:, packed.sorted_indices] for h in given)
            data, *last = self._call(packed, given)
            outputs, _ = pad_packed_sequence(packed._replace(data=data), batch_first=True, total_length=x.shape[1])
            last = last if packed.unsorted_indices is None else [h[:, packed.unsorted_indices] for h in last]
        ran = Ran(outputs, tuple(zip(*(part.unbind(0) for part in last), strict=True)))
        return ran if empty is None else self._untouched(ran, states, empty)

    def _call(self, x: Tensor | PackedSequence, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        weights = [getattr(self, name) for names in self._all_weights for name in names]
        h = given if self.kind == "lstm" else given[0]
        settings = (True, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(x, PackedSequence):
            return OWN[self.kind](x.data, x.batch_sizes, h, weights, *settings)
        return OWN[self.kind](x, h, weights, *settings, True)

    @staticmethod
    def _untouched(ran: Ran, states: States, empty: Tensor) -> Ran:
        """Rows of length 0, which PyTorch cannot pack and which were taken for length 1, as if never read."""
        last = [chosen(empty, was, now) for was, now in zip(states, ran.last, strict=True)]
        return Ran(torch.where(empty.unsqueeze(-1), 0.0, ran.outputs), tuple(last))

    def _written_out(self, x: Tensor, states: States, lengths: Tensor | None, first: int) -> Ran:
        real = None if lengths is None else real_places(lengths.to(x.device), x.shape[1])
        x = only_real(x, lengths)
        last: list[State] = []
        for layer in range(self.num_layers):
            x = dropout(x, self.dropout) if layer and self.training and self.dropout > 0 else x
            ways = []
            for direction in range(self.directions):
                number = layer * self.directions + direction
                outputs, state = self._one_way(number, x, states[number], real, first)
                ways.append(outputs)
                last.append(state)
            x = ways[0] if len(ways) == 1 else torch.cat(ways, -1)
        return Ran(x, tuple(last))

    def _one_way(self, number: int, x: Tensor, state: State, real: Tensor | None, first: int) -> tuple[Tensor, State]:
        """One layer in one direction, place by place; a row's state stands still at its padding."""
        W_ih, W_hh, b_ih, b_hh = self.all_weights[number]
        from_x = label(linear(x, W_ih, b_ih), f"{self.called}.x", "W x + b").unbind(1)
        places = range(len(from_x)) if number % self.directions == 0 else reversed(range(len(from_x)))
        outputs = list(from_x)
        for t in places:
            name = self._name(number, t + first) if active() else ""
            new = self.cell.mix(from_x[t], linear(state[0], W_hh, b_hh), state, name)
            if real is not None:
                here = real[:, t : t + 1]
                new = chosen(here, new, state)
                outputs[t] = torch.where(here, new[0], 0.0)
            else:
                outputs[t] = new[0]
            state = new
        return torch.stack(outputs, 1), state

    def project(self, x: Tensor) -> Tensor:
        """The first layer's product with x [..., n], the first n of its inputs: for `advance`, many steps at once."""
        W_ih, _, b_ih, _ = self.all_weights[0]
        return label(linear(x, W_ih[:, : x.shape[-1]], b_ih), f"{self.called}.x", "W x + b")

    def advance(self, from_x: Tensor, states: States, fed: Tensor | None = None, place: int | None = None) -> States:
        """One step of one direction, from projected inputs [B, G d] and `fed` [B, m], the inputs after those."""
        new: list[State] = []
        for number, (state, (W_ih, W_hh, b_ih, b_hh)) in enumerate(zip(states, self.all_weights, strict=True)):
            if number:
                below = new[-1][0]
                below = dropout(below, self.dropout) if self.training and self.dropout > 0 else below
                from_x = linear(below, W_ih, b_ih)
            elif fed is not None:
                from_x = from_x + linear(fed, W_ih[:, W_ih.shape[1] - fed.shape[1] :])
            name = self._name(number, place) if active() else ""
            new.append(self.cell.mix(from_x, linear(state[0], W_hh, b_hh), state, name))
        return tuple(new)

    def _name(self, number: int, place: int | None) -> str:
        """h_3; h→_3 and h←_3 of two directions; h_3^1 of a layer under the top one."""
        layer, direction = divmod(number, self.directions)
        way = "" if self.directions == 1 else "→←"[direction]
        lower = "" if layer == self.num_layers - 1 else f"^{layer + 1}"
        return f"{self.called}{way}_{'t' if place is None else place}{lower}"


def must_be_written_out(x: Tensor) -> bool:
    if active() or torch.compiler.is_compiling():
        return True
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def packed_rows(x: Tensor, lengths: Tensor | None) -> tuple[PackedSequence | None, Tensor | None]:
    """x packed, unless all rows are whole; and which rows [B, 1] are empty, if there are any."""
    if lengths is None:
        return None, None
    counts = lengths.cpu()  # which waits for a GPU, once a batch: PyTorch packs by numbers it can see
    if not counts.numel() or int(counts.min()) == x.shape[1]:
        return None, None
    packed = pack_padded_sequence(x, counts.clamp(min=1), batch_first=True, enforce_sorted=False)
    return packed, (lengths == 0).to(x.device).unsqueeze(-1) if int(counts.min()) == 0 else None


def chosen(rows: Tensor, these: State, others: State) -> State:
    """These in the rows [B, 1] that are True, the others elsewhere."""
    return tuple(torch.where(rows, this, other) for this, other in zip(these, others, strict=True))


def joined(states: Sequence[State]) -> State:
    """The directions of one layer as one state: their parts side by side."""
    return tuple(torch.cat(part, -1) for part in zip(*states, strict=True))
