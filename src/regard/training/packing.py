"""Nested states (dicts, lists, numbers, tensors) as one safetensors file: tensors beside one another, the rest as JSON.

Nothing that executes is written, and nothing that is read can execute.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from regard.support.atomic import writing

TENSOR = "tensor"
PAIRS = "pairs"


def write(path: str | Path, state: Any) -> None:
    """Atomically: a kill at any instant leaves the file that stood there, or the new one."""
    tensors: dict[str, Tensor] = {}
    skeleton = json.dumps(_pack(state, "", tensors))
    with writing(path) as file:
        file.write(save(tensors, {"state": skeleton}))


def read(path: str | Path, device: str | torch.device = "cpu") -> Any:
    """What `write` wrote; a ValueError names a file that is no such thing or was cut short."""
    try:
        with safe_open(path, "pt", device=str(device)) as held:
            skeleton = json.loads((held.metadata() or {})["state"])
            return _unpack(skeleton, held)
    except (SafetensorError, KeyError, json.JSONDecodeError):
        raise ValueError(f"{path}: no checkpoint, or a damaged one") from None


def _pack(state: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(state, Tensor):
        # A copy of its own: safetensors refuses tensors that share memory (tied weights, views of a buffer).
        tensors[name] = state.detach().to("cpu", copy=True).contiguous()
        return {TENSOR: name}
    if isinstance(state, dict):
        return {PAIRS: [[key, _pack(value, f"{name}/{key}", tensors)] for key, value in state.items()]}
    if isinstance(state, list | tuple):
        return [_pack(each, f"{name}/{place}", tensors) for place, each in enumerate(state)]
    return state


def _unpack(skeleton: Any, held: Any) -> Any:
    if isinstance(skeleton, list):
        return [_unpack(each, held) for each in skeleton]
    if isinstance(skeleton, dict) and TENSOR in skeleton:
        return held.get_tensor(skeleton[TENSOR])
    if isinstance(skeleton, dict):
        return {key: _unpack(value, held) for key, value in skeleton[PAIRS]}
    return skeleton
