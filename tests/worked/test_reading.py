"""Problem files: read as written, and each mistake told with its line, column and step."""

from pathlib import Path

import pytest
import torch

from regard.support.errors import Misuse
from regard.worked import problem_from, read_problem, solve

MASKED = """\
title: Masked self-attention
given:
  X:   [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
  W_Q: [[1, 2, 3], [4, 5, 2], [7, 1, 9]]
  W_K: [[1, 6, 9], [7, 3, 1], [9, 2, 1]]
  W_V: [[2, 4, 6], [8, 0, 2], [1, 6, 8]]
given_rounded: [W_Q]
steps:
  Q: X @ W_Q
  K: X @ W_K
  V: X @ W_V
  E: Q @ K.T
  M: mask(E, causal)
  A: softmax(M)
  O: A @ V
claimed:
  E: "[[20.06, 51.53], [45.38, 117.0]]"
  M: [[20.06, -inf], [45.38, 117.0]]
"""


def test_a_problem_is_read_as_it_was_written() -> None:
    problem = problem_from(MASKED, "masked.yaml")
    assert problem.title == "Masked self-attention"
    assert problem.given["X"].cells[0] == ["0.1", "0.2", "0.3"]
    assert [given.rounded for given in problem.given.values()] == [False, True, False, False]
    assert [(step.name, step.formula.source, step.line) for step in problem.steps][3:5] == [
        ("E", "Q @ K.T", 12),
        ("M", "mask(E, causal)", 13),
    ]
    assert problem.claimed["E"].cells == [["20.06", "51.53"], ["45.38", "117.0"]]
    assert problem.claimed["M"].value.tolist() == [[20.06, float("-inf")], [45.38, 117.0]]


def test_the_steps_are_worked_in_float64() -> None:
    values = solve(problem_from(MASKED)).values
    assert values["E"].dtype == torch.float64
    # The notes' own numbers (file 001): E = [[20.06, 51.53], [45.38, 116.99]], and the output is V.
    torch.testing.assert_close(values["E"], torch.tensor([[20.06, 51.53], [45.38, 116.99]], dtype=torch.float64))
    torch.testing.assert_close(values["O"], torch.tensor([[2.1, 2.2, 3.4], [5.4, 5.2, 8.2]], dtype=torch.float64))


def test_digits_are_kept_as_they_were_written() -> None:
    problem = problem_from('given: {X: [0.10, 1e-3, −2, "3.50"]}\nsteps: {Y: X}\nclaimed: {Y: "[0.1, .5, -∞, +2]"}')
    assert problem.given["X"].cells == ["0.10", "1e-3", "−2", "3.50"]
    assert problem.given["X"].value.tolist() == [0.1, 0.001, -2.0, 3.5]
    assert problem.claimed["Y"].cells == ["0.1", ".5", "-∞", "+2"]
    assert problem.claimed["Y"].value.tolist() == [0.1, 0.5, float("-inf"), 2.0]


def test_rows_may_have_names_by_which_embed_finds_them() -> None:
    text = "given:\n  E: {dog: [1, 2], cat: [3, 4]}\nwords: {s: [cat, dog, cat]}\n"
    text += "steps:\n  one: embed(E, cat)\n  all: embed(E, s)\n"
    values = solve(problem_from(text)).values
    assert values["one"].tolist() == [3, 4]
    assert values["all"].tolist() == [[3, 4], [1, 2], [3, 4]]
    named = text.replace("E: {dog: [1, 2], cat: [3, 4]}", "E: [[1, 2], [3, 4]]\naxes: {E: [dog, cat]}")
    assert solve(problem_from(named)).values["one"].tolist() == [3, 4]


def test_an_answer_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "masked.yaml").write_text(MASKED, encoding="utf-8")
    answer = tmp_path / "ada.yaml"
    answer.write_text("problem: masked.yaml\nname: Ada\nclaimed: {Q: [[1, 2, 3], [4, 5, 6]]}\n", encoding="utf-8")
    problem = read_problem(answer)
    assert (problem.title, problem.answered_by, [*problem.claimed]) == ("Masked self-attention", "Ada", ["Q"])
    assert [step.name for step in problem.steps] == list("QKVEMAO")


def test_a_shipped_problem_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_problem("self-attention").title == "Self-attention"
    (tmp_path / "self-attention").write_text("title: Mine\ngiven: {X: 1}\nsteps: {Y: X}\n", encoding="utf-8")
    assert read_problem("self-attention").title == "Mine"  # a file that is here goes before


START = "given: {X: [[1, 2], [3, 4]], v: [1, 2]}\n"

MISTAKES = [
    ("steps: {Y: 1}", r"p\.yaml:1:1: there is no `given`"),
    ("given: {X: 1}", r"p\.yaml:1:1: there is no `steps`"),
    (START + "steps: {}", r"p\.yaml:2:8: there are no steps"),
    (START + "step: {Y: X}", r"p\.yaml:2:1: unknown key 'step'; did you mean 'steps'\?"),
    (START + "steps:\n  Y: X @ W\n", r"p\.yaml:3:10: step Y, in `W`: nothing is called 'W' so far"),
    (START + "steps:\n  Y: X @ X @ X[0:1]\n", r"p\.yaml:3:6: step Y: the shapes do not fit: X @ X is 2×2"),
    (START + "steps:\n  Y: \"softmx(X)\"\n", r"p\.yaml:3:7: step Y, in `softmx`: there is no function 'softmx'"),
    (START + "steps:\n  Y: >\n    X +\n    Z\n", r"p\.yaml:5:5: step Y, in `Z`: nothing is called 'Z'"),
    (START + "steps:\n  Y: | # folded\n\n    X +\n      Z\n", r"p\.yaml:6:7: step Y, in `Z`: nothing is called"),
    (START + "steps:\n  Y: X +\n     Z\n", r"p\.yaml:4:6: step Y, in `Z`: nothing is called 'Z'"),
    (START + "steps:\n  Y: X +\n\n", r"p\.yaml:3:9: step Y: the formula ends where something should follow"),
    (START + 'steps: {Y: "\\x58 +\\\n  \\t Z"}', r"p\.yaml:3:6: step Y, in `Z`: nothing is called 'Z'"),
    (START + "steps: {Y: !!str 'X + ''Z'}", r"p\.yaml:2:23: step Y, in `'`: a formula holds no text"),
    (START + "steps: {Y: &f X + Z}", r"p\.yaml:2:19: step Y, in `Z`: nothing is called 'Z'"),
    (START + 'steps: {Y: "X + \\x1b[31m"}', r"p\.yaml:2:17: step Y: the character U\+001B has no meaning here"),
    (START + "steps: {Y: X}\nclaimed:\n  Y: >\n    [[1, 2],\n     [3, x]]\n", r"p\.yaml:6:10: claimed Y: expected"),
    (START + "steps: {Y: X}\nclaimed: {Y: '[[1, 2],\n [3, ''x'']]'}", r"p\.yaml:4:6: claimed Y: expected a number"),
    (START + "steps: {Y: X}\nclaimed: {Y: '[[1, 2],\n [3, ]'}", r"p\.yaml:4:7: not YAML: a comma or the closing \]"),
    (START + "# a \x07 bell\nsteps: {Y: X}", r"p\.yaml:2:5: the character U\+0007, which nobody sees, has no place"),
    (START + "steps: {Y: X\x00}", r"p\.yaml:2:13: the character U\+0000, which nobody sees"),
    (START + "steps: {Y: X}\ntitle: \ud800", r"p\.yaml:3:8: the character U\+D800, which nobody sees"),
    ("\ufeffgiven: {X: 1}\nsteps: {Y: \ufeffX}", r"p\.yaml:2:12: the character U\+FEFF, which nobody sees"),
    (START + 'steps: {Y: X}\nclaimed: {Y: "[[1, 2], [3, \\x01]]"}', r"p\.yaml:3:28: the character U\+0001, which"),
    (START + "steps: {X: v}", r"p\.yaml:2:9: step X: X is given already; a step needs a name of its own"),
    (START + "steps: {Y: v, Y: X}", r"p\.yaml:2:15: 'Y' stands here and on line 2; one of them must go"),
    (START + "steps: {Y: [X, v]}", r"p\.yaml:2:12: step Y: expected a formula, came a list; joining is concat\(a, b\)"),
    (START + "steps: {my step: X}", r"p\.yaml:2:9: 'my step' cannot stand in a formula"),
    (START + "steps: {lambda: X}", r"p\.yaml:2:9: 'lambda' is a word of the formula language and cannot be a name"),
    (START + "steps: {causal: X}", r"p\.yaml:2:9: 'causal' is a word of the formula language"),
    (START + "steps: {Y: X}\nclaimed: {Z: 1}", r"p\.yaml:3:11: claimed: unknown step 'Z'"),
    (START + "steps: {Y: X}\nclaimed: {X: 1}", r"p\.yaml:3:11: claimed: X is given, and is no step"),
    (START + "steps: {Y: X}\nclaimed: {Y: [[1, 2], [3]]}", r"p\.yaml:3:23: claimed Y: this row has 1 cells"),
    (START + "steps: {Y: X}\nclaimed: {Y: \"[[1, 2], [3, x]]\"}", r"p\.yaml:3:28: claimed Y: expected a number"),
    (START + "steps: {Y: X}\ngiven_rounded: [W]", r"p\.yaml:3:17: given_rounded: unknown given 'W'"),
    (START + "steps: {Y: X}\naxes: {W: [a, b]}", r"p\.yaml:3:8: axes: unknown name 'W'"),
    (START + "steps: {Y: X}\naxes: {X: [a]}", r"p\.yaml:3:11: axes X: 1 rows are named, and X has 2"),
    (START + "steps: {Y: X @ v}\naxes: {Y: [a, b, c]}", r"p\.yaml:3:11: axes Y: 3 columns are named, and Y has 2"),
    (START + "steps: {Y: sum(X)}\naxes: {Y: [a]}", r"p\.yaml:3:11: axes Y: Y is one number and has no rows to name"),
    (START + "steps: {Y: v}\naxes: {Y: {rows: [a, b]}}", r"p\.yaml:3:11: axes Y: Y is 2 numbers and has no rows"),
    (START + "steps: {Y: one_hot(a, v)}\nwords: {v: [b]}", r"p\.yaml:2:19: step Y: 1 bracket.*; within { } a comma"),
    ("given: {X: 1, X: 2}\nsteps: {Y: X}", r"p\.yaml:1:15: 'X' stands here and on line 1"),
    ("given: {X: [[1, 2], 3]}\nsteps: {Y: X}", r"p\.yaml:1:21: given X: a number stands where the first row"),
    ("given: {X: [1, [2]]}\nsteps: {Y: X}", r"p\.yaml:1:16: given X: a row stands where the first row has a number"),
    ("given: {X: [1, two]}\nsteps: {Y: X}", r"p\.yaml:1:16: given X: expected a number, came 'two'"),
    ("given: {X: [1, inf]}\nsteps: {Y: X}", r"p\.yaml:1:9: given X: only -inf \(a blocked cell\) may be endless"),
    ("given: {X: [1, 1e999]}\nsteps: {Y: X}", r"p\.yaml:1:16: given X: 1e999 is too large a number to count with"),
    ("given: {X: [1, ]}\nsteps: {Y: X / 0}", r"p\.yaml:2:12: step Y: the cell \[1\] has no end \(a division by 0"),
    ("given: {X: -1}\nsteps: {Y: log(X)}", r"p\.yaml:2:12: step Y: the result is not a number \(0 / 0, or a root"),
    ("given: {X: 0}\nsteps: {Y: log(X)}", r"p\.yaml:2:12: step Y: the result is minus infinity \(a logarithm of 0\?\)"),
    ("given: {X: []}\nsteps: {Y: X}", r"p\.yaml:1:12: given X has an empty row"),
    ("given:\n\tX: 1\nsteps: {Y: X}", r"p\.yaml:2:1: not YAML: a tab where YAML wants spaces"),
    ("given: {X: 1\nsteps: {Y: X}", r"p\.yaml:2:6: not YAML: a comma or the closing } is missing before this"),
    ("given: {X: !!python/object:os.system 1}\nsteps: {Y: X}", r"p\.yaml:1:12: the tag .* has no meaning here"),
    ("given: {X: 1}\n---\nsteps: {Y: X}", r"p\.yaml:2:1: a second document begins here; a file holds one problem"),
    ("- 1", r"p\.yaml:1:1: a problem: expected names and values \(name: value\), came a list"),
    ("problem: self-attention\nsteps: {Y: X}", r"p\.yaml:2:1: `steps` comes from the problem that this file answers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_a_mistake_is_told_with_its_line_and_column(text: str, said: str) -> None:
    with pytest.raises(Misuse, match=f"^{said}"):
        solve(problem_from(text, "p.yaml"))


@pytest.mark.parametrize("blank", ["_", "[[_, _], [_, _]]", '"[[_, _], [_, _]]"', "[_, …]", "", '"_"', "null"])
def test_a_step_left_blank_is_not_claimed(blank: str) -> None:
    problem = problem_from(f"given: {{X: [1, 2]}}\nsteps: {{Y: X, Z: X}}\nclaimed:\n  Y: {blank}\n  Z: [1, 2]\n")
    assert [*problem.claimed] == ["Z"]


BLANK = ['"[[1, _], [_, _]]"', "[[1, '?'], _]", "[[1, null], [~, _]]", "\n  - [1, …]\n  - \n", "[[1, '']\n   , '_']"]


@pytest.mark.parametrize("claim", BLANK)
def test_cells_left_blank_are_no_numbers(claim: str) -> None:
    claimed = problem_from(f"given: {{X: [[1, 2], [3, 4]]}}\nsteps: {{Y: X}}\nclaimed:\n  Y: {claim}\n").claimed["Y"]
    assert claimed.value.isnan().tolist() == [[False, True], [True, True]]
    assert claimed.cells[0][0] == "1"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("[_, [1, 2], [3]]", r"p:3:26: claimed Y: this row has 1 cells, the first has 2"),
        ("[_, [1, x]]", r"p:3:22: claimed Y: expected a number, came 'x'"),
        ("[[1, 2], [_, _, _]]", r"p:3:23: claimed Y: this row has 3 cells, the first has 2"),
        ("[1, [_]]", r"p:3:18: claimed Y: a row stands where the first row has a number"),
    ],
)
def test_what_is_wrong_beside_blank_cells_is_told(claim: str, said: str) -> None:
    with pytest.raises(Misuse, match=f"^{said}"):
        problem_from(f"given: {{X: [[1, 2], [3, 4]]}}\nsteps: {{Y: X}}\nclaimed: {{Y: {claim}}}", "p")


def test_nothing_that_is_given_may_be_blank() -> None:
    with pytest.raises(Misuse, match=r"^p:1:16: given X: a number is missing here"):
        problem_from("given: {X: [1, _]}\nsteps: {Y: X}", "p")


def test_a_mistake_in_a_problem_is_told_with_its_own_file_when_an_answer_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("given: {X: 1}\nsteps:\n  Y: X / 0\n", encoding="utf-8")
    (tmp_path / "ada.yaml").write_text("problem: one.yaml\nclaimed: {Y: 1}\n", encoding="utf-8")
    with pytest.raises(Misuse, match=r"one\.yaml:3:6: step Y: the result has no end"):
        solve(read_problem(tmp_path / "ada.yaml"))


def test_text_as_long_as_no_problem_is_refused() -> None:
    with pytest.raises(Misuse, match=r"^problem: 500001 characters, and a problem has at most 500000"):
        problem_from("#" * 500_001)


def test_too_many_lines_are_refused_before_any_is_read() -> None:
    lines = "".join(f"  A{number}: no such formula\n" for number in range(401))
    with pytest.raises(Misuse, match=r"^p:2:1: more than 400 steps, counted with those of whole layers: 401"):
        problem_from(f"given: {{X: 1}}\nsteps:\n{lines}", "p")


def test_text_that_is_no_file_names_shipped_problems_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("title: Secret\ngiven: {x: 1}\nsteps: {y: x + 1}\n")
    assert problem_from("problem: self-attention\nclaimed: {}\n").title == "Self-attention"
    for said in (str(tmp_path / "secret.yaml"), "../problems/self-attention.yaml"):
        with pytest.raises(Misuse, match="unknown shipped problem"):
            problem_from(f"problem: {said}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("given: {X: 1}\nsteps: {A: X}\nclaimed: {" + "k" * 900 + ": 1}", r"unknown step 'k{40}…'"),
        ("given: {X: 1}\nsteps: {A: X}\naxes: {" + "k" * 900 + ": [a]}", r"axes: unknown name 'k{40}…'"),
        ("given: {X: !!" + "k" * 900 + " 1}", r"the tag .{60} has no meaning here"),
        ("given: {X: *" + "k" * 900 + "}", r"the alias \*k{40} is nowhere defined"),
        ("given:\n" + ("  " + "k" * 900 + ": 1\n") * 2, r"'k{40}' stands here and on line 2"),
    ],
)
def test_long_names_are_told_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(Misuse, match=said) as told:
        problem_from(text)
    assert len(str(told.value)) < 300


def test_of_many_names_some_are_told_and_the_nearest() -> None:
    lines = "".join(f"  result_{number}: X\n" for number in range(300))
    with pytest.raises(
        Misuse, match=r"unknown step 'resut_299'; did you mean 'result_299'\?.* and 280 more\)$"
    ) as told:
        problem_from(f"given: {{X: 1}}\nsteps:\n{lines}claimed: {{resut_299: 1}}")
    assert len(str(told.value)) < 500


def test_names_of_rows_and_words_send_nothing_to_a_terminal() -> None:
    text = 'given: {X: {"a\\e[31m": [1, 2], "b\\ac": [3, 4]}}\nwords: {w: ["x\\e[1m", "y\\nz"]}\n'
    problem = problem_from(f'{text}axes: {{Y: {{columns: ["p\\e[5m", q]}}}}\nsteps: {{Y: X, Z: "one_hot(w, w)"}}')
    assert problem.axes["X"][0] == ("a[31m", "bc")
    assert problem.axes["Y"][1] == ("p[5m", "q")
    assert problem.words["w"] == ("x[1m", "y z")
