"""One batch: the examples of some rows side by side as tensors, filled up to a common length.

Shape letters: B rows, S source places, T target places, W words.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.shards import ShardSet, Values
from regard.text.specials import PAD

NOTHING = -100
"""Stands where there is no tag or label; cross entropy leaves it out."""

DTYPES = {"numbers": np.float32, "image": np.float32}
"""What tensors are made of, where it is not int64."""
BESIDE = {"words": "tags", "characters": "source"}
"""Columns that are as long as another."""
KEPT = ("rows", "lengths", "target_lengths")
"""What stays on the CPU whatever device a batch goes to: what is asked for its values there."""


@dataclass(frozen=True)
class Batch:
    """Examples side by side. Rows that no example fills, where shapes are bounded, come last and have lengths 0."""

    rows: NDArray[np.int64]
    """[examples]: their numbers in the shard set, which knows where each came from (`examples.origin(row)`)."""
    source: Tensor | None = None
    """[B, S] tokens, [B, S, 1 + characters] tokens and their spelling, [B, S, width] numbers, or
    [B, channels, height, S] pixels from 0 to 1."""
    lengths: Tensor | None = None
    """[B]: places of each source, on the CPU."""
    target: Tensor | None = None
    """[B, T] tokens as they are stored, </s> behind and PAD behind that; [B, T, width] where numbers are foretold."""
    target_lengths: Tensor | None = None
    """[B]: places of each target, </s> counted; on the CPU."""
    words: Tensor | None = None
    """[B, W]: the tokens of each word of the source; 0 behind the last word."""
    tags: Tensor | None = None
    """[B, W]: the tag of each word; -100 behind the last."""
    label: Tensor | None = None
    """[B]: the label of each source; -100 where a row is not filled."""

    @property
    def tokens(self) -> int:
        """How many places the loss is over: target tokens, tagged words, or labels."""
        if self.target_lengths is not None:
            return int(self.target_lengths.sum())
        if self.tags is not None:
            return int((self.tags != NOTHING).sum())
        return len(self.rows)

    @property
    def places(self) -> int:
        """Places of source and target, filled or not."""
        sides = [(self.source, self.lengths), (self.target, self.target_lengths)]
        axes = [-1 if side.ndim == 4 else 1 for side, _ in sides if side is not None]
        shapes = [side.shape for side, _ in sides if side is not None]
        return sum(shape[0] * shape[axis] for shape, axis in zip(shapes, axes, strict=True))

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Self:
        """The same on a device; lengths stay on the CPU."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin(self) -> Self:
        """The same in pages that a GPU reads without the CPU's help."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, change: Any) -> Self:
        held = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in KEPT}
        return replace(self, **{name: change(each) for name, each in held.items() if each is not None})


def collate(examples: ShardSet, rows: NDArray[np.int64], shape: tuple[int, ...] | None = None) -> Batch:
    """The examples of these rows as a batch; `shape` (rows, then places of each side) where they are to have one."""
    count = shape[0] if shape else len(rows)
    places = dict(zip(sides(examples), shape[1:], strict=True)) if shape else {}
    made: dict[str, Tensor] = {}
    for name, column in examples.columns.items():
        if name == "pair":
            continue
        values, offsets = examples.gather(name, rows)
        lengths = np.zeros(count, np.int64)
        lengths[: len(rows)] = np.diff(offsets)
        if name == "label":
            made["label"] = torch.from_numpy(_filled(values, lengths, 1, NOTHING, np.int64)[:, 0])
            continue
        length = places.get(BESIDE.get(name, name)) or int(lengths.max(initial=1))
        fill = {"tokens": PAD, "names": NOTHING}.get(column.kind, 0)
        block = _filled(values, lengths, max(length, 1), fill, DTYPES.get(column.kind, np.int64))
        made[name] = torch.from_numpy(_pixels(block, column.channels) if column.kind == "image" else block)
        if name in ("source", "target"):
            made["lengths" if name == "source" else "target_lengths"] = torch.from_numpy(lengths)
    if "characters" in made:
        made["source"] = torch.cat([made["source"].unsqueeze(-1), made.pop("characters")], -1)
    return Batch(rows=rows, **made)


def sides(examples: ShardSet) -> list[str]:
    """The columns whose lengths make up the shape of a batch: source, and target or tags."""
    return [name for name in ("source", "target", "tags") if name in examples.columns]


def _filled(values: Values, lengths: NDArray[np.int64], places: int, fill: int, dtype: Any) -> NDArray[Any]:
    """Runs of values as rows of a block [B, places] or [B, places, width]."""
    block = np.full((len(lengths), places, *values.shape[1:]), fill, dtype)
    block[np.arange(places) < lengths[:, None]] = values
    return block


def _pixels(block: NDArray[Any], channels: int | None) -> NDArray[Any]:
    """[B, columns, channels × height] from 0 to 255 → [B, channels, height, columns] from 0 to 1."""
    rows, columns, width = block.shape
    apart = block.reshape(rows, columns, channels or 1, width // (channels or 1))
    return np.ascontiguousarray(apart.transpose(0, 2, 3, 1)) / np.float32(255)
