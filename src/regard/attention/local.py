"""Luong's local attention: a window of places about a centre, and for local-p a bell on the weights."""

from typing import NamedTuple

from torch import Tensor

from regard.attention.masks import Mask, around, window
from regard.attention.normalise import Gaussian, Normaliser, softmax
from regard.attention.shapes import dtype_of


class Local(NamedTuple):
    """What to pass to `attend` as `mask=` and `normalise=`."""

    mask: Mask
    normalise: Normaliser


def local_m(width: int, normalise: Normaliser = softmax) -> Local:
    """Monotonic: step t looks at the places t - width to t + width of the source."""
    return Local(window(width, width, align="start"), normalise)


def local_p(centre: Tensor, width: int, normalise: Normaliser = softmax) -> Local:
    """Predictive: each query looks within `width` of its own centre p [..., T], under a bell with σ = width / 2.

    In the paper p = S · sigmoid(v · tanh(W h)); gradients reach it through the bell.
    """
    if not isinstance(centre, Tensor) or not centre.is_floating_point():
        came = dtype_of(centre) if isinstance(centre, Tensor) else type(centre).__name__
        raise ValueError(f"local_p: centre must be a tensor of real numbers, one for each query; got {came}")
    if not isinstance(width, (int, float)) or not width >= 1:
        raise ValueError(f"local_p: width must be 1 or more, for the bell has σ = width / 2; got {width!r}")
    return Local(around(centre.detach(), width), Gaussian(centre, width / 2, normalise))
