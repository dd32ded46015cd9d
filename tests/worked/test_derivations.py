"""Problems under the trace: every cell opens, says what is true, and is called what a person would call it."""

import json
import math
from fractions import Fraction

import pytest

from regard.support.errors import Misuse
from regard.tracing import Derivation
from regard.tracing.cell import Expression
from regard.worked import Solution, problem_from, read_problem, solve
from regard.worked.page import FORMATS, page
from regard.worked.shipped import shipped

EVERYTHING = """\
title: Most of what there is
given:
  X: {how: [0.1, 0.2, 0.7], are: [0.4, -0.5, 0.6]}
  W: [[1, 2, 3], [4, 5, 2], [7, 1, 9]]
  v: [0.5, -1, 2]
  h: [0.1, -0.3]
  U: [[0.2, 0.4], [0.1, -0.5], [0.3, 0.6]]
  R: [[0.5, -0.2], [0.3, 0.8]]
  mean: 2
words:
  vocabulary: [mat, cat]
  sentence: [cat, cat, mat]
steps:
  Q: X @ W
  E: Q @ Q.T
  M: mask(scale(E, 3), causal)
  A: softmax(M)
  S: sparsemax(E)
  O: A @ X
  same: O
  row: O[0]
  hot: one_hot(sentence, vocabulary)
  found: embed(X, sentence)
  codes: one_hot(v[0:1] * 2, 3)
  PE: positional(2, 3) + X
  N: layer_norm(O, v)
  loss: cross_entropy(A, one_hot(stack(0, 1), 2))
  zero: cross_entropy(one_hot(stack(0, 1), 2), one_hot(stack(0, 1), 2))
  r: correlation(X[0], v)
  spread: var(X, axis=1)
  length: norm(X, axis=0) / mean
  top: max(X) + argmax(v)
  state: rnn_cell(v, h, U, R)
  gru: gru_cell(v, h, concat(U, U, U), concat(R, R, R))
  lstm: lstm_cell(v, h, h, concat(U, U, U, U), concat(R, R, R, R))
  score: additive_score(v, X, W, W, v)
  T: stack(X, X * 2)
"""


@pytest.fixture(scope="module")
def everything() -> Solution:
    return solve(problem_from(EVERYTHING.replace("embed(X, sentence)", "embed(X, v[0:1] * 2)")))


def value_of(a: Expression) -> float:
    """An expression worked out from its numbers, apart from the code under test: what a reader would do."""
    of = [value_of(each) for each in a.of]
    match a.form:
        case "cell" | "number":
            assert a.value is not None
            return float(a.value.real)
        case "sum":
            return math.fsum(of)
        case "product":
            return math.prod(of)
        case "difference":
            return of[0] - of[1]
        case "quotient":
            return of[0] / of[1]
        case "power":
            return of[0] ** of[1]
        case "negative":
            return -of[0]
        case "compare":
            return float({"==": of[0] == of[1], "<=": of[0] <= of[1], ">": of[0] > of[1]}[a.name])
        case "choose":
            return of[1] if of[0] else of[2]
        case "round":
            return of[0]
        case "softmax":
            terms = [value_of(each) for each in a.terms]
            return math.exp(of[0] - max(terms)) / math.fsum(math.exp(each - max(terms)) for each in terms)
        case "over":
            return over(a, [value_of(each) for each in a.terms])
        case "function":
            return FUNCTIONS[a.name](*of)
    raise AssertionError(f"no reader knows {a.form} {a.name}")


def over(a: Expression, terms: list[float]) -> float:
    mean = math.fsum(terms) / len(terms)
    return {
        "sum": lambda: math.fsum(terms),
        "mean": lambda: mean,
        "max": lambda: max(terms),
        "argmax": lambda: float(terms.index(max(terms))),
        "norm": lambda: math.sqrt(math.fsum(each * each for each in terms)),
        "variance": lambda: math.fsum((each - mean) ** 2 for each in terms) / (len(terms) - float(str(a.number))),
    }[a.name]()


FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
    "sin": math.sin,
    "cos": math.cos,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "maximum": max,
    "minimum": min,
}


def cells(derivation: Derivation) -> list[tuple[str, tuple[int, ...]]]:
    places = []
    for step in derivation.steps:
        for flat in range(step.size):
            index = []
            for size in reversed(step.shape):
                flat, at = divmod(flat, size)
                index.append(at)
            places.append((step.name, tuple(reversed(index))))
    return places


def test_every_cell_opens_and_its_arithmetic_is_true(everything: Solution) -> None:
    assert opened_and_true(everything.derivation) > 150


def test_every_cell_of_whole_layers_opens_as_well() -> None:
    matrix = "[[0.1, -0.4], [0.7, 0.3]]"
    names = [f"{letter}_{each}" for letter in "WU" for each in "QKVO"] + ["W_1", "W_2", "X", "Y"]
    given = "\n".join(f"  {name}: {matrix}" for name in names)
    own, crossing = "W_Q, W_K, W_V", "U_Q, U_K, U_V"
    lines = {
        "en": f"encoder_layer(X, {own}, W_1, W_2, W_O=W_O, b_1=v, heads=2, gain_1=v, shift_1=v, mask=window(1))",
        "de": f"decoder_layer(Y, en, {own}, {crossing}, W_1, W_2, U_O=U_O, norm=pre)",
        "ba": "bahdanau(v, X, W_1, W_2, v, b=v)",
        "lu": "luong(v, X, stack(concat(v, v), concat(v, v)).T, v, kind=concat)",
        "se": f"self_attention(X, {own}, scale=root, normalise=sparsemax)",
    }
    steps = "\n".join(f"  {name}: {line}" for name, line in lines.items())
    solution = solve(problem_from(f"given:\n  v: [0.5, -1]\n{given}\nsteps:\n{steps}"))
    assert opened_and_true(solution.derivation) > 150


def opened_and_true(derivation: Derivation) -> int:
    """How many cells there are with arithmetic, all of it true."""
    opened = 0
    for name, index in cells(derivation):
        cell = derivation.why(name, *index)
        assert cell.text, (name, index)
        if cell.expression.form == "number" and cell.expression.name == "fill":
            assert cell.value == -math.inf
            continue
        assert cell.expression.form not in ("opaque", "made", "given"), f"{name}{index}: {cell.text}"
        assert value_of(cell.expression) == pytest.approx(float(cell.value.real), rel=1e-9, abs=1e-12), (
            f"{name}{index}: {cell.text}"
        )
        opened += 1
    return opened


def test_the_values_of_the_derivation_are_those_of_the_solution(everything: Solution) -> None:
    for name, value in everything.values.items():
        assert (everything.derivation[name].value == value).all(), name
        assert tuple(everything.derivation[name].shape) == tuple(value.shape)


def test_steps_are_those_of_the_problem_and_parts_are_called_after_them(everything: Solution) -> None:
    own = {*everything.problem.given, *(step.name for step in everything.problem.steps)}
    shown = [step.name for step in (*everything.derivation.givens, *everything.derivation.steps)]
    assert own <= set(shown)
    assert len(shown) == len(set(shown))
    assert {name.partition(".")[0] for name in shown} == own
    assert shown[-1] == "T"
    assert "spread.squares" in shown


def test_no_constant_inside_of_a_function_counts_as_given(everything: Solution) -> None:
    assert [step.name for step in everything.derivation.givens] == [*everything.problem.given]


def test_formulas_are_written_as_people_write_them(everything: Solution) -> None:
    formulas = {step.name: step.formula for step in everything.derivation.steps}
    assert formulas["E"] == "Q Qᵀ"
    assert formulas["M"] == "mask(E / √3, causal)"
    assert formulas["hot"] == "one_hot(sentence, vocabulary)"


def test_rows_that_happen_to_sum_to_one_are_no_weights(everything: Solution) -> None:
    kinds = {step.name: step.kind for step in everything.derivation.steps}
    assert (kinds["A"], kinds["S"], kinds["hot"]) == ("weights", "weights", "plain")


@pytest.mark.parametrize("name", [*shipped()])
def test_every_shipped_problem_opens_cell_by_cell(name: str) -> None:
    derivation = solve(read_problem(name)).derivation
    for step, index in cells(derivation):
        cell = derivation.why(step, *index)
        assert cell.expression.form != "opaque", f"{step}{index}: {cell.text}"


def test_axes_have_the_words_that_follow_from_what_the_problem_says() -> None:
    solution = solve(problem_from(WORDS))
    axes = {step.name: step.axes for step in solution.derivation.steps}
    words, memory = ("how", "are"), ("wie", "geht", "es")
    assert axes["Q"] == (words, None)
    assert axes["E"] == axes["A"] == axes["S"] == (words, memory)
    assert axes["turned"] == (memory, words)
    assert axes["O"] == (words, ("x", "y"))
    assert axes["first"] == (memory,)
    assert axes["both"] == (words, None)
    assert axes["pair"] == (None, words, memory)
    assert axes["total"] == (words,)
    assert axes["part"] == (("are",), memory)
    assert axes["own"] == (None, ("a", "b", "c"))


WORDS = """\
given:
  X: {how: [1, 2], are: [3, 4]}
  Y: [[1, 0], [0, 1], [2, 2]]
  W: [[1, 2], [3, 4]]
axes:
  Y: [wie, geht, es]
  O: {columns: [x, y]}
  own: {columns: [a, b, c]}
steps:
  Q: X @ W
  E: Q @ Y.T
  A: softmax(mask(E, lengths(2)) / 2)
  S: A + E * 2
  turned: E.T
  O: A @ Y
  first: A[0]
  both: concat(X, Q)
  pair: stack(A, E)
  total: sum(A, axis=1)
  part: A[1:]
  own: X.T @ A
"""


@pytest.mark.parametrize("form", FORMATS)
def test_every_rendering_of_a_problem_has_its_steps(form: str, everything: Solution) -> None:
    written = page(everything, form, width=80)
    assert "Most of what there is" in written or form == "json"
    # 0.8 / √3, which the score of the first row comes to, unless another number of digits is asked for
    assert written != page(everything, form, digits=6) or form == "json"
    if form == "text":
        assert max(map(len, written.splitlines())) <= 80
    if form == "json":
        assert Derivation.from_json(written) == everything.derivation


@pytest.mark.parametrize("form", FORMATS)
def test_only_the_steps_that_were_asked_for_are_shown(form: str) -> None:
    solution = solve(read_problem("masked-self-attention"))
    written = page(solution, form, only="A, O")
    if form == "json":
        assert [step["name"] for step in json.loads(written)["steps"] if step["shown"]] == ["A", "O"]
    elif form == "text":
        assert "A = softmax(M)" in written
        assert "E = " not in written
    assert len(written) < len(page(solution, form))


def test_what_is_shown_alone_keeps_its_arithmetic() -> None:
    solution = solve(read_problem("self-attention"))
    alone = Derivation.from_json(page(solution, "json", only="A"))
    assert alone.why("A", 1, 2).text == solution.derivation.why("A", 1, 2).text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"only": "B"}, "unknown step 'B'"),
        ({"only": "A[9]"}, "'A' has the shape .*: index 9 on axis 0 is out of range"),
        ({"digits": 9}, "digits: expected a whole number from 2 to 6; got 9"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_sentence(options: dict[str, object], said: str) -> None:
    solution = solve(read_problem("self-attention"))
    for form in ("text", "markdown"):
        with pytest.raises(Misuse, match=said):
            page(solution, form, **options)  # type: ignore[arg-type]


def test_an_equation_that_is_exact_is_written_so() -> None:
    derivation = solve(read_problem("self-attention")).derivation
    assert derivation.why("E", 1, 2).text == "12 = 2·2 + 2·3 + 2·1"
    assert Fraction(derivation.why("E", 1, 2).value) == 12
