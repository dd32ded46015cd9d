"""Kernels that have a gradient and no second one: who asks for it is told so in a sentence, and what to do."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SAID = "second derivatives need implementation='reference'"


def said() -> str:
    """For the table of paths."""
    return SAID


def differentiable_once(output: Tensor, kernels: str) -> Tensor:
    """The output of a kernel, whose node in the graph has a name with `kernels` in it; other nodes are left alone.

    PyTorch's own words for a second derivative name a function of its own that nobody called.
    """
    if torch.compiler.is_compiling():  # compiled code has no nodes yet, and refuses in words of its own
        return output
    node = output.grad_fn
    if node is not None and kernels in node.name():
        node.register_hook(_without_more)
    return output


def _without_more(gradients: Sequence[Tensor | None], _: Any) -> tuple[Tensor | None, ...] | None:
    """Only where a graph of the gradients is made (create_graph=True) is there anything to be said later."""
    if not torch.is_grad_enabled():
        return None
    return tuple(None if each is None else _NoMore.apply(each) for each in gradients)  # type: ignore[no-untyped-call]


class _NoMore(torch.autograd.Function):
    """A gradient as it is, of which none is to be had."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"attend: a fused kernel has first derivatives only: {SAID}")
