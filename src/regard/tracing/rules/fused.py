"""Recurrent cells in one kernel, as a GPU runs them where cuDNN is off."""

from regard.tracing.forms import Form, Rule, function, minus, plus, times
from regard.tracing.rules.call import Call, Source
from regard.tracing.rules.table import rule


def _chunk(c: Call, source: Source | None, number: int) -> list[Form]:
    """The cells of one gate: columns [number H, (number + 1) H) of [B, gates H], or of a bias [gates H]."""
    if source is None:
        return []
    width = c.shape[-1]
    return [c.read(source, (source.shape[-1] if source.axes > 1 else 0, 1), number * width)]


def _gate(c: Call, number: int) -> Form:
    """What comes from the input and from the state, with their biases."""
    names = ("input_gates", "hidden_gates", "input_bias", "hidden_bias")
    return plus(*(form for name in names for form in _chunk(c, c.get(name), number)))


@rule("over", "_thnn_fused_lstm_cell")
def lstm(c: Call) -> Rule | None:
    """C' = σ(f) C + σ(i) tanh(g); h = σ(o) tanh(C'). The third output is for the backward pass alone."""
    if c.output == 0:
        return c.rule(times(function("sigmoid", _gate(c, 3)), function("tanh", c.at(c.sibling(1)))))
    if c.output == 1:
        kept = times(function("sigmoid", _gate(c, 1)), c.at(c["cx"]))
        return c.rule(plus(kept, times(function("sigmoid", _gate(c, 0)), function("tanh", _gate(c, 2)))))
    return None


@rule("over", "_thnn_fused_gru_cell")
def gru(c: Call) -> Rule | None:
    """n = tanh(n_x + b_x + r (n_h + b_h)); h' = n + z (h - n)"""
    if c.output:
        return None
    r, z = function("sigmoid", _gate(c, 0)), function("sigmoid", _gate(c, 1))
    from_x, from_h = (
        plus(*_chunk(c, c[f"{which}_gates"], 2), *_chunk(c, c.get(f"{which}_bias"), 2)) for which in ("input", "hidden")
    )
    n = function("tanh", plus(from_x, times(r, from_h)))
    return c.rule(plus(n, times(z, minus(c.at(c["hx"]), n))))
