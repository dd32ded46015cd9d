"""One call of `attend`, checked and brought into one form: what every path reads."""

from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def keep(self) -> Tensor | None:
        """The mask as booleans [..., T or 1, S or 1] that broadcast to the scores, True = may attend."""
        if self.mask is None:
            return None
        cells = self.mask.dense(self.shape, self.query.device)
        return cells if cells.ndim > 1 else cells.reshape(1, -1)

    @cached_property
    def alive(self) -> Tensor:
        """Queries [..., T or 1] that may attend to some key."""
        assert self.keep is not None
        return self.keep.any(-1)

    @cached_property
    def seen(self) -> Tensor:
        """Keys [..., S or 1] that some query may attend to."""
        assert self.keep is not None
        return self.keep.squeeze(-2) if self.keep.shape[-2] == 1 else self.keep.any(-2)


def shared(heads: Tensor, groups: int) -> Tensor:
    """Query head h reads key head floor(h / groups); a single head goes to all by broadcasting."""
    return heads if groups == 1 or heads.shape[-3] == 1 else heads.repeat_interleave(groups, -3)


def cleared(rows: Tensor, real: Tensor) -> Tensor:
    """Rows [..., n, d] with those that are not real [..., n] set to 0, whatever stood in them."""
    if active() and real.all():
        return rows  # nothing to clear: a derivation need not show it
    return rows.masked_fill(~real.unsqueeze(-1), 0.0)
