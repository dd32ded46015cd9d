"""Coverage: an additive score that reads how much each key has been attended to so far (See, Liu and Manning 2017)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.attention.scores.base import Score, hold, made_vector, vector
from regard.attention.scores.hidden import Additive
from regard.attention.shapes import broadcasts, dtype_of


class Coverage(nn.Module, Score):
    """Additive with a feature of the weights so far: e_ij = v · tanh(q_i W_q + k_j W_k + C_j w_c + b).

    C [..., S] sums the weights of earlier steps; w_c [w]. The coverage is given with `given(coverage)` and comes
    back, this call's weights added, in `Details.coverage`; nothing is kept. All the queries of one call read the
    same coverage.
    """

    name = "coverage"
    formula = "v · tanh(Q W_q + K W_k + C w_c + b)"
    w_c: Tensor

    def __init__(self, additive: Additive, w_c: Tensor) -> None:
        super().__init__()
        self.additive = additive
        hold(self, w_c=vector("coverage", "w_c", w_c))
        if w_c.shape[0] != additive.width:
            raise ValueError(f"coverage: w_c {list(w_c.shape)} does not fit a hidden layer of width {additive.width}")

    @classmethod
    def of(cls, d_q: int, d_k: int, width: int, depth: int = 1) -> "Coverage":
        return cls(Additive.of(d_q, d_k, width, depth), made_vector(1, width))

    def given(self, so_far: Tensor | None, projected: bool = False) -> "Covered":
        """This score after the given weights; `projected` says that keys were multiplied by W_k before."""
        return Covered(self, so_far, projected)

    def project(self, key: Tensor) -> Tensor:
        return self.additive.project(key)

    @property
    def projected(self) -> Score:
        return self.given(None, projected=True)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.additive(query, key)  # type: ignore[no-any-return]

    def next_coverage(self, weights: Tensor) -> Tensor:
        return weights.sum(-2)

    def check(self, query: Tensor, key: Tensor) -> None:
        self.additive.check(query, key)


@dataclass(frozen=True)
class Covered(Score):
    """A coverage score with the weights so far; parameters stay those of `of`."""

    name = "coverage"
    formula = Coverage.formula
    of: Coverage
    so_far: Tensor | None
    keys_projected: bool = False

    def project(self, key: Tensor) -> Tensor:
        return key if self.keys_projected else self.of.project(key)

    @property
    def projected(self) -> Score:
        return self.of.given(self.so_far, projected=True)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        additive = self.of.additive
        keys = key if self.keys_projected else additive.project(key)
        feature = None if self.so_far is None else (self.so_far.unsqueeze(-1) * self.of.w_c).unsqueeze(-3)
        return additive.mix(query, keys, feature)

    def next_coverage(self, weights: Tensor) -> Tensor:
        return weights.sum(-2) if self.so_far is None else self.so_far + weights.sum(-2)

    def check(self, query: Tensor, key: Tensor) -> None:
        additive = self.of.additive
        (additive.check_projected if self.keys_projected else additive.check)(query, key)
        if self.so_far is not None and self.so_far.shape[-1] != key.shape[-2]:
            raise ValueError(f"coverage: {self.so_far.shape[-1]} places covered so far, but {key.shape[-2]} keys")
        if self.so_far is not None:
            self._check_so_far(query)

    def _check_so_far(self, query: Tensor) -> None:
        so_far, w_c = self.so_far, self.of.w_c
        assert so_far is not None
        if not so_far.is_floating_point():
            raise ValueError(f"coverage: expected floating-point numbers; got {dtype_of(so_far)}")
        if not broadcasts(so_far.shape[:-1], query.shape[:-2]):
            raise ValueError(
                f"coverage: expected one row for each of the sequences {list(query.shape[:-2])}; "
                f"got {list(so_far.shape)}"
            )
        if so_far.device != w_c.device:
            raise ValueError(f"coverage: is on {so_far.device}, w_c on {w_c.device}")
        if so_far.dtype != w_c.dtype and not torch.is_autocast_enabled(so_far.device.type):
            raise ValueError(f"coverage: is {dtype_of(so_far)}, w_c {dtype_of(w_c)}")
