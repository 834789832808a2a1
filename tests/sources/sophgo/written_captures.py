"""Captures of the sample program, each written once per test run."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS

_PLACE = tempfile.TemporaryDirectory(prefix="captures")


@cache
def capture(kind: str, **changes: Any) -> Path:
    """Directory of a capture of this kind, with some of its options changed; its truth lies beside it."""
    name = "_".join([kind, *(f"{key}{value}" for key, value in sorted(changes.items()))])
    options = replace(KINDS[kind], name="".join(c if c.isalnum() else "_" for c in name), **changes)
    return write_capture(options, Path(_PLACE.name)).path
