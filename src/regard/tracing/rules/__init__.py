"""One rule a primitive: which cells made a cell, and how the arithmetic reads."""

from regard.tracing.rules import (
    activations,
    bags,
    convolution,
    elementwise,
    fused,
    gradients,
    losses,
    moves,
    norms,
    pooling,
    products,
    reductions,
)
from regard.tracing.rules.table import RULES

__all__ = [
    "RULES",
    "activations",
    "bags",
    "convolution",
    "elementwise",
    "fused",
    "gradients",
    "losses",
    "moves",
    "norms",
    "pooling",
    "products",
    "reductions",
]
