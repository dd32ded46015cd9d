"""Kernels that only a GPU has: their rules against a plain computation of the same, under their own names."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.tracing.operations import operation
from regard.tracing.tape import Tape
from tests.tracing.arithmetic import every_equation_is_true
from tests.tracing.cases import p, r

aten = torch.ops.aten


class Emulated:
    """An operation by its schema and name, which computes otherwise."""

    def __init__(self, like: Any, compute: Callable[..., Any]) -> None:
        self._schema, self._overloadpacket, self._compute = like._schema, like._overloadpacket, compute

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compute(*args, **kwargs)


def traced(like: Any, compute: Callable[..., Any], *args: Any) -> tuple[Tape, Any]:
    tape = Tape()
    return tape, tape.run(Emulated(like, compute), operation(like), args, {})


def lstm_cell(ig: Tensor, hg: Tensor, c: Tensor, bi: Tensor | None, bh: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """By nn.LSTMCell, whose weights are the identity."""
    cell = nn.LSTMCell(ig.shape[1], c.shape[1]).double()
    with torch.no_grad():
        cell.weight_ih.copy_(torch.eye(ig.shape[1]))
        cell.weight_hh.zero_()
        cell.bias_ih.copy_(torch.zeros(ig.shape[1]) if bi is None else bi)
        cell.bias_hh.copy_(torch.zeros(ig.shape[1]) if bh is None else bh)
        h, new = cell(ig + hg, (torch.zeros_like(c), c))
    return h, new, torch.zeros_like(ig)


def gru_cell(ig: Tensor, hg: Tensor, h: Tensor, bi: Tensor | None, bh: Tensor | None) -> tuple[Tensor, Tensor]:
    """As the documentation of nn.GRUCell has it."""
    x, y = (ig if bi is None else ig + bi).chunk(3, 1), (hg if bh is None else hg + bh).chunk(3, 1)
    r, z = torch.sigmoid(x[0] + y[0]), torch.sigmoid(x[1] + y[1])
    return (1 - z) * torch.tanh(x[2] + r * y[2]) + z * h, torch.zeros(1)


@pytest.mark.parametrize("biased", [True, False])
def test_the_cells_of_fused_recurrent_kernels(biased: bool) -> None:
    torch.manual_seed(0)
    for like, compute, gates in (
        (aten._thnn_fused_lstm_cell.default, lstm_cell, 4),
        (aten._thnn_fused_gru_cell.default, gru_cell, 3),
    ):
        width = 3 * gates
        biases = (r(width), r(width)) if biased else (None, None)
        tape, outputs = traced(like, compute, r(2, width), r(2, width), r(2, 3), *biases)
        derivation = tape.derivation(outputs[0])
        assert every_equation_is_true(derivation) >= 12


@pytest.mark.parametrize("weighted", [True, False])
def test_the_cells_of_a_fused_rms_norm_and_of_its_gradient(weighted: bool) -> None:
    torch.manual_seed(0)
    x, weight, g = r(2, 3, 4), p(4) if weighted else None, r(2, 3, 4)

    def forward(x: Tensor, shape: list[int], weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
        norm = nn.RMSNorm(4, eps, elementwise_affine=weight is not None).double()
        if weight is not None:
            norm.weight.data.copy_(weight)
        return norm(x).detach(), (x.square().mean(-1, keepdim=True) + eps).rsqrt()

    tape, outputs = traced(aten._fused_rms_norm.default, forward, x, [4], weight, 1e-5)
    derivation = tape.derivation(outputs[0])
    assert every_equation_is_true(derivation) >= 24 + 6

    def backward(
        g: Tensor, x: Tensor, shape: list[int], rstd: Tensor, weight: Tensor | None, mask: list[bool]
    ) -> tuple[Tensor, Tensor | None]:
        leaf = x.clone().requires_grad_()
        scale = None if weight is None else weight.clone().requires_grad_()
        output = nn.functional.rms_norm(leaf, (4,), scale, 1e-5)
        found = torch.autograd.grad(output, [leaf] if scale is None else [leaf, scale], g)
        return found[0], found[1] if scale is not None else None

    rstd = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    like = aten._fused_rms_norm_backward.default
    tape, outputs = traced(like, backward, g, x, [4], rstd, weight, [True, weighted])
    for output in outputs:
        if output is not None:
            derivation = tape.derivation(output)
            assert every_equation_is_true(derivation) >= output.numel()
