"""What is said when a run cannot go on: what happened, where, and what to change."""

from collections.abc import Sequence
from typing import Any

import torch

from regard.data.collating import Batch
from regard.data.shards import ShardSet
from regard.training import checkpoint
from regard.training.config import Config

SHOWN = 12
"""How many line numbers of a bad batch are told."""


def not_finite(config: Config, step: int, in_a_row: int, rows: Sequence[tuple[ShardSet, Any]]) -> str:
    """A loss that stays infinite: the lines of the batch, and the last good checkpoint."""
    places = [str(source.origin(int(row))) for source, row in rows]
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    path = checkpoint.path_in(config.output)
    last = f"the last good checkpoint is {path}" if path.exists() else "there is no checkpoint yet"
    return (
        f"step {step:,}: the loss or its gradient was not finite {in_a_row} times in a row; {last}. "
        f"Lower training.optimizer.rate, or look at the examples of this batch: {', '.join(places[:SHOWN])}{more}"
    )


def out_of_memory(config: Config, step: int, device: torch.device, batches: Sequence[Batch], error: Exception) -> str:
    """A batch that was too large: its shape, and what to lower."""
    sides = [
        f"{name} {list(each.shape)}"
        for batch in batches
        for name, each in (("source", batch.source), ("target", batch.target))
        if each is not None
    ]
    return (
        f"out of memory on {device} at step {step:,}, with a batch of {', '.join(sides)}; lower "
        f"batches.tokens (it is {config.batches.tokens}) and raise training.accumulate by as much, or bound "
        f"the lengths with data.max_tokens ({str(error).splitlines()[0]})"
    )
