"""The measures a person can ask for, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
