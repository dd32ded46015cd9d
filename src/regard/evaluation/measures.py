"""The measures a person can ask for, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation import scores as scoring
from regard.evaluation.evaluating import are_spans
from regard.evaluation.scores import Score
from regard.support.errors import Misuse
from regard.support.nearest import unknown

Outputs = Sequence[Any]
References = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Options:
    """How text scores are reckoned."""

    lowercase: bool = False
    tokenize: str | None = None
    """sacreBLEU's tokenizer (13a, zh, ja-mecab, char, flores200, none, …); None is its choice."""

    def __post_init__(self) -> None:
        from sacrebleu.metrics.bleu import BLEU

        if self.tokenize is not None and self.tokenize not in BLEU.TOKENIZERS:
            raise Misuse(unknown("tokenizer", self.tokenize, BLEU.TOKENIZERS))


def bleu(outputs: Outputs, references: References, options: Options) -> Score:
    return scoring.text_score("bleu", outputs, references, lowercase=options.lowercase, tokenize=options.tokenize)


def chrf(outputs: Outputs, references: References, options: Options) -> Score:
    return scoring.text_score("chrf", outputs, references, lowercase=options.lowercase)


def ter(outputs: Outputs, references: References, options: Options) -> Score:
    return scoring.text_score("ter", outputs, references, lowercase=options.lowercase)


def exact(outputs: Outputs, references: References, options: Options) -> Score:
    right = sum(output in several for output, several in zip(outputs, references, strict=True))
    return Score("exact", right / max(len(outputs), 1))


def word_errors(outputs: Outputs, references: References, options: Options) -> Score:
    """Edits per word of the reference; of a pronunciation, per phone: whatever stands between spaces."""
    several = [[each.split() for each in references_] for references_ in references]
    return replace(scoring.error_rate([each.split() for each in outputs], several), name="errors a word")


def character_errors(outputs: Outputs, references: References, options: Options) -> Score:
    several = [[list(each) for each in references_] for references_ in references]
    return replace(scoring.error_rate([list(each) for each in outputs], several), name="errors a character")


def whole_errors(outputs: Outputs, references: References, options: Options) -> Score:
    """Outputs that equal no reference: of pronunciations, the word error rate."""
    return replace(scoring.whole_error_rate(outputs, references), name="wrong as a whole")


def accuracy(outputs: Outputs, references: References, options: Options) -> Score:
    return scoring.accuracy(*flat(outputs, references))


def f1(outputs: Outputs, references: References, options: Options) -> Score:
    return scoring.macro_f1(*flat(outputs, references))


def spans(outputs: Outputs, references: References, options: Options) -> Score:
    return Score("F1 (spans)", scoring.span_f1(outputs, [several[0] for several in references]).f1)


Measure = Callable[[Outputs, References, Options], Score]
TEXT: dict[str, Measure] = {
    "bleu": bleu, "chrf": chrf, "ter": ter, "exact": exact, "wer": word_errors, "cer": character_errors,
    "whole": whole_errors,
}  # fmt: skip
TAGS: dict[str, Measure] = {"accuracy": accuracy, "f1": f1, "spans": spans}
LABEL: dict[str, Measure] = {"accuracy": accuracy, "f1": f1}
KINDS = {"text": TEXT, "tags": TAGS, "label": LABEL}


def chosen(kind: str, names: Sequence[str], references: References) -> dict[str, Measure]:
    """The measures of those names, or those that suit the data where none is named."""
    known = KINDS[kind]
    for name in names:
        if name not in known:
            raise Misuse(unknown(f"measure of {kind}", name, known))
    return {name: known[name] for name in names or suiting(kind, references)}


def suiting(kind: str, references: References) -> list[str]:
    """Text of single words is a spelling; tags may be spans."""
    if kind == "text":
        words = sum(len(several[0].split()) for several in references) / max(len(references), 1)
        return ["bleu", "chrf", "ter"] if words >= 2 else ["chrf", "exact", "cer"]
    if kind == "tags":
        flat = [tag for several in references for tag in several[0]]
        return ["spans", "accuracy", "f1"] if are_spans(flat) else ["accuracy", "f1"]
    return ["accuracy", "f1"]


def flat(outputs: Outputs, references: References) -> tuple[list[Any], list[Any]]:
    """Labels as they are; tags one after the other."""
    truths = [several[0] for several in references]
    if outputs and not isinstance(truths[0], str):
        for number, (said, true) in enumerate(zip(outputs, truths, strict=True), 1):
            if len(said) != len(true):
                raise ValueError(f"output {number}: {len(said)} tags for {len(true)} words")
        return [tag for tags in outputs for tag in tags], [tag for tags in truths for tag in tags]
    return list(outputs), truths


# What measures are sums of, for a test that draws examples anew


@dataclass(frozen=True)
class Counted:
    """A measure as a figure of sums over the examples."""

    counts: tuple[NDArray[Any], ...]
    """For each model [examples, n]."""
    figure: Callable[[NDArray[Any]], NDArray[Any]]
    """Sums [..., n] → [...]."""


def counted(name: str, models: Sequence[Outputs], references: References) -> Counted:
    """One of the measures that sacreBLEU does not know, for the outputs of several models."""
    if name == "f1":
        pairs = [_as_lists(outputs, references) for outputs in models]
        labels = sorted({each for some in pairs for pair in some for part in pair for each in part}, key=str)
        return Counted(tuple(_by_label(some, labels) for some in pairs), _macro)
    of_one: dict[str, Callable[[Outputs, References], Counts]] = {
        "exact": _exact, "whole": _whole, "wer": partial(_edits, str.split), "cer": partial(_edits, list),
        "accuracy": _accuracy, "spans": _spans,
    }  # fmt: skip
    counts = tuple(np.array(of_one[name](outputs, references)) for outputs in models)
    return Counted(counts, _f1 if name == "spans" else _share)


Counts = list[tuple[float, ...]]


def _exact(outputs: Outputs, references: References) -> Counts:
    return [(float(output in several), 1.0) for output, several in zip(outputs, references, strict=True)]


def _whole(outputs: Outputs, references: References) -> Counts:
    return [(1 - right, one) for right, one in _exact(outputs, references)]


def _edits(split: Callable[[str], list[str]], outputs: Outputs, references: References) -> Counts:
    pairs = zip(outputs, references, strict=True)
    return [scoring.nearest(split(output), [split(each) for each in several]) for output, several in pairs]


def _accuracy(outputs: Outputs, references: References) -> Counts:
    pairs = _as_lists(outputs, references)
    return [(sum(a == b for a, b in zip(said, true, strict=True)), len(true)) for said, true in pairs]


def _spans(outputs: Outputs, references: References) -> Counts:
    return [scoring.spans_of(said, true) for said, true in _as_lists(outputs, references)]


def _as_lists(outputs: Outputs, references: References) -> list[tuple[Sequence[Any], Sequence[Any]]]:
    """Tags as they are, a label as a list of one."""
    pairs = zip(outputs, references, strict=True)
    return [((said,), (true[0],)) if isinstance(true[0], str) else (said, true[0]) for said, true in pairs]


def _by_label(pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]], labels: Sequence[Any]) -> NDArray[Any]:
    """[examples, 3 labels]: of each label how often it is right, said, true."""
    place = {name: number for number, name in enumerate(labels)}
    counts = np.zeros((len(pairs), len(labels), 3), np.int32)
    for row, (said, true) in zip(counts, pairs, strict=True):
        for one, other in zip(said, true, strict=True):
            row[place[one], 0] += one == other
            row[place[one], 1] += 1
            row[place[other], 2] += 1
    return counts.reshape(len(pairs), -1)


def _share(sums: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1e-9))


def _f1(sums: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1e-9))


def _macro(sums: NDArray[Any]) -> NDArray[Any]:
    """The mean over the labels that are said or true in a sample."""
    by_label = sums.reshape(*sums.shape[:-1], -1, 3)
    there = by_label[..., 1:].sum(-1) > 0
    return np.asarray((_f1(by_label) * there).sum(-1) / np.maximum(there.sum(-1), 1))
