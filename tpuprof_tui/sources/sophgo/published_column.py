"""A column as the published converter's files hold it."""

from __future__ import annotations

from tpuprof_tui.model.columns import Column


class PublishedColumn(Column, frozen=True):
    """A column whose name in files is that of the published converter, to the letter.

    Attributes:
        placeholder: What files get where the value is missing and the converter writes something.
    """

    placeholder: str | int | float | None = None
