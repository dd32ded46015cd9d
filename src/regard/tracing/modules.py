"""In which module an operation ran, and what its parameters are called: hooks on every module, while a tape records."""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

Named = Callable[[Tensor, str, str], None]
"""Takes a tensor, what it is (input, output, parameter, buffer), and its name."""


Entered = Callable[[nn.Module, bool], None]
"""Takes a module that is about to run (true) or has returned (false)."""


class Modules:
    """The modules that run now, by the path of attributes that leads to them from the outermost one."""

    def __init__(self, named: Named, entered: Entered) -> None:
        self._named, self._entered = named, entered
        self._paths: dict[int, str] = {}
        self._kept: list[nn.Module] = []
        self._roots: set[str] = set()
        self._running: list[tuple[nn.Module, str]] = []
        self._thread = threading.get_ident()
        self.path = ""

    def add_root(self, root: nn.Module) -> None:
        """Names all modules and parameters in it. The first root goes without a name, further ones by their class."""
        prefix = self._prefix(type(root).__name__) if self._roots else ""
        self._roots.add(prefix)
        self._kept.append(root)  # an identity may be used again once its owner is gone
        for path, module in root.named_modules():
            self._paths.setdefault(id(module), _joined(prefix, path))
        for path, parameter in root.named_parameters():
            self._named(parameter, "parameter", _joined(prefix, path))
        for path, buffer in root.named_buffers():
            self._named(buffer, "buffer", _joined(prefix, path))

    def _prefix(self, name: str) -> str:
        count = 2
        prefix = name
        while prefix in self._roots:
            prefix, count = f"{name}{count}", count + 1
        return prefix

    @contextmanager
    def watched(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(self._before).remove)
            stack.callback(register_module_forward_hook(self._after, always_call=True).remove)
            try:
                yield
            finally:
                self._running.clear()
                self.path = ""

    def _before(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if threading.get_ident() != self._thread or "_orig_mod" in module._modules:
            return  # a compiled module is the one in it
        if id(module) not in self._paths:
            self.add_root(module)
        if not self._running:
            self._name_inputs(module, inputs)
            for name, value in _keywords(inputs).items():
                self._name_input(name, value)
        self._running.append((module, self.path))
        self.path = self._paths[id(module)]
        self._entered(module, True)

    def _after(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or not any(each is module for each, _ in self._running):
            return
        self._entered(module, False)
        path = self.path
        while self._running:
            running, self.path = self._running.pop()
            if running is module:
                break
            path = self.path
        if path:
            for name, tensor in _tensors(output, path):
                self._named(tensor, "output", name)

    def _name_inputs(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        """By the names that `forward` gives them."""
        try:
            parameters = list(inspect.signature(module.forward).parameters.values())
        except (TypeError, ValueError):
            return
        names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        for name, value in zip(names, inputs, strict=False):
            self._name_input(name, value)

    def _name_input(self, name: str, value: Any) -> None:
        for full, tensor in _tensors(value, name):
            self._named(tensor, "input", full)


def _keywords(inputs: tuple[Any, ...]) -> dict[str, Any]:
    """What the outermost module was called with by keyword. Hooks on all modules are not told; the frame that calls
    them is nn.Module's own, and has it. Where a later PyTorch has no such frame, these inputs go without names.
    """
    frame = inspect.currentframe()
    for _ in range(5):
        frame = None if frame is None else frame.f_back
        found = {} if frame is None else frame.f_locals
        if found.get("args") is inputs and isinstance(found.get("kwargs"), dict):
            return dict(found["kwargs"])
    return {}


def _joined(prefix: str, path: str) -> str:
    path = ".".join(part for part in path.split(".") if part != "_orig_mod")  # of a compiled module
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _tensors(value: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors of an output, each by a name: one alone by that of the whole."""
    if isinstance(value, Tensor):
        return [(name, value)]
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in _tensors(each, f"{name}.{key}")]
    if isinstance(value, list | tuple):
        fields = getattr(value, "_fields", range(len(value)))
        return [
            found
            for key, each in zip(fields, value, strict=True)
            for found in _tensors(each, f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]")
        ]
    return []
