"""Products with weights whose copies in half precision were made beforehand, several matrices side by side as one.

y = x Wᵀ + b            dx = dy W            dW = dyᵀ x, in float32            db = Σ dy
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.models.fused.sums import Slot, Sums, sum_columns

EVEN = 64
"""What a size is rounded up to."""


class Joined(NamedTuple):
    """Linear layers that read the same rows, as one: copies in the products' kind of numbers, and their masters."""

    matrix: Tensor
    """[outputs of all, inputs]."""
    bias: Tensor | None
    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, token: Tensor, joined: Joined, slot: Slot | None, *weights: Tensor) -> Tensor:
        matrix, bias, *_ = joined
        ctx.save_for_backward(x, matrix)
        ctx.weights, ctx.slot = joined.weights, slot
        return x @ matrix.T if bias is None else torch.addmm(bias, x, matrix.T)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix = ctx.saved_tensors
        dy = grads[0].contiguous()
        if ctx.slot is not None:
            sum_columns(dy, ctx.slot)
        parts = product(dy.T, x).split_with_sizes([len(each) for each in ctx.weights])
        return dy @ matrix, None, None, None, *parts


def linear(x: Tensor, joined: Joined, sums: Sums, *, sums_bias: bool = True) -> Tensor:
    """[N, inputs] → [N, outputs of all]; sums_bias: unless whoever reads them adds up the gradients of the biases."""
    slot = sums.over_columns.slot(joined.biases) if joined.biases and sums_bias else None
    y: Tensor = Linear.apply(x, sums.token, joined, slot, *joined.weights)  # type: ignore[no-untyped-call]
    return y


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b in float32, of which it is the sum."""
    if a.dtype == torch.float32 or a.device.type != "cuda":
        return (a @ b).float()
    return torch.mm(a, b, out_dtype=torch.float32)


def rounded(words: int) -> int:
    """How long the copy of a table of so many words is."""
    return words if words % 8 == 0 else -(-words // EVEN) * EVEN


Group = Sequence[nn.Linear]


def copied(groups: Sequence[Group], tables: Sequence[Tensor], kind: torch.dtype) -> tuple[list[Joined], list[Tensor]]:
    """Every group of layers and every table, copied by one operation into one room; tables are `rounded`."""
    members = [[each.weight for each in group] for group in groups]
    members += [[each.bias for each in group if each.bias is not None] for group in groups]
    members += [[each] for each in tables]
    starts, end = [], 0
    for group in members:
        starts.append(end)
        end += sum(rounded(len(each)) * each[0].numel() for each in group)
        end += -end % EVEN  # products want rows that begin at 128 bytes
    room = torch.empty(end, dtype=kind, device=members[0][0].device)
    own, masters, joined = [], [], []
    for start, group in zip(starts, members, strict=True):
        sizes = [each.numel() for each in group]
        joined.append(room[start : start + sum(sizes)].view(-1, *(group[0].shape[1:] if group else ())))
        own += [
            part.view_as(each) for part, each in zip(joined[-1].view(-1).split_with_sizes(sizes), group, strict=True)
        ]
        masters += [each.detach() for each in group]
    torch._foreach_copy_(own, masters)
    n = len(groups)
    found = [
        Joined(matrix, bias if len(b) else None, tuple(w), tuple(b))
        for matrix, bias, w, b in zip(joined[:n], joined[n : 2 * n], members[:n], members[n : 2 * n], strict=True)
    ]
    return found, [_longer(room[start:], each) for start, each in zip(starts[2 * n :], tables, strict=True)]


def _longer(room: Tensor, table: Tensor) -> Tensor:
    """The table's copy at the beginning of the room, with the rows behind it, which are 0."""
    words, width = table.shape
    room = room[: rounded(words) * width].view(-1, width)
    if len(room) > words:
        room[words:].zero_()
    return room
