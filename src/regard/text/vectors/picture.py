"""Words in two dimensions: where words of one kind lie together, a person sees it at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.support.errors import Misuse
from regard.support.nearest import unknown

if TYPE_CHECKING:
    from regard.text.vectors.vectors import Vectors

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One for each group beside its colour, for who cannot tell the colours."""


def plane(
    vectors: "Vectors", words: Sequence[str], by: Literal["pca", "tsne"] = "pca", *, seed: int = 0
) -> NDArray[np.float64]:
    """[words, 2]: the vectors of these words, seen from where they differ most.

    pca   the two directions of the greatest variance: a projection, in which distances mean what they did
    tsne  neighbours stay neighbours, and far distances mean nothing
    """
    if len(words) < 3:
        raise ValueError(f"words: expected three or more to lay out; got {len(words)}")
    rows = vectors.of(words).astype(np.float64)
    if by == "pca":
        return np.asarray(_sklearn().decomposition.PCA(2, random_state=seed).fit_transform(rows))
    if by != "tsne":
        raise ValueError(unknown("projection", by, ["pca", "tsne"]))
    near = min(30.0, (len(words) - 1) / 3)
    layout = _sklearn().manifold.TSNE(2, perplexity=near, random_state=seed, init="pca", metric="cosine")
    return np.asarray(layout.fit_transform(rows), np.float64)


def picture(
    vectors: "Vectors",
    groups: Mapping[str, Sequence[str]],
    path: str | Path | None = None,
    *,
    by: Literal["pca", "tsne"] = "pca",
    seed: int = 0,
) -> Any:
    """A figure of matplotlib with the words of each group in its colour and mark; written to `path` where one is given.

    picture(vectors, {"animals": ["cat", "dog"], "plants": ["oak", "rose"], "verbs": ["run", "sing"]}, "words.svg")
    """
    from matplotlib.figure import Figure

    words = [word for each in groups.values() for word in each]
    points = iter(plane(vectors, words, by, seed=seed).tolist())
    figure = Figure(figsize=(7, 5.5), layout="constrained")
    axes = figure.subplots()
    for number, (name, each) in enumerate(groups.items()):
        here = [next(points) for _ in each]
        across, up = zip(*here, strict=True)
        axes.scatter(across, up, marker=MARKS[number % len(MARKS)], label=name, s=28)
        for word, point in zip(each, here, strict=True):
            axes.annotate(word, point, xytext=(4, 3), textcoords="offset points", fontsize=9)
    axes.set(xlabel="1st direction", ylabel="2nd direction", xticks=[], yticks=[])
    axes.legend()
    if path is not None:
        figure.savefig(path)
    return figure


def _sklearn() -> Any:
    try:
        import sklearn.decomposition
        import sklearn.manifold
    except ImportError:
        raise Misuse("to lay words out in a plane: pip install 'regard[data]'") from None
    return sklearn
