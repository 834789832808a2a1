"""Texts from a capture, made safe for where they go: screen, lines, JSON, CSV, HTML, scripts, sheets, traces.

A capture's names are not ours: they may hold anything. No numpy, no Textual: the first frame needs this module.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

#: Characters that turn the writing direction of what follows: names can be made to look like others with them.
BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: What `json` leaves as it is, yet ends lines, steers terminals, turns the writing direction, or is no UTF-8.
_UNSAFE_IN_JSON: Final = re.compile(f"[\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Control characters that a CSV cell or a line of text cannot carry; tab and line ends can, within quotes.
_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{BIDI}\ud800-\udfff]")
_LINE_CONTROLS: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Where cells need quotes: also for those who part them at semicolons, tabs or bars.
#: What means something to Markdown within a line.
_MARKDOWN: Final = re.compile(r"[\\`*_<>\[\]#|]")
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
#: Everything a terminal could act on or whose width terminals do not agree about.
_UNSAFE_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_TURNS: Final = re.compile(f"[{BIDI}]")
#: What may be among these; compiled when the first text that is not ASCII comes, as that takes ms.
_SUSPECT: Final = r"[^\x20-\x7e\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7a3]"
#: Characters that an address, an element or an entity needs: a script in a page holds none of them.
_UNSAFE_IN_SCRIPTS: Final = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&/"})
#: Characters that a cell of a sheet can hold.
_LONGEST_CELL: Final = 32_767
#: What spreadsheets take for an escaped character, and characters that no XML may hold.
_ESCAPED_CHARACTER: Final = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_NO_CHARACTER: Final = re.compile("[\ufffe\uffff]")


# a function of the text alone, asked for the same names with every frame; it keeps no capture, and so many at most
@lru_cache(4096)
def clean(text: str) -> str:
    """``text`` with everything that could steer a terminal made visible and harmless.

    Characters that turn the writing direction are written as escapes; control characters, joiners and lone surrogates
    become the replacement character, line breaks and tabs spaces; variation selectors, which change widths, and piles
    of combining marks are dropped.
    """
    if (text.isascii() and text.isprintable()) or not re.search(_SUSPECT, text):
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if char in "\t\n\r":
            kept.append(" ")
        elif _TURNS.match(char):
            kept.append(f"\\u{ord(char):04x}")
        elif category in _UNSAFE_CATEGORIES:
            kept.append("\ufffd")
        elif marks > 2 or "\ufe00" <= char <= "\ufe0f":
            continue
        else:
            kept.append(char)
    return "".join(kept)


def json_text(text: str) -> str:
    """``text`` as a JSON string, quotes included: valid UTF-8, on one line, without control characters.

    Those of the writing direction are escapes as well: a JSON reader gives them back.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE_IN_JSON.sub(_escaped, quoted)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def csv_text(text: str) -> str:
    """``text`` as a CSV cell (RFC 4180) that no spreadsheet takes for a formula, whatever it parts cells at.

    What could start one, at the beginning or behind what may part cells, gets an apostrophe before it; control
    characters, those of the writing direction too, are written as escapes. A lone ``-`` (nothing known) and negative
    numbers stay as they are.
    """
    harmless = _INNER_FORMULA.sub(r"\1'", f"'{text}" if starts_formula(text) else text)
    cell = _CONTROLS.sub(_named, harmless)
    if _NEEDS_QUOTES.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def starts_formula(text: str) -> bool:
    """Whether a spreadsheet could take a text for a formula; a lone ``-`` and negative numbers are none."""
    return _FORMULA.match(text) is not None


def line_text(text: str, most: int = 0) -> str:
    """``text`` on one line that steers neither terminal nor writing direction: what would is written as an escape.

    The line has ``most`` characters, three of them dots where it is cut; 0: any number.
    """
    line = _LINE_CONTROLS.sub(_named, text)
    return line if not most or len(line) <= most else f"{line[: most - 3]}..."


def markdown_text(text: str) -> str:
    """``text`` on one line, as Markdown shows it and does not read it."""
    return _MARKDOWN.sub(r"\\\g<0>", line_text(text))


def html_text(text: str) -> str:
    """``text`` on one line, as content or attribute of an element."""
    from html import escape  # the first frame needs none

    return escape(line_text(text))


def script_json(value: Any) -> str:
    """Plain values as JSON that can stand inside a script element and holds no address."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)
    return _UNSAFE_IN_JSON.sub(_escaped, written).translate(_UNSAFE_IN_SCRIPTS)


def sheet_text(text: str) -> str:
    """``text`` as a cell of a sheet holds it: on one line, no longer than it may be, without anything that steers."""
    shown = _NO_CHARACTER.sub("\ufffd", line_text(text))
    if len(shown) > _LONGEST_CELL:
        shown = f"{shown[: _LONGEST_CELL - 1]}…"
    return _ESCAPED_CHARACTER.sub("_x005F_", shown)


def sheet_xml(text: str) -> str:
    """The same as XML."""
    from html import escape

    return escape(sheet_text(text), quote=False)


def utf8_text(text: str) -> str:
    """``text`` as UTF-8 can hold it: lone surrogates are written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
