"""Vectors learned from texts: words that stand in like company get like vectors.

    N_ij      how often word j stands within `window` words of word i, each time counted 1 / distance
    P_ij      max(0, ln (N_ij Σ_k N_k^α / (N_i N_j^α))), N_i = Σ_j N_ij, α = 3/4: rare company counts for less
    vectors   the rows of U Σ^½, where U Σ Vᵀ are the largest singular values and vectors of P

This is the positive pointwise mutual information of Levy, Goldberg and Dagan (Improving distributional similarity
with lessons learned from word embeddings, 2015), which does what word2vec does, by counting.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from regard.support.errors import Misuse
from regard.text.vectors.counting import words_in
from regard.text.vectors.vectors import Vectors

SMOOTHING: Final = 0.75
AT_ONCE: Final = 1 << 14
"""Texts whose neighbours are added up at once."""


def learn(
    texts: Iterable[str], width: int, *, window: int, min_count: int, most: int, lowercase: bool, seed: int
) -> Vectors:
    """Vectors of the words that come `min_count` times or more, the commonest first."""
    decomposition = _sklearn()
    if isinstance(texts, str):
        raise ValueError("texts: expected a list of texts; got one text")
    sentences = [words_in(text, lowercase) for text in texts]
    counts = Counter(word for sentence in sentences for word in sentence)
    words = [word for word, count in counts.most_common(most) if count >= min_count]
    if len(words) <= width:
        raise ValueError(
            f"width: expected fewer than the {len(words)} words that come {min_count} times or more; got {width}"
        )
    near = _near(sentences, {word: place for place, word in enumerate(words)}, window)
    model = decomposition.TruncatedSVD(width, random_state=seed, n_iter=10)
    return Vectors(words, model.fit_transform(_information(near)) / np.sqrt(model.singular_values_))


def _near(sentences: Sequence[Sequence[str]], places: dict[str, int], window: int) -> Any:
    """[words, words] sparse: how often words stand near one another; words without a place are not there."""
    from scipy.sparse import coo_matrix, csr_matrix

    shape = len(places), len(places)
    total: Any = csr_matrix(shape)
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.float64]] = []
    for number, sentence in enumerate(sentences, 1):
        ids = np.array([places[word] for word in sentence if word in places], np.int64)
        for distance in range(1, min(window, len(ids) - 1) + 1):
            rows += [ids[:-distance], ids[distance:]]
            columns += [ids[distance:], ids[:-distance]]
            weights.append(np.full(2 * (len(ids) - distance), 1 / distance))
        if weights and (number % AT_ONCE == 0 or number == len(sentences)):
            held = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
            total = total + coo_matrix(held, shape).tocsr()
            rows, columns, weights = [], [], []
    return total


def _information(near: Any) -> Any:
    """P, from N."""
    found = near.tocoo()
    of_words = np.asarray(near.sum(axis=1)).ravel()
    smooth = of_words**SMOOTHING
    values = np.log(found.data * smooth.sum() / (of_words[found.row] * smooth[found.col]))
    found.data = np.maximum(values, 0)
    return found.tocsr()


def _sklearn() -> Any:
    try:
        from sklearn import decomposition
    except ImportError:
        raise Misuse("to learn vectors: pip install 'regard[data]'") from None
    return decomposition
