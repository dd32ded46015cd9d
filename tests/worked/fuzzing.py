"""Problem files made by chance, valid ones and broken ones, and what becomes of each.

A case is told by its number alone. benchmarks/worked_robustness.py runs ten thousand of them, the tests a few hundred.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from regard.support.errors import Misuse
from regard.worked import read_problem, solve
from regard.worked.functions import FUNCTIONS
from regard.worked.layers import LAYERS
from regard.worked.marking import mark
from regard.worked.page import FORMATS, page
from regard.worked.shipped import shipped
from regard.worked.worksheet import worksheet

SECONDS = 2.0
"""Of a processor, the longest that one case may take."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: a result, or a sentence."""

    kind: str
    seconds: float
    said: str = ""


def outcome(text: bytes, path: Path, rendering: str | None = None) -> Outcome:
    """Read, work, mark and write a problem as the commands do. Anything but a Misuse of one line is raised."""
    path.write_bytes(text)
    start = time.process_time()
    try:
        problem = read_problem(path)
        solution = solve(problem)
        mark(problem)
        if rendering in FORMATS:
            page(solution, rendering, width=80)
        elif rendering is not None:
            worksheet(solution, "html")
        kind, said = "result", ""
    except Misuse as error:
        kind, said = "error", str(error)
        assert said.strip(), "an error without a word"
        assert "\n" not in said, f"an error of several lines: {said!r}"
        assert len(said) < 1_000, f"an error of {len(said)} letters: {said[:200]}…"
    return Outcome(kind, time.process_time() - start, said)


def case(number: int) -> bytes:
    """The file of a case."""
    chance = random.Random(number)
    return KINDS[number % len(KINDS)](chance)


def number(chance: random.Random) -> str:
    return chance.choice(
        [
            str(chance.randint(-9, 9)),
            f"{chance.uniform(-3, 3):.{chance.randint(0, 4)}f}",
            f"{chance.uniform(-1, 1):.2e}",
            "0",
            "-inf" if chance.random() < 0.02 else "1",
            chance.choice(["1e308", "-1e-320", "1e400", "", "?", "nan", "0x1", "1_0", "½", "−2"])
            if chance.random() < 0.01
            else "0.5",
        ]
    )


def cells(chance: random.Random, *shape: int) -> str:
    if not shape:
        return number(chance)
    size = shape[0] + (chance.random() < 0.01)
    return "[" + ", ".join(cells(chance, *shape[1:]) for _ in range(size)) + "]"


NAMES = ("X", "Y", "W", "V", "a", "b", "h", "s", "sum", "mean", "lambda", "α", "e", "x_1", "W_Q", "none", "T")


def formula(chance: random.Random, names: list[str], depth: int = 0) -> str:
    def part() -> str:
        return formula(chance, names, depth + 1)

    roll = chance.random()
    if depth > 4 or roll < 0.35:
        return chance.choice(names) if chance.random() < 0.85 else number(chance)
    if roll < 0.6:
        sign = chance.choice(["@", "@", "+", "-", "*", "/", "**", "//", "%", "<", "and"] if roll < 0.37 else [*"@+-*/"])
        return f"({part()} {sign} {part()})" if chance.random() < 0.7 else f"{part()} {sign} {part()}"
    if roll < 0.7:
        return f"{part()}{chance.choice(['.T', '.T', '[0]', '[:, 0]', '[0:2]', '[-1, 1:]', '[::2]', '[9]', '.shape'])}"
    function = chance.choice([*FUNCTIONS, *FUNCTIONS, *LAYERS, "eval", "__import__"])
    given = [part() for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 4, 5, 6]))]
    if chance.random() < 0.3:
        given.append(chance.choice(OPTIONS))
    return f"{function}({', '.join(given)})"


OPTIONS = (
    "axis=0", "axis=1", "axis=-3", "causal", "window(1)", "lengths(2)", "scale=root", "mask=causal", "heads=2",
    "kind=dot", "kind=general", "base=10", "n=4", "correction=1", "eps=0", "norm=pre", "mask=none", "axis=X", "**X",
    "*X",
)  # fmt: skip


def valid(chance: random.Random) -> bytes:
    """Matrices that often fit, and formulas over them."""
    width = chance.randint(1, 4)
    square = chance.random() < 0.6
    names = chance.sample(NAMES[:10] if square else NAMES, chance.randint(1, 5))
    lines = [f"title: Case {chance.random()}", "given:"]
    for name in names:
        shape = chance.choice([(), (width,), (width, width), (width, width), (chance.randint(1, 3), width), (2, 2, 2)])
        lines.append(f"  {name}: {cells(chance, *((width, width) if square else shape))}")
    lines.append("steps:")
    steps: list[str] = []
    for place in range(chance.randint(1, 5)):
        written = simple(chance, [*names, *steps]) if square else formula(chance, [*names, *steps])
        steps.append(f"S{place}")
        lines.append(f"  S{place}: {written}")
    if chance.random() < 0.5:
        lines.append("claimed:")
        claimed = chance.sample(steps, chance.randint(1, len(steps)))
        shapes = [(width, width)] if square else [(), (width,), (width, width)]
        lines += [f"  {name}: {cells(chance, *chance.choice(shapes))}" for name in claimed]
    return "\n".join(lines).encode()


SAME = ("softmax", "sparsemax", "relu", "tanh", "sigmoid", "layer_norm", "exp", "sqrt", "log")


def simple(chance: random.Random, names: list[str]) -> str:
    """A formula over square matrices that nearly always has a value."""
    one, other = chance.choice(names), chance.choice(names)
    return chance.choice(
        [
            f"{one} @ {other}", f"{one} @ {other}.T", f"{one} + {other}", f"{one} * {other} - 1", f"scale({one}, 2)",
            f"{chance.choice(SAME)}({one})", f"{chance.choice(SAME[:6])}({one} @ {other})", f"mask({one}, causal)",
            f"softmax(mask({one}, window(1)))", f"self_attention({one}, {other}, {other}, {one}, mask=causal)",
            f"concat({one}, {other})[:, 0:1] + {other}", f"sum({one}, axis=0) * {other}", f"{one} / (norm({one}) + 1)",
        ]
    )  # fmt: skip


def fitting(chance: random.Random) -> bytes:
    """Whole layers over matrices of the right shapes, answered by chance or by what is true."""
    d, k, rows = chance.randint(1, 4), chance.choice([2, 4]), chance.randint(1, 4)
    given = {"X": (rows, d), "Y": (chance.randint(1, 3), d), "s": (d,), "v": (k,), "W_1": (k, 3), "W_2": (3, k)}
    given |= {f"{letter}_{name}": (d, k) for letter in "WU" for name in "QKV"}
    lines = ["given:", *(f"  {name}: {cells(chance, *shape)}" for name, shape in given.items()), "steps:"]
    line = chance.choice(
        [
            "self_attention(X, W_Q, W_K, W_V, scale=root, mask=causal)",
            "cross_attention(X, Y, W_Q, W_K, W_V, normalise=sparsemax)",
            "multi_head(X, W_Q, W_K, W_V, heads=2, mask=window(1))",
            "bahdanau(s, X, W_Q, W_K, v)",
            "luong(s, X)",
            "softmax(mask(X @ Y.T, lengths(1)))",
            "lstm_cell(s, v, v, concat(W_Q, W_Q), concat(W_1, W_1))",
        ]
    )
    lines += [f"  O: {line}", "claimed:", f"  O: {cells(chance, rows, k)}"]
    return "\n".join(lines).encode()


def mutated(chance: random.Random) -> bytes:
    """A shipped problem with a few letters, words or lines changed."""
    files = shipped()
    text = files[chance.choice([*files])].read_text(encoding="utf-8")
    for _ in range(chance.randint(1, 6)):
        text = chance.choice(CHANGES)(text, chance)
    return text.encode("utf-8", "surrogatepass")


def _dropped(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice([1, 1, 2, 10]) :]


def _put(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(PIECES) + text[at:]


def _line_again(text: str, chance: random.Random) -> str:
    lines = text.splitlines() or [""]
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return "\n".join(lines)


def _swapped(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    one, other = chance.randrange(len(words)), chance.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return " ".join(words)


def _digit(text: str, chance: random.Random) -> str:
    digits = [place for place, each in enumerate(text) if each.isdigit()]
    if not digits:
        return text
    at = chance.choice(digits)
    return text[:at] + str(chance.randint(0, 9)) + text[at + 1 :]


CHANGES: list[Callable[[str, random.Random], str]] = [_dropped, _put, _line_again, _swapped, _digit, _digit]
PIECES = (
    ":", "-", "[", "]", "{", "}", "(", ")", "\n", "\t", "  ", "&a ", "*a", "!!python/object ", "|", ">", "'", '"', "#",
    "\x00", "\u2028", "ÿ", "𝐐", "\ufeff", "---\n", "?", "...", "%", "@", "e", ".", "-inf", "0", "9" * 40, "@ X", ".T",
    "** 9 ** 9", "softmax(", "\\", ", ", "given:\n", "steps:\n",
)  # fmt: skip


def hostile(chance: random.Random) -> bytes:
    """What somebody would write who wants to see it fall."""
    start = "given: {X: [[1, 2], [3, 4]]}\nsteps:\n  A: "
    size = chance.choice([10, 100, 1_000, 20_000])
    return (
        chance.choice(
            [
                start + "(" * size + "X" + ")" * size,
                start + "-" * size + "X",
                start + "X" + ".T" * size,
                start + "X" + " @ X" * size,
                start + "X" + " ** X" * min(size, 1000),
                start + "X ** " + "9" * size,
                start + f"positional({size}, {size})",
                start + f"one_hot({size - 1}, {size})",
                start + f"positional({size}00000, 1)",
                start + "concat(" + "X, " * size + "X)",
                start
                + "stack(X, X, X)\n"
                + "\n".join(
                    f"  A{n}: stack(A{'' if n == 1 else n - 1}, A{'' if n == 1 else n - 1})" for n in range(1, 40)
                ),
                start
                + "X\n"
                + "\n".join(f"  A{n}: concat(A{n - 1 or ''}, A{n - 1 or ''}, axis=0)" for n in range(1, 30)),
                start + "X\n" + "\n".join(f"  A{n}: X @ X" for n in range(size)),
                start + "exp(exp(exp(exp(X * 9))))",
                start + "sum(X) / 0",
                start + "log(X - X)",
                start + "f'{X}'",
                start + "[X for X in X]",
                start + "lambda: X",
                start + "X.__class__",
                start + "__import__('os').system('true')",
                start + "(X := X)",
                start + "X if X else X",
                start + "multi_head(X, X, X, X, heads=" + "9" * chance.randint(1, 30) + ")",
                start + "self_attention(" * min(size, 60) + "X" + ", X, X, X)" * min(size, 60),
                start + '"' + "X" * size,
                "a: &a ["
                + "1," * 9
                + "1]\n"
                + "\n".join(
                    f"{chr(97 + n)}: &{chr(97 + n)} [{', '.join(['*' + chr(96 + n)] * 9)}]" for n in range(1, 9)
                ),
                "given: &g {X: *g}\nsteps: {A: X}",
                "given:\n  X: " + "[" * size + "1" + "]" * size + "\nsteps: {A: X}",
                "given:\n  X: [" + "1, " * size + "1]\nsteps: {A: X * 2}\nclaimed: {A: [" + "2, " * size + "2]}",
                "given:\n" + "\n".join(f"  X{n}: 1" for n in range(size)) + "\nsteps: {A: X1}",
                "problem: " + chance.choice(["self-attention", "case.yaml", ".", "/dev/null", "../" * 40, "a" * size]),
                "\x00" * size,
                "\ufeff" * 3,
                "",
                "[]",
                "- " * size,
                "? " * min(size, 1000),
                "given: {X: [[1, 2]]}\nsteps: {A: X}\nclaimed: {A: [[" + "9" * size + ", 2]]}",
                "given: {X: [[1e-300, 2]]}\nsteps: {A: X * 1e-300, B: A / A}",
            ]
        )
    ).encode("utf-8", "replace")


def bytes_by_chance(chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return chance.randbytes(chance.choice([1, 10, 1_000, 600_000]))
    text = bytearray(mutated(chance))
    for _ in range(chance.randint(1, 5)):
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)


KINDS = (valid, mutated, fitting, valid, mutated, hostile, valid, mutated, fitting, bytes_by_chance)
RENDERINGS = ("text", "markdown", None, "latex", "html", "json", "worksheet")


def rendering(number: int) -> str | None:
    return RENDERINGS[number % len(RENDERINGS)]
