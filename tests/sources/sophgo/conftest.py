"""Puts the writer of sample captures, which is a program and no package, on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "samples"))
