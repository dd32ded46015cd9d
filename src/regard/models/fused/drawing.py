"""What is left to chance in a fused pass: one seed, drawn on the device, and numbers that are functions of it."""

from typing import NamedTuple

import torch
from torch import Tensor

LEVELS = 1 << 24
"""How finely the share is cut."""


class Drawn(NamedTuple):
    """Dropout at one place of the network: what its kernels are told."""

    seed: Tensor
    """[1] int64, on the device."""
    place: int
    share: float

    @property
    def drops(self) -> bool:
        return self.share > 0

    @property
    def level(self) -> int:
        return round(self.share * LEVELS)

    @property
    def scale(self) -> float:
        return 1 / (1 - self.share)


class Chance:
    """A seed for a pass forward and its pass backward, from torch's generator: a graph that is replayed draws anew."""

    def __init__(self, device: torch.device) -> None:
        self.seed = torch.randint(-(1 << 62), 1 << 62, (1,), device=device)
        self.places = 0

    def at(self, share: float) -> Drawn:
        """The next place."""
        self.places += 1
        return Drawn(self.seed, self.places, share)
