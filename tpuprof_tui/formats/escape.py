"""Escapes texts from captures for the screen, text lines, JSON, CSV, HTML, scripts, worksheets, and traces.

Names in captures are untrusted. The module imports neither numpy nor Textual because the first frame needs it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

from tpuprof_tui.lazy_names import lazy_pattern

#: Characters that change the writing direction of the following text, which can disguise names.
BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: Characters that `json` does not escape: line ends, terminal controls, writing direction, lone surrogates.
_UNSAFE_IN_JSON: Final = lazy_pattern(f"[\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Control characters to escape in CSV cells, where tabs and line ends are allowed within quotes, and in text lines.
_CONTROLS: Final = lazy_pattern(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{BIDI}\ud800-\udfff]")
_LINE_CONTROLS: Final = lazy_pattern(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{BIDI}\ud800-\udfff]")
#: Characters with a meaning in Markdown within a line.
_MARKDOWN: Final = lazy_pattern(r"[\\`*_<>\[\]#|]")
#: Characters for which CSV cells are quoted; includes other delimiters: semicolon, tab, and bar.
_NEEDS_QUOTES: Final = lazy_pattern('[",;|\t\r\n]|^\\s|\\s$')
#: Characters that start a formula, ASCII and full-width.
_SIGNS: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: Beginnings that a spreadsheet takes for a formula or that hide the text; some spreadsheets strip blanks first. A lone
#: dash and negative numbers are not formulas.
_FORMULA: Final = lazy_pattern(
    f"(?!-\\Z|-[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?%?\\Z)\\s*[{_SIGNS}\\x00-\\x1f\\x7f-\\x9f]"
)
#: Formula beginnings inside a cell, after other delimiters: a reader that splits at these ignores inner quotes.
_INNER_FORMULA: Final = lazy_pattern(f'([;|\t\r\n][\\s"]*)(?=[{_SIGNS}])')
#: Unicode categories that a terminal could act on, or whose width differs between terminals.
_UNSAFE_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_TURNS: Final = lazy_pattern(f"[{BIDI}]")
#: Characters that `clean` must look up; compiled at the first non-ASCII text, because that takes milliseconds.
_SUSPECT: Final = r"[^\x20-\x7e\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7a3]"
#: Characters of URLs, tags and entities, which are escaped in scripts of a page.
_UNSAFE_IN_SCRIPTS: Final = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&/"})
#: Maximum length of a worksheet cell, characters.
_LONGEST_CELL: Final = 32_767
#: Text that spreadsheets decode as an escaped character (``_x0041_``), and characters that XML cannot hold.
_ESCAPED_CHARACTER: Final = lazy_pattern("_(?=x[0-9A-Fa-f]{4}_)")
_NO_CHARACTER: Final = lazy_pattern("[\ufffe\uffff]")


# every frame cleans the same names; the cache is bounded and keeps no capture alive
@lru_cache(4096)
def clean(text: str) -> str:
    """Makes ``text`` safe for a terminal.

    Writing-direction characters are escaped; control characters, joiners and lone surrogates become the replacement
    character; line breaks and tabs become spaces; variation selectors, which change widths, and more than two
    combining marks in sequence are dropped.
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
    """``text`` as a JSON string with its quotes: valid UTF-8, on one line.

    Control and writing-direction characters are escaped; a JSON parser restores them.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE_IN_JSON.sub(_unicode_escape, quoted)


def _unicode_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def csv_text(text: str) -> str:
    """``text`` as a CSV cell (RFC 4180) that no spreadsheet takes for a formula, for any delimiter.

    An apostrophe is put before characters that could start a formula, at the beginning or after a delimiter. Control
    and writing-direction characters are escaped. A lone ``-`` (missing value) and negative numbers are unchanged.
    """
    harmless = _INNER_FORMULA.sub(r"\1'", f"'{text}" if starts_formula(text) else text)
    cell = _CONTROLS.sub(_hex_escape, harmless)
    if _NEEDS_QUOTES.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def starts_formula(text: str) -> bool:
    """Whether a spreadsheet could take a text for a formula; False for a lone ``-`` and negative numbers."""
    return _FORMULA.match(text) is not None


def line_text(text: str, most: int = 0) -> str:
    """``text`` on one line, with control and writing-direction characters escaped.

    Truncated to ``most`` characters, including three dots; 0: unlimited.
    """
    line = _LINE_CONTROLS.sub(_hex_escape, text)
    return line if not most or len(line) <= most else f"{line[: most - 3]}..."


def markdown_text(text: str) -> str:
    """``text`` on one line, with Markdown characters escaped."""
    return _MARKDOWN.sub(r"\\\g<0>", line_text(text))


def markdown_code(text: str) -> str:
    """``text`` on one line as a code span in Markdown, with a fence that is longer than any in the text."""
    line = line_text(text)
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def html_text(text: str) -> str:
    """``text`` on one line, escaped for the content or an attribute of an element of HTML or XML."""
    from html import escape  # imported here: the first frame does not need it

    return escape(_NO_CHARACTER.sub("\ufffd", line_text(text)))


def script_json(value: Any) -> str:
    """Plain values as JSON that is safe inside a script element; slashes are escaped, so it contains no URL."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)
    return _UNSAFE_IN_JSON.sub(_unicode_escape, written).translate(_UNSAFE_IN_SCRIPTS)


def sheet_text(text: str) -> str:
    """``text`` for a worksheet cell: on one line, control characters escaped, truncated to ``_LONGEST_CELL``."""
    shown = _NO_CHARACTER.sub("\ufffd", line_text(text))
    if len(shown) > _LONGEST_CELL:
        shown = f"{shown[: _LONGEST_CELL - 1]}…"
    return _ESCAPED_CHARACTER.sub("_x005F_", shown)


def sheet_xml(text: str) -> str:
    """`sheet_text`, escaped for XML."""
    from html import escape

    return escape(sheet_text(text), quote=False)


def utf8_text(text: str) -> str:
    """``text`` with lone surrogates escaped, so that it can be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _hex_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
