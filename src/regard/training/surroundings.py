"""Where and with what a run was made: versions, machine, the state of the code, checksums of the data."""

import hashlib
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from regard.data.shards import MANIFEST
from regard.version import __version__


def surroundings(prepared: Path) -> dict[str, Any]:
    """All of it, as plain JSON."""
    import numpy
    import tokenizers

    found: dict[str, Any] = {
        "regard": __version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "tokenizers": tokenizers.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "data": data_checksums(prepared),
    }
    state = git_state(Path.cwd())
    return found | ({"git": state} if state else {})


def data_checksums(prepared: Path) -> dict[str, str]:
    """SHA-256 of the manifest of each split, which holds those of its shards."""
    manifests = sorted(prepared.glob(f"*/{MANIFEST}"))
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in manifests}


def git_state(folder: Path) -> dict[str, Any] | None:
    """The commit of the folder that training was started in, and whether anything was changed since; None outside."""

    def asked(*words: str) -> str | None:
        try:
            run = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return run.stdout.strip() if run.returncode == 0 else None

    commit = asked("rev-parse", "HEAD")
    if not commit:
        return None
    return {"commit": commit, "changed": bool(asked("status", "--porcelain", "--untracked-files=no"))}
