"""What a tape writes down: a call of a primitive operation, and a record for each tensor."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from regard.tracing.geometry import Geometry
from regard.tracing.memory import Layer
from regard.tracing.step import Held, Role


class Ref(NamedTuple):
    """A tensor among the arguments of a call, by the number of its record."""

    record: int


@dataclass(slots=True, eq=False)
class Called:
    """A call of an operation: its arguments, with a Ref in the place of each tensor, and its outputs."""

    operation: str
    """As `aten.mm`; of one that writes in place or to `out=` the plain operation."""
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reads: tuple[int, ...]
    """The records among the arguments, each as often as it stands there."""
    outputs: tuple[int, ...] = ()
    """A record for each tensor that came out; -1 where there was none."""


@dataclass(slots=True, eq=False)
class Record:
    """A tensor at a moment of the computation."""

    number: int
    shape: torch.Size
    dtype: torch.dtype
    role: Role
    operation: str
    module: str
    sources: tuple[int, ...] = ()
    held: Held | None = None
    called: Called | None = None
    output: int = 0
    """Which output of the call."""
    dense: bool = True
    """Whether it is a plain array of numbers: not sparse, nested or packed."""
    view: tuple[Geometry, tuple[Layer, ...]] | None = None
    """Of a view: where it lies, and what lies there."""
    known_as: str = ""
    """Of what was given: its name."""
    labels: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, formula, and the module in which it was so named; the last one counts."""
    outputs_of: list[str] = field(default_factory=list)
    """Modules that returned it, innermost first."""
