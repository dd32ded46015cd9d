"""Normalisation: the mean and the root of the variance are steps of their own, and a cell is made with them."""

import numpy as np
import torch

from regard.tracing.forms import Form, Rule, function, minus, number, over, plus, times, total
from regard.tracing.index import row_strides
from regard.tracing.rules.call import Call, Source, table
from regard.tracing.rules.reductions import reduced
from regard.tracing.rules.table import rule

STATISTICS: dict[str, dict[int, tuple[int, ...]]] = {
    "aten.native_layer_norm": {0: (1, 2)},
    "aten.native_group_norm": {0: (1, 2)},
    "aten.native_batch_norm": {0: (1, 2)},
    "aten._native_batch_norm_legit": {0: (1, 2)},
    "aten._fused_rms_norm": {0: (1,)},
    "aten._thnn_fused_lstm_cell": {0: (1,)},
    "aten.native_dropout": {0: (1,)},
    "aten.topk": {0: (1,)},
    "aten.sort": {0: (1,)},
    "aten.nll_loss_forward": {0: (1,)},
}
"""Of an operation the outputs that another one is made with."""

NAMES = {
    "aten.native_layer_norm": {1: ("mean", "mean({})"), 2: ("rstd", "1 / √(var({}) + ε)")},
    "aten.native_group_norm": {1: ("mean", "mean({})"), 2: ("rstd", "1 / √(var({}) + ε)")},
    "aten.native_batch_norm": {1: ("mean", "mean({})"), 2: ("rstd", "1 / √(var({}) + ε)")},
    "aten._native_batch_norm_legit": {1: ("mean", "mean({})"), 2: ("rstd", "1 / √(var({}) + ε)")},
    "aten._fused_rms_norm": {1: ("rstd", "1 / √(mean({}²) + ε)")},
}
"""What the statistics are called, and how they read."""


def _inverse_root(c: Call, cells: Form) -> Rule:
    return c.rule(function("rsqrt", plus(over("variance", cells, 0), number(c["eps"]))))


@rule("over", "native_layer_norm")
def layer_norm(c: Call) -> Rule:
    """(x - mean) · rstd · γ + β over the last axes; rstd = 1 / √(var + ε)"""
    x, lead = c.source("input"), c.source("input").axes - len(c["normalized_shape"])
    if c.output:
        cells = reduced(c, x, list(range(lead, x.axes)))
        return c.rule(over("mean", cells)) if c.output == 1 else _inverse_root(c, cells)
    mean, rstd = c.at(c.sibling(1), range(x.axes)), c.at(c.sibling(2), range(x.axes))
    return _normed(c, times(minus(c.at(x), mean), rstd), None)


def _normed(c: Call, body: Form, axes: list[int] | None) -> Rule:
    """Times the weight, plus the bias, where there are such."""
    if c.get("weight") is not None:
        body = times(*(body.of if body.form == "product" else (body,)), c.at(c["weight"], axes))
    return c.rule(body if c.get("bias") is None else plus(body, c.at(c["bias"], axes)))


@rule("over", "_fused_rms_norm")
def rms_norm(c: Call) -> Rule:
    """x · rstd · γ; rstd = 1 / √(mean(x²) + ε)"""
    x, lead = c.source("input"), c.source("input").axes - len(c["normalized_shape"])
    if c.output:
        squares = function("square", reduced(c, x, list(range(lead, x.axes))))
        eps = c["eps"]
        if eps is None:
            eps = torch.finfo(x.dtype).eps
        return c.rule(function("rsqrt", plus(over("mean", squares), number(eps))))
    return _normed(c, times(c.at(x), c.at(c.sibling(1), range(x.axes))), None)


@rule("over", "native_group_norm")
def group_norm(c: Call) -> Rule:
    """As a layer norm, over the channels of each group and all places. Statistics [N, groups]."""
    x, groups = c.source("input"), c["group"]
    if c.output:
        c.inner = (x.size // (c["N"] * groups),)
        cells = c.read(x, (x.size // c["N"], c.inner[0], 1))
        return c.rule(over("mean", cells)) if c.output == 1 else _inverse_root(c, cells)
    mean, rstd = (_of_group(c, c.sibling(k), groups) for k in (1, 2))
    return _normed(c, times(minus(c.at(x), mean), rstd), [1])


def _of_group(c: Call, statistic: Source, groups: int) -> Form:
    """The statistic of the group in which the channel lies."""
    channels = c.shape[1]
    index = (np.arange(channels) // (channels // groups)).reshape(1, -1, *(1,) * (len(c.shape) - 2))
    return c.read(statistic, table(index, d0=groups))


@rule("over", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")  # fmt: skip
def batch_norm(c: Call) -> Rule | None:
    """(x - mean) · rstd · γ + β for each channel; when not training with the running mean and variance."""
    x = c.source("input")
    if c.output > 2:
        return None
    if c.output:
        if not c.get("training", False):
            return None
        cells = reduced(c, x, [d for d in range(x.axes) if d != 1])
        return c.rule(over("mean", cells)) if c.output == 1 else _inverse_root(c, cells)
    if c.get("training", False):
        return _normed(c, times(minus(c.at(x), c.at(c.sibling(1), [1])), c.at(c.sibling(2), [1])), [1])
    spread = function("rsqrt", plus(c.at(c["running_var"], [1]), number(c["eps"])))
    return _normed(c, times(minus(c.at(x), c.at(c["running_mean"], [1])), spread), [1])


@rule("over", "native_group_norm_backward")
def group_norm_backward(c: Call) -> Rule:
    """With n = (x - mean) rstd and h = g γ: rstd (h - mean(h) - n mean(h n)) over a group; Σ g n for γ; Σ g for β"""
    g, x, groups = c.source("grad_out"), c.source("input"), c["group"]
    each = x.shape[1] // groups
    batch, channel = c["C"] * c["HxW"], c["HxW"]
    if c.output:
        c.inner = (c["N"], c["HxW"])
        places = (channel, batch, 1)
        index = np.arange(x.shape[1]) // each
        mean, rstd = (c.read(c.source(name), table(index.reshape(-1, 1, 1), d1=groups)) for name in ("mean", "rstd"))
        return c.rule(total(_of_norm(c, c.read(g, places), c.read(x, places), mean, rstd)))
    c.inner = (each, c["HxW"])
    group = (np.arange(x.shape[1]) // each).reshape(1, -1, *(1,) * x.axes)
    along = table(group * each * channel, **{"d0": batch, f"d{x.axes}": channel, f"d{x.axes + 1}": 1})
    mean, rstd = (c.read(c.source(name), table(group, d0=groups)) for name in ("mean", "rstd"))
    h, others = c.at(g), c.read(g, along)
    if c.get("weight") is not None:
        h = times(h, c.at(c["weight"], [1]))
        others = times(others, c.read(c.source("weight"), table(group * each, **{f"d{x.axes}": 1})))
    own, row = (times(minus(cells, mean), rstd) for cells in (c.at(x), c.read(x, along)))
    inner = times(own, over("mean", times(others, row)))
    return c.rule(times(rstd, minus(minus(h, over("mean", others)), inner)))


def _of_norm(c: Call, g: Form, x: Form, mean: Form, rstd: Form) -> Form:
    """What is summed up for γ, the second output, or β."""
    return times(g, minus(x, mean), rstd) if c.output == 1 else g


@rule("over", "native_batch_norm_backward")
def batch_norm_backward(c: Call) -> Rule:
    """As of a group norm, over the channel; where it does not train the statistics are constants: g γ rstd."""
    g, x = c.source("grad_out"), c.source("input")
    strides = row_strides(x.shape)
    others = [d for d in range(x.axes) if d != 1]
    c.inner = tuple(x.shape[d] for d in others)
    per = [0] if c.output else [1]
    if c["train"]:
        mean, rstd = c.at(c["save_mean"], per), c.at(c["save_invstd"], per)
    else:
        mean = c.at(c["running_mean"], per)
        rstd = function("rsqrt", plus(c.at(c["running_var"], per), number(c["eps"])))
    lead = (strides[1],) if c.output else (0, strides[1], *(0 for _ in x.shape[2:]))
    along = (*lead, *(strides[d] for d in others))
    all_g, all_x = c.read(g, along), c.read(x, along)
    if c.output:
        return c.rule(total(_of_norm(c, all_g, all_x, mean, rstd)))
    slope = rstd if c.get("weight") is None else times(c.at(c["weight"], [1]), rstd)
    if not c["train"]:
        return c.rule(times(c.at(g), slope))
    own, row = (times(minus(cells, mean), rstd) for cells in (c.at(x), all_x))
    inner = times(own, over("mean", times(all_g, row)))
    return c.rule(times(slope, minus(minus(c.at(g), over("mean", all_g)), inner)))
