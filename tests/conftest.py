"""What all tests share."""

import os
from pathlib import Path

# Where there is no GPU, Triton's kernels are run by its interpreter; Triton looks at this as it is imported.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")
