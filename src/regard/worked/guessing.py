"""An unknown name in a problem, told in a sentence that is no longer than somebody reads."""

from collections.abc import Iterable

from regard.support import nearest

LONGEST = 40
"""Of a name, as it is repeated."""
MOST = 20
"""Names that are listed."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """What it is, the nearest right one, and all there are, or the first of them."""
    names = sorted(known)
    short = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    if len(names) <= MOST:
        return nearest.unknown(kind, short, names)
    guess = nearest.nearest(short, names)
    hint = f"; did you mean {guess!r}?" if guess else "."
    return f"unknown {kind} {short!r}{hint} (known: {', '.join(names[:MOST])} and {len(names) - MOST} more)"
