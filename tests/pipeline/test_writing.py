"""Pharaoh's pairs count the words of the source and of the output, and nothing else."""

import numpy as np
import pytest

from regard.pipeline.results import Attention, Piece, Result
from regard.pipeline.writing import pharaoh, written

TAG, END = Piece("<2es>", 0, 0), Piece("</s>", 9, 9)
SOURCE = "Go... now"
PIECES = (Piece("Go", 0, 2), Piece("...", 2, 5), Piece(" no", 5, 8), Piece("w", 8, 9))
"""Five words for a person, of which three points are one token."""
OUTPUT = (Piece("Va", 0, 2), Piece(" ya", 2, 5), Piece("</s>", 5, 5))


def result(source: tuple[Piece, ...], *rows: list[float], output: tuple[Piece, ...] = OUTPUT) -> Result:
    weights = np.array(rows, np.float32)[:, None, None, :]
    return Result(SOURCE, "Va ya", attention=Attention(weights, "Va ya", SOURCE, output, source))


@pytest.mark.parametrize("tag", [[TAG], [TAG, TAG], []], ids=["a tag", "two", "none"])
def test_what_stands_around_the_words_of_a_source_is_not_counted(tag: list[Piece]) -> None:
    before = [0.0] * len(tag)
    found = result(
        (*tag, *PIECES, END),
        [*before, 0.7, 0.1, 0.1, 0.1, 0.0], [*before, 0.3, 0.1, 0.3, 0.3, 0.0], [*before, 0.0, 0.0, 0.0, 0.0, 1.0],
    )  # fmt: skip
    assert pharaoh(found) == "0-0 4-1"
    assert written(found, 3, "tsv", alignment=True) == "3\t1\t0.0000\tVa ya\t0-0 4-1\n"


def test_a_word_that_looked_at_the_tag_most_goes_with_the_word_it_looked_at_most() -> None:
    found = result(
        (TAG, *PIECES, END), [0.6, 0.3, 0.1, 0.0, 0.0, 0.0], [0.1, 0.0, 0.2, 0.1, 0.0, 0.6], [1.0] + [0.0] * 5
    )
    assert pharaoh(found) == "0-0 1-1"


def test_an_output_that_was_cut_has_no_end_to_leave_out() -> None:
    rows = [0.0, 0.9, 0.0, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.8, 0.1, 0.0]
    assert pharaoh(result((TAG, *PIECES, END), *rows, output=OUTPUT[:2])) == "0-0 4-1"


def test_without_words_to_look_at_there_are_no_pairs() -> None:
    assert pharaoh(result((TAG, END), [0.5, 0.5], [0.5, 0.5], [0.5, 0.5])) == ""
    assert pharaoh(Result(SOURCE, "Va ya")) == ""
