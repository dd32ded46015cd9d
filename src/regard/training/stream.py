"""Batches without end: one epoch after another, from a position that can be saved and restored to the batch.

    stream = Stream(examples, settings, seed=1)
    batch = stream.next()
    stream.epochs          passes that are done, the present one in part
    stream.state()         what is needed to go on behind this batch, on any number of processes

Batches do not depend on how many processes there are: each takes its rows of every one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.batch_settings import BatchSettings
from regard.data.batches import Batch, Batches
from regard.data.sampling import tempered
from regard.data.shards import ShardSet
from regard.training.views import View


class Stream:
    """The batches of all processes together, for ever."""

    def __init__(
        self,
        examples: ShardSet,
        settings: BatchSettings,
        *,
        seed: int,
        groups: NDArray[np.int64] | None = None,
        temperature: float = 1.0,
        pin: bool = False,
    ) -> None:
        """groups [N]: the direction (or source) of each example, where some are to come more often than others."""
        self.examples, self.settings, self.seed, self.pin = examples, settings, seed, pin
        self.groups = groups if temperature != 1 else None
        self.temperature = temperature
        self._whole = Batches(examples, settings, seed=seed, pin=pin)
        self._batches = self._whole
        self._coming: Iterator[Batch] | None = None
        self._of(0)

    @property
    def shapes(self) -> NDArray[np.int64] | None:
        """[K, sides]: where they are bounded."""
        return self._whole.shapes

    @property
    def epochs(self) -> float:
        """Passes over the data so far."""
        return self._epoch + self._taken / len(self._batches)

    @property
    def position(self) -> tuple[int, int]:
        """The pass and the batch in it, from 0 and from 1, of the batch that came last."""
        return self._epoch, self._taken

    @property
    def source(self) -> ShardSet:
        """What the rows of the present batches are numbers in."""
        return self._batches.examples

    def batches_an_epoch(self) -> int:
        return len(self._batches)

    def next(self) -> Batch:
        """The next batch, of all processes."""
        if self._coming is None:
            self._coming = iter(self._batches)
        batch = next(self._coming, None)
        if batch is None:
            self._of(self._epoch + 1)
            return self.next()
        self._taken += 1
        return batch

    def close(self) -> None:
        """End the thread that makes batches ahead."""
        if self._coming is not None:
            self._coming.close()  # type: ignore[attr-defined] # a generator
            self._coming = None

    def state(self) -> dict[str, Any]:
        return self._batches.state() | {"temperature": self.temperature if self.groups is not None else 1.0}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position; Misuse where it is one within a pass over other data or in batches cut otherwise.

        At the start of a pass nothing hangs on what was: settings that a run was allowed to change may be others.
        """
        self.close()
        self._of(int(state["epoch"]))
        if state["batch"]:
            self._batches.restore(state)
        self._taken = int(state["batch"])

    def _of(self, epoch: int) -> None:
        """The batches of an epoch: of all examples, or of those that the temperature draws for it."""
        self._coming, self._epoch, self._taken = None, epoch, 0
        if self.groups is not None:
            index = tempered(self.groups, self.temperature, seed=self.seed, epoch=epoch)
            self._batches = Batches(View(self.examples, index), self.settings, seed=self.seed, pin=self.pin)
            self._batches.shapes = self._whole.shapes  # one set for all epochs: what is compiled for them stays of use
        self._batches.epoch = epoch
