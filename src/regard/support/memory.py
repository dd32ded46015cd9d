"""Memory that was given back is kept at hand: a search asks for the same megabytes again at every step."""

import ctypes
import sys

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""What glibc's mallopt calls them."""
LARGE, KEPT = 32 << 20, 512 << 20


def keep_freed_memory() -> bool:
    """Ask glibc to serve blocks of up to 32 MB from memory it holds, and to hold 512 MB of what is freed.

    Otherwise each such block comes from the system anew, page by page as it is first written to, which may take longer
    than the product that is written there. For commands, which own their process; whether it could be done.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGE)) and bool(mallopt(TRIM_THRESHOLD, KEPT))
