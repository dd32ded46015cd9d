"""Formulas: what they may hold, what they give, and where they go wrong."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import positions
from regard.worked.errors import FormulaError
from regard.worked.formula import parse_formula

A = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], dtype=torch.float64)
B = torch.tensor([[2.0, 0.0, 1.0], [1.0, 1.0, -3.0]], dtype=torch.float64)
P = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]], dtype=torch.float64)
v = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
w = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
k = torch.tensor(2.0, dtype=torch.float64)
VALUES = {"A": A, "B": B, "P": P, "v": v, "w": w, "k": k}

CASES: list[tuple[str, Tensor | float]] = [
    ("A + B", A + B),
    ("A - B * 2", A - B * 2),
    ("A / k", A / 2),
    ("A @ B.T", A @ B.T),
    ("v @ A.T", v @ A.T),
    ("A @ v", A @ v),
    ("v @ w", v @ w),
    ("-A ** 2", -(A**2)),
    ("2 ** -1", 0.5),
    ("(A + B) * v", (A + B) * v),
    ("A[0]", A[0]),
    ("A[1, -1]", A[1, -1]),
    ("A[:, 0:2]", A[:, 0:2]),
    ("A[:, ::2]", A[:, ::2]),
    ("A.T[0:1]", A.T[0:1]),
    ("softmax(A)", A.softmax(-1)),
    ("softmax(A, axis=0)", A.softmax(0)),
    ("softmax(A, 0)", A.softmax(0)),
    ("relu(A)", A.relu()),
    ("tanh(A)", A.tanh()),
    ("sigmoid(A)", A.sigmoid()),
    ("exp(A)", A.exp()),
    ("log(v)", v.log()),
    ("log10(v)", v.log10()),
    ("sqrt(v)", v.sqrt()),
    ("sum(A)", A.sum()),
    ("sum(A, axis=1)", A.sum(1)),
    ("mean(A, 0)", A.mean(0)),
    ("var(A)", A.var(correction=0)),
    ("var(A, 1, correction=1)", A.var(1, correction=1)),
    ("max(A)", 4.0),
    ("max(A, axis=1)", A.amax(1)),
    ("argmax(A)", 4.0),
    ("argmax(A, axis=1)", A.argmax(1).double()),
    ("norm(A)", A.norm()),
    ("norm(A, axis=0)", A.norm(dim=0)),
    ("dot(v, w)", v @ w),
    ("correlation(v, w)", torch.corrcoef(torch.stack([v, w]))[0, 1]),
    ("concat(A, B)", torch.cat([A, B], 1)),
    ("concat(A, B, axis=0)", torch.cat([A, B])),
    ("concat(v, A)", torch.cat([v.expand(2, 3), A], 1)),
    ("stack(v, w)", torch.stack([v, w])),
    ("stack(1, 2, 3)", torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)),
    ("mask(A, causal)", torch.tensor([[1.0, -2.0, -math.inf], [0.5, 4.0, -1.0]], dtype=torch.float64)),
    ("mask(A, lengths(1))", torch.tensor([[1.0] + [-math.inf] * 2, [0.5] + [-math.inf] * 2], dtype=torch.float64)),
    ("softmax(mask(A, A - A))", torch.zeros(2, 3, dtype=torch.float64)),
    ("scale(A, 4)", A / 2),
    ("positional(3, 4)", positions.sinusoids(3, 4)),
    ("one_hot(2, 4)", torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=torch.float64)),
    ("one_hot(v[0:2], 3)", torch.eye(3, dtype=torch.float64)[1:]),
    ("embed(A, 1)", A[1]),
    ("embed(B, v[0:1] - 1)", B[0:1]),
    ("layer_norm(A)", F.layer_norm(A, (3,))),
    ("layer_norm(A, v, w, eps=0.1)", F.layer_norm(A, (3,), v, w, 0.1)),
    ("cross_entropy(P, stack(1, 0))", -torch.tensor([0.7, 0.5], dtype=torch.float64).log()),
    ("cross_entropy(P[0], 2, base=10)", -math.log10(0.2)),
    ("cross_entropy(P, one_hot(stack(1, 0), 3))", -torch.tensor([0.7, 0.5], dtype=torch.float64).log()),
]


@pytest.mark.parametrize(("formula", "expected"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_formula_gives_what_pytorch_gives(formula: str, expected: Tensor | float) -> None:
    found = parse_formula(formula, VALUES).compute(VALUES)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=torch.float64))


def test_a_window_reaches_its_places_to_either_side() -> None:
    square = torch.zeros(4, 4, dtype=torch.float64)
    found = parse_formula("mask(X, window(1))").compute({"X": square})
    places = torch.arange(4)
    assert torch.equal(found == 0, (places[:, None] - places).abs() <= 1)


@pytest.mark.parametrize(("name", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
@torch.no_grad()
def test_cells_agree_with_pytorchs_own(name: str, gates: int) -> None:
    peers = {"rnn": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}
    cell = peers[name](3, 2, dtype=torch.float64)
    h, c = torch.tensor([0.1, -0.3], dtype=torch.float64), torch.tensor([0.4, 0.2], dtype=torch.float64)
    values = {
        "x": v,
        "h": h,
        "c": c,
        "W": cell.weight_ih.T,
        "U": cell.weight_hh.T,
        "b": cell.bias_ih,
        "d": cell.bias_hh,
    }
    state = "h, c" if name == "lstm" else "h"
    found = parse_formula(f"{name}_cell(x, {state}, W, U, b, d)").compute(values)
    expected = torch.stack(cell(v, (h, c))) if name == "lstm" else cell(v, h)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "formula",
    ["A @ B.T", "(A + B) * v", "-(A + B)", "-A @ B.T", "A - (B - A)", "A / (B / A)", "(A ** 2) ** 2", "A ** 2 ** 2",
     "(A @ B.T).T", "(A + B)[0, 1:]", "softmax(mask(A, causal, window(1, 2)), axis=0)", "A ** -1", "A[-1][:, 0:2]"],
)  # fmt: skip
def test_a_tree_written_out_reads_back_to_an_equal_one(formula: str) -> None:
    root = parse_formula(formula).root
    assert str(root) == formula
    assert parse_formula(str(root)).root == root


WRONG = [
    ("A @ B", 1, "A is 2×3 and B is 2×3, so 3 columns on the left meet 2 rows on the right; A @ B.T would fit"),
    ("A * v.T[0:2]", 1, "A is 2×3 and v.T[0:2] is 2 numbers, and * goes cell by cell"),
    ("A @ 2", 1, "@ multiplies matrices; a number times anything is written *"),
    ("A + Wq", 5, "nothing is called 'Wq' so far"),
    ("A + AT", 5, "nothing is called 'AT'; the transpose of A is A.T"),
    ("softmx(A)", 1, "there is no function 'softmx'; did you mean 'softmax'?"),
    ("softmax(A, axes=1)", 1, "softmax has no 'axes'; did you mean 'axis'? (softmax(x, axis=…))"),
    ("softmax(A, axis=2)", 1, "axis 2: 2×3 has the axes 0 to 1"),
    ("softmax(A, 1, 2)", 1, "softmax takes 2 at most, softmax(x, axis=…); 3 are given"),
    ("softmax()", 1, "softmax also needs x: softmax(x, axis=…)"),
    ("2 * softmax", 5, "softmax is a function and wants brackets: softmax(x, axis=…)"),
    ("causal(A)", 1, "causal is a rule for mask(…): mask(E, causal)"),
    ("mask(A, casual)", 9, "there is no rule 'casual'; did you mean 'causal'?"),
    ("mask(A, windw(2))", 9, "there is no function 'windw'; did you mean 'window'?"),
    ("mask(A, seen)", 9, "nothing is called 'seen' so far"),
    ("mask(A, none)", 1, "a mask of none blocks nothing; leave it out"),
    ("mask(A, A)", 1, "a mask that is given has 1 where a query may attend to a key and 0 where not, nothing else"),
    ("mask(v, causal)", 1, "a mask goes over scores, one row a query; these are 3 numbers"),
    ("A[2]", 1, "A is 2×3 and has no row 2 (counted from 0: 0 to 1)"),
    ("A[0, 0, 0]", 1, "3 indices, but A is 2×3"),
    ("A[5:]", 1, "nothing is left of A, which is 2×3"),
    ("A[0.5]", 3, "an index is a whole number, counted from 0, or a slice such as 0:2"),
    ("A.shape", 1, ".shape has no meaning here; after a dot stands only T, the transpose"),
    ("[A, B]", 1, "a list has no place in a formula; joining is concat(a, b) or stack(a, b)"),
    ("[A; B]", 3, "a semicolon has no meaning here; joining is concat(a, b)"),
    ("A · B", 3, "a product is written * (cell by cell) or @ (of matrices)"),
    ("A^2", 2, "a power is written **"),
    ("A // B", 1, "// and % have no place in a formula; a quotient is written /"),
    ("A < B", 1, "comparisons and conditions have no place in a formula"),
    ("A ** 200", 1, "powers go up to 100, either way; this one is 200"),
    ("(A + B", 1, "1 bracket is not closed"),
    ("A +", 4, "the formula ends where something should follow"),
    ("Q = A", 3, "a formula has no = sign; the name of the step stands before the colon"),
    ("", 1, "there is no formula"),
    ("__import__('os')", 12, "a formula holds no text and no primes"),
    ("(lambda: A)()", 2, "only a function by its name can be called"),
    ("A if k else B", 1, "comparisons and conditions have no place in a formula"),
    ("v(2)", 1, "v is a value and no function; a product is written * or @"),
    ("scale(A, -1)", 1, "scale divides by the root of d, which must be above 0; it is -1"),
    ("scale(A, v)", 1, "d must be one number; it is 3 numbers"),
    ("one_hot(5, 3)", 1, "word: a place is a whole number from 0 to 2; got 5"),
    ("embed(A, 2)", 1, "word: a place is a whole number from 0 to 1; got 2"),
    ("dot(A, v)", 1, "dot takes two rows of as many numbers; got 2×3 and 3 numbers"),
    ("stack(A, v)", 1, "stack takes values of one shape; got 2×3 and 3 numbers"),
    ("concat(k, k)", 1, "concat joins rows and matrices; for single numbers there is stack"),
    ("concat(A, A.T)", 1, "what is joined must agree in all axes but the one that grows; got 2×3 and 3×2"),
    ("rnn_cell(v, w, A, A)", 1, "rnn_cell: W_x must be 3×3 here; it is 2×3"),
    ("cross_entropy(P, v)", 1, "p is 2×3 and y 3 numbers: y has p's shape, or one class for each row"),
    ("cross_entropy(P, P, base=1)", 1, "the base of a logarithm is above 0 and not 1; it is 1"),
    ("1_000 j", 7, "not a formula"),
    ("A @ 5j", 5, "5j is no number"),
    ("9e999 * A", 1, "this number is too large to count with"),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "column", "said"), WRONG, ids=lambda case: str(case))
def test_what_is_wrong_is_told_with_its_place(formula: str, column: int, said: str) -> None:
    with pytest.raises(FormulaError) as raised:  # either may be what goes wrong
        parse_formula(formula, VALUES).compute(VALUES)
    assert said in raised.value.said
    assert raised.value.at.start + 1 == column


def test_the_place_counts_letters_and_not_bytes() -> None:
    with pytest.raises(FormulaError, match="nothing is called 'c' so far") as raised:
        parse_formula("αβγ + c", ["αβγ"])
    assert raised.value.at.start == 6
