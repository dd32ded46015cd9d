"""Results as lines: text, columns between tabs, JSON."""

import json
from typing import Literal, get_args

from regard.pipeline.results import Labelled, Result, Tagged

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
    """`0-0 1-2 …`: for each output word the source word it looked at most; the end is no word."""
    if result.attention is None or not result.text:
        return ""
    weights, rows, _ = result.attention.of_words()
    ends = rows[-1:] == ("</s>",) and result.attention.output_pieces[-1].text == "</s>"
    best = weights.argmax(1).tolist()
    return " ".join(f"{source}-{place}" for place, source in enumerate(best[: len(rows) - ends]))


def _one_line(text: str) -> str:
    """A line holds one text, a column no tab."""
    return " ".join(text.splitlines()).replace("\t", " ") if text else ""
