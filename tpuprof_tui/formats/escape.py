"""Texts from a capture, made safe for the files they go to. A capture's names are not ours: they may hold anything."""

from __future__ import annotations

import json
import re
from typing import Final

#: Characters that turn the writing direction of what follows: names can be made to look like others with them.
BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: What `json` leaves as it is, yet ends lines, steers terminals, turns the writing direction, or is no UTF-8.
_UNSAFE_IN_JSON: Final = re.compile(f"[\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Control characters that a CSV cell or a line of text cannot carry; tab and line ends can, within quotes.
_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{BIDI}\ud800-\udfff]")
_LINE_CONTROLS: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Where cells need quotes: also for those who part them at semicolons, tabs or bars.
_NEEDS_QUOTES: Final = re.compile('[",;|\t\r\n]|^\\s|\\s$')
#: Characters that begin a formula, also as wide as Chinese characters.
_SIGNS: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: Beginnings that make a spreadsheet take a cell for a formula, or hide what follows; some take blanks away first. A
#: lone dash is none, nor is a negative number.
_FORMULA: Final = re.compile(
    f"(?!-\\Z|-[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?%?\\Z)\\s*[{_SIGNS}\\x00-\\x1f\\x7f-\\x9f]"
)
#: The same within a cell: who parts cells at other characters than commas sees no quotes in the middle of a line.
_INNER_FORMULA: Final = re.compile(f'([;|\t\r\n][\\s"]*)(?=[{_SIGNS}])')


def json_text(text: str) -> str:
    """``text`` as a JSON string, quotes included: valid UTF-8, on one line, without control characters.

    Those of the writing direction are escapes as well: a JSON reader gives them back.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def csv_text(text: str) -> str:
    """``text`` as a CSV cell (RFC 4180) that no spreadsheet takes for a formula, whatever it parts cells at.

    What could start one, at the beginning or behind what may part cells, gets an apostrophe before it; control
    characters, those of the writing direction too, are written as escapes. A lone ``-`` (nothing known) and negative
    numbers stay as they are.
    """
    harmless = _INNER_FORMULA.sub(r"\1'", f"'{text}" if _FORMULA.match(text) else text)
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
