"""One process or several, started by torchrun: who am I, how many are we, and agreeing on what is done.

The processes share each batch by its rows, so that any number of them learns what one would.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch import distributed as torch_distributed

from regard.support.errors import Misuse

PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others: one of them may be decoding the development set."""


@dataclass(frozen=True)
class Processes:
    """This process among those that train together."""

    rank: int
    ranks: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this one writes and tells."""
        return self.rank == 0

    def summed(self, values: Tensor) -> Tensor:
        """The values of all processes added up."""
        if self.ranks > 1:
            torch_distributed.all_reduce(values)
        return values

    def any(self, flags: list[bool]) -> list[bool]:
        """Of each flag whether it holds for any process; all processes must ask at the same step."""
        if self.ranks == 1:
            return flags
        held = torch.tensor(flags, dtype=torch.int32, device=self.device)
        torch_distributed.all_reduce(held, torch_distributed.ReduceOp.MAX)
        return [bool(each) for each in held.tolist()]

    def gathered(self, value: Any) -> list[Any]:
        """The value of every process, in the order of their ranks."""
        if self.ranks == 1:
            return [value]
        held: list[Any] = [None] * self.ranks
        torch_distributed.all_gather_object(held, value)
        return held

    def wait(self) -> None:
        """Until all have come here."""
        if self.ranks > 1:
            torch_distributed.barrier()


@contextmanager
def processes(device: str) -> Iterator[Processes]:
    """Joins those that torchrun started with this one, and leaves them at the end."""
    ranks, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    own = device_named(device, int(os.environ.get("LOCAL_RANK", "0")) if ranks > 1 else None)
    if ranks == 1:
        yield Processes(0, 1, own)
        return
    engine = "nccl" if own.type == "cuda" else "gloo"
    torch_distributed.init_process_group(engine, timeout=PATIENCE)
    try:
        yield Processes(rank, ranks, own)
    finally:
        torch_distributed.destroy_process_group()


def device_named(name: str, local: int | None = None) -> torch.device:
    """auto, cpu, cuda, mps or cuda:1; `local`: the number of this process on its machine, where there are several."""
    if name == "auto":
        mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if mps and local is None else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise Misuse(f"device: expected auto, cpu, cuda, cuda:1 or mps; got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise Misuse(f"device: {name} is asked for, and this torch sees no GPU")
    if device.type == "cuda" and (local is not None or device.index is None):
        device = torch.device("cuda", local or 0)  # with its number, without which no device can be set
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise Misuse(f"device: {device} is asked for, and there are {torch.cuda.device_count()} GPUs")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device
