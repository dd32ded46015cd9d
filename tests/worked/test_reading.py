"""Problem files: read as written, and each mistake told with its line, column and step."""

import torch

from regard.worked import problem_from, solve

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
