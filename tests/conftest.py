"""What all tests share."""

import os
from pathlib import Path

from tests.browser import browser

__all__ = ["browser"]

# Where there is no GPU, Triton's kernels are run by its interpreter; Triton looks at this as it is imported.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")
