"""One rule a primitive: which cells made a cell, and how the arithmetic reads."""

from regard.tracing.rules import (
    activations,
    convolution,
    elementwise,
    fused,
    gradients,
    losses,
    moves,
    norms,
    products,
    reductions,
)
from regard.tracing.rules.table import RULES

__all__ = [
    "RULES",
    "activations",
    "convolution",
    "elementwise",
    "fused",
    "gradients",
    "losses",
    "moves",
    "norms",
    "products",
    "reductions",
]
