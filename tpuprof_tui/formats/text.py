"""Text layout in terminal cells: measure, fit, truncate, wrap.

Imports neither numpy nor Textual because the first frame needs this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from ..lazy_names import lazy_pattern
from .escape import clean

ELLIPSIS: Final = "…"
#: Characters after which a name that is longer than a line breaks.
_BREAKS: Final = "_/.,:"
#: Messages of panes for captures without times or events.
NO_TIMES: Final = "The {events} have no times. 2 shows them in a table, 4 the problems."
EMPTY_CAPTURE: Final = "This capture holds no {events}: 4 shows the problems, O opens another capture."


def cell_len(text: str) -> int:
    """Width of a text in terminal cells; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # only wide characters need its table

    return measured(text)


def set_cell_size(text: str, total: int) -> str:
    """``text`` truncated or padded with blanks to ``total`` cells."""
    from rich.cells import set_cell_size as sized

    return sized(text, total)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells: padded, or truncated with an ellipsis. Wide characters take two cells."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - length)
    return padding + text if right else text + padding


def middle_cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, with an ellipsis in the middle because names often differ at the end.

    A last word of less than half the width, such as a number, is kept whole; otherwise both ends get half.
    """
    if cell_len(text) <= width:
        return text
    last = cell_len(text.rpartition(" ")[2])
    head = set_cell_size(text, max(width - 1 - last if 0 < last < width // 2 else width // 2, 1)).rstrip()
    tail = text[len(head) :]
    while tail and cell_len(head) + 1 + cell_len(tail) > width:
        tail = tail[1:]
    return head + ELLIPSIS + tail


#: Longest label that is looked for its number.
_LONGEST_LABEL: Final = 200
#: A label that ends with a number, with words in brackets or without digits after it.
_NUMBERED: Final = lazy_pattern(r"(.*?)(\S*\d\S*)( \(.*\)|[^\d]*)")


def label_cut(text: str, width: int) -> str:
    """The label of a unit or lane in at most ``width`` cells: blanks before it go first, its last number stays.

    Words in brackets after the number are cut at their end, everything else in the middle.
    """
    bare = text.lstrip()
    room = width - cell_len(bare)
    if room >= 0:
        return " " * min(len(text) - len(bare), room) + bare
    found = _NUMBERED.fullmatch(bare) if len(bare) <= _LONGEST_LABEL else None
    head, number, rest = found.groups() if found else ("", bare, "")
    in_brackets = rest.startswith(" (")
    if in_brackets and cell_len(head + number) < width:
        return fit(bare, width)
    tail = number if in_brackets else number + rest
    if cell_len(tail) > width - 2:
        return middle_cut(bare, width)
    return set_cell_size(head, width - 1 - cell_len(tail)).rstrip() + ELLIPSIS + tail


def shared_beginnings(texts: Iterable[str], width: int) -> set[str]:
    """Texts in ``width`` cells, as ``fit`` cuts them, that stand for several distinct texts."""
    return {cut for cut, count in Counter(fit(text, width) for text in set(texts)).items() if count > 1}


def fit_apart(text: str, width: int, shared: Collection[str], *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells, cut in the middle if its beginning is one of ``shared_beginnings``."""
    cut = fit(text, width, right=right)
    return cut if cut not in shared else fit(middle_cut(text, width), width)


def wrap(text: str, width: int) -> list[str]:
    """Wraps a text into lines of at most ``width`` cells, at blanks if possible, long names after one of ``_/.,:``.

    A character that is wider than the line becomes an ellipsis.
    """
    width = max(width, 1)
    lines: list[str] = []
    line = ""
    for word in text.split():
        while cell_len(word) > width:
            head = set_cell_size(word, width if not line else max(width - cell_len(line) - 1, 0)).rstrip()
            if not head:
                lines.append(line or ELLIPSIS)
                line, word = "", word if line else word[1:]
                continue
            if 2 * (cut := max(map(head.rfind, _BREAKS)) + 1) > len(head):
                head = head[:cut]
            lines.append(f"{line} {head}".strip())
            line, word = "", word[len(head) :]
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line or not lines else lines


def in_sentence(label: str) -> str:
    """A cleaned label for use within a sentence: ``core 3``, but ``GPU 0``."""
    label = clean(label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label
