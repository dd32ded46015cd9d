"""Attention as a pull between words: the same word beside others becomes another vector.

X' = A X        A = softmax(X Xᵀ / √d)          attention without weights: only the vectors themselves decide
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.attention import attend
from regard.data.lines import read_lines
from regard.evaluation.pictures.moving import Moved
from regard.support.errors import Misuse


def pulled(sentences: Sequence[Sequence[str]], vectors: Mapping[str, NDArray[Any]]) -> list[Moved]:
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


def bare(sentences: Sequence[Sequence[str]], vectors: Mapping[str, NDArray[Any]]) -> list[Moved]:
    """The same words without attention: they stay where they are, whatever stands beside them."""
    return [Moved(each.words, each.before, each.before) for each in pulled(sentences, vectors)]


def read_vectors(path: str | Path, words: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors of some words from a file of lines `word number number …`, as GloVe and word2vec write them."""
    wanted, found = set(words), {}
    for number, line in enumerate(read_lines(Path(path)), 1):
        word, _, rest = line.partition(" ") if isinstance(line, str) else ("", "", "")
        if word in wanted and word not in found:
            try:
                found[word] = np.array(rest.split(), np.float32)
            except ValueError:
                raise Misuse(f"{path}:{number}: expected a word and its numbers") from None
        if len(found) == len(wanted):
            break
    return found
