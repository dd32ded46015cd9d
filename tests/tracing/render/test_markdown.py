"""As Markdown: tables that hold together whatever the tokens are."""

import re

from regard.tracing.render.markdown import code
from tests.tracing.render.samples import attention, heads, shapes


def rows(text: str) -> list[list[str]]:
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]


def test_a_step_is_a_heading_a_table_and_an_equation() -> None:
    assert attention().markdown(only="A") == (
        "### `A = softmax(M)`\n\n3 × 3 · rows are queries, columns keys\n\n"
        "|  | how | are | you |\n| ---: | ---: | ---: | ---: |\n"
        "| **how** | 1 | × | × |\n| **are** | 0.1015 | 0.8985 | × |\n| **you** | 0.3875 | 0.1760 | 0.4364 |\n\n"
        "`A[2, 0]: 0.3875 ≈ e^0.3756 / (e^0.3756 + e^(-0.4135) + e^0.4944)`\n\n"
        "× is blocked: nothing may be attended to there, and the weight is 0.\n"
    )


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    bad = ("a|b", "`x`", "<b>", "*c*\n", "d\\", "[e](f)", "")
    derivation = attention(7, 3).with_axes({"A": (bad, bad), "M": (bad, None)})
    for text in (derivation.markdown(), heads().markdown(), shapes().markdown(), attention(30, 40).markdown()):
        for block in text.split("\n\n"):
            assert len({len(row) for row in rows(block)}) <= 1, block
    assert r"\[e\](f)" in derivation.markdown(only="A")
    assert "&lt;b&gt;" in derivation.markdown(only="A")


def test_code_holds_whatever_backticks_are_in_it() -> None:
    assert code("a") == "`a`"
    assert code("a `b` ``c``") == "``` a `b` ``c`` ```"


def test_digits_and_slices_are_as_asked() -> None:
    assert attention().why("A", 2, 0).show(6) in attention().markdown(digits=6, only="A")
    assert "`A[1, 2]`, 4 × 4" in heads().markdown(only="A[1, 2]")
    assert "| 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | … | 38 | 39 |" in attention(4, 40).markdown(only="Q[2]")
