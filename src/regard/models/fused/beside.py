"""Gradients of matrices on a stream of their own: nothing in the backward pass waits for them, and they keep the matrix
units busy while what stands between the products waits for memory.
"""

from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed import is_available, is_initialized

DEEP = 6
"""So many products may lag behind: what they read is held so long."""


class Beside:
    """A second stream of a GPU, or (alone) none."""

    def __init__(self, device: torch.device, *, alone: bool = False) -> None:
        own = device.type == "cuda" and not alone
        self.stream = torch.cuda.Stream(device) if own else None  # type: ignore[no-untyped-call]
        self.waiting: deque[tuple[torch.cuda.Event, Tensor, Tensor]] = deque()

    def product(self, a: Tensor, b: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """a b in float32, the gradient of these weights; whole only after `join`."""
        # What has a gradient already is added to at once, and other processes are sent theirs at once.
        if self.stream is None or any(each.grad is not None for each in weights) or _several():
            return product(a, b)
        here = torch.cuda.current_stream(a.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            found = product(a, b)
            self.waiting.append((self.stream.record_event(), a, b))
        while len(self.waiting) > DEEP:
            here.wait_event(self.waiting.popleft()[0])
        return found

    def join(self) -> None:
        """All that was begun is there for what comes next on the stream of now."""
        if self.stream is not None and self.waiting:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
        self.waiting.clear()


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b in float32, of which it is the sum."""
    if a.dtype == torch.float32 or a.device.type != "cuda":
        return (a @ b).float()
    return torch.mm(a, b, out_dtype=torch.float32)


def _several() -> bool:
    return is_available() and is_initialized()
