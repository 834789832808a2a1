"""Export of any profile as a workbook, with one sheet per table of its views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.xlsx.book import Book
from tpuprof_tui.formats.xlsx.rows import PLAIN
from tpuprof_tui.views.as_sheet import sheets

from .job import Job
from .selection import selection_facts
from .workbook_charts import add_charts


def write_view_workbook(job: Job, paths: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes one sheet per table of the views of the selected events, and a sheet of charts.

    Raises:
        WriteError: The file could not be written; no partial file is left.
        MissingPackageError: openpyxl is not installed.
    """
    query = job.document_query
    book = Book(query.profile.name)
    for sheet in sheets(query, selection=selection_facts(query)):
        book.page(sheet.title).table(sheet.header, sheet.rows, sheet.forms)
    add_charts(book, query)
    if not book.workbook.worksheets:
        book.page("Empty").put(1, 1, "Nothing was recorded.", PLAIN)
    with whole_file(paths[0]) as stream:
        book.save(stream)
    progress(1.0)
    return list(paths)
