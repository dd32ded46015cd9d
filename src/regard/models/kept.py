"""A model whose matrices stay in 8 bits: a quarter of the memory, each multiplied out when it is needed.

    y = x (s q)ᵀ + b        s [R] scales, q [R, C] whole numbers: see `models.eight_bits`

The products are in float32, and what they are made of are the numbers that `load_folder` without `keep` puts into the
plain layers: the answers are the same. Multiplying out costs time where there are few rows (a single sentence), and
nothing to speak of where there are many.

Shape letters: R rows, C columns, V vocabulary, d width.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.models.layers import Output
from regard.tracing.labels import label

AT_ONCE = 2048
"""Rows of an output that are multiplied out together, so that the whole is never there."""


class Kept(nn.Module):
    """A matrix [R, C] in 8 bits."""

    q: Tensor
    scale: Tensor

    def __init__(self, q: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("q", q)
        self.register_buffer("scale", scale)

    @property
    def weight(self) -> Tensor:
        """All of it, multiplied out."""
        return self.rows(slice(None))

    def rows(self, which: slice | Tensor) -> Tensor:
        return self.q[which].to(self.scale.dtype) * self.scale[which].unsqueeze(-1)


class KeptLinear(Kept):
    """In place of a linear layer."""

    def __init__(self, q: Tensor, scale: Tensor, bias: nn.Parameter | None) -> None:
        super().__init__(q, scale)
        self.out_features, self.in_features = q.shape
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class KeptVectors(Kept):
    """In place of a table of vectors [V, d]."""

    def forward(self, tokens: Tensor) -> Tensor:
        return self.rows(tokens)


class KeptOutput(nn.Module):
    """h → logits [..., V] by the vectors of a table, some words at a time."""

    nearest = False

    def __init__(self, vectors: KeptVectors, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.vectors, self.bias = vectors, bias

    def forward(self, h: Tensor, columns: Tensor | None = None) -> Tensor:
        if columns is not None:
            return self._some(h, columns)
        words = len(self.vectors.q)
        parts = [self._some(h, slice(first, first + AT_ONCE)) for first in range(0, words, AT_ONCE)]
        return label(torch.cat(parts, -1), "logits", "H Wᵀ" if self.bias is None else "H Wᵀ + b")

    def _some(self, h: Tensor, which: slice | Tensor) -> Tensor:
        return linear(h, self.vectors.rows(which), None if self.bias is None else self.bias[which])


def keep(model: nn.Module, held: Mapping[str, tuple[Tensor, Tensor]]) -> set[str]:
    """Put matrices (q and scale by the names of their weights) into a model as they are; the names of those put.

    A matrix that stands in no linear layer, table of words or output is left to be multiplied out.
    """
    parts = dict(model.named_modules(remove_duplicate=False))
    put: dict[int, Kept] = {}
    names: set[str] = set()
    for name, part in parts.items():
        if type(part) not in (nn.Linear, nn.Embedding) or _in_nearest(name, parts):
            continue
        found = next((each for each in held if parts.get(each.removesuffix(".weight")) is part), None)
        if found is None:
            continue
        if id(part) not in put:
            bias = getattr(part, "bias", None)
            put[id(part)] = KeptLinear(*held[found], bias) if isinstance(part, nn.Linear) else KeptVectors(*held[found])
        _replace(model, name, put[id(part)])
        names.add(found)
    for name, part in parts.items():
        if type(part) is Output and isinstance(part.vectors, KeptVectors):
            _replace(model, name, KeptOutput(part.vectors, part.bias))
    return names


def _in_nearest(name: str, parts: Mapping[str, nn.Module]) -> bool:
    """Whether an output measures distances to these vectors, which it looks at all at once."""
    return any(isinstance(part, Output) and part.nearest and part.vectors is parts[name] for part in parts.values())


def _replace(model: nn.Module, name: str, part: nn.Module) -> None:
    above, _, own = name.rpartition(".")
    setattr(model.get_submodule(above), own, part)
