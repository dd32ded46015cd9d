"""What lies behind a low score: unknown pieces, copies, repeats, empty outputs, lengths; and the worst of all."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from regard.evaluation.scores import metric_of, text_score

OFTEN = 0.05
"""From this share on a thing is worth a sentence."""


@dataclass(frozen=True)
class Worst:
    """One of the outputs that are least like their references."""

    place: int
    """From 0."""
    score: float
    """chrF of this sentence alone."""
    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Diagnostics:
    """Shares are from 0 to 1."""

    unknown: float
    """Of the sources' tokens, those that the model does not know."""
    unknown_outputs: float
    """Outputs with <unk> in them."""
    copies: float
    """Outputs that are their source."""
    repeats: float
    """Outputs in which one to four words stand three times or more in a row."""
    empty: float
    cut: float
    """Outputs that came to no end by themselves."""
    length_ratio: float
    """Words of all outputs to words of their (first) references."""
    case: float
    """How much BLEU would be higher if capitals did not count."""
    worst: tuple[Worst, ...]

    @property
    def hints(self) -> tuple[str, ...]:
        """What stands out, in words, and what usually helps."""
        found = []
        if self.unknown >= OFTEN:
            found.append(
                f"{self.unknown:.0%} of the sources' tokens are unknown to the model: is the text of the same "
                "language, script and spacing as the training data?"
            )
        if self.empty >= OFTEN:
            found.append(
                f"{self.empty:.0%} of the outputs are empty: a lower length penalty and fewer steps lead there"
            )
        if self.copies >= OFTEN:
            found.append(
                f"{self.copies:.0%} of the outputs are their source: are there copies in the training data, or is this "
                "text in the target's language already?"
            )
        if self.repeats >= OFTEN:
            found.append(f"{self.repeats:.0%} of the outputs repeat themselves: try --set no_repeat=4, or train longer")
        if self.cut >= OFTEN:
            found.append(
                f"{self.cut:.0%} of the outputs come to no end: was the end of sentences in the training data?"
            )
        if not 0.85 <= self.length_ratio <= 1.15:
            kind = "short" if self.length_ratio < 1 else "long"
            found.append(
                f"the outputs are {self.length_ratio:.2f} times as long as the references, too {kind}: try a "
                f"{'higher' if kind == 'short' else 'lower'} length_penalty; are both sides tokenised alike?"
            )
        if self.case >= 1:
            found.append(f"BLEU would be {self.case:.1f} higher without capitals: are the references in small letters?")
        return tuple(found)


def diagnose(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    unknown: Sequence[float] = (),
    ended: Sequence[bool] = (),
    worst: int = 10,
) -> Diagnostics:
    """unknown: for each source the share of its tokens that the model does not know; ended: whether the model came to
    the end of each output by itself."""
    count = max(len(outputs), 1)
    words = sum(len(each.split()) for each in outputs), sum(len(several[0].split()) for several in references)
    cased = (
        [text_score("bleu", outputs, references, lowercase=low).value for low in (False, True)] if outputs else [0, 0]
    )
    return Diagnostics(
        unknown=sum(unknown) / max(len(unknown), 1),
        unknown_outputs=sum("<unk>" in each for each in outputs) / count,
        copies=sum(_plain(a) == _plain(b) != "" for a, b in zip(sources, outputs, strict=True)) / count,
        repeats=sum(map(repeats, outputs)) / count,
        empty=sum(not each.strip() for each in outputs) / count,
        cut=sum(not each for each in ended) / count,
        length_ratio=words[0] / words[1] if words[1] else 1.0,
        case=cased[1] - cased[0],
        worst=_worst(sources, outputs, references, worst),
    )


def repeats(text: str) -> bool:
    """Whether one to four words stand three times or more in a row."""
    words = text.split()
    return any(
        words[at : at + size] == words[at + size : at + 2 * size] == words[at + 2 * size : at + 3 * size]
        for size, at in itertools.product(range(1, 5), range(len(words)))
        if at + 3 * size <= len(words)
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _worst(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]], count: int
) -> tuple[Worst, ...]:
    """By chrF of each sentence; of several references the one it is most like is shown."""
    metric = metric_of("chrf", lowercase=False, tokenize=None)
    found = []
    for place, (source, output, several) in enumerate(zip(sources, outputs, references, strict=True)):
        scores = [metric.sentence_score(output, [each]).score for each in several]
        best = max(range(len(several)), key=scores.__getitem__)
        found.append(Worst(place, scores[best], source, output, several[best]))
    return tuple(sorted(found, key=lambda each: each.score)[:count])
