"""From a model's folder to a server that listens."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from regard.pipeline.fast import available, is_exported, load_fast
from regard.serving.settings import ServerSettings
from regard.support.errors import Failure, Misuse
from regard.support.nearest import unknown

if TYPE_CHECKING:
    from regard.pipeline.fast.engine import Fast
    from regard.pipeline.model import Pipeline

ENGINES = ("auto", "pytorch", "ctranslate2")
NUMBERS = ("int8", "float32", "float16")


class Opened:
    """What translates, what explains (loaded when it is first needed), and in words which engine it is and why."""

    def __init__(
        self,
        engine: "Pipeline | Fast",
        explained_by: "Callable[[], Pipeline] | None",
        said: str,
        side_by_side: int = 1,
    ) -> None:
        self.engine, self.explained_by, self.said, self.side_by_side = engine, explained_by, said, side_by_side


def opened(folder: Path, engine: str, numbers: str, threads: int | None) -> Opened:
    """A folder of either kind: a model's, or an exported one."""
    for name, value, known in (("engine", engine, ENGINES), ("numbers", numbers, NUMBERS)):
        if value not in known:
            raise Misuse(unknown(name, value, known))
    beside, each = shared(threads or cores())
    if is_exported(folder):
        if engine == "pytorch":
            raise Misuse(f"{folder}: was exported for CTranslate2; PyTorch runs the model folder it came from")
        said = "CTranslate2, an exported model: nothing is explained"
        return Opened(load_fast(folder, threads=each, side_by_side=beside), None, said, beside)
    why = _obstacle(folder) if engine != "pytorch" else "asked for"
    if why is not None:
        if engine == "ctranslate2":
            raise Misuse(f"{folder}: CTranslate2 cannot run this model: {why}")
        loaded = _pipeline(folder, threads)
        return Opened(loaded, lambda: loaded, f"PyTorch ({why})")
    fast = load_fast(folder, kind=numbers, threads=each, side_by_side=beside)
    said = f"CTranslate2 in {numbers}; explanations by PyTorch"
    return Opened(fast, lambda: _pipeline(folder, threads), said, beside)


SEARCHES = 8
"""The most batches that are searched at the same time."""


def shared(threads: int) -> tuple[int, int]:
    """How many batches side by side, and the threads of each: products of small models gain little from a second."""
    beside = min(threads, SEARCHES)
    return beside, threads // beside


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _obstacle(folder: Path) -> str | None:
    """Why CTranslate2 is not taken, in words."""
    from regard.models.reading import read_model_json
    from regard.pipeline.fast.export import obstacles

    held = read_model_json(folder)
    if held["task"] not in ("translate", "reconstruct"):
        raise Misuse(f"{folder}: this model was built to {held['task']}; a server translates")
    if said := obstacles(held["task"], held["network"]):
        return "; ".join(said)
    return None if available() else "CTranslate2 is not installed"


def _pipeline(folder: Path, threads: int | None) -> "Pipeline":
    import torch

    from regard.pipeline.model import load

    if threads is not None:
        torch.set_num_threads(threads)
    return load(folder, precision="float32")


def serve(opened: Opened, settings: ServerSettings, host: str, port: int) -> None:
    """Listen until a signal says to stop; what is being answered then is answered still."""
    try:
        import uvicorn

        from regard.serving.app import make
        from regard.serving.connections import patient
    except ImportError as error:
        raise Failure(f"a server needs {error.name}: pip install 'regard[serve]'") from None
    from regard.builtin import detector
    from regard.serving.translating import Translator

    translator = Translator(opened.engine, settings, detector(), side_by_side=opened.side_by_side)
    app = make(translator, opened.explained_by)
    uvicorn.run(
        app, host=host, port=port, log_level="error", access_log=False, server_header=False, ws="none",
        http=patient(settings.head_seconds), timeout_graceful_shutdown=int(settings.seconds) + 1, timeout_keep_alive=15,
    )  # fmt: skip


def free_port(host: str, port: int) -> int:
    """The port, once it is known to be free; for 0 one that is. Misuse says what holds it."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise Misuse(f"{host}:{port} cannot be listened at: {(error.strerror or str(error)).lower()}") from None
        found: int = tried.getsockname()[1]
        return found


def read_keys(path: Path | None) -> tuple[str, ...]:
    """One key a line; empty lines and those that begin with # are none."""
    if path is None:
        return ()
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise Misuse(f"{path}: holds no key; a server with keys and none that is good would answer nobody")
    return keys
