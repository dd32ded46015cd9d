"""Whole layers in one line: the steps they become, and that these give what PyTorch's own layers give."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention import attend, masks, scores
from regard.support.errors import Misuse
from regard.worked import Problem, mark, problem_from, solve


def problem(given: dict[str, Tensor], steps: str) -> Problem:
    return problem_from(text_of(given, "\n  ".join(steps.splitlines())))


def text_of(given: dict[str, Tensor], steps: str) -> str:
    lines = [f"  {name}: {value.tolist()}" for name, value in given.items()]
    return "\n".join(["given:", *lines, "steps:", f"  {steps}"])


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def formulas(of: Problem) -> list[str]:
    return [f"{step.name}: {step.formula}" for step in of.steps]


HEAD = {"X": numbers(4, 6), "Y": numbers(5, 6, seed=1)} | {
    f"W_{name}": numbers(6, 6, seed=seed) for seed, name in enumerate("QKVO", start=2)
}


def test_self_attention_becomes_the_steps_one_would_write() -> None:
    made = problem(HEAD, "O: self_attention(X, W_Q, W_K, W_V)")
    assert formulas(made) == ["Q: X @ W_Q", "K: X @ W_K", "V: X @ W_V", "E: Q @ K.T", "A: softmax(E)", "O: A @ V"]
    assert {step.layer for step in made.steps} == {"O: self_attention(X, W_Q, W_K, W_V)"}
    assert {step.line for step in made.steps} == {9}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {"score": "dot"}),
        (", scale=root", {}),
        (", mask=causal", {"score": "dot", "mask": masks.causal()}),
        (", scale=root, mask=window(1)", {"mask": masks.window(1, 1)}),
        (", mask=lengths(3)", {"score": "dot", "mask": masks.lengths(3)}),
        (", normalise=sparsemax", {"score": "dot", "normalise": "sparsemax"}),
        (", normalise=relu", {"score": "dot", "normalise": "relu"}),
    ],
)
def test_one_head_agrees_with_attend(options: str, settings: dict[str, object]) -> None:
    made = problem(HEAD, f"O: self_attention(X, W_Q, W_K, W_V{options})\nC: cross_attention(X, Y, W_Q, W_K, W_V)")
    values = solve(made).values
    q, k, v = (HEAD["X"] @ HEAD[name] for name in ("W_Q", "W_K", "W_V"))
    torch.testing.assert_close(values["O"], attend(q, k, v, **settings))  # type: ignore[call-overload]
    expected = attend(q, HEAD["Y"] @ HEAD["W_K"], HEAD["Y"] @ HEAD["W_V"], score="dot")
    torch.testing.assert_close(values["C"], expected)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_several_heads_agree_with_pytorch(heads: int) -> None:
    made = problem(HEAD, f"O: multi_head(X, W_Q, W_K, W_V, W_O, heads={heads}, Y=Y)")
    torch.testing.assert_close(solve(made).values["O"], peer(heads)(HEAD["X"], HEAD["Y"], HEAD["Y"])[0])


def peer(heads: int, names: str = "W") -> nn.MultiheadAttention:
    layer = nn.MultiheadAttention(6, heads, bias=False, dtype=torch.float64)
    fill(layer, names)
    return layer


def fill(layer: nn.MultiheadAttention, names: str) -> None:
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([MATRICES[f"{names}_{each}"].T for each in "QKV"]))
        layer.out_proj.weight.copy_(MATRICES[f"{names}_O"].T)
        if layer.in_proj_bias is not None:
            nn.init.zeros_(layer.in_proj_bias)
            nn.init.zeros_(layer.out_proj.bias)


FORWARD = {
    "W_1": numbers(6, 8, seed=6),
    "b_1": numbers(8, seed=7),
    "W_2": numbers(8, 6, seed=8),
    "b_2": numbers(6, seed=9),
}
CROSS = {f"U_{name}": numbers(6, 6, seed=seed) for seed, name in enumerate("QKVO", start=10)}
NORMS = {f"{kind}_{place}": numbers(6, seed=20 + place) for place in (1, 2, 3) for kind in ("gain", "shift")}
MATRICES = HEAD | FORWARD | CROSS
GAINS = ", ".join(f"{name}={name}" for name in NORMS)


@pytest.mark.parametrize("norm", ["post", "pre"])
@torch.no_grad()
def test_an_encoder_layer_agrees_with_pytorch(norm: str) -> None:
    norms = {name: value for name, value in NORMS.items() if not name.endswith("3")}
    made = problem(
        HEAD | FORWARD | norms,
        "O: encoder_layer(X, W_Q, W_K, W_V, W_1, W_2, W_O=W_O, b_1=b_1, b_2=b_2, heads=2, "
        f"norm={norm}, {', '.join(f'{name}={name}' for name in norms)})",
    )
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0, norm_first=norm == "pre", dtype=torch.float64)
    fill(layer.self_attn, "W")
    fill_forward(layer)
    torch.testing.assert_close(solve(made).values["O"], layer(HEAD["X"]))


@pytest.mark.parametrize("norm", ["post", "pre"])
@torch.no_grad()
def test_a_decoder_layer_agrees_with_pytorch(norm: str) -> None:
    made = problem(
        MATRICES | NORMS,
        "O: decoder_layer(X, Y, W_Q, W_K, W_V, U_Q, U_K, U_V, W_1, W_2, W_O=W_O, U_O=U_O, b_1=b_1, b_2=b_2, "
        f"heads=3, norm={norm}, {GAINS})",
    )
    layer = nn.TransformerDecoderLayer(6, 3, 8, dropout=0, norm_first=norm == "pre", dtype=torch.float64)
    fill(layer.self_attn, "W")
    fill(layer.multihead_attn, "U")
    fill_forward(layer)
    blocked = torch.ones(4, 4, dtype=torch.bool).triu(1)
    torch.testing.assert_close(solve(made).values["O"], layer(HEAD["X"], HEAD["Y"], tgt_mask=blocked))


def fill_forward(layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    layer.linear1.weight.copy_(FORWARD["W_1"].T)
    layer.linear1.bias.copy_(FORWARD["b_1"])
    layer.linear2.weight.copy_(FORWARD["W_2"].T)
    layer.linear2.bias.copy_(FORWARD["b_2"])
    for place in (1, 2, 3):
        if hasattr(layer, f"norm{place}"):
            getattr(layer, f"norm{place}").weight.copy_(NORMS[f"gain_{place}"])
            getattr(layer, f"norm{place}").bias.copy_(NORMS[f"shift_{place}"])


RECURRENT = {"s": numbers(3), "H": numbers(5, 4, seed=1), "W": numbers(3, 2, seed=2), "U": numbers(4, 2, seed=3)} | {
    "v": numbers(2, seed=4), "b": numbers(2, seed=5), "G": numbers(3, 4, seed=6), "C": numbers(7, 2, seed=7),
    "D": numbers(5, 3, seed=8), "W_c": numbers(7, 3, seed=9),
}  # fmt: skip


@pytest.mark.parametrize("column", [False, True])
def test_bahdanau_agrees_with_the_additive_score(column: bool) -> None:
    given = RECURRENT | ({"v": RECURRENT["v"][:, None]} if column else {})
    made = solve(problem(given, "c: bahdanau(s, H, W, U, v, b=b)"))
    score = scores.Additive(RECURRENT["W"], RECURRENT["U"], RECURRENT["v"], RECURRENT["b"])
    expected = attend(RECURRENT["s"][None], RECURRENT["H"], RECURRENT["H"], score=score)
    torch.testing.assert_close(made.values["c"], expected[0])
    assert [step.name for step in made.problem.steps] == ["q", "k", "t", "e", "a", "c"]


def test_bahdanau_takes_several_states_at_once() -> None:
    given = RECURRENT | {"s": numbers(2, 3)}
    score = scores.Additive(RECURRENT["W"], RECURRENT["U"], RECURRENT["v"], None)
    expected = attend(given["s"], RECURRENT["H"], RECURRENT["H"], score=score)
    torch.testing.assert_close(solve(problem(given, "c: bahdanau(s, H, W, U, v)")).values["c"], expected)


@pytest.mark.parametrize(
    ("line", "score", "memory"),
    [
        ("luong(s, D)", scores.make("dot", 3, 3), "D"),
        ("luong(s, H, G, kind=general)", scores.General(RECURRENT["G"]), "H"),
        ("luong(s, H, C, v, kind=concat)", scores.Concat(RECURRENT["C"], RECURRENT["v"]), "H"),
    ],
)
def test_luong_agrees_with_the_scores_of_the_package(line: str, score: scores.Score, memory: str) -> None:
    values = RECURRENT[memory]
    expected = attend(RECURRENT["s"][None], values, values, score=score)
    torch.testing.assert_close(solve(problem(RECURRENT, f"c: {line}")).values["c"], expected[0])


def test_luong_makes_its_state_of_the_context_and_the_state() -> None:
    values = solve(problem(RECURRENT, "h: luong(s, H, G, kind=general, W_c=W_c)")).values
    expected = torch.tanh(torch.cat([values["c"], RECURRENT["s"]]) @ RECURRENT["W_c"])
    torch.testing.assert_close(values["h"], expected)


def test_parts_whose_names_are_taken_get_the_name_of_their_line() -> None:
    made = problem(HEAD, "O: self_attention(X, W_Q, W_K, W_V)\nZ: cross_attention(O, Y, W_Q, W_K, W_V)")
    assert [step.name for step in made.steps] == [*"QKVEAO", "Q_Z", "K_Z", "V_Z", "E_Z", "A_Z", "Z"]
    assert formulas(made)[-3:] == ["E_Z: Q_Z @ K_Z.T", "A_Z: softmax(E_Z)", "Z: A_Z @ V_Z"]


def test_names_of_later_lines_and_of_what_is_given_are_left_to_them() -> None:
    made = problem(HEAD | {"V": numbers(2)}, "O: self_attention(X, W_Q, W_K, W_V)\nA: O * 2")
    assert [step.name for step in made.steps] == ["Q_O", "K_O", "V_O", "E_O", "A_O", "O", "A"]


def test_a_layer_may_stand_inside_a_formula_and_inside_a_layer() -> None:
    made = problem(
        HEAD,
        "R: X + self_attention(X, W_Q, W_K, W_V)\nP: self_attention(self_attention(X, W_Q, W_K, W_V), W_Q, W_K, W_V)",
    )
    assert formulas(made)[5] == "R: X + A @ V"
    inner = solve(problem(HEAD, "Z: self_attention(X, W_Q, W_K, W_V)\nO: self_attention(Z, W_Q, W_K, W_V)")).values
    torch.testing.assert_close(solve(made).values["P"], inner["O"])
    torch.testing.assert_close(solve(made).values["R"], HEAD["X"] + inner["Z"])


def test_what_is_worked_out_for_a_layer_is_a_step_of_its_own() -> None:
    made = problem(HEAD, "O: self_attention(X + 1, W_Q, W_K.T, W_V)")
    assert formulas(made)[:3] == ["X_O: X + 1", "Q_O: X_O @ W_Q", "K_O: X_O @ W_K.T"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("^self_attention(X, W_Q, W_K)", r"self_attention also needs W_V: self_attention\(X, W_Q, W_K, W_V"),
        ("self_attention(X, W_Q, W_K, W_V, scale=^rooot)", r"unknown scale 'rooot'; did you mean 'root'\?"),
        ("^self_attention(X, W_Q, W_K, W_V, heads=2)", r"has no 'heads'"),
        ("^self_atention(X, W_Q, W_K, W_V)", r"no function 'self_atention'; did you mean 'self_attention'\?"),
        ("multi_head(X, W_Q, W_K, W_V, W_O, heads=^4)", r"Q has 6 columns, which 4 heads cannot share"),
        ("multi_head(X, W_Q, W_K, W_V, W_O, heads=^100)", r"heads is a whole number from 1 to 32.* it is 100"),
        ("multi_head(X, W_Q, W_K, W_V, W_O, heads=^X)", r"heads is a whole number from 1 to 32, as it stands; it is X"),
        ("^luong(X[0], Y, kind=general)", r"kind=general also needs W"),
        ("luong(X[0], Y, ^W_Q)", r"kind=dot does not read W; kind=general or kind=concat does"),
        ("luong(X[0], Y, W_Q, ^X[0], kind=general)", r"kind=general does not read v; kind=concat does"),
        ("luong(^X, Y, W_Q, X[0], kind=concat)", r"kind=concat joins one row s to each row of H"),
        ("self_attention(X, W_Q, W_K, W_V, mask=^triangle)", r"nothing is called 'triangle'"),
        ("self_attention(X, W_Q, W_K, ^X)", r"V of `O: self_attention\(X, W_Q, W_K, X\)`: the shapes do not fit"),
        ("X + self_attention(X, ^W_Q[0:2], W_K, W_V)", r"Q of .* do not fit: X is 4×6 and W_Q\[0:2\] is 2×6"),
        ("^self_attention(X, W_Q[:, 0:2], W_K, W_V)", r"E of .* Q is 4×2 and K\.T is 6×4"),
        ("self_attention(^X + Y, W_Q, W_K, W_V)", r"X_O of .* X is 4×6 and Y is 5×6, and \+ goes cell by cell"),
        ("self_attention(X + ^Y[9], W_Q, W_K, W_V)", r"X_O of .*, in `Y\[9\]`: Y is 5×6 and has no row 9"),
        ("self_attention(X * 2, ^W_Q[0:2], W_K, W_V)", r"Q_O of .* X_O is 4×6 and W_Q\[0:2\] is 2×6"),
        ("self_attention(X, W_Q, W_K, W_V, mask=^X)", r"M of .* a mask that is given has 1 where a query may attend"),
        ("self_attention(X, W_Q, W_K, W_V, mask=^window(1, 2, 3))", r"M of .* this rule is written window\(n\)"),
        ("multi_head(X, W_Q, W_K, W_V, ^Y, heads=2)", r"O of .* H is 4×6 and Y is 5×6"),
        ("^encoder_layer(X, W_Q, W_K, W_V[:, 0:3], W_Q, W_K)", r"R_1 of .* X is 4×6 and Z is 4×3"),
        ("encoder_layer(X, W_Q, W_K, W_V, ^W_Q[0:2], W_K)", r"F of .* N_1 is 4×6 and W_Q"),
        ("encoder_layer(X, W_Q, W_K, W_V, W_Q, W_K, b_1=^X[0, 0:2])", r"F of .* and \+ goes cell by cell"),
        ("bahdanau(X[0], Y, W_Q, ^W_K[0:2], X[0])", r"k of .* Y is 5×6 and W_K\[0:2\] is 2×6"),
        ("luong(X[0], cross_attention(Y, X, W_Q, ^W_K[0:2], W_V))", r"K of .* X is 4×6 and W_K\[0:2\] is 2×6"),
        ("luong(X[0], ^cross_attention(Y, X, W_Q[:, 0:2], W_K, W_V))", r"E of .* Q is 5×2 and K\.T is 6×4"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lines", [1, 2])
def test_what_is_wrong_with_a_layer_is_told_with_its_place(line: str, said: str, lines: int) -> None:
    column = len("  O: ") + line.index("^") + 1
    line, row = line.replace("^", ""), 9
    if lines == 2:  # the same line, folded after its first bracket
        first, _, rest = line.partition("(")
        line, row, behind = f">\n      {first}(\n      {rest}", 10, column - len(f"  O: {first}(")
        column, row = (6 + behind, 11) if behind > 0 else (column + 1, 10)
    with pytest.raises(Misuse, match=rf"^problem:{row}:{column}: step .*{said}"):
        solve(problem_from(text_of(HEAD, f"O: {line}")))


def test_an_answer_may_claim_the_parts_of_a_layer() -> None:
    text = """
given: {X: [[1, 0], [0, 2]], W: [[1, 2], [3, 4]]}
steps: {O: "self_attention(X, W, W, W, mask=causal)"}
claimed:
  E: [[5, 22], [22, 90]]
  A: [[1, 0], [0, 1]]
  O: [[1, 2], [6, 8]]
"""
    marks = mark(problem_from(text))
    assert {step.name: step.verdict for step in marks.steps if step.verdict != "unclaimed"} == {
        "E": "wrong", "A": "right", "O": "right",
    }  # fmt: skip
    assert marks.first_wrong is not None
    assert (marks.first_wrong[0].name, marks.first_wrong[1].place) == ("E", (2, 2))
