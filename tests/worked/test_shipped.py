"""The shipped problems: all that the lecture notes work, their true values, and every mistake in their answers."""

import re

import pytest
import torch

from regard.worked import Problem, problem_from, read_problem, solve
from regard.worked.marking import mark
from regard.worked.marks import CUT, Marks
from regard.worked.shipped import shipped

# What the collection must hold, by subject.
SUBJECTS = [
    "dot-attention", "multiplicative-attention", "self-attention-scaled", "self-attention", "masked-self-attention",
    "cross-attention", "lets-go", "positional-encoding", "money-bank", "money-bank-embeddings", "correlation",
    "variance", "softmax-scaling", "cross-entropy", "bahdanau", "luong", "rnn-step", "relu-attention", "column-wise",
    "two-heads", "output-places", "how-are-you", "one-hot", "bag-of-words", "tf-idf",
]  # fmt: skip

RIGHT, FOLLOWS, WRONG = "right", "follows", "wrong"
DIGIT, NOTHING = "one digit misread", ""

# Every cell of the notes' answers that is not plainly right, worked out by hand from the numbers as given: file, step,
# cell, verdict, and what is said beside it (of the cell, or of the step that it is in).
CELLS: list[tuple[str, str, tuple[int, int], str, str]] = [
    ("dot-attention", "a", (1, 2), RIGHT, CUT),
    *(("multiplicative-attention", "Wh", cell, WRONG, NOTHING) for cell in [(2, 3), (2, 4), (3, 2), (3, 3), (3, 4)]),
    *(("multiplicative-attention", "e", cell, FOLLOWS, NOTHING) for cell in [(1, 2), (1, 3)]),
    *(("multiplicative-attention", "a", (1, k), FOLLOWS, NOTHING) for k in (1, 2, 3)),
    *(("multiplicative-attention", name, (1, k), FOLLOWS, NOTHING) for name in ("c", "joined") for k in (1, 2, 3, 4)),
    ("self-attention-scaled", "E", (1, 1), RIGHT, CUT),
    ("self-attention-scaled", "E", (2, 3), WRONG, NOTHING),  # the root of 3 as 1.732: off by 0.0001
    ("self-attention-scaled", "A", (2, 1), FOLLOWS, CUT),
    ("self-attention-scaled", "Z", (2, 2), WRONG, NOTHING),
    ("self-attention", "E", (2, 3), WRONG, DIGIT),
    ("self-attention", "A", (2, 1), WRONG, DIGIT),
    ("self-attention", "A", (2, 2), FOLLOWS, NOTHING),
    ("self-attention", "A", (2, 3), FOLLOWS, NOTHING),
    ("self-attention", "A", (3, 1), RIGHT, CUT),
    ("self-attention", "O", (1, 1), WRONG, NOTHING),
    ("self-attention", "O", (2, 1), FOLLOWS, CUT),
    ("self-attention", "O", (2, 2), FOLLOWS, NOTHING),
    ("self-attention", "O", (2, 3), FOLLOWS, NOTHING),
    ("self-attention", "O", (3, 1), WRONG, NOTHING),
    ("self-attention", "O", (3, 3), RIGHT, CUT),
    *(("cross-attention", "A", cell, RIGHT, CUT) for cell in [(1, 3), (2, 1), (2, 2)]),
    ("lets-go", "slide", (1, 1), RIGHT, CUT),
    ("lets-go", "QV", (1, 1), WRONG, DIGIT),
    *(("positional-encoding", "cosine_exponent", (1, k), WRONG, "the exponent 2i+1 in a cosine") for k in (1, 2)),
    *(("positional-encoding", "PE_1", (1, k), WRONG, "sines in degrees") for k in (1, 2, 3)),
    ("correlation", "r", (1, 1), RIGHT, CUT),
    ("word-codes", "codes", (4, 3), WRONG, DIGIT),
    *(("two-heads", "B_1", (i, k), WRONG, NOTHING) for i in (2, 3, 4) for k in (1, 2)),
    # Of another shape: cells too many, or missing.
    *(("column-wise", "alpha_11", (1, k), WRONG, NOTHING) for k in (1, 2)),
    *(("column-wise", "b_1", (i, k), WRONG, NOTHING) for i in (1, 2, 3) for k in range(1, 7)),
    ("cross-entropy", "L", (1, 3), RIGHT, CUT),
    ("cross-entropy", "average", (1, 1), WRONG, NOTHING),
    ("money-bank", "q_money", (1, 2), WRONG, NOTHING),
    ("money-bank", "q_bank", (1, 2), WRONG, NOTHING),
    ("money-bank", "v_bank", (1, 2), WRONG, DIGIT),
    *(("money-bank", name, (1, k), WRONG, NOTHING) for name in ("s_bank", "scaled_bank", "w_bank") for k in (1, 2)),
    ("variance", "after", (1, 1), WRONG, DIGIT),
    *(("bag-of-words", "counts", (1, k), WRONG, "two cells swapped") for k in (1, 2)),
    *(("weight-rows", "total", (1, k), WRONG, "a row of weights that does not sum to one") for k in (2, 3, 8)),
    ("alignments", "i_plus_j", (1, 1), WRONG, NOTHING),
    ("alignments", "terms_of_c2", (1, 1), WRONG, DIGIT),
    *(("luong", name, (1, k), WRONG, NOTHING) for name in ("e_1", "a", "c") for k in (1, 2, 3, 4)),
]

# The same for "Let's go" where the printed weights are taken as they stand, without the digits behind them.
EXACT_WEIGHTS = [
    ("K", (1, 1), WRONG),
    ("E", (1, 1), FOLLOWS),
    ("E", (2, 1), FOLLOWS),
    ("KE", (1, 2), WRONG),
    ("e_eos", (1, 1), FOLLOWS),
    ("QV", (1, 1), WRONG),
    ("e_vamos", (1, 2), WRONG),
    ("vamos_4", (1, 1), WRONG),
    ("vamos_5", (1, 1), FOLLOWS),
]

MARKS: dict[str, Marks] = {}


def marks_of(name: str) -> Marks:
    if name not in MARKS:
        MARKS[name] = mark(read_problem(name))
    return MARKS[name]


def lets_go(without: str = "", **claims: str) -> Problem:
    """The shipped problem with a line left out, or with other claims."""
    text = shipped()["lets-go"].read_text(encoding="utf-8")
    text = re.sub(rf"^{without}:.*\n", "", text, flags=re.M) if without else text
    for name, claim in claims.items():
        text, count = re.subn(rf"(claimed:\n(?:.*\n)*  {name}:).*", rf"\1 {claim}", text)
        assert count == 1
    return problem_from(text, "lets-go")


def test_the_collection_holds_every_calculation_of_the_notes() -> None:
    names = list(shipped())
    assert len(names) >= 24
    assert set(SUBJECTS) <= set(names)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_problem_is_worked(name: str) -> None:
    problem = read_problem(name)
    values = solve(problem).values
    assert problem.title
    assert 10 < len(problem.about) <= 54, "a line of the list, beside the name"
    assert all(bool(torch.isfinite(value).logical_or(torch.isneginf(value)).all()) for value in values.values())


@pytest.mark.parametrize(("name", "step", "cell", "verdict", "said"), CELLS)
def test_every_discrepancy_of_the_notes_has_its_verdict(
    name: str, step: str, cell: tuple[int, int], verdict: str, said: str
) -> None:
    marked = marks_of(name)[step]
    found = next(each for each in marked.cells if each.place == cell)
    assert (found.verdict, found.remark) == (verdict, said if said == CUT else "")
    if verdict == WRONG:
        assert (marked.slip or "").startswith(said)
        assert bool(marked.slip) == bool(said)


@pytest.mark.parametrize("name", shipped())
def test_nothing_else_is_said_of_the_notes_answers(name: str) -> None:
    listed = {(step, cell) for file, step, cell, _, _ in CELLS if file == name}
    found = {
        (step.name, cell.place)
        for step in marks_of(name).steps
        for cell in step.cells
        if cell.verdict != "right" or cell.remark
    }
    assert found == listed


@pytest.mark.parametrize(
    ("name", "step", "cell"),
    [
        ("multiplicative-attention", "Wh", (2, 3)),
        ("self-attention-scaled", "E", (2, 3)),
        ("self-attention", "E", (2, 3)),
        ("positional-encoding", "cosine_exponent", (1, 1)),
        ("lets-go", "QV", (1, 1)),
        ("money-bank", "q_money", (1, 2)),
        ("bag-of-words", "counts", (1, 1)),
        ("cross-entropy", "average", (1, 1)),
        ("two-heads", "B_1", (2, 1)),
    ],
)
def test_the_first_wrong_cell_is_called_out(name: str, step: str, cell: tuple[int, int]) -> None:
    first = marks_of(name).first_wrong
    assert first is not None
    assert (first[0].name, first[1].place) == (step, cell)


@pytest.mark.parametrize("name", ["masked-self-attention", "cross-attention", "one-hot", "softmax-scaling"])
def test_a_right_answer_has_no_wrong_cell(name: str) -> None:
    marks = marks_of(name)
    assert marks.first_wrong is None
    assert marks.counts["right"] == len(marks.steps) - marks.counts["unclaimed"] > 0


@pytest.mark.parametrize(("step", "cell", "verdict"), EXACT_WEIGHTS)
def test_weights_taken_as_printed_show_the_digits_behind_them(step: str, cell: tuple[int, int], verdict: str) -> None:
    marked = mark(lets_go("given_rounded"))[step]
    assert next(each for each in marked.cells if each.place == cell).verdict == verdict


def test_weights_taken_as_printed_first_fail_at_the_key_of_lets() -> None:
    first = mark(lets_go("given_rounded")).first_wrong
    assert first is not None
    assert (first[0].name, first[1].place) == ("K", (1, 1))


def test_the_query_of_vamos_is_right_as_it_was_meant() -> None:
    # Its product with the key of <EOS>, -1.1, needs -1.1 where -1.3 was read.
    assert mark(lets_go(QV="[-1.1, -0.1]")).first_wrong is None


def test_the_context_that_the_scan_lost_is_right() -> None:
    text = shipped()["dot-attention"].read_text(encoding="utf-8") + "  c: [0.215, 0.315, 0.415, 0.515]\n"
    assert mark(problem_from(text))["c"].verdict == "right"


# The notes' true values, computed in float64 by other hands.
TRUE = [
    ("dot-attention", "e", [0.6, 0.82, 1.04]),
    ("dot-attention", "a", [0.2632, 0.3280, 0.4087]),
    ("dot-attention", "c", [0.2145, 0.3145, 0.4145, 0.5145]),
    ("multiplicative-attention", "e", [1.04, 1.412, 1.784]),
    ("multiplicative-attention", "a", [0.2195, 0.3185, 0.4620]),
    ("multiplicative-attention", "c", [0.2242, 0.3242, 0.4242, 0.5242]),
    ("self-attention-scaled", "E", [[3.698, 6.537, 3.933], [6.742, 11.893, 7.135], [6.072, 10.619, 6.240]]),
    ("self-attention", "E", [[2, 4, 4], [4, 16, 12], [4, 12, 10]]),
    (
        "self-attention",
        "O",
        [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]],
    ),
    ("masked-self-attention", "O", [[2.1, 2.2, 3.4], [5.4, 5.2, 8.2], [8.7, 8.2, 13], [12, 11.2, 17.8]]),
    ("cross-attention", "O", [[12, 11.2, 17.8], [12, 11.2, 17.8]]),
    ("lets-go", "Q", [[-0.995, 3.738], [-3.724, 0.600]]),
    ("lets-go", "K", [[-4.814, 1.916], [1.851, -0.237]]),
    ("lets-go", "V", [[2.478, -2.088], [-2.721, 1.546]]),
    ("correlation", "r", 0.9968),
    ("correlation", "cosine", 0.99968),
    ("positional-encoding", "PE_3_3", 0.99955),
    ("money-bank", "s_money", [691, 1086]),
    ("money-bank", "s_bank", [1086, 1467]),
    ("cross-entropy", "total", 2.398),
    ("cross-entropy", "natural_total", 5.5215),
    ("cross-entropy", "natural_average", 1.8405),
    ("variance", "after", 4),
    ("column-wise", "difference", [[0, 0], [0, 0], [0, 0]]),
    ("softmax-scaling", "near_percent", [26.894, 73.106]),
]


@pytest.mark.parametrize(("name", "step", "true"), TRUE)
def test_the_true_values_are_those_of_the_notes(name: str, step: str, true: list[float]) -> None:
    expected = torch.tensor(true, dtype=torch.float64)
    torch.testing.assert_close(solve(read_problem(name)).values[step], expected, rtol=1e-5, atol=5.1e-4)


def test_lets_go_says_vamos_and_then_ends() -> None:
    values = solve(read_problem("lets-go")).values
    said = [("ir", "vamos", "y", "<EOS>")[int(values[name])] for name in ("word", "word_2")]
    assert said == ["vamos", "<EOS>"]


def test_bank_is_not_the_same_in_two_sentences() -> None:
    values = solve(read_problem("money-bank-embeddings")).values
    assert torch.equal(values["money_bank_grows"][1], values["river_bank_flows"][1])
    assert float(values["apart"].abs().max()) > 0.5


def test_the_readers_list_holds_every_shipped_problem() -> None:
    page = (shipped()["self-attention"].parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+) \|$", page, flags=re.M)
    assert rows == [(name, path.name, read_problem(path).about) for name, path in shipped().items()]
