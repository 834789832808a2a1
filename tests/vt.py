"""A small terminal: enough of one to see what a program that addresses cells has drawn."""

from __future__ import annotations

import re

from rich.cells import cell_len

_SEQUENCE = re.compile(r"\x1b\[([?<>=]?)([\d;]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]")

#: A cell: what it shows, and its attributes, colour and background.
Cell = tuple[str, frozenset[int], tuple[int, ...], tuple[int, ...]]
BLANK: Cell = (" ", frozenset(), (), ())


class Terminal:
    """Cells, a cursor, and the look of what is written next. Writes beyond the right edge are lost."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells = [[BLANK] * width for _ in range(height)]
        self.x = self.y = 0
        self._look: tuple[frozenset[int], tuple[int, ...], tuple[int, ...]] = (frozenset(), (), ())

    def cells(self) -> list[list[Cell]]:
        """All cells; blanks look alike whatever the colour of their characters."""
        return [[_seen(cell) for cell in line] for line in self._cells]

    def text(self) -> str:
        """What can be read."""
        return "\n".join("".join(cell[0] for cell in line) for line in self._cells)

    def feed(self, data: str) -> None:
        """Takes what a program writes."""
        place = 0
        for match in _SEQUENCE.finditer(data):
            self._write(data[place : match.start()])
            place = match.end()
            if match[3] and not match[1]:
                self._obey([int(number or 0) for number in match[2].split(";")], match[3])
        self._write(data[place:])

    def _obey(self, numbers: list[int], final: str) -> None:
        if final == "H":
            self.y, self.x = (numbers[0] or 1) - 1, ((numbers[1:] or [1])[0] or 1) - 1
        elif final == "m":
            self._dress(numbers)

    def _dress(self, numbers: list[int]) -> None:
        attributes, front, back = self._look
        while numbers:
            code = numbers.pop(0)
            if code == 0:
                attributes, front, back = frozenset(), (), ()
            elif code in (38, 48):
                length = 2 if numbers[0] == 5 else 4
                colour = (code, *numbers[:length])
                numbers = numbers[length:]
                front, back = (colour, back) if code == 38 else (front, colour)
            elif 30 <= code < 38 or code == 39 or 90 <= code < 98:
                front = () if code == 39 else (code,)
            elif 40 <= code < 48 or code == 49 or 100 <= code < 108:
                back = () if code == 49 else (code,)
            else:
                attributes |= {code}
        self._look = attributes, front, back

    def _write(self, text: str) -> None:
        for char in text:
            if char == "\n":
                self.y, self.x = self.y + 1, 0
                continue
            width = cell_len(char)
            if not 0 <= self.y < self.height:
                continue
            line = self._cells[self.y]
            if width == 0:
                if 0 < self.x <= self.width:
                    before = self.x - 1 if line[self.x - 1][0] else self.x - 2
                    line[before] = (line[before][0] + char, *line[before][1:])
                continue
            for cell in range(self.x, min(self.x + width, self.width)):
                line[cell] = (char if cell == self.x else "", *self._look)
            self.x += width


def _seen(cell: Cell) -> Cell:
    text, attributes, _, back = cell
    if text == " " and not attributes & {4, 7, 9}:
        return (" ", frozenset(), (), back)
    return cell
