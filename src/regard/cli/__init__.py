"""The command `regard`: one short function a command, with no logic of its own, in one file a room.

Each of these files hangs its commands on `app` when it is imported, and imports its room inside the functions, so
that `regard --version` reads no torch.
"""

import pkgutil
import sys
from importlib import import_module

from regard.cli.app import app
from regard.support.errors import Failure, Misuse


def main(arguments: list[str] | None = None) -> None:
    """Run the command; a misuse ends with one plain line and status 2, a failure with status 1."""
    for room in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{room.name}")
    try:
        app(arguments)
    except (Misuse, Failure, OSError) as error:
        print(f"regard: {_in_words(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Misuse) else 1)


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    return str(error)
