"""The compiled form of additive scores on a CPU: `native.c`, built once by the C compiler at hand and kept.

It takes a second before the first call that is large enough, and nothing later: what was built lies in the user's cache
folder under the hash of all that went into it, and is tried on a small call before it is believed. Where there is no
compiler (or REGARD_NATIVE=0 says not to look for one) `built` tells why, and `blocks` does the work.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.support.atomic import writing

SOURCE = Path(__file__).with_name("native.c")
COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "clang++")
FLAGS = ("-O3", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC")
ALL_IT_CAN = ("-march=native", "-mcpu=native", "")
"""What asks for all that this processor can do: not every compiler knows the first."""
A_THREAD = 1 << 18
"""Terms that are worth a thread of their own: about 15 microseconds."""
PATIENCE = 60.0
"""Seconds that a compiler may take."""


class Built(NamedTuple):
    """The compiled code, and how it came about; or None, and why there is none."""

    code: ctypes.CDLL | None
    how: str


def forward(code: ctypes.CDLL, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    """Scores [N, T, S] for q [N, T, D], k [N, S, D] and v [D], contiguous; 0 where `keep` [N, T, S] leaves none."""
    sizes, threads, room = _room(code, q, k, 0)
    out = q.new_empty(q.shape[0], q.shape[1], k.shape[1])
    strides = (ctypes.c_long * 3)(*((0, 0, 0) if keep is None else keep.stride()))
    code.forward(
        _at(q), _at(k), _at(v), None if keep is None else _at(keep), strides, _at(out), _at(room), sizes, threads
    )
    return out


def backward(code: ctypes.CDLL, q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v from that of the scores."""
    sizes, threads, room = _room(code, q, k, 1)
    found = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    code.backward(_at(q), _at(k), _at(v), _at(grad), *map(_at, found), _at(room), sizes, threads)
    return found


def _room(code: ctypes.CDLL, q: Tensor, k: Tensor, back: int) -> "tuple[ctypes.Array[ctypes.c_long], int, Tensor]":
    sizes = (*q.shape[:2], k.shape[1], q.shape[2])
    terms = sizes[0] * sizes[1] * sizes[2] * sizes[3]
    threads = min(torch.get_num_threads(), 1 + terms // A_THREAD)
    return (ctypes.c_long * 4)(*sizes), threads, q.new_empty(code.scratch(*sizes, back, threads))


def _at(tensor: Tensor) -> int:
    return tensor.data_ptr()


@cache
def built() -> Built:
    """The code for this machine, compiled where it has not been yet."""
    if os.environ.get("REGARD_NATIVE") == "0":
        return Built(None, "REGARD_NATIVE=0")
    if os.name == "nt":
        return Built(None, "nothing is compiled on Windows")
    compiler = _compiler()
    if compiler is None:
        return Built(None, "no C compiler was found")
    try:
        code = _opened(_library(compiler))
    except (OSError, subprocess.SubprocessError) as error:
        return Built(None, f"{compiler} did not build it: {(str(error).splitlines() or ['no reason given'])[0]}")
    return (
        Built(code, f"compiled by {compiler}") if _right(code) else Built(None, f"{compiler} builds wrong code of it")
    )


def _compiler() -> str | None:
    asked = os.environ.get("CC", "").split()[:1]
    return next((found for name in (*asked, *COMPILERS) if (found := shutil.which(name)) is not None), None)


def _library(compiler: str) -> Path:
    """From the cache folder, or made now."""
    made_of = (SOURCE.read_text("utf-8"), compiler, str(os.stat(compiler).st_mtime_ns), torch.__version__, _processor())
    name = f"additive-{hashlib.sha256(repr((made_of, FLAGS)).encode()).hexdigest()[:24]}.so"
    path = _folder() / name
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            _compile(compiler, fresh := Path(folder) / name)
            with writing(path) as file:
                file.write(fresh.read_bytes())
    return path


def _folder() -> Path:
    """In the user's cache, where nobody else may write; where that cannot be, a folder for this run alone."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid == os.getuid() and not found.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return Path(tempfile.mkdtemp(prefix="regard-"))


def _processor() -> str:
    """What it can do: a home may be shared by machines."""
    said = Path("/proc/cpuinfo")
    lines = said.read_text("utf-8", "replace").splitlines() if said.exists() else []
    features = (line for line in lines if line.lower().startswith(("flags", "features")))
    return f"{platform.machine()} {platform.processor()} {next(features, '')}"


def _compile(compiler: str, to: Path) -> None:
    """With threads if it can."""
    # The very library of threads that PyTorch has in use: a second one would keep threads of its own beside them.
    own = [str(path) for path in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*")][:1]
    needed = ["-Wl,--as-needed"] if platform.system() == "Linux" else []
    for threads in ([*needed, *own, "-fopenmp"], ["-fopenmp"], []):
        for processor in ALL_IT_CAN:
            command = [compiler, *FLAGS, *processor.split(), str(SOURCE), *threads, "-o", str(to), "-lm"]
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
            if done.returncode == 0:
                return
    raise OSError(done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.returncode}")


def _opened(path: Path) -> ctypes.CDLL:
    code = ctypes.CDLL(str(path))
    numbers, tensor = ctypes.POINTER(ctypes.c_long), ctypes.c_void_p
    code.scratch.argtypes, code.scratch.restype = [*[ctypes.c_long] * 4, *[ctypes.c_int] * 2], ctypes.c_long
    code.forward.argtypes = [*[tensor] * 4, numbers, *[tensor] * 2, numbers, ctypes.c_int]
    code.backward.argtypes = [*[tensor] * 8, numbers, ctypes.c_int]
    code.forward.restype = code.backward.restype = None
    return code


def _right(code: ctypes.CDLL) -> bool:
    """Whether it gives the formula's numbers: in float32, whatever the caller's autocast or defaults say."""
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        q, k, v = (torch.arange(n, dtype=torch.float32, device="cpu").cos() * 3 for n in (3 * 70, 5 * 70, 70))
        q, k = q.view(1, 3, 70), k.view(1, 5, 70)
        hidden = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))
        grad = (hidden @ v).cos()
        slope = (grad.unsqueeze(-1) * (1 - hidden.square()) * v).sum(2)
        pairs = (forward(code, q, k, v, None), hidden @ v), (backward(code, q, k, v, grad)[0], slope)
        return all(torch.allclose(one, other, rtol=1e-4, atol=1e-4) for one, other in pairs)
