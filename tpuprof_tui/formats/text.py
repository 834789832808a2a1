"""Names and sentences as people read them in a terminal. No numpy, no Textual: the first frame needs this module."""

from __future__ import annotations

from typing import Final

from .escape import clean

ELLIPSIS: Final = "…"
#: What panes say that have nothing to tell about such a capture.
NO_TIMES: Final = "The {events} have no times. 2 shows them in a table, 4 the problems."
EMPTY_CAPTURE: Final = "This capture holds no {events}: 4 shows the problems, O opens another capture."


def cell_len(text: str) -> int:
    """Cells that a terminal gives a text: two for each wide character."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # only wide characters need its table

    return measured(text)


def set_cell_size(text: str, total: int) -> str:
    """``text`` cut or padded with blanks to ``total`` cells."""
    from rich.cells import set_cell_size as sized

    return sized(text, total)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells: padded, or cut with an ellipsis. Wide characters count as two."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - length)
    return padding + text if right else text + padding


def middle_cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, an ellipsis for its middle where it is wider: names often end apart.

    Of a last word that takes less than half of them, such as a number, all stays, and as much before it as there is
    room for; else both ends have half.
    """
    if cell_len(text) <= width:
        return text
    last = cell_len(text.rpartition(" ")[2])
    head = set_cell_size(text, max(width - 1 - last if 0 < last < width // 2 else width // 2, 1)).rstrip()
    tail = text[len(head) :]
    while tail and cell_len(head) + 1 + cell_len(tail) > width:
        tail = tail[1:]
    return head + ELLIPSIS + tail


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` cells, broken at blanks where possible; what is wider by itself is an ellipsis."""
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
            lines.append(f"{line} {head}".strip())
            line, word = "", word[len(head) :]
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line or not lines else lines


def in_sentence(label: str) -> str:
    """A label as it stands within a sentence, clean: ``core 3``, but ``GPU 0``."""
    label = clean(label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label
