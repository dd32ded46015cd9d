"""Products as quick as a CPU can: the same in float32 by another library, or in bfloat16.

packed      y = x Wᵀ + b by oneDNN, its matrices laid out once. Some CPUs multiply so twice as fast as by the library
            that PyTorch asks; the sums are the same but for the last digit.
bfloat16    weights and what they are multiplied with are rounded to 8 bits; the products are added up in float32. Of
            the logits the 16 largest of each row, among which a search chooses, are computed again in float32, so that
            near ties are told apart as they would be without it. Norms, attention and sums stay in float32.
"""

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.decoding.candidates import top
from regard.models.contract import Model
from regard.models.kept import Kept
from regard.models.layers import Output
from regard.tracing import active

Precision = Literal["stored", "float32", "packed", "bfloat16", "auto"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
EXACT = 16
"""Logits of each row that are computed in float32: more than a beam of 5 looks at."""
FEWEST = 32
"""Rows from which on a packed product is quicker than a plain one."""
PAYS = 1.3
"""So many times as fast must packed be to be taken by itself."""


def in_precision(model: Model, precision: Precision, device: str = "cpu") -> Model:
    """The model, computing so. auto: packed on a CPU where that is quicker by far, which changes no answer; but what
    is kept in 8 bits stays so."""
    on_cpu = device.startswith("cpu")
    if precision == "auto":
        kept = any(isinstance(part, Kept) for part in model.modules())
        precision = "packed" if on_cpu and not kept and pays("packed") else "float32"
    if precision == "bfloat16":
        if not on_cpu:
            return model.bfloat16()
        _replace(model, Halved, HalvedOutput)
    elif precision == "packed" and on_cpu and _has_onednn():
        _replace(model, Packed, PackedOutput)
    return model


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


@cache
def pays(precision: Literal["packed", "bfloat16"]) -> bool:
    """Whether a product so is quicker here, by trying: it takes a few milliseconds, once."""
    if not _has_onednn():
        return False
    x, plain = torch.ones(256, 512), nn.Linear(512, 512)
    other: nn.Module = Packed(plain) if precision == "packed" else Halved(plain)
    with torch.inference_mode():
        return _seconds(partial(plain, x)) > PAYS * _seconds(partial(other, x))


def _seconds(run: Callable[[], Tensor]) -> float:
    best = float("inf")
    for _ in range(5):
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
    return best


def _replace(
    module: nn.Module, product: Callable[[nn.Linear], nn.Module], output: Callable[[Output], nn.Module]
) -> None:
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, product(child))
        elif type(child) is Output and not child.nearest:
            setattr(module, name, output(child))
        else:
            _replace(child, product, output)


class Packed(nn.Module):
    """y = x Wᵀ + b, the matrix laid out as oneDNN wants it. A trace sees the plain product."""

    def __init__(self, own: nn.Linear) -> None:
        super().__init__()
        self.own = own
        self.in_features, self.out_features = own.in_features, own.out_features
        self.packed = own.weight.detach().to_mkldnn()
        self.packed_bias = None if own.bias is None else cast(Tensor, own.bias).detach().to_mkldnn()

    @property
    def weight(self) -> Tensor:
        return self.own.weight

    @property
    def bias(self) -> Tensor:
        return self.own.bias

    def forward(self, x: Tensor) -> Tensor:
        if _plain(x):
            y: Tensor = self.own(x)
            return y
        return linear(x.to_mkldnn(), self.packed, self.packed_bias).to_dense()


class PackedOutput(nn.Module):
    """h → logits in the same way; some of the vocabulary alone comes plainly."""

    def __init__(self, own: Output) -> None:
        super().__init__()
        self.own = own
        weight: Tensor = own.vectors.weight
        self.packed = weight.detach().to_mkldnn()
        self.bias = None if own.bias is None else own.bias.detach().to_mkldnn()

    def forward(self, h: Tensor, columns: Tensor | None = None) -> Tensor:
        if columns is not None or _plain(h):
            logits: Tensor = self.own(h, columns)
            return logits
        return linear(h.to_mkldnn(), self.packed, self.bias).to_dense()


def _plain(x: Tensor) -> bool:
    """Whether there is too little to do, or somebody wants to see it done, or to differentiate it."""
    return x.shape[:-1].numel() < FEWEST or active() or torch.is_grad_enabled() or x.dtype != torch.float32


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
