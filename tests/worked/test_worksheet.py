"""Worksheets: the given numbers as written, empty cells for each step, and a key that holds the answers."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from regard.support.errors import Misuse
from regard.worked import Solution, problem_from, read_problem, solve
from regard.worked.formula import parse_formula
from regard.worked.marking import mark
from regard.worked.notation import HTML, LATEX, spelled
from regard.worked.shipped import shipped
from regard.worked.worksheet import FORMATS, worksheet

TEXT = """\
title: "Half & <half> of 50% # of it"
about: One_line *about* it
given:
  X: {how: [0.10, −2], "a_<b": [3e-5, 1]}
  k: 7
steps:
  Q: X @ X.T
  M: mask(Q, causal)
  r: X[0] * k
  T: stack(X, Q)
  s: sum(T)
"""


@pytest.fixture
def half() -> Solution:
    return solve(problem_from(TEXT, "half.yaml"))


@pytest.mark.parametrize("form", FORMATS)
def test_a_sheet_holds_no_answer_and_the_key_holds_all(form: str, half: Solution) -> None:
    answers = ["4.01", "0.7", "-14"]  # Q[0, 0], r[0] and r[1]
    sheet, key = (worksheet(half, form, part=part).replace("−", "-") for part in ("sheet", "key"))
    for answer in answers:
        assert not re.search(rf"(?<![\d.]){re.escape(answer)}(?![\d.])", sheet), answer
        assert re.search(rf"(?<![\d.]){re.escape(answer)}(?![\d.])", key), answer


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_given_numbers_stand_as_they_were_written(form: str, half: Solution) -> None:
    sheet = worksheet(half, form, part="sheet")
    assert re.search(r"(?<![\d.])0\.10(?![\d])", sheet)


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_both_is_the_sheet_and_then_its_key(form: str, half: Solution) -> None:
    both = worksheet(half, form)
    assert both.index("Name:") < both.index("Key:") < both.rindex("4.01")
    assert "Key:" not in worksheet(half, form, part="sheet")
    assert "Name:" not in worksheet(half, form, part="key")


def test_the_html_has_an_empty_field_for_every_cell_that_is_to_be_worked(half: Solution) -> None:
    seen = Tags()
    seen.feed(worksheet(half, "html", part="sheet"))
    labels = [attributes["aria-label"] for tag, attributes in seen.tags if tag == "input"]
    assert len(labels) == 4 + 4 + 2 + 8 + 1
    assert labels[:2] == ["Q row 1 column 1", "Q row 1 column 2"]
    assert "T[1] row 2 column 1" in labels
    assert seen.open == []
    assert "a_<b" in seen.text
    assert "Half & <half> of 50% # of it" in seen.text


class Tags(HTMLParser):
    """Every tag, and the text between them; `open` at the end are those that were not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("input", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_an_html_worksheet_loads_nothing(half: Solution) -> None:
    assert not re.search(r"https?:|src=|@import|url\(", worksheet(half, "html"))


@pytest.mark.parametrize("name", [*shipped()])
def test_the_latex_of_every_shipped_problem_holds_together(name: str) -> None:
    written = worksheet(solve(read_problem(name)), "latex")
    opened = re.findall(r"\\begin\{(\w+)\}|\\end\{(\w+)\}", written)
    waiting = []
    for begin, end in opened:
        if begin:
            waiting.append(begin)
        else:
            assert waiting.pop() == end
    assert waiting == []
    plain = re.sub(r"\\[{}$%&#_\\]", "", written)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    for table in re.findall(r"\\begin\{tabular\}\{([^{}]*)\}(.*?)\\end\{tabular\}", written, re.DOTALL):
        columns = len(re.findall("[cr]", table[0]))
        for row in re.findall(r"^(.*?)\\\\", table[1], re.MULTILINE):
            assert len(re.findall(r"(?<!\\)&", row)) == columns - 1, row


def test_markdown_tables_have_as_many_cells_in_each_row(half: Solution) -> None:
    written = worksheet(half, "markdown")
    tables = re.findall(r"(?:^\|.*\n)+", written, re.MULTILINE)
    assert len(tables) == 2 + 2 * (1 + 1 + 1 + 2 + 1)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    assert r"One\_line \*about\* it" in written


def test_an_answer_file_that_is_filled_in_with_the_key_is_all_right(tmp_path: Path) -> None:
    (tmp_path / "half.yaml").write_text(TEXT, encoding="utf-8")
    solution = solve(read_problem(tmp_path / "half.yaml"))
    answer = tmp_path / "answer.yaml"
    answer.write_text(worksheet(solution, "yaml", part="key"), encoding="utf-8")
    counts = mark(read_problem(answer)).counts
    assert counts == {"right": 5, "follows": 0, "wrong": 0, "unclaimed": 0}


def test_an_answer_file_claims_what_is_filled_in_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "half.yaml").write_text(TEXT, encoding="utf-8")
    answer = tmp_path / "answer.yaml"
    text = worksheet(solve(read_problem(tmp_path / "half.yaml")), "yaml")
    answer.write_text(text, encoding="utf-8")
    assert mark(read_problem(answer)).counts == {"right": 0, "follows": 0, "wrong": 0, "unclaimed": 5}
    answer.write_text(text.replace("_, _", "_, 1", 1), encoding="utf-8")
    marks = mark(read_problem(answer))
    assert marks.counts["unclaimed"] == 4
    cells = [cell.verdict for step in marks.steps for cell in step.cells]
    assert [*map(cells.count, ("right", "wrong", "follows"))].count(1) == 1
    assert len(cells) == cells.count("unclaimed") + 1


def test_an_answer_to_a_shipped_problem_names_it() -> None:
    written = worksheet(solve(read_problem("self-attention")), "yaml")
    assert yaml.safe_load(written)["problem"] == "self-attention"


def test_rows_and_columns_have_the_words_of_the_problem() -> None:
    sheet = worksheet(solve(read_problem("cross-attention")), "markdown", part="sheet")
    assert "|  | word 1 | word 2 | word 3 | word 4 |" in sheet
    assert "| **output 1** |" in sheet


@pytest.mark.parametrize(("part", "form", "said"), [("half", "html", "unknown part"), ("key", "pdf", "unknown format")])
def test_what_a_worksheet_cannot_be_is_told(part: str, form: str, said: str, half: Solution) -> None:
    with pytest.raises(Misuse, match=said):
        worksheet(half, form, part=part)


@pytest.mark.parametrize(
    ("formula", "text", "latex", "markup"),
    [
        ("X @ W_Q", "X W_Q", r"X\, W_{Q}", "<var>X</var> <var>W</var><sub>Q</sub>"),
        (
            "Q @ K.T / sqrt(3)",
            "Q Kᵀ / √3",
            r"\frac{Q\, K^{\top}}{\sqrt{3}}",
            "<var>Q</var> <var>K</var><sup>T</sup> / √3",
        ),
        ("scale(a + b, 2)", "(a + b) / √2", r"\frac{a + b}{\sqrt{2}}", "(<var>a</var> + <var>b</var>) / √2"),
        ("A @ (B - C)", "A (B - C)", r"A\, \left(B - C\right)", "<var>A</var> (<var>B</var> − <var>C</var>)"),
        ("A - (B - C)", "A - (B - C)", r"A - \left(B - C\right)", "<var>A</var> − (<var>B</var> − <var>C</var>)"),
        ("A @ -B", "A (-B)", r"A\, \left(-B\right)", "<var>A</var> (−<var>B</var>)"),
        ("A @ (b * C)", "A (b · C)", r"A\, \left(b \cdot C\right)", "<var>A</var> (<var>b</var> · <var>C</var>)"),
        ("(A / 2) @ V", "(A / 2) V", r"\frac{A}{2}\, V", "(<var>A</var> / 2) <var>V</var>"),
        ("a * (B @ C) @ D", "(a · B C) D", r"\left(a \cdot B\, C\right)\, D", None),
        ("A @ B @ C", "A B C", r"A\, B\, C", "<var>A</var> <var>B</var> <var>C</var>"),
        ("a / (b * c)", "a / (b · c)", r"\frac{a}{b \cdot c}", "<var>a</var> / (<var>b</var> · <var>c</var>)"),
        ("(a * b) ** 2", "(a · b)^2", r"{\left(a \cdot b\right)}^{2}", "(<var>a</var> · <var>b</var>)<sup>2</sup>"),
        ("exp(a - b)", "e^(a - b)", "{e}^{a - b}", "e<sup><var>a</var> − <var>b</var></sup>"),
        ("A[0, 1:]", "A[0, 1:]", "A[0, 1:]", "<var>A</var>[0, 1:]"),
    ],
)
def test_formulas_are_written_as_people_write_them(formula: str, text: str, latex: str, markup: str | None) -> None:
    root = parse_formula(formula).root
    assert (spelled(root), spelled(root, LATEX)) == (text, latex)
    assert markup is None or spelled(root, HTML) == markup
