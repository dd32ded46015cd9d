"""Weights in a file: safetensors, each tensor once, and what is wrong with a file told in a sentence."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.models.eight_bits import SCALE, is_scale, quantised
from regard.support.atomic import writing
from regard.support.errors import Misuse

SHOWN = 3
"""How many names of tensors a message tells."""
Numbers = Literal["float32", "float16", "int8"]
"""What weights are written in; in int8 all matrices are, and what is no matrix stays as it is."""
NUMBERS: tuple[Numbers, ...] = get_args(Numbers)


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and lasting buffers by name; one that stands in several places (tied, shared) under its first."""
    found, seen = {}, set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def write_weights(
    path: str | Path, model: nn.Module, about: Mapping[str, str] | None = None, numbers: Numbers = "float32"
) -> None:
    """Write the weights atomically; `about` goes into the file's header."""
    held: dict[str, Tensor] = {}
    for name, each in tensors(model).items():
        held |= _as_numbers(name, each.contiguous().cpu(), numbers)
    with writing(path) as file:
        file.write(save(held, dict(about or {})))


def _as_numbers(name: str, tensor: Tensor, numbers: Numbers) -> dict[str, Tensor]:
    """float32: as the model has them."""
    if not tensor.is_floating_point() or numbers == "float32":
        return {name: tensor}
    if numbers == "float16":
        return {name: tensor.half()}
    if tensor.ndim != 2:
        return {name: tensor}
    q, scale = quantised(tensor.float().numpy())
    return {name: torch.from_numpy(q), name + SCALE: torch.from_numpy(scale)}


def read_weights(path: str | Path, model: nn.Module, *, keep: bool = False) -> dict[str, str]:
    """Put a file's weights into a model that was built from the same settings; what its header says.

    keep: matrices that are in 8 bits stay so (`models.kept`); otherwise they are multiplied out. Raises Misuse with one
    sentence where the file is missing, damaged, or made for another network.
    """
    with _opened(path) as file:
        about, names = file.metadata() or {}, list(file.keys())
        _fitting(path, _shapes(path, file), tensors(model))
        kept = _keep(file, names, model) if keep else set()
        with torch.no_grad():
            for name, own in tensors(model).items():
                if name not in kept and name in names:
                    own.copy_(_whole(file, name, names))
    return dict(about)


def _keep(file: Any, names: list[str], model: nn.Module) -> set[str]:
    """The matrices that can stay as they are in the file, out of it and in the model; their names."""
    from regard.models.kept import keep

    return keep(model, {
        name: (file.get_tensor(name).clone(), file.get_tensor(name + SCALE).clone())
        for name in names if name + SCALE in names
    })  # fmt: skip


def _whole(file: Any, name: str, names: list[str]) -> Tensor:
    tensor: Tensor = file.get_tensor(name)
    return tensor if name + SCALE not in names else tensor.float() * file.get_tensor(name + SCALE).unsqueeze(-1)


def check_weights(path: str | Path, model: nn.Module) -> None:
    """That a file's weights fit a model, told by names and shapes alone: the model may be one without numbers."""
    with _opened(path) as file:
        _fitting(path, _shapes(path, file), tensors(model))


def _shapes(path: str | Path, file: Any) -> dict[str, torch.Size]:
    """Of each tensor; the scales of those in 8 bits belong to them, and are checked."""
    found = {name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    shapes = {name: shape for name, shape in found.items() if not is_scale(name, found)}
    for name, shape in shapes.items():
        if file.get_slice(name).get_dtype() != "I8":
            continue
        if name + SCALE not in found:
            raise Misuse(f"{path}: tensor {name} is in 8 bits, and its scales ({name + SCALE}) are missing")
        if len(shape) != 2 or found[name + SCALE] != shape[:1]:
            raise Misuse(
                f"{path}: tensor {name} {list(shape)} is in 8 bits: expected {shape[0]} scales, one a row; "
                f"got {list(found[name + SCALE])}"
            )
    return shapes


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        with safe_open(str(path), framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise Misuse(f"{path}: no such file, and without its weights a model says nothing") from None
    except SafetensorError as error:
        raise Misuse(f"{path}: cut off or damaged, it is no whole safetensors file ({error})") from None
    except OSError as error:
        said = "is a folder" if Path(path).is_dir() else str(error.strerror or error)
        raise Misuse(f"{path}: cannot be read: {said}; expected a safetensors file") from None


def _fitting(path: str | Path, held: Mapping[str, torch.Size], own: Mapping[str, Tensor]) -> None:
    if missing := [name for name in own if name not in held]:
        raise Misuse(f"{path}: {_told(missing)} missing, which the network of model.json has")
    if strange := [name for name in held if name not in own]:
        raise Misuse(f"{path}: {_told(strange)} not a part of the network of model.json")
    for name, tensor in own.items():
        if held[name] != tensor.shape:
            raise Misuse(
                f"{path}: tensor {name} has the shape {list(held[name])}; "
                f"the network of model.json needs {list(tensor.shape)}"
            )


def _told(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"tensor{'s' if len(names) > 1 else ''} {', '.join(names[:SHOWN])}{more} {'are' if len(names) > 1 else 'is'}"
