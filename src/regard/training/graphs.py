"""A whole update as one CUDA graph for each shape of batch: forward, loss, backward, clipping, optimizer in one launch.

The first updates of a shape run as they are (and compile what is to be compiled), the next is recorded, and from then
on it is replayed. All of it happens on one stream of its own, as recording wants it. What cannot be recorded runs as
before, and one sentence says so.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.training.feeding import Fed
from regard.training.optimizers import for_graphs
from regard.training.updating import Update

BEFORE = 2
"""Updates of a shape before it is recorded."""


class Recorded:
    """One graph: where it reads and where it writes."""

    def __init__(self, update: Update, fed: Fed, share: Tensor, pool: Any, stream: torch.cuda.Stream) -> None:
        copies = {name: each.clone() for name, each in fed._asdict().items() if each is not None}
        self.fed = Fed(**copies)
        self.graph = torch.cuda.CUDAGraph()
        # The thread that makes batches ahead may pin memory meanwhile, which is none of the recording's business.
        with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.loss = update.run([self.fed], share)

    def replay(self, fed: Fed) -> Tensor:
        for own, new in zip(self.fed, fed, strict=True):
            if own is not None and new is not None:
                own.copy_(new, non_blocking=True)
        self.graph.replay()
        return self.loss


class Graphs:
    """An update that records itself."""

    def __init__(self, update: Update, tell: Callable[[str], None]) -> None:
        self.update, self.tell = update, tell
        self.stream = torch.cuda.Stream(update.device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.share = torch.zeros((), device=update.device)
        self.seen: Counter[tuple[torch.Size | None, ...]] = Counter()
        self.recorded: dict[tuple[torch.Size | None, ...], Recorded] = {}
        self.given_up = False
        for_graphs(update.optimizers, update.device)

    def __call__(self, several: Sequence[Fed], places: int) -> Tensor:
        here = torch.cuda.current_stream(self.update.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            self.share.fill_(1.0 / max(places, 1))
            loss = self._run(several)
        here.wait_stream(self.stream)
        return loss

    def _run(self, several: Sequence[Fed]) -> Tensor:
        (fed,) = several
        shape = tuple(None if each is None else each.shape for each in fed)
        if shape in self.recorded:
            return self.recorded[shape].replay(fed)
        self.seen[shape] += 1
        if self.given_up or self.seen[shape] <= BEFORE:
            return self.update.run(several, self.share)
        try:
            recorded = Recorded(self.update, fed, self.share, self.pool, self.stream)
        except RuntimeError as error:
            self.given_up = True
            torch.cuda.synchronize(self.update.device)
            self.tell(f"A step cannot be recorded as a CUDA graph, so each is launched piece by piece: {error}")
            return self.update.run(several, self.share)
        self.recorded[shape] = recorded
        return recorded.replay(fed)


def obstacle(device: torch.device, update: Update, *, accumulate: int, shapes: int | None) -> str | None:
    """Why graphs cannot be, in words; None where nothing stands in the way."""
    if device.type != "cuda":
        return "they are for GPUs"
    if update.ranks > 1:
        return "several processes train together"
    if accumulate > 1:
        return "batches are accumulated"
    if shapes is None:
        return "batches are of any shape (bound them with batches.shapes)"
    if not update.fused:
        return "the optimizer has no fused form"
    return None
