"""Scores of outputs against references: text by sacreBLEU, tags and labels by counting, spellings by edits.

A `Score` says how it was reckoned (sacreBLEU's signature) and which way is better.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from regard.support.errors import Failure

Text = Literal["bleu", "chrf", "ter"]
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Score:
    """One figure."""

    name: str
    value: float
    """As it is usually told: BLEU, chrF and TER from 0 to 100, shares from 0 to 1."""
    higher_is_better: bool = True
    signature: str = ""
    """How a text score was reckoned, in sacreBLEU's words: with it anybody can get the same figure."""

    def __str__(self) -> str:
        return f"{self.name} {self.value:.{2 if self.name in ('BLEU', 'chrF2', 'TER') else 4}f}"


def text_score(
    name: Text,
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> Score:
    """sacreBLEU's corpus score. `references`: for each output all its references, one or more, not all as many."""
    metric = metric_of(name, lowercase=lowercase, tokenize=tokenize)
    found = metric.corpus_score(list(outputs), columns(outputs, references))
    return Score(found.name, found.score, name != "ter", str(metric.get_signature()))


def metric_of(name: Text, *, lowercase: bool, tokenize: str | None) -> Any:
    """sacreBLEU's metric of that name."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if name == "bleu":
        try:
            return BLEU(lowercase=lowercase, tokenize=tokenize)
        except RuntimeError as error:  # its tokenizers of some languages are packages of their own
            raise Failure(f"tokenizer {tokenize}: {' '.join(str(error).split())}") from None
    return CHRF(lowercase=lowercase) if name == "chrf" else TER(case_sensitive=not lowercase)


def columns(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """References as sacreBLEU wants them: the first of every output, the second, …; None where there is none."""
    if len(outputs) != len(references):
        raise ValueError(f"expected references for each of {len(outputs)} outputs; got {len(references)}")
    if not all(references):
        raise ValueError(f"output {next(n for n, each in enumerate(references, 1) if not each)} has no reference")
    most = max(map(len, references), default=1)
    return [[each[place] if place < len(each) else None for each in references] for place in range(most)]


def accuracy(outputs: Sequence[Hashable], truths: Sequence[Hashable]) -> Score:
    """The share of outputs that are right."""
    return Score("accuracy", _share(sum(a == b for a, b in _paired(outputs, truths)), len(truths)))


@dataclass(frozen=True)
class F1:
    """Precision, recall and their harmonic mean, from counts."""

    right: int
    said: int
    true: int

    @property
    def precision(self) -> float:
        return _share(self.right, self.said)

    @property
    def recall(self) -> float:
        return _share(self.right, self.true)

    @property
    def f1(self) -> float:
        return _share(2 * self.right, self.said + self.true)


def f1_by_label(outputs: Sequence[Hashable], truths: Sequence[Hashable]) -> dict[Hashable, F1]:
    """For each label there is, in outputs or truths, how well it is told."""
    pairs = _paired(outputs, truths)
    right = Counter(a for a, b in pairs if a == b)
    said, true = Counter(outputs), Counter(truths)
    return {label: F1(right[label], said[label], true[label]) for label in sorted({*said, *true}, key=str)}


def macro_f1(outputs: Sequence[Hashable], truths: Sequence[Hashable]) -> Score:
    """The mean of the labels' F1: rare labels count as much as common ones."""
    each = f1_by_label(outputs, truths).values()
    return Score("F1 (macro)", _share(sum(one.f1 for one in each), len(each)))


Span = tuple[int, int, str]


def spans(tags: Sequence[str]) -> list[Span]:
    """Spans (first, behind the last, kind) of BIO tags; an I that continues nothing of its kind begins a span."""
    found: list[Span] = []
    begun, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, own = tag.partition("-")
        goes_on = mark == "I" and own == kind
        if kind and not goes_on:
            found.append((begun, place, kind))
            kind = ""
        if mark in ("B", "I") and not goes_on:
            begun, kind = place, own
    return found


def span_f1(outputs: Sequence[Sequence[str]], truths: Sequence[Sequence[str]]) -> F1:
    """Over all sentences: a span is right when its ends and its kind are."""
    each = [spans_of(said, true) for said, true in _paired(outputs, truths)]
    return F1(*(sum(one[place] for one in each) for place in range(3)))


def spans_of(output: Sequence[str], truth: Sequence[str]) -> tuple[int, int, int]:
    """Of one sentence: spans that are right, said, true."""
    said, true = {*spans(output)}, {*spans(truth)}
    return len(said & true), len(said), len(true)


def f1_by_span(outputs: Sequence[Sequence[str]], truths: Sequence[Sequence[str]]) -> dict[Hashable, F1]:
    """The same for each kind of span there is."""
    right, said, true = Counter[str](), Counter[str](), Counter[str]()
    for output, truth in _paired(outputs, truths):
        one, other = {*spans(output)}, {*spans(truth)}
        for counts, found in ((right, one & other), (said, one), (true, other)):
            counts.update(kind for _, _, kind in found)
    return {kind: F1(right[kind], said[kind], true[kind]) for kind in sorted({*said, *true})}


def confusion(outputs: Sequence[Hashable], truths: Sequence[Hashable]) -> Counter[tuple[Hashable, Hashable]]:
    """How often each truth (first) was told as each label (second)."""
    return Counter((truth, output) for output, truth in _paired(outputs, truths))


def edits(output: Sequence[Hashable], truth: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and replacements between two sequences (Levenshtein 1965)."""
    row = list(range(len(truth) + 1))
    for place, said in enumerate(output, 1):
        corner, row[0] = row[0], place
        for at, wanted in enumerate(truth, 1):
            corner, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, corner + (said != wanted))
    return row[-1]


def error_rate(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Score:
    """Edits per unit of the reference (words, phones): of several references the one that is nearest counts."""
    each = [nearest(output, several) for output, several in _paired(outputs, references)]
    return Score("error rate", _share(sum(n for n, _ in each), sum(n for _, n in each)), higher_is_better=False)


def nearest(output: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Edits from the reference that is nearest, and its length."""
    return min((edits(output, truth), len(truth)) for truth in references)


def whole_error_rate(outputs: Sequence[Hashable], references: Sequence[Sequence[Hashable]]) -> Score:
    """The share of outputs that equal none of their references (for pronunciations: the word error rate)."""
    wrong = sum(output not in several for output, several in _paired(outputs, references))
    return Score("whole error rate", _share(wrong, len(references)), higher_is_better=False)


def _paired(one: Sequence[A], other: Sequence[B]) -> list[tuple[A, B]]:
    if len(one) != len(other):
        raise ValueError(f"expected one truth for each of {len(one)} outputs; got {len(other)}")
    return list(zip(one, other, strict=True))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
