"""Derivations of any size: masked self-attention and shapes hard to show, made by hand; small models, traced."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

import regard
from regard.tracing.derivation import Derivation
from regard.tracing.forms import (
    FUNCTIONS,
    OVER,
    Form,
    Operand,
    Rule,
    cell,
    choose,
    compare,
    divided,
    function,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    rounded,
    times,
    total,
)  # fmt: skip
from regard.tracing.index import IndexMap, Move, compressed, row_strides, whole
from regard.tracing.step import Held, Role, Step

SOFTMAX = Form("softmax", (cell(0), cell(1)))


class Builder:
    """Steps one after another, by name."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.values: list[Tensor] = []

    def add(self, name: str, value: Tensor, role: Role = "given", **more: object) -> Step:
        more = {"shown": True, "operation": role, "aliases": (name,), "held": Held(value), "label": name} | more
        dtype = str(value.dtype).removeprefix("torch.")
        operation = str(more.pop("operation"))
        step = Step(len(self.steps), name, tuple(value.shape), dtype, role, operation, **more)  # type: ignore[arg-type]
        self.steps.append(step)
        self.values.append(value)
        return step

    def made(self, name: str, value: Tensor, rule: Rule | Move, of: Sequence[Step], **more: object) -> Step:
        role: Role = "move" if isinstance(rule, Move) else "computed"
        more = {"inputs": tuple(each.name for each in of), "sources": tuple(each.position for each in of)} | more
        return self.add(name, value, role, making=rule, **more)

    def product(self, name: str, a: Step, b: Step, **more: object) -> Step:
        """C = A B: [n, k] and [k, m]."""
        (_, k), (_, m) = a.shape, b.shape
        rule = Rule(
            total(times(cell(0), cell(1))),
            (Operand(a.position, IndexMap((k, 0, 1))), Operand(b.position, IndexMap((0, 1, m)))),
            (k,),
        )
        return self.made(
            name, self.values[a.position] @ self.values[b.position], rule, (a, b), **({"operation": "aten.mm"} | more)
        )

    def turned(self, a: Step) -> Step:
        """The transpose, which nobody writes down as a step."""
        n, m = a.shape
        move = whole(a.position, (m, n), IndexMap((1, m)))
        return self.made(f"{a.name}.t", a.value.T, move, (a,), shown=False, held=None, operation="aten.t")

    def cellwise(self, name: str, value: Tensor, body: Form, of: Sequence[Step], **more: object) -> Step:
        same = IndexMap(row_strides(tuple(value.shape)))
        return self.made(name, value, Rule(body, tuple(Operand(a.position, same) for a in of)), of, **more)

    def softmax(self, name: str, scores: Step, **more: object) -> Step:
        *outer, size = row_strides(scores.shape), scores.shape[-1]
        strides = tuple(outer[0])
        rule = Rule(
            SOFTMAX,
            (
                Operand(scores.position, IndexMap((*strides, 0))),
                Operand(scores.position, IndexMap((*strides[:-1], 0, 1))),
            ),
            (size,),
        )
        return self.made(name, torch.softmax(scores.value, -1), rule, (scores,), operation="aten._softmax", **more)

    def derivation(self) -> Derivation:
        return Derivation(self.steps, len(self.steps) - 1)


WORDS = ("how", "are", "you", "today", "my", "dear", "friend", "of", "old", "times")


def attention(tokens: int = 3, width: int = 3, dtype: torch.dtype = torch.float64) -> Derivation:
    """Masked self-attention of a few tokens: X, the projections, E, M, A and O."""
    generator, to = torch.Generator().manual_seed(5), Builder()
    names = tuple(WORDS[k % len(WORDS)] for k in range(tokens))

    def given(name: str, *shape: int, role: Role = "parameter", axes: object = ()) -> Step:
        value = (torch.randn(*shape, generator=generator, dtype=torch.float64) * 10).round() / 10
        return to.add(name, value.to(dtype), role, axes=axes)

    def projected(name: str, a: Step, b: Step) -> Step:
        return to.product(name, a, b, formula=f"{a.name} {b.name}", axes=(names, None))

    x = given("X", tokens, width, role="given", axes=(names, None))
    q, k, v = (projected(name, x, given(f"W_{name}", width, width)) for name in "QKV")
    turned, both = to.turned(k), (names, names)
    scores = to.product("q·k", q, turned, shown=False)
    root = Form("function", (number(width),), name="sqrt")
    e = to.cellwise(
        "E", scores.value / math.sqrt(width), divided(cell(0), root), [scores],
        formula="Q K^T / √d", axes=both, inputs=("Q", "K"),
    )  # fmt: skip
    keep = to.add(
        "keep", torch.ones(tokens, tokens, dtype=torch.bool).tril(), "constant", shown=False, operation="tril"
    )
    masked = torch.where(keep.value, e.value, torch.tensor(-math.inf, dtype=dtype))
    m = to.cellwise(
        "M", masked, choose(cell(1), cell(0), number(-math.inf)), [e, keep], formula="mask(E, causal)",
        axes=both, inputs=("E",),
    )  # fmt: skip
    a = to.softmax("A", m, formula="softmax(M)", axes=both)
    to.product("O", a, v, formula="A V", axes=(names, None))
    return to.derivation()


def heads(batch: int = 2, count: int = 3, tokens: int = 4) -> Derivation:
    """Weights of four axes."""
    to = Builder()
    scores = torch.randn(batch, count, tokens, tokens, generator=torch.Generator().manual_seed(1))
    to.softmax("A", to.add("E", scores))
    return to.derivation()


def shapes() -> Derivation:
    """One number, a vector, an empty matrix, every kind of number, infinities, and an opaque step."""
    to = Builder()
    to.add("one", torch.tensor(0.25))
    to.add("vector", torch.tensor([1.5, -2.0, 1 / 3]))
    to.add("empty", torch.zeros(0, 3))
    ids = to.add("ids", torch.tensor([3, 0, -7, 2**53 + 1]))
    to.add("truth", torch.tensor([[True, False]]))
    half = to.add("half", torch.tensor([0.1, 65504.0, 6e-8], dtype=torch.float16))
    to.add("brain", torch.tensor([0.1, 3e38], dtype=torch.bfloat16))
    to.add("complex", torch.tensor([1 + 2j, -0.5j]))
    to.add("edges", torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-45, 123456.78, 12345678.0, 1e20]))
    to.add("strange", torch.ones(2), "opaque", operation="aten.fft", inputs=("half",), sources=(half.position,))
    to.cellwise("rounded", half.value.float(), rounded(cell(0), "float32"), [half])
    table = compressed(torch.tensor([2, -1, 0]).numpy())
    gathered = torch.tensor([-7, 9, 3])
    to.made("gathered", gathered, Move((whole(ids.position, (3,), table).pieces), 9.0), [ids])
    return to.derivation()


NUMBERS = (0.5, -1.25, 0.0, 3.0, -2.0, 1 / 3, 1e-7, -math.inf, 12345.678, 0.30000000000000004)


def every_form() -> Derivation:
    """Every form and function over numbers of every kind, short ones and long ones.

    What is recorded is what the form gives wherever that is easily said, so that some equations are exact.
    """
    to = Builder()
    one = torch.tensor(NUMBERS, dtype=torch.float64)
    two = one.roll(3)
    x, y = to.add("x", one), to.add("y", two)
    truth = to.add("t", one > 0)
    a, b = cell(0), cell(1)
    bodies: dict[str, tuple[Form, Tensor]] = {
        "plus": (plus(a, b, number(2)), one + two + 2),
        "times": (times(a, b, number(0.5)), one * two * 0.5),
        "nested": (times(plus(a, b), minus(a, negative(b))), (one + two) * (one + two)),
        "minus": (minus(a, minus(b, number(1))), one - (two - 1)),
        "divided": (divided(a, plus(b, number(2))), one / (two + 2)),
        "power": (power(a, number(2)), one**2),
        "root": (power(a, number(0.5)), one.abs().sqrt()),
        "negative": (negative(plus(a, b)), -(one + two)),
        "round": (rounded(a, "float16"), one),
        "drawn": (Form("drawn", name="dropout"), one),
        "made": (Form("made", name="arange"), one),
        "opaque": (Form("opaque", name="aten.fft"), one),
    }
    for name, (body, value) in bodies.items():
        to.cellwise(name, value, body, [x, y])
    for sign in ("<", "<=", ">", ">=", "==", "!="):
        to.cellwise(f"compare {sign}", one > two, compare(sign, a, b), [x, y])
    for sign in ("and", "or", "xor"):
        to.cellwise(f"compare {sign}", one > two, compare(sign, a, b), [truth, truth])
    to.cellwise("choose", torch.where(one > 0, one, two), choose(cell(2), a, b), [x, y, truth])
    for name in FUNCTIONS:
        of = (a, b) if name in ("maximum", "minimum", "remainder", "floor_divide", "atan2") else (a,)
        easy = {"maximum": torch.maximum(one, two), "minimum": torch.minimum(one, two), "relu": one.relu(),
                "abs": one.abs(), "square": one**2, "exp": one.exp(), "sign": one.sign()}  # fmt: skip
        to.cellwise(name, easy.get(name, one), function(name, *of), [x, y])
    _over_rows(to, one)
    return to.derivation()


def _over_rows(to: Builder, one: Tensor) -> None:
    """Every form that runs over inner places, of rows of two and of ten."""
    for size in (2, 10):
        rows = to.add(f"rows of {size}", one.reshape(-1, size))
        along = Operand(rows.position, IndexMap((size, 1)))
        for name in OVER:
            given = {"variance": 1, "norm": 2}.get(name)
            value = rows.value.sum(-1) if name == "sum" else rows.value.amax(-1)
            to.made(f"{name} of {size}", value, Rule(over(name, cell(0), given), (along,), (size,)), [rows])
        own = Operand(rows.position, IndexMap((size, 1, 0)))
        other = Operand(rows.position, IndexMap((size, 0, 1)))
        for form in ("softmax", "log_softmax"):
            to.made(
                f"{form} of {size}", torch.softmax(rows.value, -1),
                Rule(Form(form, (cell(0), cell(1))), (own, other), (size,)), [rows],
            )  # fmt: skip


def recurrent() -> Derivation:
    model = torch.nn.LSTM(2, 3, bidirectional=True)
    with regard.trace() as tape:
        states = model(torch.arange(6.0).reshape(3, 1, 2) / 4)[0]
    return tape.derivation(states)


def masked() -> Derivation:
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, activation="gelu").eval()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
    with regard.trace() as tape:
        states = layer(torch.arange(24.0).reshape(2, 3, 4).sin(), src_mask=mask, is_causal=True)
    return tape.derivation(states)


def gradients() -> Derivation:
    weight = torch.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
    with regard.trace() as tape:
        loss = torch.nn.functional.cross_entropy(torch.tanh(torch.tensor([[1.0, -0.5]]) @ weight), torch.tensor([1]))
        loss.backward()  # type: ignore[no-untyped-call]
    return tape.derivation(loss, gradients=[weight])


TRACED = (recurrent, masked, gradients)


def overwritten() -> Derivation:
    """`a` is 2 x, with a number of x written over, and so is the first of two columns of the product."""
    x, w = torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([[1.0, 0.5], [0, 1]])
    with regard.trace() as tape:
        a = regard.label(regard.label(x * 1, "x") * 2, "a", "2 x")
        b = regard.label(a @ w, "b", "a w")
    derivation = tape.derivation(b)
    derivation["x"].value.numpy()[1, 0] = 30
    return derivation
