"""Sophgo captures: directories of ``global.profile``, ``cdmlib*.profile`` and ``cdma*.profile``."""

from __future__ import annotations

from .capture import read
from .stream.files import recognises

__all__ = ["read", "recognises"]
