"""Columns of the published converter's files."""

from __future__ import annotations

from tpuprof_tui.model.columns import Column


class PublishedColumn(Column, frozen=True):
    """A column whose name in files is exactly that of the published converter.

    Attributes:
        placeholder: Value written to files where it is missing and the converter writes something.
    """

    placeholder: str | int | float | None = None
