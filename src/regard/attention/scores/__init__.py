"""How much a query has to do with a key: e_ij, one number for each pair.

A score that is a product of vectors says so through `as_dot`, and is computed by one product of matrices
whatever it is called; the others say it cell by cell.
"""

from regard.attention.scores.base import AsDot, DotScore, Score
from regard.attention.scores.coverage import Coverage, Covered
from regard.attention.scores.hidden import Additive, Concat, Location, ProjectedAdditive
from regard.attention.scores.names import PARAMETRIC, PLAIN, make, named
from regard.attention.scores.products import Cosine, Dot, General, LowRank, ScaledDot

__all__ = [
    "PARAMETRIC", "PLAIN", "Additive", "AsDot", "Concat", "Cosine", "Coverage", "Covered", "Dot", "DotScore",
    "General", "Location", "LowRank", "ProjectedAdditive", "ScaledDot", "Score", "make", "named",
]  # fmt: skip
