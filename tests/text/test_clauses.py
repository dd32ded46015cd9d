"""Sentences that are too long are cut where a reader would pause, and nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.clauses import clauses
from regard.text.sentences import Sentence, joined


def cut(text: str, most: int) -> list[str]:
    return [each.text for each in clauses(Sentence(text, ""), lambda part: len(part) <= most)]


CASES = [
    ("short.", 20, ["short."]),
    ("He came, he saw; and so on.", 16, ["He came, he saw;", "and so on."]),
    ("He came and sat, then he left again.", 22, ["He came and sat,", "then he left again."]),
    ("one two three four", 10, ["one two", "three four"]),
    ("Er kam – und ging gleich wieder fort.", 30, ["Er kam", "– und ging gleich wieder fort."]),
    ("吾輩は猫である、名前はまだ無い。", 10, ["吾輩は猫である、", "名前はまだ無い。"]),
    ("मैं घर गया, और वह आया।", 14, ["मैं घर गया,", "और वह आया।"]),
    ("abcdefgh", 4, ["abcd", "efgh"]),
    ("a, bcdefghijklmnopqrstuvwxyz and more", 30, ["a, bcdefghijklmnopqrstuvwxyz", "and more"]),
]


@pytest.mark.parametrize(("text", "most", "parts"), CASES)
def test_a_cut_is_at_the_best_place_near_the_middle(text: str, most: int, parts: list[str]) -> None:
    assert cut(text, most) == parts


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text("ab,;: \n–。", max_size=60), st.integers(1, 20))
def test_the_parts_fit_and_together_are_the_sentence(text: str, most: int) -> None:
    found = list(clauses(Sentence(text.strip(), "  "), lambda part: len(part) <= most))
    assert joined(found, [each.text for each in found]) == text.strip() + "  "
    assert all(len(each.text) <= most for each in found)
