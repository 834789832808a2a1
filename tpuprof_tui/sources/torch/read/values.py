"""Types of columns, look-ups in them, and texts."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.sources.chrome.columns import F64, I32, I64, Codes, lookup

__all__ = ["F64", "I32", "I64", "Codes", "lookup", "printable"]

_LONGEST_NAME: Final = 1 << 16


def printable(text: str | bytes, most: int = _LONGEST_NAME) -> str:
    """A text, or JSON text, without characters that cannot be shown or written, cut to ``most`` characters."""
    text = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text)[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
