"""What a backward pass is made of beside the operations of a forward one: g is the gradient that comes in."""

import math

from regard.tracing.forms import (
    Form,
    Rule,
    choose,
    compare,
    divided,
    function,
    minus,
    negative,
    number,
    over,
    plus,
    scaled,
    times,
    total,
)  # fmt: skip
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, Source, axis
from regard.tracing.rules.losses import MEAN
from regard.tracing.rules.reductions import row
from regard.tracing.rules.table import rule


@rule("each", "tanh_backward")
def tanh(c: Call) -> Rule:
    """g (1 - y²)"""
    return c.rule(times(c.at(c["grad_output"]), minus(number(1), function("square", c.at(c["output"])))))


@rule("each", "sigmoid_backward")
def sigmoid(c: Call) -> Rule:
    """g y (1 - y)"""
    g, y = c.at(c["grad_output"]), c.at(c["output"])
    return c.rule(times(g, y, minus(number(1), y)))


@rule("each", "threshold_backward")
def threshold(c: Call) -> Rule:
    """g where x is over the threshold, else 0: of ReLU"""
    x, g = c.at(c["self"]), c.at(c["grad_output"])
    return c.rule(choose(compare(">", x, number(c["threshold"])), g, number(0)))


@rule("each", "leaky_relu_backward")
def leaky_relu(c: Call) -> Rule:
    x, g = c.at(c["self"]), c.at(c["grad_output"])
    return c.rule(choose(compare(">", x, number(0)), g, times(g, number(c["negative_slope"]))))


@rule("each", "hardtanh_backward")
def hardtanh(c: Call) -> Rule:
    x, g = c.at(c["self"]), c.at(c["grad_output"])
    inside = compare("and", compare(">", x, number(c["min_val"])), compare("<", x, number(c["max_val"])))
    return c.rule(choose(inside, g, number(0)))


@rule("each", "elu_backward")
def elu(c: Call) -> Rule:
    """g where x is positive, else g k α e^(k x); from the result it is g k (y + α)."""
    g, x, alpha, scale, k = (
        c.at(c["grad_output"]), c.at(c["self_or_result"]), c["alpha"], c["scale"], c["input_scale"],
    )  # fmt: skip
    if c["is_result"]:
        low = times(g, number(k), plus(x, number(alpha * scale)))
    else:
        low = times(g, number(k * alpha * scale), function("exp", scaled(x, k)))
    return c.rule(choose(compare(">", x, number(0)), scaled(g, scale), low))


@rule("each", "silu_backward")
def silu(c: Call) -> Rule:
    """g σ(x) (1 + x (1 - σ(x)))"""
    g, x = c.at(c["grad_output"]), c.at(c["self"])
    s = function("sigmoid", x)
    return c.rule(times(g, s, plus(number(1), times(x, minus(number(1), s)))))


@rule("each", "gelu_backward")
def gelu(c: Call) -> Rule | None:
    """g (Φ(x) + x φ(x)), with Φ(x) = (1 + erf(x / √2)) / 2 and φ(x) = e^(-x²/2) / √(2π)"""
    if c["approximate"] != "none":
        return None
    g, x = c.at(c["grad_output"]), c.at(c["self"])
    area = divided(plus(number(1), function("erf", divided(x, number(math.sqrt(2))))), number(2))
    height = divided(
        function("exp", negative(divided(function("square", x), number(2)))), number(math.sqrt(2 * math.pi))
    )
    return c.rule(times(g, plus(area, times(x, height))))


@rule("each", "softplus_backward")
def softplus(c: Call) -> Rule:
    g, x = c.at(c["grad_output"]), c.at(c["self"])
    steep = compare(">", scaled(x, c["beta"]), number(c["threshold"]))
    return c.rule(choose(steep, g, times(g, function("sigmoid", scaled(x, c["beta"])))))


@rule("each", "log_sigmoid_backward")
def log_sigmoid(c: Call) -> Rule:
    """g σ(-x)"""
    return c.rule(times(c.at(c["grad_output"]), function("sigmoid", negative(c.at(c["self"])))))


@rule("each", "native_dropout_backward")
def dropout(c: Call) -> Rule:
    return c.rule(times(c.at(c["grad_output"]), c.at(c["mask"]), number(c["scale"])))


@rule("each", "mse_loss_backward")
def mse_loss(c: Call) -> Rule:
    """2 g (a - b), divided by their number where it was a mean"""
    source = c.source("self")
    body = times(number(2), c.at(c["grad_output"]), minus(c.at(source), c.at(c["target"])))
    return c.rule(divided(body, number(source.size)) if c["reduction"] == MEAN else body)


@rule("each", "binary_cross_entropy_backward")
def binary_cross_entropy(c: Call) -> Rule | None:
    """g (p - t) / (p (1 - p)), divided by their number where it was a mean; never by less than 1e-12"""
    source = c.source("self")
    if c.get("weight") is not None:
        return None
    g, p, t = c.at(c["grad_output"]), c.at(source), c.at(c["target"])
    body = divided(times(g, minus(p, t)), function("maximum", times(minus(number(1), p), p), number(1e-12)))
    return c.rule(divided(body, number(source.size)) if c["reduction"] == MEAN else body)


@rule("each", "smooth_l1_loss_backward", "huber_loss_backward")
def rounded_corner(c: Call) -> Rule:
    """g d where |d| is under the bound, else g times the bound and the sign of d. smooth_l1_loss divides by it."""
    source, smooth = c.source("self"), "beta" in c.arguments
    bound = c["beta"] if smooth else c["delta"]
    away = minus(c.at(source), c.at(c["target"]))
    near, far = away, times(number(bound), function("sign", away))
    slope = choose(compare("<", function("abs", away), number(bound)), near, far)
    body = times(c.at(c["grad_output"]), divided(slope, number(bound)) if smooth else slope)
    return c.rule(divided(body, number(source.size)) if c["reduction"] == MEAN else body)


@rule("over", "_softmax_backward_data")
def softmax(c: Call) -> Rule:
    """y (g - Σ_j g_j y_j)"""
    g, y = c.source("grad_output"), c.source("output")
    strides = row(c, y, axis(c["dim"], y.axes))
    inner = total(times(c.read(g, strides), c.read(y, strides)))
    return c.rule(times(c.at(y), minus(c.at(g), inner)))


@rule("over", "_log_softmax_backward_data")
def log_softmax(c: Call) -> Rule:
    """g - e^y Σ_j g_j"""
    g, y = c.source("grad_output"), c.source("output")
    inner = total(c.read(g, row(c, y, axis(c["dim"], y.axes))))
    return c.rule(minus(c.at(g), times(function("exp", c.at(y)), inner)))


def _lead(c: Call, x: Source) -> int:
    return x.axes - len(c["normalized_shape"])


@rule("over", "native_layer_norm_backward")
def layer_norm(c: Call) -> Rule:
    """With n = (x - mean) rstd and h = g γ: rstd (h - mean(h) - n mean(h n)); Σ g n for γ; Σ g for β"""
    g, x = c.source("grad_out"), c.source("input")
    mean, rstd, lead = c.source("mean"), c.source("rstd"), _lead(c, x)
    if c.output:
        return _of_parameter(c, g, x, (mean, rstd), lead)
    c.inner = x.shape[lead:]
    strides = row_strides(x.shape)
    along = (*strides[:lead], *(0 for _ in c.inner), *strides[lead:])
    m, s = c.at(mean), c.at(rstd)

    def pair(read: str) -> tuple[Form, Form]:
        here = (c.at(g), c.at(x)) if read == "own" else (c.read(g, along), c.read(x, along))
        h = here[0]
        if c.get("weight") is not None:
            weight = c.source("weight")
            over_row = (*(0 for _ in strides), *row_strides(weight.shape))
            h = times(h, c.at(weight) if read == "own" else c.read(weight, over_row))
        return h, times(minus(here[1], m), s)

    (h, n), (others, normed) = pair("own"), pair("row")
    return c.rule(times(s, minus(minus(h, over("mean", others)), times(n, over("mean", times(others, normed))))))


def _of_parameter(c: Call, g: Source, x: Source, statistics: tuple[Source | None, Source], lead: int) -> Rule:
    """Σ over all rows of g n (for γ) or g (for β)."""
    c.inner = x.shape[:lead]
    strides = row_strides(x.shape)
    along = (*strides[lead:], *strides[:lead])
    gradient = c.read(g, along)
    if c.output == 2:
        return c.rule(total(gradient))
    mean, rstd = statistics
    rows = (*(0 for _ in c.shape), *row_strides(rstd.shape)[:lead])
    cells = c.read(x, along)
    cells = cells if mean is None else minus(cells, c.read(mean, rows))
    return c.rule(total(times(gradient, cells, c.read(rstd, rows))))


@rule("over", "_fused_rms_norm_backward")
def rms_norm(c: Call) -> Rule:
    """With n = x rstd and h = g γ: rstd (h - n mean(h n)); Σ g n for γ"""
    g, x, rstd = c.source("grad_out"), c.source("input"), c.source("rstd")
    lead = _lead(c, x)
    if c.output:
        return _of_parameter(c, g, x, (None, rstd), lead)
    c.inner = x.shape[lead:]
    strides, s = row_strides(x.shape), c.at(rstd)
    along = (*strides[:lead], *(0 for _ in c.inner), *strides[lead:])
    h, others = c.at(g), c.read(g, along)
    if c.get("weight") is not None:
        weight = c.source("weight")
        h = times(h, c.at(weight))
        others = times(others, c.read(weight, (*(0 for _ in strides), *row_strides(weight.shape))))
    normed = times(c.read(x, along), s)
    return c.rule(times(s, minus(h, times(c.at(x), s, over("mean", times(others, normed))))))
