"""Images as a memory: cells of a grid, column by column, each a vector that a decoder may look at.

`lengths` says how many columns of pixels of each image are real. Nothing in the others reaches a cell.

Shape letters: B images, c channels, H × W pixels, h × w cells, d width of a cell's vector.
"""

from abc import abstractmethod
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad

from regard.attention.positions import Sinusoidal
from regard.models.contract import Encoded, Encoder
from regard.models.input_settings import ImageSettings
from regard.models.sizes import Sizes
from regard.tracing.labels import label


class Image(Encoder):
    """What both ways to cut an image share."""

    def __init__(self, settings: ImageSettings, sizes: Sizes) -> None:
        super().__init__()
        if sizes.image is None:
            sizes.need("image", "an input of images")
        self.channels, self.width = cast("tuple[int, int, int]", sizes.image)[0], settings.width
        half = settings.width // 2
        self.columns = Sinusoidal(settings.width - half) if settings.positions else None
        self.rows = Sinusoidal(half) if settings.positions else None

    @property
    @abstractmethod
    def cell(self) -> tuple[int, int]:
        """Height and width of a cell, in pixels."""

    @abstractmethod
    def cut(self, image: Tensor, real: Tensor | None) -> Tensor:
        """[B, c, H, W] → [B, d, h, w]; `real` [B]: columns of pixels that are no padding."""

    def forward(self, source: Tensor, lengths: Tensor | None = None) -> Encoded:
        if source.ndim != 4 or source.shape[1] != self.channels or not source.is_floating_point():
            came = f"{str(source.dtype).removeprefix('torch.')} {list(source.shape)}"
            raise ValueError(f"source: expected images [batch, {self.channels}, height, width] of numbers; got {came}")
        lengths = None if lengths is None else lengths.to(source.device)
        cells = self.cut(only_real(source, lengths), lengths)
        states = cells.permute(0, 3, 2, 1)
        if self.columns is not None and self.rows is not None:
            states = states + self._places(states)
        real = None if lengths is None else covering(lengths, self.cell[1]) * cells.shape[2]
        return Encoded(label(states.flatten(1, 2), "cells"), real)

    def _places(self, states: Tensor) -> Tensor:
        """[w, h, d]: a cell's column in the first half of its numbers, its row in the second."""
        assert self.columns is not None
        assert self.rows is not None
        columns, rows = states.shape[1:3]
        column = self.columns.table.rows(0, columns, states).unsqueeze(1).expand(-1, rows, -1)
        row = self.rows.table.rows(0, rows, states).unsqueeze(0).expand(columns, -1, -1)
        return torch.cat([column, row], -1)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """How many rows and columns of cells an image of so many pixels has."""
        return -(-height // self.cell[0]), -(-width // self.cell[1])

    def picture(self, weights: Tensor, height: int, width: int) -> Tensor:
        """Weights over the cells [..., S] laid over the pixels [..., H, W]: where it looked."""
        rows, columns = self.grid(height, width)
        if weights.shape[-1] != rows * columns:
            raise ValueError(
                f"weights: an image of {height} × {width} has {rows * columns} cells; got {weights.shape[-1]}"
            )
        cells = weights.reshape(*weights.shape[:-1], columns, rows).transpose(-2, -1)
        large = cells.repeat_interleave(self.cell[0], -2).repeat_interleave(self.cell[1], -1)
        return large[..., :height, :width]


class Grid(Image):
    """Convolutions of 3 × 3, each followed by a norm, a relu and a halving of height and width."""

    def __init__(self, settings: ImageSettings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        channels = [max(1, settings.width >> (settings.halvings - 1 - each)) for each in range(settings.halvings)]
        pairs = list(pairwise([self.channels, *channels]))
        self.convolutions = nn.ModuleList(nn.Conv2d(before, after, 3, padding=1) for before, after in pairs)
        self.norms = nn.ModuleList(nn.LayerNorm(after) for _, after in pairs)

    @property
    def cell(self) -> tuple[int, int]:
        return (1 << len(self.convolutions),) * 2

    def cut(self, image: Tensor, real: Tensor | None) -> Tensor:
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(image).movedim(1, -1)).movedim(-1, 1)  # over one pixel's channels: no neighbour enters
            # Padding is 0 again before it is pooled with what stands beside it, and no pixel is less than 0.
            image = max_pool2d(only_real(torch.relu(x), real), 2, ceil_mode=True)
            real = None if real is None else covering(real, 2)
        return image


class Patches(Image):
    """Rectangles of pixels, each through one linear layer."""

    def __init__(self, settings: ImageSettings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        self.patch = settings.patch
        self.linear = nn.Conv2d(self.channels, settings.width, settings.patch, stride=settings.patch)

    @property
    def cell(self) -> tuple[int, int]:
        return self.patch

    def cut(self, image: Tensor, real: Tensor | None) -> Tensor:
        below, beside = (-size % part for size, part in zip(image.shape[-2:], self.patch, strict=True))
        cells: Tensor = self.linear(pad(image, (0, beside, 0, below)))
        return cells


def only_real(image: Tensor, real: Tensor | None) -> Tensor:
    """The image with the columns behind `real` [B] set to 0, whatever stood in them."""
    if real is None:
        return image
    columns = torch.arange(image.shape[-1], device=image.device) < real.view(-1, 1, 1, 1)
    return torch.where(columns, image, 0.0)


def covering(lengths: Tensor, size: int) -> Tensor:
    """How many stretches of this size it takes to cover each length."""
    return (lengths + size - 1) // size
