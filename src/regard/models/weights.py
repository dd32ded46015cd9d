"""Weights in a file: safetensors, each tensor once, and what is wrong with a file told in a sentence."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.support.atomic import writing
from regard.support.errors import Misuse

SHOWN = 3
"""How many names of tensors a message tells."""


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and lasting buffers by name; one that stands in several places (tied, shared) under its first."""
    found, seen = {}, set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def write_weights(path: str | Path, model: nn.Module, about: Mapping[str, str] | None = None) -> None:
    """Write the weights atomically; `about` goes into the file's header."""
    held = {name: each.contiguous().cpu() for name, each in tensors(model).items()}
    with writing(path) as file:
        file.write(save(held, dict(about or {})))


def read_weights(path: str | Path, model: nn.Module) -> dict[str, str]:
    """Put a file's weights into a model that was built from the same settings; what its header says.

    Raises Misuse with one sentence where the file is missing, damaged, or made for another network.
    """
    with _opened(path) as file:
        about, held = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    _fitting(path, {name: each.shape for name, each in held.items()}, tensors(model))
    with torch.no_grad():
        for name, own in tensors(model).items():
            own.copy_(held[name])
    return dict(about)


def check_weights(path: str | Path, model: nn.Module) -> None:
    """That a file's weights fit a model, told by names and shapes alone: the model may be one without numbers."""
    with _opened(path) as file:
        shapes = {name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    _fitting(path, shapes, tensors(model))


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
