"""Whole layers in one line, as the steps they become. Rows are vectors; d is the width of a key.

attention    Q = X W_Q   K = Y W_K   V = Y W_V   E = Q Kᵀ   S = E / √d   M = mask(S)   A = softmax(M)   A V
heads        the same for each piece of the columns of Q, K and V; the outcomes side by side, times W_O
encoder      Z = heads(X)   N = layer_norm(X + Z)   layer_norm(N + relu(N W_1 + b_1) W_2 + b_2)
decoder      the same with a mask, and between the two layer_norm(N + heads(N, Y))
Bahdanau     e = v · tanh(s W + h U)   a = softmax(e)   c = a H
Luong        e = s · h, or s W · h, or v · tanh([s; h] W)   a = softmax(e)   c = a H
"""

from typing import Any

from regard.worked.expanding import Layer, Parts
from regard.worked.table import Function, Parameter

MOST_HEADS = 32


def value(name: str, needed: bool = True, option: bool = False) -> Parameter:
    return Parameter(name, "value", (), needed, False, option)


def optional(*names: str) -> tuple[Parameter, ...]:
    return tuple(value(name, needed=False, option=True) for name in names)


def values(names: str) -> tuple[Parameter, ...]:
    return tuple(value(name) for name in names.split())


def word(name: str, *words: str) -> Parameter:
    """A choice; the first one where nothing is said."""
    return Parameter(name, "word", words, False, False, True)


MASK = Parameter("mask", "rule", (), False, False, True)
HEADS = Parameter("heads", "whole", (), False, False, True)
NORMALISE = word("normalise", "softmax", "sparsemax", "relu")
NORM = word("norm", "post", "pre", "none")
FORWARD = optional("b_1", "b_2")
LUONG = {"dot": (), "general": ("W",), "concat": ("W", "v")}
"""What each kind of score reads besides s and H."""


def _layer(name: str, says: str, write: Any, *parameters: Parameter) -> Layer:
    return Layer(Function(name, parameters, write, says), write)


def weighted(parts: Parts, scores: str, width: int, ending: str = "", mask: bool = False) -> str:
    """Scores → scaled, masked, normalised: the name of the weights."""
    if parts.word("scale") == "root":
        scores = parts.step(f"S{ending}", f"scale({scores}, {width})")
    if mask:
        scores = parts.step(f"M{ending}", f"mask({scores}, rule)")
    normalise = parts.word("normalise") if "normalise" in parts else "softmax"
    return parts.step(f"A{ending}", f"{normalise}({scores})")


def projected(parts: Parts, queries: str, memory: str, ending: str = "", matrices: str = "W") -> tuple[str, str, str]:
    """Q, K and V."""
    query = parts.step(f"Q{ending}", f"{queries} @ {matrices}_Q")
    key = parts.step(f"K{ending}", f"{memory} @ {matrices}_K")
    return query, key, parts.step(f"V{ending}", f"{memory} @ {matrices}_V")


def self_attention(parts: Parts) -> str:
    return _one_head(parts, "X", "X")


def cross_attention(parts: Parts) -> str:
    return _one_head(parts, "X", "Y")


def _one_head(parts: Parts, queries: str, memory: str) -> str:
    query, key, held = projected(parts, queries, memory)
    scores = parts.step("E", f"{query} @ {key}.T")
    return f"{weighted(parts, scores, parts.width(key), mask=parts.rule())} @ {held}"


def multi_head(parts: Parts) -> str:
    return heads(parts, "X", "Y" if "Y" in parts else "X", mask=parts.rule())


def heads(parts: Parts, queries: str, memory: str, *, mask: bool = False, ending: str = "", matrices: str = "W") -> str:
    """Attention by several heads, each with its own columns of Q, K and V: the formula of what comes out."""
    query, key, held = projected(parts, queries, memory, ending, matrices)
    count = parts.count("heads", 1, MOST_HEADS)
    for name in (query, key, held):
        if parts.width(name) % count and parts.knows(name):
            raise parts.wrong(f"{name} has {parts.width(name)} columns, which {count} heads cannot share", "heads")
    outcomes = []
    for number in range(count):
        one = f"_{number + 1}" if count > 1 else ""
        q, k, v = (_columns(parts, name, number, count) for name in (query, key, held))
        scores = parts.step(f"E{ending}{one}", f"{q} @ {k}.T")
        weights = weighted(parts, scores, parts.width(key) // count, f"{ending}{one}", mask)
        outcomes.append(parts.step(f"H{ending}{one}", f"{weights} @ {v}") if count > 1 else f"{weights} @ {v}")
    return _joined(parts, outcomes, ending, f"{matrices}_O")


def _columns(parts: Parts, name: str, number: int, count: int) -> str:
    """The columns of one head."""
    width = max(parts.width(name) // count, 1)
    return name if count == 1 else f"{name}[:, {number * width}:{(number + 1) * width}]"


def _joined(parts: Parts, outcomes: list[str], ending: str, matrix: str) -> str:
    together = outcomes[0] if len(outcomes) == 1 else f"concat({', '.join(outcomes)})"
    return f"{parts.step(f'H{ending}', together)} @ {matrix}" if matrix in parts else together


def encoder_layer(parts: Parts) -> str:
    seen = _around(parts, "X", lambda x: heads(parts, x, x, mask=parts.rule()), "Z", "1")
    return _forward(parts, seen, "2")


def decoder_layer(parts: Parts) -> str:
    masked = parts.rule("causal")
    own = _around(parts, "X", lambda x: heads(parts, x, x, mask=masked), "Z", "1")
    both = _around(parts, own, lambda x: heads(parts, x, "Y", ending="_cross", matrices="U"), "Z_cross", "2")
    return _forward(parts, both, "3")


def _around(parts: Parts, x: str, inside: Any, name: str, place: str) -> str:
    """norm(x + f(x)), x + f(norm(x)) or x + f(x): the name of the sum, or of its norm."""
    before = parts.step(f"N_{place}", _norm(parts, x, place)) if parts.word("norm") == "pre" else x
    parts.step(name, inside(before))
    total = parts.step(f"R_{place}", f"{x} + {name}")
    return parts.step(f"N_{place}", _norm(parts, total, place)) if parts.word("norm") == "post" else total


def _forward(parts: Parts, x: str, place: str) -> str:
    """The two matrices after attention, and what goes round them."""
    before = parts.step(f"N_{place}", _norm(parts, x, place)) if parts.word("norm") == "pre" else x
    bias_1, bias_2 = (f" + {name}" if name in parts else "" for name in ("b_1", "b_2"))
    parts.step("F", f"relu({before} @ W_1{bias_1})")
    parts.step("G", f"F @ W_2{bias_2}")
    if parts.word("norm") != "post":
        return f"{x} + G"
    return _norm(parts, parts.step(f"R_{place}", f"{x} + G"), place)


def _norm(parts: Parts, x: str, place: str) -> str:
    gain, shift = (f", {name}={name}_{place}" if f"{name}_{place}" in parts else "" for name in ("gain", "shift"))
    return f"layer_norm({x}{gain}{shift})"


def bahdanau(parts: Parts) -> str:
    if parts.rows("s") > 1:
        bias = ", b" if "b" in parts else ""
        parts.step("E", f"additive_score(s, H, W, U, v{bias})")
        return f"{parts.step('A', 'softmax(E)')} @ H"
    parts.step("q", "s @ W")
    parts.step("k", "H @ U")
    parts.step("t", "tanh(q + k + b)" if "b" in parts else "tanh(q + k)")
    return _read(parts, _scored(parts, "t"))


def luong(parts: Parts) -> str:
    kind = parts.word("kind")
    for name in ("W", "v"):
        if name in LUONG[kind] and name not in parts:
            raise parts.wrong(f"kind={kind} also needs {name}")
        if name in parts and name not in LUONG[kind]:
            others = " or ".join(f"kind={other}" for other, names in LUONG.items() if name in names)
            raise parts.wrong(f"kind={kind} does not read {name}; {others} does", name)
    if kind == "dot":
        return _read(parts, "s @ H.T")
    if kind == "general":
        parts.step("q", "s @ W")
        return _read(parts, "q @ H.T")
    if parts.rows("s") > 1:
        raise parts.wrong("kind=concat joins one row s to each row of H", "s")
    parts.step("j", "concat(s, H)")
    parts.step("t", "tanh(j @ W)")
    return _read(parts, _scored(parts, "t"))


def _scored(parts: Parts, name: str) -> str:
    """t · v for each row of t; v may be written as a column."""
    return f"{name} @ v" if parts.rank("v") < 2 else f"({name} @ v)[:, 0]"


def _read(parts: Parts, scores: str) -> str:
    """e, a and the formula of the context; of Luong's state, where the matrix that makes it is given."""
    parts.step("e", scores)
    parts.step("a", "softmax(e)")
    if "W_c" not in parts:
        return "a @ H"
    parts.step("c", "a @ H")
    return "tanh(concat(c, s) @ W_c)"


ONE_HEAD = (word("scale", "none", "root"), MASK, NORMALISE)
SEVERAL = (word("scale", "root", "none"), MASK, NORMALISE)

ALL = [
    _layer("self_attention", "Each row of X looks at all of them.", self_attention, *values("X W_Q W_K W_V"),
           *ONE_HEAD),
    _layer("cross_attention", "The rows of X look at those of Y.", cross_attention, *values("X Y W_Q W_K W_V"),
           *ONE_HEAD),
    _layer("multi_head", "Several heads, each with its own columns of the matrices; Y is looked at in place of X.",
           multi_head, *values("X W_Q W_K W_V"), value("W_O", needed=False), HEADS, value("Y", False, True), *SEVERAL),
    _layer("bahdanau", "v · tanh(s W + h U) for each row h of H, and what the weights make of them.", bahdanau,
           *values("s H W U v"), *optional("b")),
    _layer("luong", "The state s looks at the rows of H; with W_c it is the state made of both.", luong,
           *values("s H"), value("W", needed=False), value("v", needed=False), *optional("W_c"),
           word("kind", "dot", "general", "concat")),
    _layer("encoder_layer", "A layer of the Transformer's encoder.", encoder_layer, *values("X W_Q W_K W_V W_1 W_2"),
           *optional("W_O"), HEADS, *FORWARD, NORM, *optional("gain_1", "shift_1", "gain_2", "shift_2"), *SEVERAL),
    _layer("decoder_layer", "A layer of the Transformer's decoder, which looks at its own rows and at those of Y.",
           decoder_layer, *values("X Y W_Q W_K W_V U_Q U_K U_V W_1 W_2"), *optional("W_O", "U_O"), HEADS, *FORWARD,
           NORM, *optional("gain_1", "shift_1", "gain_2", "shift_2", "gain_3", "shift_3"), *SEVERAL),
]  # fmt: skip
LAYERS = {each.function.name: each for each in ALL}
