"""Which record a tensor is: storages as layers of what was written to them, later ones on top."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.tracing.geometry import Geometry, geometry
from regard.tracing.step import Held


class Layer(NamedTuple):
    """A record, and where its cells lie."""

    record: int
    at: Geometry
    named: bool = False
    """Whether it is a view of those below that has a name: what is read through it comes from it."""


class Storage:
    """What is known of one storage now."""

    __slots__ = ("alive", "held", "known", "layers")

    def __init__(self, alive: object) -> None:
        self.alive = alive
        """Keeps the storage, or its name, from being given to another."""
        self.known: dict[Geometry, int] = {}
        self.layers: list[Layer] = []
        self.held: list[tuple[Geometry, Held]] = []

    def under(self, at: Geometry) -> list[Layer]:
        """The layers that a tensor there is made of, lowest first; none where part of it is not known."""
        found: list[Layer] = []
        for layer in reversed(self.layers):
            if layer.at.covers(at):
                return [layer, *found]
            if layer.at.overlaps(at) and not layer.named:
                found.insert(0, layer)
        return found if found and _together(found, at) else []


class Memory:
    """The storages that were seen. `viewed` makes a record of a tensor that is part of others."""

    def __init__(self, viewed: Callable[[Tensor, Geometry, list[Layer]], int]) -> None:
        self._storages: dict[int, Storage] = {}
        self._others: dict[int, tuple[Tensor, int]] = {}
        """Tensors that are not strided (sparse, nested), by identity."""
        self._viewed = viewed

    def find(self, tensor: Tensor) -> int | None:
        """The record whose value this tensor is now; None where it was never seen."""
        if not dense(tensor):
            other = self._others.get(id(tensor))
            return None if other is None else other[1]
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        if storage is None:
            return None
        at = geometry(tensor)
        number = storage.known.get(at)
        if number is None and (layers := storage.under(at)):
            number = storage.known[at] = self._viewed(tensor, at, layers)
        return number

    def known(self, tensor: Tensor) -> bool:
        """Whether something in its storage was seen."""
        if not dense(tensor):
            return id(tensor) in self._others
        return tensor.untyped_storage()._cdata in self._storages

    def put(self, tensor: Tensor, record: int, held: Held | None) -> None:
        """From now on the tensor is this record, whatever lay there before."""
        if not dense(tensor):
            self._others[id(tensor)] = (tensor, record)
            return
        untyped = tensor.untyped_storage()
        storage = self._storages.get(untyped._cdata)
        if storage is None:
            storage = self._storages[untyped._cdata] = Storage(untyped if held is not None else _weak(untyped))
        at = geometry(tensor)
        if storage.layers:
            storage.known = {each: number for each, number in storage.known.items() if not each.overlaps(at)}
            storage.layers = [layer for layer in storage.layers if not at.covers(layer.at)]
        storage.known[at] = record
        storage.layers.append(Layer(record, at))
        if held is not None:
            storage.held.append((at, held))

    def hold(self, tensor: Tensor, held: Held) -> None:
        """The numbers of a tensor that was seen are to be kept before they are written over."""
        self._storages[tensor.untyped_storage()._cdata].held.append((geometry(tensor), held))

    def name(self, tensor: Tensor, record: int, yields: Callable[[int], bool] = lambda number: False) -> None:
        """A view has been named: views of it are read through it from now on, and so is what `yields` to its name."""
        if not dense(tensor):
            return
        at, storage = geometry(tensor), self._storages[tensor.untyped_storage()._cdata]
        storage.layers.append(Layer(record, at, True))
        storage.known = {
            each: number
            for each, number in storage.known.items()
            if number == record or not (yields(number) and at.covers(each))
        }

    def before_turning(self, tensor: Tensor) -> None:
        """What is recorded of a tensor keeps its shape where the code is about to give the tensor another in place."""
        storage = self._storages.get(tensor.untyped_storage()._cdata) if dense(tensor) else None
        for _, held in () if storage is None else storage.held:
            if held.tensor is tensor:
                held.tensor = tensor.detach()

    def before_writing(self, tensor: Tensor) -> list[Held]:
        """The values that will be written over, to be kept as they are."""
        if not dense(tensor):
            return []
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        if storage is None:
            return []
        at = geometry(tensor)
        lost = [held for each, held in storage.held if each.overlaps(at)]
        storage.held = [(each, held) for each, held in storage.held if not each.overlaps(at)]
        return lost


def dense(tensor: Tensor) -> bool:
    """Whether it has one place in a storage for each of its cells."""
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized


def real(tensor: Tensor) -> bool:
    """Whether it has numbers: those on `meta` and PyTorch's fake ones have a shape alone."""
    return type(tensor).__name__ != "FakeTensor" and not tensor.is_meta


def _together(layers: list[Layer], at: Geometry) -> bool:
    """Whether the layers have between them every cell of a tensor."""
    if not all(layer.at.alike(at) for layer in layers):
        return True  # bytes read as something else: that they are these is all that can be said
    found = np.zeros(at.shape, bool)
    for layer in layers:
        found |= at.to(layer.at).everywhere(at.shape) >= 0
    return bool(found.all())


def _weak(storage: torch.UntypedStorage) -> object:
    """Holds the name of a storage, not its memory."""
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]
