"""Results as lines: text, columns between tabs, JSON."""

import json
from typing import Literal, get_args

from regard.pipeline.results import Labelled, Result, Tagged, numbered

Format = Literal["text", "json", "tsv"]
FORMATS: tuple[Format, ...] = get_args(Format)
Answer = Result | Tagged | Labelled


def written(answer: Answer, number: int, format: Format, *, nbest: int = 1, alignment: bool = False) -> str:
    """The lines of one answer, to the input line of that number (from 1).

    text: the output; with nbest above 1 so many lines, empty ones where there are fewer. tsv: number, rank, score,
    output, and with alignment pairs `source-output` of words from 0 (Pharaoh's). json: one record a line.
    """
    if format == "json":
        return json.dumps(answer.record(attention=alignment), ensure_ascii=False) + "\n"
    if format == "text":
        texts = [each.text for each in answer.all] if isinstance(answer, Result) else [answer.text]
        texts += [""] * (nbest - len(texts)) if isinstance(answer, Result) else []
        return "".join(f"{_one_line(text)}\n" for text in texts)
    if isinstance(answer, Result):
        return "".join(_columns(number, rank, each, alignment) for rank, each in enumerate(answer.all, 1))
    return f"{number}\t1\t{answer.score:.4f}\t{_one_line(answer.text)}\n"


def _columns(number: int, rank: int, result: Result, alignment: bool) -> str:
    pairs = f"\t{pharaoh(result)}" if alignment else ""
    return f"{number}\t{rank}\t{result.score:.4f}\t{_one_line(result.text)}{pairs}\n"


def pharaoh(result: Result) -> str:
    """`0-0 1-2 …`: for each output word the source word it looked at most; tags and ends are no words."""
    seen = result.attention
    if seen is None or not result.text:
        return ""
    rows, columns = numbered(seen.output, seen.output_pieces), numbered(seen.source, seen.source_pieces)
    words = [place for place, (word, _) in enumerate(columns) if word is not None]
    if not words:
        return ""
    best = seen.of_words()[0][:, words].argmax(1).tolist()
    pairs = zip(best, rows, strict=True)
    return " ".join(f"{columns[words[at]][0]}-{word}" for at, (word, _) in pairs if word is not None)


def _one_line(text: str) -> str:
    """A line holds one text, a column no tab."""
    return " ".join(text.splitlines()).replace("\t", " ") if text else ""
