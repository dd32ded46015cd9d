"""The loop of a command over lines: a group at a time, what is wrong told by line, and the rest done all the same."""

import sys
from collections.abc import Callable, Sequence

from regard.data.lines import Line
from regard.pipeline.lines import Reader, Writer
from regard.pipeline.results import Result
from regard.pipeline.writing import Answer
from regard.support.errors import Failure
from regard.support.progress import Progress

TOLD = 20
"""So many lines are told of one by one; of further ones only how many there are."""


def run(
    answers: Callable[[Sequence[str]], Sequence[Answer]],
    reader: Reader,
    writer: Writer,
    written: Callable[[Answer, int], str],
    *,
    what: str,
    quiet: bool = False,
) -> None:
    """Read, answer, write, in order. A Failure at the end says that there were lines without an answer."""
    trouble = _Trouble()
    with Progress(what, "lines", quiet=quiet) as progress:
        if writer.done:
            progress.add(writer.done, done_before=True)
            print(f"regard: going on behind line {writer.done:,}", file=sys.stderr)
        for group in reader.groups(writer.done):
            first = writer.done + 1
            found = _answered(answers, group)
            unusable = sum(bool(each.problem) for each in found)
            writer.write((written(each, first + place) for place, each in enumerate(found)), len(group), unusable)
            for place, each in enumerate(found):
                trouble.note(each, first + place)
            progress.add(len(group), share=reader.share())
    writer.whole()
    trouble.end()
    if writer.unusable:
        raise Failure(f"{writer.unusable:,} of {writer.done:,} lines could not be used; the others are done")


def _answered(answers: Callable[[Sequence[str]], Sequence[Answer]], group: Sequence[Line]) -> list[Answer]:
    """An answer for each line; a line that is no text has none."""
    texts = [line for line in group if isinstance(line, str)]
    coming = iter(answers(texts) if texts else ())
    return [next(coming) if isinstance(line, str) else Result(line.text, "", problem=line.said) for line in group]


class _Trouble:
    """Lines that have no answer, or one to be careful with, told on standard error."""

    def __init__(self) -> None:
        self.told = 0

    def note(self, answer: Answer, number: int) -> None:
        remarks = answer.remarks if isinstance(answer, Result) else ()
        for said in [answer.problem] if answer.problem else remarks:
            self.told += 1
            if self.told <= TOLD:
                print(f"regard: line {number}: {said}", file=sys.stderr)

    def end(self) -> None:
        if self.told > TOLD:
            print(f"regard: and {self.told - TOLD:,} remarks more", file=sys.stderr)
