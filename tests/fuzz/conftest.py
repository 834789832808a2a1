"""The builders of captures by hand, and the sample program, can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
for room in (_TESTS / "fuzz", _TESTS / "export", _TESTS / "sources" / "sophgo", _TESTS.parent / "samples"):
    if str(room) not in sys.path:
        sys.path.insert(0, str(room))
