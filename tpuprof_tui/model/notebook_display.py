"""How a notebook and the Python prompt show a profile and its parts: one line, a small HTML table, a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tpuprof_tui.errors import needed_for
from tpuprof_tui.formats.escape import html_text, line_text

from .columns import COUNTERS
from .missing import is_missing

if TYPE_CHECKING:
    import pandas

    from .lane import Lane, Meaning

#: Characters of a text in a cell.
_CELL: Final = 400
#: A name on one line, cut where it is long.
short: Final = partial(line_text, most=60)


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table as HTML; all texts are escaped."""

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}>{html_text(line_text(text, _CELL))}</{tag}>" for text in texts)

    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table>{cells('caption', [title])}{head}<tbody>{body}</tbody></table>{cells('p', notes)}"


def lane_frame(lane: Lane, meaning: Meaning, *, counters: bool = False) -> pandas.DataFrame:
    """Events of a lane as a data frame, as ``Profile.to_pandas`` says it."""
    with needed_for("A data frame"):
        import pandas

    def series(key: str) -> Any:
        values = lane[key]
        if meaning.schema[key].kind == "text":
            # as they are: pandas' own type of texts refuses what is no UTF-8
            texts = pandas.Index(list(meaning.strings.get(key, ())), dtype=object)
            return pandas.Categorical.from_codes(values, texts)
        if values.dtype == np.int64:
            return pandas.arrays.IntegerArray(np.array(values), is_missing(values))
        return values

    keys = known_keys(lane, meaning.schema, counters=counters)
    frame: pandas.DataFrame = pandas.DataFrame({key: series(key) for key in keys})
    return frame


def known_keys(lane: Lane, schema: Mapping[str, Any], *, counters: bool = False) -> Iterator[str]:
    """Keys of the schema's columns that a lane knows, in the schema's order; with raw counters or without."""
    for key, column in schema.items():
        if key in lane and column.applies_to(lane.kind) and (counters or column.group != COUNTERS):
            yield key
