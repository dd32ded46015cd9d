"""One call of `attend`, checked and brought into one form: what every path reads."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score
from regard.attention.settled import Kept, kept


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

    def kept(self) -> Kept | None:
        """The mask over these scores; None where there is none."""
        return None if self.mask is None else kept(self.mask, self.shape, self.query.device)


def shared(heads: Tensor, groups: int) -> Tensor:
    """Query head h reads key head floor(h / groups); a single head goes to all by broadcasting."""
    return heads if groups == 1 or heads.ndim < 3 or heads.shape[-3] == 1 else heads.repeat_interleave(groups, -3)


def cleared(rows: Tensor, real: Tensor | None) -> Tensor:
    """Rows [..., n, d] with those that are not real [..., n] set to 0, whatever stood in them."""
    return rows if real is None else torch.where(real.unsqueeze(-1), rows, 0.0)
