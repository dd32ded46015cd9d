"""Memory that was freed: kept at hand where the same megabytes are asked for at every step, given back where not."""

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


def give_back_freed_memory() -> bool:
    """Ask glibc to give the system whatever whole pages it holds that nobody uses; whether there was something.

    What threads free stays in the heaps of those threads, in holes between what is still used, and grows with the
    largest of what was ever done at the same time: a server that answered many would keep that for good.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (OSError, AttributeError):
        return False
