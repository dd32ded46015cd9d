"""What a score is, and how one holds the matrices it was given."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.shapes import dtype_of


class AsDot(NamedTuple):
    """A score as scale · (query · key)."""

    query: Tensor
    key: Tensor
    scale: float


class Score(ABC):
    """e [..., T, S] from a query [..., T, d_q] and a key [..., S, d_k]. One with parameters is a Module as well."""

    name: ClassVar[str]
    formula: ClassVar[str]
    """How the score reads in a derivation."""

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor) -> Tensor: ...

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        return self.forward(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise a ValueError where these widths cannot be scored."""
        return

    def project(self, key: Tensor) -> Tensor:
        """What of the score concerns the key alone, for `projected`: a decoder does it once a sentence."""
        return key

    @property
    def projected(self) -> "Score":
        """This score for keys that `project` has been over; the parameters are shared."""
        return self

    def next_coverage(self, weights: Tensor) -> Tensor | None:
        """The coverage after these weights, for a score that reads it."""
        return None


class DotScore(Score):
    """Any score that is a product of vectors: query and key are brought into one space, scaled, multiplied."""

    @abstractmethod
    def as_dot(self, query: Tensor, key: Tensor) -> AsDot:
        """The query and key whose scaled product is the score."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query, key, scale = self.as_dot(query, key)
        if query.dtype in (torch.float16, torch.bfloat16):  # as the fast paths sum: in float32
            query, key = query.float(), key.float()
        # The scale goes onto the query before the product: afterwards it is too late in half precision.
        return (query if scale == 1 else query * scale) @ key.transpose(-2, -1)

    def check(self, query: Tensor, key: Tensor) -> None:
        if query.shape[-1] != key.shape[-1]:
            raise ValueError(
                f"{self.name}: query and key must have one width; got {query.shape[-1]} and {key.shape[-1]}"
            )


def hold(module: nn.Module, **tensors: Tensor | None) -> None:
    """Parameters are registered as such; plain tensors as buffers, so that they follow the module's device."""
    for name, tensor in tensors.items():
        if tensor is None or isinstance(tensor, nn.Parameter):
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor)


def matrix(score: str, name: str, given: Tensor) -> Tensor:
    return _with_axes(2, "matrix", score, name, given)


def vector(score: str, name: str, given: Tensor) -> Tensor:
    return _with_axes(1, "vector", score, name, given)


def _with_axes(axes: int, kind: str, score: str, name: str, given: Tensor) -> Tensor:
    if not isinstance(given, Tensor) or given.ndim != axes:
        came = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"{score}: {name} must be a {kind}; got {came}")
    if not given.is_floating_point():
        raise ValueError(f"{score}: {name} must hold floating-point numbers; got {dtype_of(given)}")
    return given


def fits(score: str, side: str, given: Tensor, name: str, parameter: Tensor, axis: int = 0) -> None:
    """Raise a ValueError where a query or key cannot meet the parameter that takes it."""
    if given.shape[-1] != parameter.shape[axis]:
        raise ValueError(
            f"{score}: the {side} has width {given.shape[-1]}, "
            f"{name} {list(parameter.shape)} takes {parameter.shape[axis]}"
        )
    if given.device != parameter.device:
        raise ValueError(f"{score}: {name} is on {parameter.device}, the {side} on {given.device}")
    if given.dtype != parameter.dtype and not torch.is_autocast_enabled(given.device.type):
        raise ValueError(f"{score}: {name} is {dtype_of(parameter)}, the {side} {dtype_of(given)}")


def alike(score: str, first: str, **tensors: Tensor | None) -> None:
    """Raise a ValueError where the parameters of a score are of several kinds, or on several devices."""
    own = tensors[first]
    for name, tensor in tensors.items():
        if tensor is None or own is None:
            continue
        if tensor.device != own.device:
            raise ValueError(f"{score}: {name} is on {tensor.device}, {first} on {own.device}")
        if tensor.dtype != own.dtype:
            raise ValueError(f"{score}: {name} is {dtype_of(tensor)}, {first} {dtype_of(own)}")


def made(rows: int, columns: int) -> nn.Parameter:
    """A matrix made the way nn.Linear makes its own."""
    if rows < 1 or columns < 1:
        raise ValueError(f"widths: expected 1 or more; got {rows} and {columns}")
    bound = 1 / math.sqrt(rows)
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def made_vector(rows: int, width: int) -> nn.Parameter:
    """A vector made the way nn.Linear makes its bias, for a layer that takes `rows` numbers."""
    bound = 1 / math.sqrt(rows)
    return nn.Parameter(torch.empty(width).uniform_(-bound, bound))
