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


def test_so_does_what_has_one_row_or_column() -> None:
    assert formula(lambda a, b: a @ b.T, (3, 8), (1, 8)) == "a bᵀ"
    assert formula(lambda a, b: a.T @ b, (1, 3), (1, 8)) == "aᵀ b"
    assert formula(lambda a, b: a.T @ b, (3, 1), (3, 8)) == "aᵀ b"
    assert formula(lambda a, b: a @ b, (3, 1), (1, 8)) == "a b"
    assert formula(lambda a, b: a @ b.T, (3, 1), (8, 1)) == "a bᵀ"
    assert (
        formula(
            lambda a, b: a.view(1, 3, 2, 4).transpose(1, 2) @ b.view(1, 1, 2, 4).permute(0, 2, 3, 1), (3, 8), (1, 8)
        )
        == "a bᵀ"
    )
    assert formula(lambda a, b: a * b.unsqueeze(-1), (2, 3, 4), (2, 3)) == "a · b"


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
        (lambda a, b, c: a.var(-1, correction=2), "var₂(a)"),
        (lambda a, b, c: F.leaky_relu(a), "a if a > 0 else 0.01 · a"),
        (lambda a, b, c: F.leaky_relu(a + b, 0.2), "a + b if a + b > 0 else 0.2 · (a + b)"),
        (lambda a, b, c: F.prelu(a, torch.tensor([0.3])), "a if a > 0 else 0.3 · a"),
        (lambda a, b, c: F.elu(a), "a if a > 0 else e^a - 1"),
        (lambda a, b, c: F.elu(a, 0.5), "a if a > 0 else 0.5 · (e^a - 1)"),
        (lambda a, b, c: F.threshold(a, 0.1, -3), "a if a > 0.1 else -3"),
        (lambda a, b, c: F.softplus(a, 2), "softplus(a, beta=2)"),
        (lambda a, b, c: F.gelu(a), "GELU(a)"),
        (lambda a, b, c: F.gelu(a, approximate="tanh"), "GELU(a, approximate=tanh)"),
        (lambda a, b, c: torch.lerp(a, b, 0.25), "a + 0.25 · (b - a)"),
        (lambda a, b, c: torch.lerp(a, b - c, c), "a + c · (b - c - a)"),
        (lambda a, b, c: torch.addcmul(a, b, c), "a + b · c"),
        (lambda a, b, c: torch.addcmul(a, b, c, value=-0.5), "a - 0.5 · b · c"),
        (lambda a, b, c: torch.addcdiv(a, b, c + 1, value=2), "a + 2 · b / (c + 1)"),
        (lambda a, b, c: F.mse_loss(a, b), "mean((a - b)²)"),
        (lambda a, b, c: F.mse_loss(a, b, reduction="sum"), "sum((a - b)²)"),
        (lambda a, b, c: F.mse_loss(a, b, reduction="none"), "(a - b)²"),
        (lambda a, b, c: F.huber_loss(a, b, delta=0.7), "mean(Huber(a, b, delta=0.7))"),
        (lambda a, b, c: F.binary_cross_entropy_with_logits(a, b, reduction="sum"), "sum(bce of logits(a, b))"),
        (lambda a, b, c: torch.fmod(a, 2), "fmod(a, 2)"),
        (lambda a, b, c: F.pad(a, (1, 2), value=-1.5), "pad(a, -1.5)"),
        (lambda a, b, c: a.triu(1), "triu(a, diagonal=1)"),
        (lambda a, b, c: a.cumsum(0), "cumsum(a, dim=0)"),
        (lambda a, b, c: a.cumsum(-1), "cumsum(a)"),
        (lambda a, b, c: a.softmax(0), "softmax(a, dim=0)"),
        (lambda a, b, c: torch.linalg.vector_norm(a, 1), "norm₁(a)"),
        (lambda a, b, c: torch.linalg.vector_norm(a, torch.inf), "norm∞(a)"),
        (lambda a, b, c: (a * 9).long(), "int64(a · 9)"),
        (lambda a, b, c: a.index_put((torch.tensor([0, 2]),), b[:2]), "put(a, b[0:2] at [tensor])"),
        (lambda a, b, c: F.conv1d(a[None], b[None], stride=2), "convolution(a, b, stride=[2])"),
        (lambda a, b, c: F.max_pool2d(a[None], 2, 2, 1), "max_pool2d(a, [2, 2], stride=[2, 2], padding=[1, 1])"),
    ],
)
def test_numbers_that_count_stand_in_the_formula(computed: Callable[..., Tensor], expected: str) -> None:
    assert formula(computed, (3, 3), (3, 3), (3, 3)) == expected


@pytest.mark.parametrize(("reduction", "expected"), [("mean", "mean nll("), ("sum", "sum nll("), ("none", "nll(")])
def test_a_loss_says_how_it_is_reduced(reduction: str, expected: str) -> None:
    written = formula(lambda a: F.cross_entropy(a, torch.tensor([0, 1]), reduction=reduction), (2, 3))
    assert written.startswith(expected)


def test_numbers_of_forms_stand_in_the_equations() -> None:
    x = torch.tensor([[1.0, 2, 3, 6]])
    with regard.trace() as tape:
        y = label(x.var(1, correction=2), "y") + torch.linalg.vector_norm(x, 1)
    derivation = tape.derivation(y)
    assert derivation.why("y", 0).text == "7 ≈ var₂(1, 2, 3, 6)"
    assert derivation.why("output", 0).text == "19 ≈ 7 + norm₁(1, 2, 3, 6)"
