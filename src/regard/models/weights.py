"""Weights in a file: safetensors, each tensor once, and what is wrong with a file told in a sentence."""

from collections.abc import Mapping
from pathlib import Path

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
    try:
        with safe_open(str(path), framework="pt") as file:
            about, held = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise Misuse(f"{path}: no such file, and without its weights a model says nothing") from None
    except SafetensorError as error:
        raise Misuse(f"{path}: cut off or damaged, it is no whole safetensors file ({error})") from None
    _fitting(path, held, tensors(model))
    with torch.no_grad():
        for name, own in tensors(model).items():
            own.copy_(held[name])
    return dict(about)


def _fitting(path: str | Path, held: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    if missing := [name for name in own if name not in held]:
        raise Misuse(f"{path}: {_told(missing)} missing, which the network of model.json has")
    if strange := [name for name in held if name not in own]:
        raise Misuse(f"{path}: {_told(strange)} not a part of the network of model.json")
    for name, tensor in own.items():
        if held[name].shape != tensor.shape:
            raise Misuse(
                f"{path}: tensor {name} has the shape {list(held[name].shape)}; "
                f"the network of model.json needs {list(tensor.shape)}"
            )


def _told(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"tensor{'s' if len(names) > 1 else ''} {', '.join(names[:SHOWN])}{more} {'are' if len(names) > 1 else 'is'}"
