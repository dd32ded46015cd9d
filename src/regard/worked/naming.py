"""What the rows and columns of each step stand for: what the problem says, and what follows from it.

Where X has the rows how, are, you, so has Q = X W_Q; E = Q Kᵀ has the words of Q in its rows and those of K in its
columns, and so has its softmax. Where nothing follows an axis has no names.
"""

from collections.abc import Mapping

from regard.worked.calls import Call
from regard.worked.nodes import Binary, Index, Name, Negative, Node, Number, Places, Slice, Transpose
from regard.worked.problem import Problem

Side = tuple[str, ...] | None
Sides = tuple[Side, ...]
"""One for each axis of a value."""

SAME = ("softmax", "sparsemax", "relu", "tanh", "sigmoid", "exp", "log", "log10", "sqrt", "mask", "scale", "layer_norm")
"""Functions whose result stands for what their first argument does, cell by cell."""

ALONG = ("sum", "mean", "var", "max", "argmax", "norm")
"""Functions that make one number of those along an axis."""


def sides_of(problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Sides]:
    """The names on the axes of everything given and every step."""
    found: dict[str, Sides] = {name: fitted(problem.axes.get(name, ()), shapes[name]) for name in problem.given}
    for step in problem.steps:
        said = problem.axes.get(step.name, ())
        own = fitted(said, shapes[step.name])
        follows = fitted(_follows(step.formula.root, found, problem), shapes[step.name])
        found[step.name] = tuple(one or other for one, other in zip(own, follows, strict=True))
    return found


def fitted(sides: Sides, shape: tuple[int, ...]) -> Sides:
    """As many as there are axes, and none that does not fit."""
    if len(sides) != len(shape):
        sides = (None,) * len(shape)
    return tuple(
        words if words is not None and len(words) == size else None for words, size in zip(sides, shape, strict=True)
    )


def _follows(node: Node, known: Mapping[str, Sides], problem: Problem) -> Sides:
    match node:
        case Name(name=name):
            return known[name]
        case Transpose(of=of):
            sides = _follows(of, known, problem)
            return sides[:-2] + sides[-2:][::-1]
        case Negative(of=of):
            return _follows(of, known, problem)
        case Binary(sign="@"):
            return _product(_follows(node.left, known, problem), _follows(node.right, known, problem))
        case Binary():
            return _either(node, known, problem)
        case Index():
            return _picked(node, _follows(node.of, known, problem))
        case Call():
            return _called(node, known, problem)
        case _:
            return ()


def _product(left: Sides, right: Sides) -> Sides:
    if not left or not right:
        return ()
    return left[:-1] + (right[-1:] if len(right) > 1 else ())


def _either(node: Binary, known: Mapping[str, Sides], problem: Problem) -> Sides:
    """Cell by cell: the names of either, from the last axis on."""
    parts = [each for each in node.parts if not isinstance(each, Number)]
    sides = [_follows(part, known, problem) for part in parts]
    rank = max((len(each) for each in sides), default=0)
    padded = [(None,) * (rank - len(each)) + each for each in sides]
    return tuple(next((words for words in axis if words is not None), None) for axis in zip(*padded, strict=True))


def _picked(node: Index, sides: Sides) -> Sides:
    found: list[Side] = []
    for key, words in zip(node.keys, sides, strict=False):
        if isinstance(key, Slice):
            found.append(None if words is None else words[slice(*key)])
    return (*found, *sides[len(node.keys) :])


def _called(node: Call, known: Mapping[str, Sides], problem: Problem) -> Sides:
    if node.function == "one_hot":
        return (*_words(node, known, problem), problem.words.get(str(node.argument("n"))))
    if node.function == "embed":
        return (*_words(node, known, problem), *_follows(node.arguments[0], known, problem)[1:])
    parts = [_follows(each, known, problem) for each in node.arguments]
    if not parts:
        return ()
    first = parts[0]
    if node.function in SAME:
        return first
    if node.function in ALONG:
        return _without(first, node.argument("axis"))
    if node.function == "cross_entropy":
        return first[:-1]
    if node.function == "additive_score" and len(parts) > 1:
        return (*first[:-1], *parts[1][:1])
    if node.function == "stack" and node.argument("axis") is None:
        return (None, *first)
    if node.function == "concat" and node.argument("axis") is None:
        return next(((each[0], None) for each in parts if len(each) == 2), ())
    return ()


def _words(node: Call, known: Mapping[str, Sides], problem: Problem) -> Sides:
    """Of the words that are looked up."""
    word = node.argument("word")
    if isinstance(word, Places):
        return () if word.alone else (problem.words.get(word.text),)
    return () if word is None else _follows(word, known, problem)


def _without(sides: Sides, axis: Node | None) -> Sides:
    """What is left when one axis is summed up."""
    if axis is None or axis.names or not sides:
        return ()
    place = int(axis.compute({})) % len(sides)
    return sides[:place] + sides[place + 1 :]
