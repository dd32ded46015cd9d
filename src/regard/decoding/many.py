"""Any number of sources, of any lengths: sorted, cut into batches that fit, searched, and given back in order.

    many = search_many(model, [[5, 9, 3], [7, 3]], SearchSettings(beam=5))      results of each source, best first

A source is the numbers of its tokens, the same with their letters [length, 1 + letters], rows of numbers
[length, width], or an image [channels, height, columns].
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decoding.results import Hypothesis
from regard.decoding.rules import Rules
from regard.decoding.searching import search
from regard.decoding.settings import SearchSettings
from regard.decoding.vocabulary_map import VocabularyMap
from regard.models.contract import SequenceModel
from regard.text.specials import PAD

Source = Sequence[int] | NDArray[Any]

ROWS = 64
"""The most sources side by side on a CPU, where wider batches gain nothing; a GPU takes `GPU_ROWS`."""
GPU_ROWS = 1024
PLACES, GPU_PLACES = 8192, 32768
"""The most source places side by side: a batch of long sources has fewer of them."""


def search_many(
    model: SequenceModel,
    sources: Sequence[Source],
    settings: SearchSettings | None = None,
    *,
    forbidden: Sequence[Sequence[int]] = (),
    prefixes: Sequence[Sequence[int]] | None = None,
    vocabulary_map: VocabularyMap | None = None,
    want_weights: bool = False,
    numbers: Sequence[int] | None = None,
    rows: int | None = None,
    done: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """For each source its results, best first, in the order of the sources, whatever batches they were in.

    prefixes: for each source the tokens its results begin with. rows: the most sources of a batch. done: told after
    each batch how many sources it had. Weights are cut to the places of each source.
    """
    if prefixes is not None and len(prefixes) != len(sources):
        raise ValueError(f"prefixes: expected one for each of {len(sources)} sources; got {len(prefixes)}")
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    found: list[list[Hypothesis]] = [[] for _ in sources]
    most, places = (ROWS, PLACES) if device.type == "cpu" else (GPU_ROWS, GPU_PLACES)
    for batch in batches(sources, rows or most, places):
        source, lengths = beside([sources[place] for place in batch])
        rules = Rules(
            forbidden,
            None if prefixes is None else _padded([prefixes[place] for place in batch]),
            None if vocabulary_map is None else vocabulary_map.columns(source, lengths),
        )
        results = search(
            model, source.to(device), lengths.to(device), settings, rules=rules, want_weights=want_weights,
            numbers=[place if numbers is None else numbers[place] for place in batch],
        )  # fmt: skip
        for place, result in zip(batch, results, strict=True):
            found[place] = [_cut(each, sources[place]) for each in result]
        if done is not None:
            done(len(batch))
    return found


def batches(sources: Sequence[Source], rows: int, places: int = PLACES) -> Iterator[list[int]]:
    """The places of the sources of each batch, longest first, of like lengths; no batch is larger than it may be."""
    order = sorted(range(len(sources)), key=lambda place: _places(sources[place]), reverse=True)
    start = 0
    while start < len(order):
        count = max(1, min(rows, places // max(1, _places(sources[order[start]]))))
        yield order[start : start + count]
        start += count


def beside(sources: Sequence[Source]) -> tuple[Tensor, Tensor]:
    """Sources side by side, filled up behind, as `model.encode` takes them; and their lengths."""
    lengths = torch.tensor([_places(each) for each in sources])
    arrays = [np.asarray(each) for each in sources]
    longest = max(1, int(lengths.max()))
    if arrays[0].ndim == 3:
        filled = [np.pad(each, ((0, 0), (0, 0), (0, longest - each.shape[2]))) for each in arrays]
        return torch.from_numpy(np.stack(filled).astype(np.float32)), lengths
    if arrays[0].ndim == 2:
        filled = [np.pad(each, ((0, longest - len(each)), (0, 0))) for each in arrays]
        together = np.stack(filled)
        kind = np.int64 if np.issubdtype(together.dtype, np.integer) else np.float32  # tokens with letters, or numbers
        return torch.from_numpy(together.astype(kind)), lengths
    return _padded(arrays), lengths


def _padded(rows: Sequence[Source]) -> Tensor:
    """Tokens side by side, PAD behind the shorter ones."""
    table = np.full((len(rows), max(1, *map(len, rows))), PAD, np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(table)


def _places(source: Source) -> int:
    return int(source.shape[2]) if isinstance(source, np.ndarray) and source.ndim == 3 else len(source)


def _cut(hypothesis: Hypothesis, source: Source) -> Hypothesis:
    """Weights without the places that only fill a batch up; an image's cells are left as they are."""
    if hypothesis.weights is None or np.ndim(source) == 3:
        return hypothesis
    return replace(hypothesis, weights=hypothesis.weights[..., : max(1, _places(source))])
