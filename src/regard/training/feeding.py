"""A batch as a model and its loss take it: what is fed, and what is wanted.

    translate, caption      source → target            fed <s> y_1 … y_n, wanted y_1 … y_n </s>
    language_model          nothing → target           the same, without a source
    reconstruct             target with noise → target
    tag, classify           source → tags, label

Shape letters: B rows, S source places, T target places, W words.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.collating import NOTHING, Batch
from regard.text.specials import END, PAD, SPECIALS, UNKNOWN
from regard.training.settings import NoiseSettings


class Fed(NamedTuple):
    """Tensors alone, all on the model's device but for `lengths` where a model packs by them."""

    wanted: Tensor
    """[B, T] tokens, [B, W] tags or [B] labels; -100 where there is nothing to say."""
    source: Tensor
    """[B, S], [B, S, width] or [B, channels, height, S]."""
    lengths: Tensor
    """[B] places of each source that are real."""
    target: Tensor | None = None
    """[B, T]: the tokens fed, the start token first."""
    words: Tensor | None = None
    """[B, W] tokens of each word, for tags."""


def feed(batch: Batch, start: int, device: torch.device, *, lengths_stay: bool = False) -> Fed:
    """The batch on the device. Padding behind a target, and rows that no example fills, want nothing."""
    moved = batch.to(device)
    target = moved.target
    source = moved.source if moved.source is not None else target
    lengths = batch.lengths if batch.lengths is not None else batch.target_lengths
    assert source is not None
    assert lengths is not None
    if not lengths_stay:
        lengths = lengths.to(device, non_blocking=True)
    if target is None:
        wanted = moved.tags if moved.tags is not None else moved.label
        assert wanted is not None
        return Fed(wanted, source, lengths, words=moved.words)
    return Fed(torch.where(target == PAD, NOTHING, target), source, lengths, shifted(target, start))


def shifted(target: Tensor, start: int) -> Tensor:
    """[B, T]: each token one place later, the start token first."""
    fed = target.roll(1, 1)
    fed[:, 0] = start
    return fed


def shared(batch: Batch, rank: int, ranks: int) -> Batch:
    """The rows of a batch that one of several processes works on: every ranks-th, from its own number on.

    One with no row of its own takes the first, wanting nothing of it, so that all processes do the same number of
    steps.
    """
    if ranks == 1:
        return batch
    rows = len(_any(batch))
    if rank >= rows:
        return _wanting_nothing(_rows(batch, slice(0, 1)))
    return _rows(batch, slice(rank, None, ranks))


def noised(batch: Batch, settings: NoiseSettings, seed: tuple[int, ...]) -> Batch:
    """The source becomes the target with noise, the same for the same seed (Lample and others 2018)."""
    assert batch.target is not None
    assert batch.target_lengths is not None
    random = np.random.default_rng(seed)
    rows = [_noised(row[:length], settings, random) for row, length in _rows_of(batch.target, batch.target_lengths)]
    lengths = np.array([len(row) for row in rows], np.int64)
    block = np.full(batch.target.shape, PAD, np.int64)
    for place, row in enumerate(rows):
        block[place, : len(row)] = row
    return replace(batch, source=torch.from_numpy(block), lengths=torch.from_numpy(lengths))


def _rows_of(tokens: Tensor, lengths: Tensor) -> Iterator[tuple[NDArray[np.int64], int]]:
    return zip(tokens.numpy(), lengths.tolist(), strict=True)


def _noised(row: NDArray[np.int64], settings: NoiseSettings, random: np.random.Generator) -> NDArray[np.int64]:
    """Words are dropped, hidden and moved; a tag in front and the end stay where they are."""
    inside = row[row != END]
    if len(inside) > 1 and settings.drop:
        keep = random.random(len(inside)) >= settings.drop
        keep[random.integers(len(inside))] = True
        inside = inside[keep]
    if settings.mask:
        inside = np.where((random.random(len(inside)) < settings.mask) & (inside >= len(SPECIALS)), UNKNOWN, inside)
    if settings.shuffle > 1:
        inside = inside[
            np.argsort(np.arange(len(inside)) + random.uniform(0, settings.shuffle, len(inside)), kind="stable")
        ]
    return np.concatenate([inside, row[len(row) - int((row == END).sum()) :]])


def _any(batch: Batch) -> Tensor:
    return next(each for each in (batch.source, batch.target) if each is not None)


def _rows(batch: Batch, which: slice) -> Batch:
    held = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return replace(batch, **{name: each[which] for name, each in held.items() if each is not None})


def _wanting_nothing(batch: Batch) -> Batch:
    empty = {"target": PAD, "tags": NOTHING, "label": NOTHING}
    held = {name: getattr(batch, name) for name in empty}
    blank = {name: torch.full_like(each, empty[name]) for name, each in held.items() if each is not None}
    if batch.target_lengths is not None:
        blank["target_lengths"] = torch.zeros_like(batch.target_lengths)
    return replace(batch, rows=batch.rows[:0], **blank)
