"""Functions between the layers of a network, cell by cell."""

from regard.tracing.forms import Rule, choose, compare, divided, function, minus, negative, number, plus, scaled, times
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


@rule("each", "celu")
def celu(c: Call) -> Rule:
    """x where it is positive, else α (e^(x / α) - 1)"""
    x, alpha = c.at(c["self"]), c["alpha"]
    low = scaled(function("expm1", divided(x, number(alpha)) if alpha != 1 else x), alpha)
    return c.rule(choose(compare(">", x, number(0)), x, low))


@rule("each", "hardshrink")
def hardshrink(c: Call) -> Rule:
    x = c.at(c["self"])
    near = compare("<=", function("abs", x), number(c["lambd"]))
    return c.rule(choose(near, number(0), x))


@rule("each", "softshrink")
def softshrink(c: Call) -> Rule:
    """x drawn towards 0 by λ, and 0 where it is nearer than that."""
    x, by = c.at(c["self"]), number(c["lambd"])
    under = choose(compare("<", x, negative(by)), plus(x, by), number(0))
    return c.rule(choose(compare(">", x, by), minus(x, by), under))


@rule("each", "rrelu_with_noise")
def rrelu(c: Call) -> Rule | None:
    """The slope where x is negative is drawn by chance when it trains, else the middle of the bounds."""
    if c["training"]:
        return None
    x = c.at(c["self"])
    return c.rule(choose(compare(">=", x, number(0)), x, times(number((c["lower"] + c["upper"]) / 2), x)))
