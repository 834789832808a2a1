"""``python -m tpuprof_tui`` and the console script ``tpuprof``."""

from __future__ import annotations

import os
import sys

# this program multiplies no matrices: OpenBLAS threads would only cost start-up time and memory
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tpuprof_tui.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
