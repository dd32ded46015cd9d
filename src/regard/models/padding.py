"""Which places of a padded batch are real, and vectors with nothing in the others.

Shape letters: B rows, T places.
"""

import torch
from torch import Tensor


def real_places(lengths: Tensor, places: int) -> Tensor:
    """[B, T]: which places are not padding."""
    return torch.arange(places, device=lengths.device) < lengths.unsqueeze(-1)


def only_real(x: Tensor, lengths: Tensor | None) -> Tensor:
    """x [B, T, ...] with 0 at the padding, whatever stood there: a NaN times 0 would be NaN, as would its gradient."""
    if lengths is None:
        return x
    real = real_places(lengths.to(x.device), x.shape[1])
    return torch.where(real.view(*real.shape, *(1,) * (x.ndim - 2)), x, 0.0)
