"""A workbook of any profile: a sheet for each table of its views. Built by openpyxl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.errors import needed_for
from tpuprof_tui.formats.escape import sheet_text, starts_formula
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.model import Profile
from tpuprof_tui.views.as_sheet import Sheet, sheets
from tpuprof_tui.views.query import Query

from .job import Job
from .selection import Selection, selected_profile

#: Widest column, in characters.
_WIDEST: Final = 60
#: Rows whose cells decide how wide a column is.
_SAMPLE: Final = 50


def write_view_workbook(
    profile: Profile, job: Job, paths: Sequence[Path], progress: Callable[[float], None]
) -> list[Path]:
    """Writes the workbook as an output of an export; its figures are over the chosen events."""
    write_views(profile, paths[0], job.document_selection)
    progress(1.0)
    return list(paths)


def write_views(profile: Profile, path: Path, selection: Selection) -> None:
    """Writes one sheet for each table of the views.

    Raises:
        WriteError: The file could not be written; nothing is left behind.
        MissingPackageError: openpyxl is not installed.
    """
    with needed_for("The workbook"):
        from openpyxl import Workbook

    # write-only: rows go to the file as they come
    book = Workbook(write_only=True)
    for sheet in sheets(Query(Session.build(selected_profile(profile, selection)))):
        _put(book, sheet)
    if not book.worksheets:
        book.create_sheet("Empty").append(["Nothing was recorded."])
    book.properties.title = sheet_text(profile.name)
    book.properties.creator = "tpuprof"
    with whole_file(path) as stream:
        book.save(stream)


def _put(book: Any, sheet: Sheet) -> None:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    page = book.create_sheet(sheet.title)
    page.freeze_panes = "A2"
    page.auto_filter.ref = f"A1:{get_column_letter(len(sheet.header))}{len(sheet.rows) + 1}"
    for place, title in enumerate(sheet.header):
        longest = max(len(str(row[place])) for row in (sheet.header, *sheet.rows[:_SAMPLE]))
        page.column_dimensions[get_column_letter(place + 1)].width = min(max(longest, len(title)) + 3, _WIDEST)

    def cell(value: Any, form: str = "General", *, bold: bool = False) -> Any:
        made = WriteOnlyCell(page, sheet_text(value) if isinstance(value, str) else value)
        if isinstance(value, str):
            made.data_type = "s"  # a text that begins like a formula is none, and is none when it is edited
            made.quotePrefix = starts_formula(value)
        made.number_format = form
        if bold:
            made.font = Font(bold=True)
        return made

    page.append([cell(title, bold=True) for title in sheet.header])
    for row in sheet.rows:
        page.append([cell(value, form) for value, form in zip(row, sheet.forms, strict=True)])
    if sheet.cut:
        page.append([cell(f"{sheet.cut:,} rows more do not fit a sheet.")])
