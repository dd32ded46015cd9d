"""One call of `attend`, checked and brought into one form: what every path reads."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score
from regard.tracing.labels import active


@dataclass(eq=False)
class Call:
    """The arguments of one call. Key and value heads are shared out to the query's heads where they are read."""

    query: Tensor
    given_key: Tensor
    given_value: Tensor | None
    score: Score
    bias: Tensor | None
    mask: Mask | None
    normalise: Normaliser
    dropout: float
    generator: torch.Generator | None
    shape: torch.Size
    """Of the scores: [..., T, S]."""
    groups: int
    """How many query heads share a key head."""

    @property
    def key(self) -> Tensor:
        return shared(self.given_key, self.groups)

    @property
    def value(self) -> Tensor:
        assert self.given_value is not None
        return shared(self.given_value, self.groups)

    def kept(self) -> "Kept | None":
        """The mask over these scores; None where there is none."""
        if self.mask is None:
            return None
        cells = self.mask.dense(self.shape, self.query.device)
        cells = cells if cells.ndim > 1 else cells.reshape(1, -1)
        keys = cells.squeeze(-2) if cells.shape[-2] == 1 else cells.any(-2)
        return Kept(cells, _unless_all(cells.any(-1)), _unless_all(keys))


class Kept(NamedTuple):
    """A mask as booleans, True = may attend, over as many axes as it speaks of."""

    cells: Tensor
    """[..., T or 1, S or 1], to broadcast to the scores."""
    queries: Tensor | None
    """[..., T or 1]: those that may attend to some key. None: all of them."""
    keys: Tensor | None
    """[..., S or 1]: those that some query may attend to. None: all of them."""


def _unless_all(real: Tensor) -> Tensor | None:
    """None where all are real, so that nothing need be cleared (nor shown in a derivation).

    It is looked at only where a look is free: on a GPU it would wait for all work before it, and compiled code
    has no numbers to look at.
    """
    if torch.compiler.is_compiling() or (real.device.type != "cpu" and not active()):
        return real
    return None if real.all() else real


def shared(heads: Tensor, groups: int) -> Tensor:
    """Query head h reads key head floor(h / groups); a single head goes to all by broadcasting."""
    return heads if groups == 1 or heads.shape[-3] == 1 else heads.repeat_interleave(groups, -3)


def cleared(rows: Tensor, real: Tensor | None) -> Tensor:
    """Rows [..., n, d] with those that are not real [..., n] set to 0, whatever stood in them."""
    return rows if real is None else torch.where(real.unsqueeze(-1), rows, 0.0)
