"""Texts from a capture, made safe for the files they go to. A capture's names are not ours: they may hold anything."""

from __future__ import annotations

import json
import re
from typing import Final

#: What `json` leaves as it is, yet ends lines, steers terminals, or is no UTF-8.
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: Control characters that a CSV cell or a line of text cannot carry; tab and line ends can, within quotes.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NEEDS_QUOTES: Final = re.compile('[",\r\n]|^\\s|\\s$')
#: First characters that make a spreadsheet take a cell for a formula, or hide what follows. A lone dash is none,
#: nor is a negative number.
_FORMULA: Final = re.compile("(?!-\\Z|-\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?%?\\Z)[=+\\-@\x00-\x1f\x7f-\x9f]", re.ASCII)


def json_text(text: str) -> str:
    """``text`` as a JSON string, quotes included: valid UTF-8, on one line, without control characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def csv_text(text: str) -> str:
    """``text`` as a CSV cell (RFC 4180) that no spreadsheet takes for a formula.

    A first character that could start one gets an apostrophe before it; control characters are written as escapes. A
    lone ``-`` (nothing known) and negative numbers stay as they are.
    """
    harmless = f"'{text}" if _FORMULA.match(text) else text
    cell = _CONTROLS.sub(_named, harmless)
    if _NEEDS_QUOTES.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def line_text(text: str) -> str:
    """``text`` on one line that steers neither terminal nor writing direction: what would is written as an escape."""
    return _LINE_CONTROLS.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
