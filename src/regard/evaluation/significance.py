"""Whether one model is better than another, or this data cannot tell: the paired bootstrap of sacreBLEU.

The test set is drawn anew, with repetition, a thousand times, the same for both models. p is how often a difference at
least as large would come about if there were none (Koehn 2004, in sacreBLEU's form).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.scores import Score, Text, columns, metric_of

LEVEL = 0.05
SAMPLES = 1000
SEED = 12345
"""sacreBLEU's own."""


@dataclass(frozen=True)
class Compared:
    """One figure of one model beside the first model's."""

    score: Score
    mean: float
    """Over the samples."""
    interval: float
    """95 of 100 samples lie within the mean plus or minus this."""
    p: float | None
    """Of the difference from the first model; None for the first model itself."""

    @property
    def differs(self) -> bool:
        return self.p is not None and self.p < LEVEL

    def verdict(self, baseline: "Compared", name: str) -> str:
        """In words, with the baseline's name."""
        if self.p is None:
            return "the one the others are compared with"
        better = (self.score.value > baseline.score.value) == self.score.higher_is_better
        difference = abs(self.score.value - baseline.score.value)
        digits = 2 if self.score.value > 1.5 or baseline.score.value > 1.5 else 4
        if not difference:
            return f"as good as {name} to the last digit"
        if not self.differs:
            return f"no difference from {name} that this data can tell (p = {self.p:.3f})"
        return f"{'better' if better else 'worse'} than {name} by {difference:.{digits}f} (p = {self.p:.3f})"


def compare_texts(
    name: Text,
    outputs: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
    samples: int = SAMPLES,
) -> list[Compared]:
    """Each model's outputs beside the first's, by sacreBLEU's `PairedTest`."""
    from sacrebleu.significance import PairedTest

    systems: list[tuple[str, Sequence[str]]] = [(str(number), list(each)) for number, each in enumerate(outputs)]
    metric = metric_of(name, lowercase=lowercase, tokenize=tokenize)
    truths: Any = columns(
        outputs[0], references
    )  # None where there is no further reference, as everywhere in sacreBLEU
    signatures, results = PairedTest(systems, {name: metric}, truths, "bs", n_samples=samples)()
    [told] = [key for key in results if key != "System"]
    found: list[Any] = list(results[told])
    first = found[0]
    return [
        Compared(
            Score(told, each.score, name != "ter", str(signatures[told])), each.mean, each.ci,
            # sacreBLEU counts differences above the real one, and so calls a model different from itself.
            1.0 if each.p_value is not None and each.score == first.score else each.p_value,
        )
        for each in found
    ]  # fmt: skip


def compare_counts(
    name: str,
    counts: Sequence[NDArray[Any]],
    figure: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    higher_is_better: bool = True,
    samples: int = SAMPLES,
) -> list[Compared]:
    """The same test for a figure that is made of sums over the examples, such as a share or an F1.

    counts: for each model [examples, n], what each example adds to the n sums; figure: sums [..., n] → figure [...].
    """
    each = np.stack([np.asarray(one, float) for one in counts])
    drawn = figure(_sums(each, samples))  # [models, samples]
    own = figure(each.sum(1))
    found = []
    for number in range(len(each)):
        shifted = drawn[number] - drawn[0]
        extreme = int((np.abs(shifted - shifted.mean()) >= abs(float(own[number] - own[0]))).sum())
        interval = float(np.quantile(drawn[number], 0.975) - np.quantile(drawn[number], 0.025)) / 2
        p = None if number == 0 else (extreme + 1) / (samples + 1)
        score = Score(name, float(own[number]), higher_is_better)
        found.append(Compared(score, float(drawn[number].mean()), interval, p))
    return found


def _sums(each: NDArray[Any], samples: int) -> NDArray[Any]:
    """[models, samples, n] of [models, examples, n]: the sums over examples that are drawn anew for each sample."""
    models, examples, n = each.shape
    dice, flat = np.random.default_rng(SEED), each.transpose(1, 0, 2).reshape(examples, -1)
    found = []
    for _ in range(samples):
        times = np.bincount(dice.integers(0, examples, examples), minlength=examples)
        found.append(times @ flat)
    return np.stack(found, 1).reshape(models, n, samples).transpose(0, 2, 1)
