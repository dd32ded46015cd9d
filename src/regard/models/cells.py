"""One step of a recurrent network, written out: the plain cell, the GRU and the LSTM.

Each is linear(x) and linear(h) and then a function number by number, so a caller that knows many x beforehand may
multiply them all at once (`rnn_mix`, `gru_mix` and `lstm_mix` take the two products). Matrices, biases and the
order of the gates are PyTorch's: a gate's rows stand together in W_ih [G·d, inputs] and W_hh [G·d, d], and rows of
x [..., inputs] and h [..., d] are vectors. Weights of nn.RNN, nn.GRU and nn.LSTM go in as they are.

`name` is what a trace calls the new state, h where none is given; its gates are then h_3.i, h_3.f and so on.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.tracing.labels import label

State = tuple[Tensor, ...]
"""What a cell hands to its next step: (h,), or (h, c) for the LSTM."""
Matrix = Tensor
Bias = Tensor | None


def rnn_cell(x: Tensor, h: Tensor, W_ih: Matrix, W_hh: Matrix, b_ih: Bias = None, b_hh: Bias = None) -> Tensor:
    """The plain cell of the lecture: a = b + W h + U x, h' = tanh(a). Here U is W_ih and W is W_hh."""
    return rnn_mix(linear(x, W_ih, b_ih), linear(h, W_hh, b_hh), (h,))[0]


def gru_cell(x: Tensor, h: Tensor, W_ih: Matrix, W_hh: Matrix, b_ih: Bias = None, b_hh: Bias = None) -> Tensor:
    """Gates r, z, n: h' = (1 - z) · n + z · h, with n = tanh(W_n x + b_n + r · (U_n h + b'_n)).

    As in PyTorch the reset gate falls on the product with h, and not on h before it (Cho and others 2014).
    """
    return gru_mix(linear(x, W_ih, b_ih), linear(h, W_hh, b_hh), (h,))[0]


def lstm_cell(
    x: Tensor, state: tuple[Tensor, Tensor], W_ih: Matrix, W_hh: Matrix, b_ih: Bias = None, b_hh: Bias = None
) -> tuple[Tensor, Tensor]:
    """Gates i, f, g, o: c' = f · c + i · g, h' = o · tanh(c'). State and result are (h, c)."""
    h, c = lstm_mix(linear(x, W_ih, b_ih), linear(state[0], W_hh, b_hh), state)
    return h, c


def rnn_mix(from_x: Tensor, from_h: Tensor, state: State, name: str = "") -> State:
    """h' = tanh(from_x + from_h)."""
    a = label(from_x + from_h, _part(name, "a"), "b + W h + U x")
    return (label(torch.tanh(a), name or "h", "tanh(a)"),)


def gru_mix(from_x: Tensor, from_h: Tensor, state: State, name: str = "") -> State:
    """The GRU after its two products, each [..., 3 d] in the order r, z, n."""
    (h,) = state
    r_x, z_x, n_x = from_x.chunk(3, -1)
    r_h, z_h, n_h = from_h.chunk(3, -1)
    r = label(torch.sigmoid(r_x + r_h), _part(name, "r"), "σ(W_r x + U_r h + b_r)")
    z = label(torch.sigmoid(z_x + z_h), _part(name, "z"), "σ(W_z x + U_z h + b_z)")
    n = label(torch.tanh(n_x + r * n_h), _part(name, "n"), "tanh(W_n x + b_n + r · (U_n h + b'_n))")
    return (label(n + z * (h - n), name or "h", "(1 - z) · n + z · h"),)


def lstm_mix(from_x: Tensor, from_h: Tensor, state: State, name: str = "") -> State:
    """The LSTM after its two products, each [..., 4 d] in the order i, f, g, o.

    Its memory is shown as C: in the notes c is the context that attention gives.
    """
    _, c = state
    i, f, g, o = label(from_x + from_h, _part(name, "a"), "W x + U h + b, for i, f, g, o").chunk(4, -1)
    i = label(torch.sigmoid(i), _part(name, "i"), "σ(W_i x + U_i h + b_i)")
    f = label(torch.sigmoid(f), _part(name, "f"), "σ(W_f x + U_f h + b_f)")
    g = label(torch.tanh(g), _part(name, "g"), "tanh(W_g x + U_g h + b_g)")
    o = label(torch.sigmoid(o), _part(name, "o"), "σ(W_o x + U_o h + b_o)")
    c = label(f * c + i * g, _part(name, "C"), "f · C + i · g")
    return label(o * torch.tanh(c), name or "h", "o · tanh(C)"), c


def _part(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


class Cell(NamedTuple):
    """A kind of cell, as the networks built of it see it."""

    gates: int
    """Rows of its matrices for each number of its state."""
    parts: int
    """Of its state: 1, or 2 for the LSTM."""
    mix: Callable[[Tensor, Tensor, State, str], State]
    """from_x, from_h, state, name → state."""


CELLS: dict[str, Cell] = {
    "rnn": Cell(1, 1, rnn_mix),
    "gru": Cell(3, 1, gru_mix),
    "lstm": Cell(4, 2, lstm_mix),
}
