"""``python -m tpuprof_tui`` and the console script ``tpuprof``."""

from __future__ import annotations

import sys

from .cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
