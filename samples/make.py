#!/usr/bin/env python3
"""Write synthetic captures with known truth: ``python samples/make.py --help``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from capture_writer.command import main

if __name__ == "__main__":
    sys.exit(main())
