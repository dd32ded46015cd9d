"""A network whose numbers are to be read: built without drawing any, so that no memory is touched until they come."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

FILLS = frozenset({torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.zero_, torch.Tensor.fill_})


class Unfilled(TorchFunctionMode):
    """While it lasts nothing of `torch.nn.init` is done; room that is only asked for costs nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given: Mapping[str, Any] = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else given["tensor"]
        if func in FILLS and isinstance(args[0], torch.nn.Parameter):
            return args[0]
        return func(*args, **given)
