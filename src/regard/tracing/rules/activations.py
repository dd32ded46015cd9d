"""Functions between the layers of a network, cell by cell."""

from regard.tracing.forms import Rule, choose, compare, divided, function, negative, number, plus, scaled, times
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, axis
from regard.tracing.rules.table import rule


@rule("each", "gelu")
def gelu(c: Call) -> Rule:
    return c.rule(function("gelu_tanh" if c["approximate"] == "tanh" else "gelu", c.at(c["self"])))


@rule("each", "leaky_relu")
def leaky_relu(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(choose(compare(">", x, number(0)), x, times(number(c["negative_slope"]), x)))


@rule("each", "_prelu_kernel")
def prelu(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(choose(compare(">", x, number(0)), x, times(c.at(c["weight"]), x)))


@rule("each", "elu")
def elu(c: Call) -> Rule:
    """x where it is positive, else α (e^(k x) - 1); times a scale."""
    x = c.at(c["self"])
    low = times(number(c["alpha"] * c["scale"]), function("expm1", scaled(x, c["input_scale"])))
    return c.rule(choose(compare(">", x, number(0)), scaled(x, c["scale"]), low))


@rule("each", "softplus")
def softplus(c: Call) -> Rule:
    x, beta = c.at(c["self"]), c["beta"]
    soft = function("softplus", scaled(x, beta))
    soft = soft if beta == 1 else divided(soft, number(beta))
    return c.rule(choose(compare(">", scaled(x, beta), number(c["threshold"])), x, soft))


@rule("each", "mish")
def mish(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(times(x, function("tanh", function("softplus", x))))


@rule("each", "log_sigmoid_forward")
def log_sigmoid(c: Call) -> Rule | None:
    if c.output != 0:
        return None
    return c.rule(negative(function("softplus", negative(c.at(c["self"])))))


@rule("each", "threshold")
def threshold(c: Call) -> Rule:
    x = c.at(c["self"])
    return c.rule(choose(compare(">", x, number(c["threshold"])), x, number(c["value"])))


@rule("each", "native_dropout")
def native_dropout(c: Call) -> Rule:
    """x · kept / (1 - p): what is kept was drawn by chance."""
    kept = times(c.at(c["input"]), c.at(c.sibling(1)))
    return c.rule(divided(kept, number(1 - c["p"])) if c["train"] is not False and c["p"] < 1 else kept)


@rule("each", "hardsigmoid", "hardswish")
def hard(c: Call) -> Rule:
    """min(max(x + 3, 0), 6) / 6, times x for hardswish"""
    x = c.at(c["self"])
    bent = function("minimum", function("maximum", plus(x, number(3)), number(0)), number(6))
    swish = c.function._overloadpacket.__name__.startswith("hardswish")
    return c.rule(divided(times(x, bent) if swish else bent, number(6)))


@rule("each", "glu")
def glu(c: Call) -> Rule:
    """a σ(b), the halves of an axis"""
    source = c.source("self")
    strides, dim = row_strides(source.shape), axis(c["dim"], source.axes)
    a, b = (c.read(source, strides, half * c.shape[dim] * strides[dim]) for half in (0, 1))
    return c.rule(times(a, function("sigmoid", b)))
