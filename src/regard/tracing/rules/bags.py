"""Bags of rows of a table, and their gradient: nn.EmbeddingBag."""

from typing import Any

import numpy as np

from regard.tracing.forms import Rule, divided, over, times, total
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.moves import contributions
from regard.tracing.rules.table import rule

SUM, MEAN, MAX = 0, 1, 2
"""How PyTorch counts the ways to make one row of many."""


@rule("over", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(c: Call) -> Rule | None:
    """Σ, mean or maximum of the rows W[i] for the indices i of a bag."""
    weight, indices, mode = c.source("weight"), c.source("indices").read().numpy().reshape(-1), c["mode"]
    if c.output:
        return None
    counted = indices != c["padding_idx"]
    places = contributions(_bags(c, indices.size)[counted], np.arange(indices.size)[counted], c.shape[0])
    if mode != SUM and (places < 0).all(1).any():
        return None  # of an empty bag there is no mean, and yet a 0
    c.inner = (places.shape[1],)
    rows = np.where(places < 0, -1, indices[places] * weight.shape[1])
    cells = c.read(weight, table(rows[:, None, :], d1=1))
    weights = c.get("per_sample_weights")
    if isinstance(weights, Source):
        cells = times(c.read(weights, table(places[:, None, :])), cells)
    return c.rule(over({SUM: "sum", MEAN: "mean", MAX: "max"}[mode], cells))


def _bags(c: Call, count: int) -> np.ndarray[Any, Any]:
    """For each index the bag in which it lies."""
    offsets = c.source("offsets").read().numpy()
    found: np.ndarray[Any, Any] = np.searchsorted(offsets, np.arange(count), side="right") - 1
    return found


@rule("over", "_embedding_bag_backward")
def embedding_bag_backward(c: Call) -> Rule | None:
    """∂/∂W[v, d] = Σ of the gradients of the bags that read row v; of a mean divided by how many they read."""
    if c["scale_grad_by_freq"] or c["sparse"] or c["mode"] == MAX or isinstance(c.get("per_sample_weights"), Source):
        return None
    gradient, width = c.source("grad"), c.shape[1]
    indices = c.source("indices").read().numpy().reshape(-1)
    bags = _bags(c, indices.size)
    counted = indices != c["padding_idx"]
    found = contributions(indices[counted], bags[counted], c.shape[0])
    c.inner = (found.shape[1],)
    cells = c.read(gradient, table(np.where(found < 0, -1, found * width)[:, None, :], d1=1))
    if c["mode"] == MEAN:
        cells = divided(cells, c.read(c.source("bag_size"), table(found[:, None, :])))
    return c.rule(total(cells))
