"""Layout of a table's columns in a width: which are shown, how wide each is, and what continues below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .text import cell_len, fit_apart, shared_beginnings, wrap

#: Widths in cells: between columns, and the least of a text.
GAP, _NARROWEST = 2, 8
#: Greatest width of a text for which other columns are dropped, unless said otherwise.
_WIDEST: Final = 40


class LaidColumn(Struct, dict=True):
    """Texts of a column, and its width."""

    header: str
    texts: Sequence[str]  #: Of the rows shown
    is_text: bool = True  #: Whether it is left-aligned, and may be cut or wrapped; numbers never are
    drop_first: int = 0  #: Priority for being left out, the highest first; 0: never
    nil: bool = False  #: Whether all its values are 0 or unknown: left out before others
    folds: bool = False  #: Whether its texts may be wrapped
    most: int = _WIDEST  #: Greatest width of a text for which others are dropped
    beside: int = 0  #: Cells before it that are for something else, such as a bar
    repeats: bool = False  #: Whether that only repeats the column: it goes before another column does
    width: int = 0  #: In cells, without those

    def __post_init__(self) -> None:
        self.width = self.natural

    @cached_property
    def natural(self) -> int:
        """Width of the longest text or the header, in cells."""
        return max(map(cell_len, (self.header, *self.texts)))

    @property
    def least(self) -> int:
        """Least width in cells."""
        return min(self.natural, _NARROWEST) if self.is_text else self.natural

    @property
    def wish(self) -> int:
        """Width that it may take before others are dropped for it."""
        return min(self.natural, self.most) if self.is_text else self.natural

    @cached_property
    def _shared_beginnings(self) -> set[str]:
        return shared_beginnings(self.texts, self.width)

    def lines(self, row: int) -> list[str]:
        """The text of a row in the width of the column: wrapped, or cut in the middle if another text begins alike."""
        texts = wrap(self.texts[row], self.width) if self.folds else [self.texts[row]]
        return [fit_apart(text, self.width, self._shared_beginnings, right=not self.is_text) for text in texts]


Laid = TypeVar("Laid", bound=LaidColumn)


def parts(columns: Sequence[Laid], width: int, named: int = 1, *, all_below: bool = True) -> Iterator[list[Laid]]:
    """Yields groups of columns that fit a width, those of a group below those of the one before.

    Droppable columns are dropped until all texts fit: first those with only 0 or unknown values, then by
    ``drop_first``. What ``repeats`` a column goes before another column does. After that texts are cut or wrapped. What
    has no room even then continues below, with the first column repeated, or the first two if the texts of the first do
    not tell the rows apart.

    Args:
        columns: The columns; the first one names the rows.
        width: Width in cells.
        named: Number of columns that are repeated.
        all_below: Whether tables with droppable columns continue below too.
    """
    kept, rest = _kept(columns, width, named)
    if any(each.repeats for each in columns):
        lean = [replace(each, beside=0) if each.repeats else each for each in columns]
        without, others = _kept(lean, width, named)
        if sum(not each.nil for each in without) > sum(not each.nil for each in kept):
            kept, rest = without, others
    _set_widths(kept, width)
    yield kept
    if rest and (all_below or not any(each.drop_first for each in columns)):
        named = 1 if len(set(columns[0].texts)) == len(columns[0].texts) else 2
        yield from parts([*map(replace, columns[:named]), *rest], width, named, all_below=all_below)


def _kept(columns: Sequence[Laid], width: int, named: int = 1) -> tuple[list[Laid], list[Laid]]:
    """The columns that fit a width, and those that a table without droppable ones continues with."""
    fits = wanted(columns) <= width
    kept = [each for each in columns if fits or not (each.nil and each.drop_first)]
    for drop_first in sorted({each.drop_first for each in columns if each.drop_first}, reverse=True):
        if wanted(kept) <= width:
            break
        kept = [each for each in kept if each.drop_first != drop_first]
    rest: list[Laid] = []
    while len(kept) > named + 1 and sum(each.least for each in kept) + fixed(kept) > width:
        rest.insert(0, kept.pop())
    return kept, rest


def wanted(columns: Sequence[LaidColumn]) -> int:
    """Width at which no column is dropped, in cells."""
    return sum(each.wish for each in columns) + fixed(columns)


def fixed(columns: Sequence[LaidColumn]) -> int:
    """Cells that are not for texts: gaps, and what stands beside columns."""
    return sum(each.beside for each in columns) + GAP * (len(columns) - 1)


def _set_widths(columns: Sequence[LaidColumn], width: int) -> None:
    texts = [each for each in columns if each.is_text]
    room = width - fixed(columns) - sum(each.natural for each in columns if not each.is_text)
    wishes = [each.wish for each in texts]
    if wishes and sum(wishes) > room:
        # cut the longest texts to a common length
        most = max((size for size in range(1, max(wishes) + 1)
                    if sum(min(wish, size) for wish in wishes) <= room), default=1)  # fmt: skip
        wishes = [min(wish, most) for wish in wishes]
    free = max(room - sum(wishes), 0)
    for each, wish in zip(texts, wishes, strict=True):
        each.width = wish + min(each.natural - wish, free)
        free -= each.width - wish
