"""Where a mask's rule is asked: indices of batch, head, query and key, which broadcast against each other.

`shift` is S - T: the last query stands beside the last key. A rule aligned at the end adds it to the query's
index; one aligned at the start leaves it.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

Align = Literal["end", "start"]


class Places(Protocol):
    """What a rule may read."""

    @property
    def shift(self) -> int: ...

    @property
    def batch(self) -> Tensor: ...

    @property
    def head(self) -> Tensor: ...

    @property
    def query(self) -> Tensor: ...

    @property
    def key(self) -> Tensor: ...

    def of_sequence(self, numbers: Tensor) -> Tensor:
        """One number, or from one for each sequence that of the sequence asked about."""
        ...


def own_place(at: Places, align: Align) -> Tensor:
    """The key beside which each query stands."""
    return at.query + at.shift if align == "end" and at.shift else at.query


@dataclass(frozen=True)
class Indices:
    """Places given as tensors of indices."""

    batch: Tensor
    head: Tensor
    query: Tensor
    key: Tensor
    shift: int

    def of_sequence(self, numbers: Tensor) -> Tensor:
        numbers = numbers.to(self.key.device)
        return numbers if numbers.ndim == 0 else numbers[self.batch]


class Everywhere:
    """All places of scores [..., T, S]; an axis is made when a rule reads it."""

    def __init__(self, shape: torch.Size, device: torch.device) -> None:
        self.shape, self.device = shape, device
        self.shift = shape[-1] - shape[-2]

    @property
    def batch(self) -> Tensor:
        return self._along(0, len(self.shape) > 2)

    @property
    def head(self) -> Tensor:
        return self._along(len(self.shape) - 3, len(self.shape) > 3)

    @property
    def query(self) -> Tensor:
        return torch.arange(self.shape[-2], device=self.device).unsqueeze(-1)

    @property
    def key(self) -> Tensor:
        return torch.arange(self.shape[-1], device=self.device)

    def of_sequence(self, numbers: Tensor) -> Tensor:
        numbers = numbers.to(self.device)
        return numbers if numbers.ndim == 0 else numbers.view(-1, *(1,) * (len(self.shape) - 1))

    def _along(self, axis: int, there: bool) -> Tensor:
        if not there:
            return torch.zeros((), dtype=torch.long, device=self.device)
        places = torch.arange(self.shape[axis], device=self.device)
        return places.view(-1, *(1,) * (len(self.shape) - 1 - axis))
