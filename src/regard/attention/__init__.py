"""What attention is: score → bias → mask → normalise → mix.

from regard.attention import attend, masks
output = attend(query, key, value, mask=masks.causal())
"""

from regard.attention import masks, normalise, positions, scores
from regard.attention.additive import additive_attention
from regard.attention.core import Details, attend, weigh
from regard.attention.explain import explain_choice
from regard.attention.heads import Attended, Cache, MultiHead
from regard.attention.local import Local, local_m, local_p
from regard.attention.masks import Mask
from regard.attention.normalise import Normaliser
from regard.attention.scores import Score
from regard.attention.settled import settle

__all__ = [
    "Attended", "Cache", "Details", "Local", "Mask", "MultiHead", "Normaliser", "Score", "additive_attention", "attend",
    "explain_choice", "local_m", "local_p", "masks", "normalise", "positions", "scores", "settle", "weigh",
]  # fmt: skip
