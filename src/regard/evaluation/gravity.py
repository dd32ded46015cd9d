"""Attention as a pull between words: the same word beside others becomes another vector.

X' = A X        A = softmax(X Xᵀ / √d)          attention without weights: only the vectors themselves decide
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regard.attention import attend
from regard.evaluation.pictures.moving import Moved
from regard.support.errors import Misuse


class Words(Protocol):
    """Vectors by words: a mapping, or `regard.text.vectors.Vectors`."""

    def __contains__(self, word: object, /) -> bool: ...

    def __getitem__(self, word: str, /) -> NDArray[Any]: ...


def pulled(sentences: Sequence[Sequence[str]], vectors: Words) -> list[Moved]:
    """Each sentence's words before and after attention without weights, in float64."""
    if missing := sorted({word for words in sentences for word in words if word not in vectors}):
        raise Misuse(f"vectors: there are none for {', '.join(missing)}")
    found = []
    for words in sentences:
        before = np.stack([np.asarray(vectors[word], float) for word in words])
        x = torch.from_numpy(before).unsqueeze(0)
        after, details = attend(x, x, x, details=True)
        found.append(Moved(tuple(words), before, after[0].numpy(), details.weights[0].numpy()))
    return found


def bare(sentences: Sequence[Sequence[str]], vectors: Words) -> list[Moved]:
    """The same words without attention: they stay where they are, whatever stands beside them."""
    return [Moved(each.words, each.before, each.before) for each in pulled(sentences, vectors)]
