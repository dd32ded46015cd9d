"""A mask over the scores of one call as booleans, and one that was made ready for many calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.masks import Cells, Mask, as_mask
from regard.tracing.labels import active


class Kept(NamedTuple):
    """A mask as booleans, True = may attend, over as many axes as it speaks of."""

    cells: Tensor
    """[..., T or 1, S or 1], to broadcast to the scores."""
    queries: Tensor | None
    """[..., T or 1]: those that may attend to some key. None: all of them."""
    keys: Tensor | None
    """[..., S or 1]: those that some query may attend to, the others to be cleared. None: nothing to clear."""


def kept(mask: Mask, shape: Sequence[int], device: torch.device) -> Kept:
    """A mask for scores of this shape [..., T, S]."""
    if isinstance(mask, Settled):
        return mask.kept
    cells = mask.dense(shape, device)
    cells = cells if cells.ndim > 1 else cells.reshape(1, -1)
    keys = cells.squeeze(-2) if cells.shape[-2] == 1 else cells.any(-2)
    return Kept(cells, _unless_all(cells.any(-1)), _unless_all(keys))


def settle(
    mask: Mask, shape: Sequence[int], device: torch.device | str, *, clean: bool = False, alive: bool = False
) -> "Settled":
    """A mask whose rule is evaluated now, for all the layers of a network that attend with scores of this shape.

    `clean` promises that what stands at keys nobody may attend to is finite, as the numbers a network made itself
    are: it need not be cleared again in every layer. `alive` promises that each query may attend to some key.
    """
    mask = as_mask(mask)
    found = kept(mask, torch.Size(shape), torch.device(device))
    promised = Kept(found.cells, None if alive else found.queries, None if clean else found.keys)
    return Settled(found.cells, promised, mask)


@dataclass(frozen=True, repr=False, eq=False)
class Settled(Cells):
    """Booleans with what follows from them."""

    kept: Kept
    rule: Mask
    """As it was written: told only when it is asked for, since lengths on a GPU would be waited for."""

    def __repr__(self) -> str:
        return repr(self.rule)


def can_be_looked_at(tensor: Tensor) -> bool:
    """Whether there are numbers to look at for next to nothing.

    On a GPU a look would wait for all work before it; code that is compiled or traced has no numbers yet.
    """
    traced: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return tensor.device.type == "cpu" and not traced and not torch.compiler.is_compiling()


def _unless_all(real: Tensor) -> Tensor | None:
    """None where all are real, so that nothing need be cleared (nor shown in a derivation, which waits for a GPU)."""
    if can_be_looked_at(real) or active():
        return None if real.all() else real
    return real
