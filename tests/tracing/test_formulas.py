"""Formulas of steps: what stands in them is what was computed."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.tracing import label


def formula(computed: Callable[..., Tensor], *shapes: tuple[int, ...]) -> str:
    """Of what is computed from a, b, c of these shapes."""
    torch.manual_seed(0)
    given = [torch.randn(shape) for shape in shapes]
    with regard.trace() as tape:
        named = [label(tensor * 1, name) for tensor, name in zip(given, "abc", strict=False)]
        result = label(computed(*named), "result")
    return tape.derivation(result)["result"].formula


def heads(x: Tensor) -> Tensor:
    return x.view(1, 3, 2, 4)


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (lambda a, b: a @ b.T, "a bᵀ"),
        (lambda a, b: a.view(3, 2, 4).transpose(0, 1) @ b.view(3, 2, 4).permute(1, 2, 0), "a bᵀ"),
        (lambda a, b: heads(a).transpose(1, 2) @ heads(b).transpose(1, 2).transpose(2, 3), "a bᵀ"),
        (lambda a, b: a.view(3, 2, 4).permute(1, 2, 0) @ b.view(3, 2, 4).transpose(0, 1), "aᵀ b"),
        (lambda a, b: a[:, :4] @ b.split(4, 1)[1].T, "a[:, 0:4] b[:, 4:8]ᵀ"),
    ],
)
def test_what_is_turned_says_so(computed: Callable[..., Tensor], expected: str) -> None:
    assert formula(computed, (3, 8), (3, 8)) == expected


def test_scores_of_attention_say_what_is_turned() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 3, 8)
    with regard.trace() as tape:
        output, _ = layer(x, x, x)
    assert "ᵀ" in tape.derivation(output)["E"].formula


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (lambda a, b, c: torch.addmm(a, b, c), "b c + a"),
        (lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), "2 · b c + 0.5 · a"),
        (lambda a, b, c: torch.addmm(a, b, c, beta=-1), "b c - a"),
        (lambda a, b, c: torch.addmm(a, b, c, beta=0, alpha=2), "2 · b c"),
        (lambda a, b, c: torch.sub(a, b, alpha=2), "a - 2 · b"),
        (lambda a, b, c: torch.sub(a, b, alpha=-2), "a + 2 · b"),
        (lambda a, b, c: torch.add(a, b, alpha=-2), "a - 2 · b"),
        (lambda a, b, c: a - (b + c), "a - (b + c)"),
        (lambda a, b, c: 1 - a, "1 - a"),
        (lambda a, b, c: torch.rsub(a, b, alpha=3), "b - 3 · a"),
        (lambda a, b, c: a // 2, "⌊a / 2⌋"),
        (lambda a, b, c: a % 3, "a mod 3"),
        (lambda a, b, c: torch.div(a, b, rounding_mode="trunc"), "trunc(a / b)"),
        (lambda a, b, c: a / (b * c), "a / (b · c)"),
        (lambda a, b, c: a.clamp(-1, 2), "min(max(a, -1), 2)"),
        (lambda a, b, c: a.clamp(max=2), "min(a, 2)"),
        (lambda a, b, c: F.hardtanh(a), "min(max(a, -1), 1)"),
        (lambda a, b, c: torch.maximum(a, b), "max(a, b)"),
        (lambda a, b, c: a.var(-1), "var₁(a)"),
        (lambda a, b, c: a.var(-1, correction=0), "var(a)"),
        (lambda a, b, c: a.std(unbiased=False), "std(a)"),
    ],
)
def test_numbers_that_count_stand_in_the_formula(computed: Callable[..., Tensor], expected: str) -> None:
    assert formula(computed, (3, 3), (3, 3), (3, 3)) == expected


@pytest.mark.parametrize(("reduction", "expected"), [("mean", "mean nll("), ("sum", "sum nll("), ("none", "nll(")])
def test_a_loss_says_how_it_is_reduced(reduction: str, expected: str) -> None:
    written = formula(lambda a: F.cross_entropy(a, torch.tensor([0, 1]), reduction=reduction), (2, 3))
    assert written.startswith(expected)
