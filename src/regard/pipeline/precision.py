"""Products in bfloat16 on a CPU that multiplies it faster; sums, norms, attention and the last word in float32.

Weights and what they are multiplied with are rounded to 8 bits; the products are added up in float32. Of the logits the
16 largest of each row, among which a search chooses, are computed again in float32, so that near ties are told
apart as they would be without it.
"""

import time
from functools import cache
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.decoding.candidates import top
from regard.models.contract import Model
from regard.models.layers import Output

Precision = Literal["float32", "bfloat16", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "auto")
EXACT = 16
"""Logits of each row that are computed in float32: more than a beam of 5 looks at."""
PAYS = 1.5
"""So many times as fast must bfloat16 be to be taken by itself."""


def in_precision(model: Model, precision: Precision, device: str = "cpu") -> Model:
    """The model, computing so; auto takes bfloat16 on a CPU where that is quicker by far."""
    if precision == "float32" or (precision == "auto" and (not device.startswith("cpu") or not pays())):
        return model
    if not device.startswith("cpu"):
        return model.bfloat16()
    _replace(model)
    return model


@cache
def pays() -> bool:
    """Whether a product in bfloat16 is quicker here, by trying: it takes a few milliseconds, once."""
    x, w = torch.ones(256, 512), torch.ones(512, 512)
    return _seconds(x, w) > PAYS * _seconds(x.bfloat16(), w.bfloat16())


def _seconds(x: Tensor, w: Tensor) -> float:
    best = float("inf")
    for _ in range(5):
        begun = time.perf_counter()
        linear(x, w)
        best = min(best, time.perf_counter() - begun)
    return best


def _replace(module: nn.Module) -> None:
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, Halved(child))
        elif type(child) is Output and not child.nearest:
            setattr(module, name, HalvedOutput(child))
        else:
            _replace(child)


class Halved(nn.Module):
    """y = x Wᵀ + b, the product in bfloat16."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, own: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = own.in_features, own.out_features
        self.register_buffer("weight", own.weight.detach().bfloat16(), persistent=False)
        self.register_buffer(
            "bias", None if own.bias is None else cast(Tensor, own.bias).detach().bfloat16(), persistent=False
        )

    def forward(self, x: Tensor) -> Tensor:
        return linear(x.bfloat16(), self.weight, self.bias).float()


class HalvedOutput(nn.Module):
    """h → logits: all in bfloat16, the largest again in float32."""

    halved: Tensor

    def __init__(self, own: Output) -> None:
        super().__init__()
        self.own = own
        weight: Tensor = own.vectors.weight
        self.register_buffer("halved", weight.detach().bfloat16(), persistent=False)

    def forward(self, h: Tensor, columns: Tensor | None = None) -> Tensor:
        weight: Tensor = self.own.vectors.weight
        if columns is not None or h.ndim != 2 or weight.shape[0] < 4 * EXACT:
            logits: Tensor = self.own(h, columns)
            return logits
        logits = linear(h.bfloat16(), self.halved).float()
        bias = self.own.bias
        if bias is not None:
            logits += bias
        places = top(logits, EXACT)[1]
        exact = torch.bmm(weight[places], h.unsqueeze(-1)).squeeze(-1)
        return logits.scatter_(1, places, exact if bias is None else exact + bias[places])
