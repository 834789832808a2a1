"""Parts of the names of the exporters' files, and which of several exports a file belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import natural_order

#: File name of a table or timeline: its kind, then device, model and iteration, slice, export time; a copy's number.
FILE: Final = lazy_pattern(
    r"(?P<stem>[A-Za-z][A-Za-z0-9_]*?)(?P<numbers>(?:_(?:slice_)?[-\d]+)*)(?: ?\((?P<copy>\d{1,4})\))?"
    r"\.(?P<kind>csv|json|db)(?:\.gz)?"
)
_NUMBER: Final = lazy_pattern(r"_(slice_)?([-\d]+)")
#: Digits of an export time, and the least pause in seconds between two exports that no file tells apart.
_TIME_DIGITS: Final = 14
_PAUSE: Final = 600


def role(name: str) -> str:
    """Role of a file, by its name: ``op_summary_0_slice_1_20260511093035.csv`` is ``op_summary.csv``."""
    match = FILE.fullmatch(name)
    return f"{match['stem']}.{match['kind']}" if match else name


class NamedFile(Struct, frozen=True):
    """A file by the parts of its name ``KIND[_DEVICE][_MODEL][_ITERATION][_slice_N][_TIME]``.

    Attributes:
        name: Its name.
        role: Its kind with its extension.
        part: Number of its device, or of its rank; empty without one.
        rest: Its other numbers.
        slice: Number of the slice; -1: it is not cut.
        time: Digits of the time of its export; empty if it has none.
        copy: Number in brackets that a browser or a file manager adds to a second file of one name; empty: none.
    """

    name: str
    role: str
    part: str = ""
    rest: tuple[str, ...] = ()
    slice: int = -1
    time: str = ""
    copy: str = ""

    @property
    def seconds(self) -> float:
        """The time in seconds; 0 without one, or if it is no date."""
        from datetime import datetime

        parts = [int(self.time[at : at + (2 if at else 4)]) for at in (0, 4, 6, 8, 10, 12)] if self.time else []
        try:
            return (datetime(*parts) - datetime(1970, 1, 1)).total_seconds() if parts else 0  # type: ignore[arg-type]
        except ValueError:
            return 0


def named_file(name: str) -> NamedFile | None:
    """A file by its name; None if it is not named as the exporters' files are."""
    match = FILE.fullmatch(name)
    if match is None:
        return None
    cut, time, numbers = -1, "", []
    for is_slice, number in _NUMBER.findall(match["numbers"]):
        if is_slice and number.isdecimal() and len(number) < 9:
            cut = int(number)
        elif len(number) >= _TIME_DIGITS and number.isdecimal():
            time = number
        else:
            numbers.append(number)
    part = numbers.pop(0) if numbers else ""
    return NamedFile(name, role(name), part, tuple(numbers), cut, time, match["copy"] or "")


def newest_export(files: Sequence[NamedFile]) -> list[NamedFile]:
    """The files of the newest export of one kind and device, slices in order.

    Files belong to one export if they were written within a short while and none repeats another: an uncut file
    repeats every slice. Where one does, the newer export begins behind the longest pause between the two.
    """
    export: list[NamedFile] = []
    places: dict[tuple[tuple[str, ...], int], int] = {}
    for each in sorted(files, key=lambda file: (file.time, file.rest, file.slice, natural_order(file.name))):
        if export and each.seconds - export[-1].seconds > _PAUSE:
            export, places = [], {}
        export.append(each)
        keys = ((each.rest, each.slice), (each.rest, -1)) if each.slice >= 0 else ((each.rest, -2), (each.rest, -1))
        before = max((places.get(key, -1) for key in keys), default=-1)
        if before >= 0:
            begin = max(range(before + 1, len(export)),
                        key=lambda place: (export[place].seconds - export[place - 1].seconds, place))  # fmt: skip
            export = export[begin:]
            places = {}
        for place, file in enumerate(export) if before >= 0 else [(len(export) - 1, each)]:
            places[file.rest, file.slice] = place
            places[file.rest, -2] = place  # of any slice
    return sorted(export, key=lambda file: ([*map(natural_order, file.rest)], file.slice, natural_order(file.name)))


def missing_slices(files: Sequence[NamedFile]) -> tuple[int, ...]:
    """Numbers of the slices that an export lacks, as far as the others tell."""
    slices = {file.slice for file in files}
    return tuple(number for number in range(min(max(slices), 1000)) if number not in slices) if -1 not in slices else ()
