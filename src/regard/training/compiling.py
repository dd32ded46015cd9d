"""How a run computes: in which precision, compiled or not. What is chosen is said, and can be set."""

import shutil
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.models.fused.network import obstacle
from regard.models.layers import Block
from regard.models.transformer import Transformer
from regard.support.errors import Misuse
from regard.training import objective as objectives
from regard.training.settings import TrainingSettings

LONG = 2000
"""Updates on a GPU from which on compiling pays for itself."""
FEW_SHAPES = 64


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why."""

    yes: bool
    why: str


def bfloat16(settings: TrainingSettings, device: torch.device) -> Choice:
    """Products in bfloat16 where the device multiplies it faster."""
    if settings.precision == "float32":
        return Choice(False, "asked for")
    able, said = multiplies_bfloat16(device)
    if settings.precision == "bfloat16":
        return Choice(True, "asked for" if able else f"asked for, though {said}")
    return Choice(able, said)


def multiplies_bfloat16(device: torch.device) -> tuple[bool, str]:
    """Whether products in bfloat16 are instructions of the device, and not made of float32 ones."""
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
        return able, f"this GPU {'multiplies' if able else 'does not multiply'} bfloat16 faster"
    if device.type == "cpu":
        able = cpu_has_bfloat16()
        return able, f"this CPU {'has' if able else 'has no'} instructions for it"
    return False, f"{device.type} is not known to be faster in it"


def cpu_has_bfloat16() -> bool:
    if "AVX512" not in torch.backends.cpu.get_cpu_capability() or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return any(flag in flags.split() for flag in ("avx512_bf16", "amx_bf16"))


def fuses(settings: TrainingSettings, device: torch.device, model: nn.Module, *, bfloat16: bool) -> Choice:
    """Whether the network's fused parts take its place in training."""
    if settings.fused == "no":
        return Choice(False, "asked for")
    said = obstacle(model, device)
    if said is None and not bfloat16:
        said = "its products are in bfloat16"
    if said is None and settings.teaching.own > 0:
        said = "a decoder that is fed its own words is not"
    if settings.fused == "yes":
        if said is not None:
            raise Misuse(f"training.fused: {said}")
        return Choice(True, "asked for")
    if settings.compile == "yes":
        return Choice(False, "torch.compile was asked for")
    return Choice(said is None, said or "one pass for what stands between two products")


def fuse(objective: "objectives.Objective") -> None:
    """Network and loss in place, by their fused parts."""
    from regard.models.fused import loss
    from regard.models.fused.network import Fused

    assert isinstance(objective.model, Transformer)
    objective.fused = Fused(objective.model)
    objective.smoothed = loss.smoothed


def compiles(
    settings: TrainingSettings, device: torch.device, model: nn.Module, updates: int | None, *, fused: bool = False
) -> Choice:
    """Whether to compile; `updates`: how many the run will make, where that is known."""
    parts = compiled_parts(model)
    if settings.compile == "no":
        return Choice(False, "asked for")
    if fused and settings.compile == "auto":
        return Choice(False, "fused parts take its place")
    if settings.compile == "yes":
        if fused:
            raise Misuse("training.compile: fused parts take its place; say yes to it or to training.fused")
        if not parts:
            raise Misuse("training.compile: only Transformers are compiled, and this network has no block of one")
        if (missing := _missing(device)) is not None:
            raise Misuse(f"training.compile: {missing}")
        return Choice(True, "asked for")
    if not parts:
        return Choice(False, "only the blocks of Transformers are compiled")
    if (missing := _missing(device)) is not None:
        return Choice(False, missing)
    if device.type != "cuda":
        return Choice(False, f"on {device.type} it is no faster")
    if updates is not None and updates < LONG:
        return Choice(False, f"{updates:,} updates are too few for it to pay")
    return Choice(True, "it pays for a run of this length")


def _missing(device: torch.device) -> str | None:
    if device.type == "cpu" and not any(shutil.which(each) for each in ("g++", "clang++", "c++")):
        return "there is no C++ compiler"
    if device.type == "cuda":
        try:
            import triton  # noqa: F401
        except ImportError:
            return "Triton is not installed"
    return None


def compiled_parts(model: nn.Module) -> list[nn.Module]:
    """What is compiled: blocks, which all share what is made of the first of their sort, in seconds and not minutes."""
    return [module for module in model.modules() if isinstance(module, Block)]


def compile_parts(model: nn.Module, objective: "objectives.Objective", backend: str = "inductor") -> None:
    """Compile blocks and loss in place, for shapes of all sizes at once."""
    import torch._dynamo.config as config

    config.recompile_limit = max(config.recompile_limit, FEW_SHAPES)
    options: dict[str, Any] = {"dynamic": True, "backend": backend}
    for part in compiled_parts(model):
        part.compile(**options)
    objective.smoothed = torch.compile(objectives.smoothed, **options)
