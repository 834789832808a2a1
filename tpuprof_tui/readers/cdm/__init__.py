"""Sophgo captures: directories of ``global.profile``, ``cdmlib*.profile`` and ``cdma*.profile``."""

from __future__ import annotations

from .read import read
from .source import recognises

__all__ = ["read", "recognises"]
