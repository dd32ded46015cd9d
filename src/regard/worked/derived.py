"""The steps of a problem under `regard.trace`: a derivation in which every cell can be opened."""

import re
from collections import Counter
from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from regard.tracing import Derivation, label, trace
from regard.tracing.derivation import GIVEN
from regard.tracing.labels import renamed
from regard.tracing.step import Step
from regard.worked.calls import Call
from regard.worked.naming import Sides
from regard.worked.nodes import Node
from regard.worked.notation import spelled
from regard.worked.problem import Problem

INNER = ("a", "r", "z", "n", "i", "f", "g", "o", "C", "h", "from_x", "from_h", "angles", "squares")
"""What functions of several lines call their own parts: in a derivation the name of the step stands before it."""

WORDS = {
    "mm": "product", "bmm": "product", "mv": "product", "dot": "product", "mul": "product", "add": "sum",
    "sub": "difference", "rsub": "difference", "div": "quotient", "pow": "power", "amax": "max", "amin": "min",
    "where": "choice", "scalar_tensor": "number", "native_layer_norm": "norm", "to_copy": "copy",
}  # fmt: skip
"""What the primitives are called where they stand for themselves."""


def derived(problem: Problem, sides: Mapping[str, Sides]) -> Derivation:
    """The problem worked under a tape. It has been worked before, so that what cannot be is told elsewhere."""
    values = {name: given.value.clone() for name, given in problem.given.items()}
    with trace() as tape, torch.no_grad():
        for name, value in values.items():
            label(value, name)
        for step in problem.steps:
            with renamed(**{part: f"{step.name}.{part}" for part in INNER}):
                value = _own(step.formula.root.compute(values), values)
            values[step.name] = label(value, step.name, spelled(step.formula.root))
        # What is read of everything, so that no step is missing that the last one was not made from.
        found = tape.derivation(torch.cat([value.flatten() for value in values.values()]))
    dressed = _dressed(found, {step.name: step.formula.root for step in problem.steps}, problem.given)
    return dressed.with_axes({name: sides[name] for name in values if any(sides[name])})


def _own(value: Tensor, values: Mapping[str, Tensor]) -> Tensor:
    """A tensor of its own, that a tape tells apart from what it is a piece of."""
    storage = value.untyped_storage()
    shared = any(storage.data_ptr() == each.untyped_storage().data_ptr() for each in values.values())
    return value.clone() if shared or storage.nbytes() != value.numel() * value.itemsize else value


def _dressed(found: Derivation, roots: Mapping[str, Node], given: Collection[str]) -> Derivation:
    """As a person would have it: up to the last step, the parts of a step called after it, and the constants inside
    of functions not among what is given: they stand in the equations as numbers."""
    last = found[[*roots][-1]].position
    steps = found.fine[: last + 1]
    for step in steps:
        if step.role in GIVEN and step.name not in given:
            step.shown, step.making = False, None
        if step.kind == "weights" and step.name in roots and not _normalises(roots[step.name]):
            step.known_kind = "plain"  # rows that happen to sum to one, as those of a one-hot code
    _rename(steps, _better(steps, roots))
    return Derivation(steps, last)


def _normalises(root: Node) -> bool:
    return any(isinstance(node, Call) and node.function in ("softmax", "sparsemax") for node in root.walk())


def _better(steps: tuple[Step, ...], names: Collection[str]) -> dict[str, str]:
    """For the parts of steps that stand for themselves, other names: `weights.product` for `mm`."""
    owner, whose = "", {}
    for step in reversed(steps):
        owner = step.name if step.name in names else owner
        if step.shown and step.name not in names and step.role not in GIVEN and not step.name.startswith(f"{owner}."):
            called = step.name.rpartition(".")[2].partition("#")[0].strip("_")
            whose[step.name] = f"{owner}.{WORDS.get(called, called)}"
    often, seen, found = Counter(whose.values()), Counter[str](), {}
    for name, better in reversed(whose.items()):
        seen[better] += 1
        found[name] = better if often[better] == 1 else f"{better}_{seen[better]}"
    return found


def _rename(steps: tuple[Step, ...], better: Mapping[str, str]) -> None:
    """In every place where a name stands. None of them has a second name: a problem's names are its own."""
    for step in steps:
        step.name = better.get(step.name, step.name)
        step.inputs = tuple(better.get(each, each) for each in step.inputs)
        step.formula = _renamed(step.formula, better)
        step.module, step.aliases = "", ()


def _renamed(formula: str, better: Mapping[str, str]) -> str:
    if not better:
        return formula
    longest_first = sorted(better, key=len, reverse=True)
    name = rf"(?<![\w.#])(?:{'|'.join(map(re.escape, longest_first))})(?![0-9A-Za-z_#])"
    return re.sub(name, lambda match: better[match[0]], formula)
