"""From shards to batches: by token budget, bucketed by length, shuffled by seed and epoch.

    batches = Batches(ShardSet("prepared/train"), BatchSettings(tokens=4096), seed=1)
    for batch in batches:                   one epoch: every example exactly once
        ...
        batches.state()                     what is needed to go on behind this batch
    for batch in batches: ...               the next epoch, in another order

    batches.restore(state)                  the same batches come as would have come

Which examples make which batch follows from the lengths, the settings, the seed and the epoch alone. With several
`ranks` each has as many batches as the others and all of them together every example once.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from regard.data.batch_settings import BatchSettings
from regard.data.collating import NOTHING, Batch, collate, sides
from regard.data.planning import Plan, costs, planned, shapes_of
from regard.data.shards import ShardSet
from regard.support.errors import Misuse

__all__ = ["NOTHING", "Batch", "BatchSettings", "Batches", "collate"]

State = dict[str, Any]


class Batches:
    """The batches of one epoch after another; iterating goes from the present position to the end of the epoch."""

    def __init__(
        self,
        examples: ShardSet,
        settings: BatchSettings | None = None,
        *,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        ranks: int = 1,
        pin: bool = False,
    ) -> None:
        self.examples = examples
        self.settings = settings or BatchSettings()
        self.seed, self.shuffle, self.rank, self.ranks, self.pin = seed, shuffle, rank, ranks, pin
        self.epoch = 0
        """Of the batches that come; the first is 0."""
        self._next = 0
        self._plan: tuple[int, Plan] | None = None
        self._check()
        self.lengths = np.stack([examples.lengths(side) for side in sides(examples)], axis=1).astype(np.int64)
        """[N, sides]: places of each example."""
        self._all_must_fit()
        self.shapes = shapes_of(self.lengths, self.settings)
        """[K, sides]: the bounded shapes, where the settings bound them."""

    def __len__(self) -> int:
        """How many batches this rank has in the present epoch."""
        return len(self.plan())

    def __iter__(self) -> Iterator[Batch]:
        plan, epoch = self.plan(), self.epoch
        for number, batch in self._made(plan, self._next):
            self.epoch, self._next = epoch, number + 1
            yield batch
        self.epoch, self._next = epoch + 1, 0

    def plan(self, epoch: int | None = None) -> Plan:
        """Which examples make which batch of an epoch, of all ranks; the present epoch's is kept."""
        wanted = self.epoch if epoch is None else epoch
        if self._plan is None or self._plan[0] != wanted:
            self._plan = wanted, planned(
                self.lengths, self.settings, seed=self.seed, epoch=wanted if self.shuffle else 0,
                shuffle=self.shuffle, ranks=self.ranks, shapes=self.shapes,
            )  # fmt: skip
        return self._plan[1]

    def empty(self, epoch: int | None = None) -> float:
        """The share of the places of an epoch that hold nothing: padding, and rows that are not filled."""
        shapes = self.plan(epoch).shapes
        return 1.0 - float(self.lengths.sum()) / float((shapes[:, 0] * shapes[:, 1:].sum(axis=1)).sum())

    def state(self) -> State:
        """The position behind the batch that came last, and what it is a position in; small, and fit for JSON."""
        ended = self._next > 0 and self._next >= len(self)
        position = {"epoch": self.epoch + 1, "batch": 0} if ended else {"epoch": self.epoch, "batch": self._next}
        return position | self._about()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position; Misuse where it is none, or anything that decides the order is not what it was."""
        epoch, batch = _position(state)
        for key, value in self._about().items():
            if state.get(key) != value:
                raise Misuse(_differs(key, state.get(key), value))
        if batch and batch >= (count := len(self.plan(epoch))):
            raise Misuse(f"the position is behind batch {batch:,} of epoch {epoch}, which has {count:,} batches")
        self.epoch, self._next = epoch, batch

    def _about(self) -> State:
        shards = [each["sha256"] for each in self.examples.manifest["shards"]]
        return {
            "seed": self.seed,
            "shuffle": self.shuffle,
            "ranks": self.ranks,
            "settings": self.settings.model_dump(mode="json", exclude={"ahead"}),
            "data": hashlib.sha256(" ".join(shards).encode()).hexdigest(),
        }

    def _made(self, plan: Plan, first: int) -> Iterator[tuple[int, Batch]]:
        """The batches from `first` on with their numbers, some of them made ahead by a thread."""
        if not self.settings.ahead:
            yield from ((number, self._make(plan, number)) for number in range(first, len(plan)))
            return
        coming: deque[Future[Batch]] = deque()
        thread = ThreadPoolExecutor(1, "batches")
        try:
            for number in range(first, min(first + self.settings.ahead, len(plan))):
                coming.append(thread.submit(self._make, plan, number))
            for number in range(first, len(plan)):
                if number + self.settings.ahead < len(plan):
                    coming.append(thread.submit(self._make, plan, number + self.settings.ahead))
                yield number, coming.popleft().result()
        finally:
            thread.shutdown(cancel_futures=True)

    def _make(self, plan: Plan, number: int) -> Batch:
        place = number * self.ranks + self.rank
        batch = collate(self.examples, plan.rows(place), tuple(map(int, plan.shapes[place])))
        return batch.pin() if self.pin else batch

    def _check(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed: expected a whole number from 0; got {self.seed}")
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank: expected 0 to {self.ranks - 1}, one of {self.ranks} ranks; got {self.rank}")
        if not len(self.examples):
            raise Misuse(f"{self.examples.folder}: there is no example in it")
        if self.settings.count in ("source", "target") and self.settings.count not in self.examples.columns:
            raise Misuse(
                f"batches.count: {self.settings.count} is asked for, and {self.examples.folder} has none "
                f"(it has {', '.join(self.examples.columns)})"
            )

    def _all_must_fit(self) -> None:
        """One that is longer than a batch would end in a GPU without memory, hours later."""
        places = costs(self.lengths, self.settings)
        if (longest := int(places.max())) > self.settings.tokens:
            over, where = int((places > self.settings.tokens).sum()), self.examples.origin(int(places.argmax()))
            raise Misuse(
                f"{where}: {longest:,} places, more than a batch may have ({self.settings.tokens:,}); "
                f"{'the only example' if over == 1 else f'one of {over:,} examples'} that long. Raise batches.tokens, "
                "or set data.max_tokens to leave such examples out"
            )


def _position(state: Any) -> tuple[int, int]:
    """The epoch and the batch of a saved position."""
    if not isinstance(state, Mapping):
        raise Misuse(f"the position: expected what state() gave; got {state!r}")
    for key in ("epoch", "batch"):
        number = state.get(key)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            came = f"{number!r}" if key in state else "none"
            raise Misuse(f"the position: expected what state() gave, with {key} a whole number from 0; got {came}")
    return state["epoch"], state["batch"]


def _differs(key: str, saved: Any, here: Any) -> str:
    if key == "data":
        return "the position was saved with other data; it can only be restored with the same"
    return f"the position was saved with {key} {saved!r}; here it is {here!r}"
