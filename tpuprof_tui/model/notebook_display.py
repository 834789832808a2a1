"""Display of profiles and lanes in notebooks and at the Python prompt: repr line, HTML table, data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tpuprof_tui.errors import requires_package
from tpuprof_tui.formats.escape import html_text, line_text

from .columns import COUNTERS
from .missing import is_missing

if TYPE_CHECKING:
    import pandas

    from .lane import Lane, Meaning

#: Maximum length of a cell's text, characters.
_CELL: Final = 400
#: A name on one line, truncated to 60 characters.
short: Final = partial(line_text, most=60)


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Renders a table as HTML; all texts are escaped."""

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}>{html_text(line_text(text, _CELL))}</{tag}>" for text in texts)

    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table>{cells('caption', [title])}{head}<tbody>{body}</tbody></table>{cells('p', notes)}"


def lane_frame(lane: Lane, meaning: Meaning, *, counters: bool = False) -> pandas.DataFrame:
    """Events of a lane as a data frame; see ``Profile.to_pandas``."""
    with requires_package("A data frame"):
        import pandas

    def series(key: str) -> Any:
        values = lane[key]
        if meaning.schema[key].kind == "text":
            # dtype object: the string dtype of pandas rejects texts that are not valid UTF-8
            texts = pandas.Index(list(meaning.strings.get(key, ())), dtype=object)
            return pandas.Categorical.from_codes(values, texts)
        if values.dtype == np.int64:
            return pandas.arrays.IntegerArray(np.array(values), is_missing(values))
        return values

    keys = known_keys(lane, meaning.schema, counters=counters)
    frame: pandas.DataFrame = pandas.DataFrame({key: series(key) for key in keys})
    return frame


def known_keys(lane: Lane, schema: Mapping[str, Any], *, counters: bool = False) -> Iterator[str]:
    """Yields the keys of a lane's columns that are in the schema, in its order; raw counters only if requested."""
    for key, column in schema.items():
        if key in lane and column.applies_to(lane.kind) and (counters or column.group != COUNTERS):
            yield key
