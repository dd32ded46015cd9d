"""How good a model in memory is on a split of prepared data: decode (or predict), compare, show some of it.

found = evaluate(model, ShardSet("prepared/dev"), tokenizers)
found.main                      the score a model is chosen by
found.scores, found.samples     all of them; some sources with what came out and what should have
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.collating import NOTHING, Batch, collate
from regard.data.shards import ShardSet
from regard.decoding.many import batches, search_many
from regard.decoding.settings import SearchSettings
from regard.evaluation import scores as scoring
from regard.evaluation.perplexity import perplexity
from regard.evaluation.scores import Score
from regard.models.contract import Labeller, Model, SequenceModel, Tagger
from regard.text.tokenizer import Tokenizer

Rows = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Sample:
    """One source, what the model made of it, and what was expected."""

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Evaluation:
    """What came of it."""

    scores: tuple[Score, ...]
    """The first is the one a model is chosen by."""
    samples: tuple[Sample, ...]
    outputs: tuple[Any, ...]
    """A text, a label, or a list of tags for each example, in the order of the rows."""
    references: tuple[Any, ...]

    @property
    def main(self) -> Score:
        return self.scores[0]


def evaluate(
    model: Model,
    examples: ShardSet,
    tokenizers: Mapping[str, Tokenizer] | None = None,
    *,
    search: SearchSettings | None = None,
    at_most: int | None = None,
    samples: int = 3,
    done: Callable[[int], None] | None = None,
) -> Evaluation:
    """Decode or predict the examples and score that: the work of a moment, told to `done` batch by batch.

    at_most: so many examples, evenly over the set and the same each time. The model is put into evaluation mode and
    back. References are the targets' tokens as text again; `regard evaluate` reads the text itself.
    """
    tokenizers = tokenizers or {}
    rows = chosen(len(examples), at_most)
    was_training = model.training
    model.eval()
    try:
        outputs: Sequence[Any]
        references: Sequence[Any]
        if isinstance(model, SequenceModel) and "source" not in examples.columns:
            return Evaluation((perplexity(model, examples, rows),), (), (), ())
        if isinstance(model, SequenceModel):
            outputs, references = _sequences(model, examples, tokenizers, rows, search, done)
            found = sequence_scores(outputs, [[each] for each in references])
        elif isinstance(model, Tagger):
            outputs, references = _tags(model, examples, rows, done)
            found = tag_scores(outputs, references)
        elif isinstance(model, Labeller):
            outputs, references = _labels(model, examples, rows, done)
            found = label_scores(outputs, references)
        else:
            raise ValueError(f"model: expected one of sequences, tags or labels; got {type(model).__name__}")
    finally:
        model.train(was_training)
    shown = chosen(len(rows), samples)
    return Evaluation(
        tuple(found),
        tuple(
            Sample(_source(examples, tokenizers, int(rows[n])), _written(outputs[n]), _written(references[n]))
            for n in shown
        ),
        tuple(outputs),
        tuple(references),
    )


def chosen(count: int, at_most: int | None) -> NDArray[np.int64]:
    """Some of so many examples, evenly spread; all where no bound is given."""
    if at_most is None or at_most >= count:
        return np.arange(count)
    return np.linspace(0, count - 1, at_most).astype(np.int64)


def sequence_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
    """BLEU, chrF and the share of outputs that equal a reference.

    Where references are hardly more than a word long BLEU counts nothing, and chrF comes first.
    """
    if not outputs:
        return [Score("BLEU", 0.0), Score("chrF2", 0.0), Score("exact", 0.0)]
    bleu, chrf = (scoring.text_score(name, outputs, references) for name in ("bleu", "chrf"))
    right = sum(output in several for output, several in zip(outputs, references, strict=True))
    exact = Score("exact", right / len(outputs))
    words = np.mean([len(several[0].split()) for several in references])
    return [bleu, chrf, exact] if words >= 2 else [chrf, exact, bleu]


def tag_scores(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[Score]:
    """Of BIO tags the F1 of spans first, of others the accuracy."""
    said = [tag for tags in outputs for tag in tags]
    true = [tag for tags in references for tag in tags]
    found = [scoring.accuracy(said, true), scoring.macro_f1(said, true)]
    if are_spans(true):
        return [Score("F1 (spans)", scoring.span_f1(outputs, references).f1), *found]
    return found


def are_spans(tags: Sequence[str]) -> bool:
    """Whether tags are B-x, I-x and O, at least one of them the begin of a span."""
    kinds = set(tags)
    return any(tag.startswith("B-") for tag in kinds) and all(tag == "O" or tag[:2] in ("B-", "I-") for tag in kinds)


def label_scores(outputs: Sequence[Hashable], references: Sequence[Hashable]) -> list[Score]:
    return [scoring.accuracy(outputs, references), scoring.macro_f1(outputs, references)]


def source_of(examples: ShardSet, row: int) -> NDArray[Any]:
    """The source of an example as a model takes it: tokens (with their letters, where those were prepared), rows of
    numbers, or an image [channels, height, columns] from 0 to 1."""
    values, column = examples.tokens("source", row), examples.columns["source"]
    if "characters" in examples.columns:
        letters = examples.tokens("characters", row).astype(np.int64)
        return np.concatenate([values.astype(np.int64)[:, None], letters], 1)
    if column.kind != "image":
        return values
    pixels = values.reshape(len(values), column.channels or 1, -1).transpose(1, 2, 0)
    return pixels.astype(np.float32) / np.float32(255)


def _sequences(
    model: SequenceModel,
    examples: ShardSet,
    tokenizers: Mapping[str, Tokenizer],
    rows: NDArray[np.int64],
    search: SearchSettings | None,
    done: Callable[[int], None] | None,
) -> tuple[list[str], list[str]]:
    if "target" not in tokenizers:
        raise ValueError("tokenizers: the target's is needed to tell texts; got " + (", ".join(tokenizers) or "none"))
    found = search_many(model, [source_of(examples, int(row)) for row in rows], search, done=done)
    tokenizer = tokenizers["target"]
    outputs = tokenizer.decode_batch(each[0].tokens for each in found)
    return outputs, tokenizer.decode_batch(examples.tokens("target", int(row)).tolist() for row in rows)


def _tags(
    model: Tagger, examples: ShardSet, rows: NDArray[np.int64], done: Callable[[int], None] | None
) -> tuple[list[list[str]], list[list[str]]]:
    names = examples.names("tags")
    said: list[list[str]] = [[] for _ in rows]
    true: list[list[str]] = [[] for _ in rows]
    for places, batch in _collated(examples, rows, done):
        assert batch.source is not None
        assert batch.tags is not None
        device = next(model.parameters()).device
        words = None if batch.words is None else batch.words.to(device)
        logits = model.predict(model.encode(batch.source.to(device), batch.lengths, words))
        best = logits.argmax(-1).cpu()
        for row, place in enumerate(places):
            real = batch.tags[row] != NOTHING
            true[place] = [names[tag] for tag in batch.tags[row][real].tolist()]
            said[place] = [names[tag] for tag in best[row, : len(real)][real].tolist()]
    return said, true


def _labels(
    model: Labeller, examples: ShardSet, rows: NDArray[np.int64], done: Callable[[int], None] | None
) -> tuple[list[str], list[str]]:
    names = examples.names("label")
    said, true = [""] * len(rows), [""] * len(rows)
    for places, batch in _collated(examples, rows, done):
        assert batch.source is not None
        assert batch.label is not None
        device = next(model.parameters()).device
        best = model.predict(model.encode(batch.source.to(device), batch.lengths)).argmax(-1).tolist()
        for place, mine, right in zip(places, best, batch.label.tolist(), strict=True):
            said[place], true[place] = names[mine], names[right]
    return said, true


def _collated(
    examples: ShardSet, rows: NDArray[np.int64], done: Callable[[int], None] | None
) -> Iterator[tuple[list[int], Batch]]:
    """Batches of like lengths, each with the places of its examples among the rows."""
    lengths = examples.lengths("source")[rows]
    with torch.inference_mode():
        for places in batches([range(length) for length in lengths.tolist()], 256):
            yield places, collate(examples, rows[places])
            if done is not None:
                done(len(places))


def _source(examples: ShardSet, tokenizers: Mapping[str, Tokenizer], row: int) -> str:
    """A source to be looked at."""
    if "source" not in examples.columns:
        return ""
    if examples.columns["source"].kind == "tokens" and "source" in tokenizers:
        return tokenizers["source"].decode(examples.tokens("source", row).tolist())
    return f"{examples.columns['source'].kind} of {examples.origin(row)}"


def _written(answer: str | Sequence[str]) -> str:
    return answer if isinstance(answer, str) else " ".join(answer)
