"""The cells of recurrent networks in a formula: one row x and one row h, and the matrices as a problem gives them."""

import torch
from torch import Tensor

from regard.models import cells
from regard.tracing import label
from regard.worked.limits import spelled


def rnn_cell(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """tanh(x W_x + b + h W_h + b_h)."""
    from_x, from_h = _recurrent("rnn_cell", 1, x, h, W_x, W_h, b, b_h)
    return cells.rnn_mix(from_x, from_h, (h,))[0]


def gru_cell(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """(1 - z) n + z h; the columns of W_x, W_h, b and b_h are the gates r, z, n side by side, as in PyTorch."""
    from_x, from_h = _recurrent("gru_cell", 3, x, h, W_x, W_h, b, b_h)
    return cells.gru_mix(from_x, from_h, (h,))[0]


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """Two rows, h' and c'; the columns of W_x, W_h, b and b_h are the gates i, f, g, o side by side, as in PyTorch."""
    if c.shape != h.shape:
        raise ValueError(f"lstm_cell: c has the shape of h; got {spelled(c.shape)} and {spelled(h.shape)}")
    from_x, from_h = _recurrent("lstm_cell", 4, x, h, W_x, W_h, b, b_h)
    return torch.stack(cells.lstm_mix(from_x, from_h, (h, c)))


def _recurrent(
    name: str, gates: int, x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None, b_h: Tensor | None
) -> tuple[Tensor, Tensor]:
    """x W_x + b and h W_h + b_h, for one row x and one row h."""
    if x.ndim != 1 or h.ndim != 1:
        raise ValueError(f"{name} takes a row x and a row h; got {spelled(x.shape)} and {spelled(h.shape)}")
    width = gates * h.shape[0]
    wanted: list[tuple[str, Tensor, tuple[int, ...]]] = [
        ("W_x", W_x, (x.shape[0], width)),
        ("W_h", W_h, (h.shape[0], width)),
    ]
    wanted += [(side, bias, (width,)) for side, bias in (("b", b), ("b_h", b_h)) if bias is not None]
    for side, own, shape in wanted:
        if own.shape != shape:
            raise ValueError(f"{name}: {side} must be {spelled(shape)} here; it is {spelled(own.shape)}")
    # As matrices of one row, which is what a trace finds again.
    from_x = _labelled("from_x", "x W_x", x.unsqueeze(0) @ W_x, b)
    return from_x[0], _labelled("from_h", "h W_h", h.unsqueeze(0) @ W_h, b_h)[0]


def _labelled(name: str, formula: str, product: Tensor, bias: Tensor | None) -> Tensor:
    return label(product, name, formula) if bias is None else label(product + bias, name, f"{formula} + b")
