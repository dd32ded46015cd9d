"""A derivation to a file, as what its name ends in."""

from pathlib import Path

import pytest

from regard.tracing.derivation import Derivation
from tests.tracing.render.samples import attention


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.json", '{"regard":"derivation"'),
        ("a.md", "### `X is given`"),
        ("a.tex", "\\documentclass{article}"),
        ("a.txt", "X is given"),
        ("a.html", "<!doctype html>"),
        ("A.HTML", "<!doctype html>"),
    ],
)
def test_the_ending_says_what_is_written(tmp_path: Path, name: str, begins: str) -> None:
    attention().save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_what_is_saved_as_json_is_read_back(tmp_path: Path) -> None:
    attention().save(tmp_path / "a.json")
    assert Derivation.load(tmp_path / "a.json") == attention()


def test_another_ending_and_a_place_that_is_not_there_are_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"a\.pdf: a derivation is written as one of \.json, \.html, \.md, \.tex, \.txt"
    ):
        attention().save(tmp_path / "a.pdf")
    with pytest.raises(ValueError, match=r"nowhere/a\.md: cannot be written: No such file or directory"):
        attention().save(tmp_path / "nowhere" / "a.md")
    assert list(tmp_path.iterdir()) == []
