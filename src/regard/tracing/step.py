"""One step of a derivation: what it is called, how it was made, and its numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.tracing.forms import Rule
from regard.tracing.index import Move

if TYPE_CHECKING:
    from regard.tracing.derivation import Derivation

Role = Literal["given", "parameter", "constant", "random", "move", "computed", "opaque"]
Kind = Literal["weights", "signed", "plain"]
Axes = tuple[tuple[str, ...] | None, ...]


PLAIN = frozenset({torch.float32, torch.float64, torch.int64, torch.int32, torch.bool})
"""Dtypes whose numbers are read where they lie."""
AT_ONCE = 20_000
"""Numbers up to which all are read and kept when one is asked for, where they do not lie row by row."""


@dataclass(eq=False, slots=True)
class Held:
    """Recorded numbers: an alias of what the code computed, and its version when the trace ended."""

    tensor: Tensor
    version: int | None = None

    def keep(self) -> None:
        """Before something is written over it: from now on a copy."""
        self.tensor = self.tensor.detach().clone()

    def settle(self) -> None:
        """At the end of the trace: what is written over it from now on is not seen, and must be noticed."""
        self.tensor = self.tensor.detach()
        self.version = version_of(self.tensor)

    def read(self, name: str) -> Tensor:
        """The numbers, unless something outside the trace has written over them since."""
        if self.version is not None and version_of(self.tensor) != self.version:
            raise ValueError(
                f"the values of {name!r} were overwritten in place after they were recorded (by an optimiser's step, "
                "perhaps); read or save the derivation before that, or make the change inside the trace"
            )
        return self.tensor


def version_of(tensor: Tensor) -> int | None:
    """How many times the tensor was written to in place; None where PyTorch does not count (inference mode)."""
    return None if tensor.is_inference() else tensor._version


@dataclass(eq=False)
class Step:
    """A tensor of a derivation. `steps` of a derivation are those a person would write, `fine` the primitives."""

    position: int
    """Where it stands in `fine`."""
    name: str
    """Unique within the derivation."""
    shape: tuple[int, ...]
    dtype: str
    role: Role
    operation: str
    """The primitive operation, as `aten.mm`, or what kind of input it is."""
    label: str = ""
    formula: str = ""
    module: str = ""
    """Path of the module it ran in, as attributes of the outermost one."""
    shown: bool = False
    """Whether it is one of `steps` (or `givens`), not only one of `fine`."""
    inputs: tuple[str, ...] = ()
    """Names of the steps it was made from: of a shown step the shown ones, of another the primitive ones."""
    sources: tuple[int, ...] = ()
    """Positions in `fine` of what the primitive read."""
    aliases: tuple[str, ...] = ()
    """Other names it may be asked for by: its label, its full name, the module whose output it is."""
    axes: Axes = ()
    """For each axis its tokens, or None."""
    held: Held | None = None
    """Its own numbers; None where they are those of other steps (a move), or were left out."""
    making: "Rule | Move | Callable[[], Rule | Move | None] | None" = None
    known_kind: Kind | None = None
    derivation: "Derivation | None" = field(default=None, repr=False)
    _array: "np.ndarray[Any, Any] | None" = field(default=None, repr=False)

    @property
    def rule(self) -> Rule | Move | None:
        """How its cells are made; None for what was given."""
        if callable(self.making):
            self.making = self.making()
        return self.making

    @property
    def value(self) -> Tensor:
        """Its numbers, in its own shape and dtype. An error where they were left out."""
        if self.held is not None:
            return self.held.read(self.name)
        if (array := self.array) is None:
            raise ValueError(f"the values of {self.name!r} {list(self.shape)} were left out of the derivation")
        return torch.from_numpy(array.copy()).to(getattr(torch, self.dtype)).reshape(self.shape)

    @property
    def array(self) -> "np.ndarray[Any, Any] | None":
        """Its numbers row by row, on the CPU, 16-bit ones as float32; None where they were left out."""
        if self.held is not None:
            tensor = self.held.read(self.name)
            if self._array is None:
                self._array = flat_array(tensor)
        elif self._array is None and isinstance(self.rule, Move) and self.derivation is not None:
            self._array = self.derivation.moved_whole(self, self.rule)
        return self._array

    def cells(self, flat: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any] | None":
        """Its numbers at flat indices, those of a big move read where they stand; None where they were left out."""
        if self.held is None and self._array is None and self.size > AT_ONCE and isinstance(self.rule, Move):
            return None if self.derivation is None else self.derivation.moved(self, self.rule, flat)
        if self.held is not None and self._array is None and self.size > AT_ONCE and self.shape:
            tensor = self.held.read(self.name).detach()
            if tensor.device.type == "cpu" and not tensor.is_contiguous() and tensor.dtype in PLAIN:
                strided: np.ndarray[Any, Any] = tensor.numpy()
                return strided[np.unravel_index(flat, self.shape)]
        array = self.array
        return None if array is None else array[flat]

    def whole(self, flat: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any] | None":
        """As `cells`, where most of them are asked for; keeps nothing."""
        kept = self._array
        array, self._array = self.array, kept
        return None if array is None else array[flat]

    @property
    def has_values(self) -> bool:
        if self.held is None and isinstance(self.rule, Move) and self.derivation is not None:
            return all(self.derivation.fine[piece.step].has_values for piece in self.rule.pieces)
        return self.array is not None

    @property
    def fine(self) -> "tuple[Step, ...]":
        """The primitives folded into this step, in order, itself last."""
        assert self.derivation is not None
        return self.derivation.folded_into(self)

    @property
    def size(self) -> int:
        """How many cells."""
        return int(np.prod(self.shape))

    @property
    def kind(self) -> Kind:
        """How to show it: weights from 0 to 1 in rows, numbers about 0, or plain ones."""
        if self.known_kind is None:
            self.known_kind = self._kind()
        return self.known_kind

    def _kind(self) -> Kind:
        array = self.array
        if array is None or array.dtype.kind != "f" or array.size == 0:
            return "plain"
        seen = array[np.isfinite(array)]
        if (seen < 0).any() or seen.size < array.size:
            return "signed"
        if self.role != "computed" or not self.shape or self.shape[-1] < 2 or seen.max() > 1:
            return "plain"
        sums = array.reshape(-1, self.shape[-1]).astype(np.float64).sum(-1)
        return "weights" if bool(((abs(sums - 1) < 0.01) | (sums == 0)).all()) and sums.any() else "plain"

    def __repr__(self) -> str:
        made = f" = {self.formula}" if self.formula else ""
        return f"Step({self.name!r}{made}, {self.operation}, {list(self.shape)} {self.dtype})"


def flat_array(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """The numbers of any dense tensor row by row; no copy where they already lie so on the CPU."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype in (torch.float16, torch.bfloat16) or (plain.dtype.itemsize == 1 and plain.is_floating_point()):
        plain = plain.float()
    array: np.ndarray[Any, Any] = plain.contiguous().numpy().reshape(-1)
    return array
