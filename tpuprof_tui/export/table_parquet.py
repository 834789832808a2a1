"""Export of the explorer's table of events as Parquet, with pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import Column, Profile, is_missing

from .table import SHARE, ByteSink, TableRows, column_source

Ints = npt.NDArray[np.int64]

#: Number of rows of a row group, the unit that Parquet readers skip and load.
GROUP: Final = 65_536


def write_parquet(rows: TableRows, columns: Sequence[Column], sink: ByteSink) -> int:
    """Writes columns of rows as Parquet; returns the number of rows.

    Types: int64, float64 (also percentages), and dictionary-encoded strings.

    Raises:
        UsageError: The package pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet needs the package pyarrow.", "pip install pyarrow, or write CSV.") from None
    total = rows.total_ns if SHARE in columns else 0
    strings = rows.profile.strings
    texts = {column.key: list(strings.get(column.key, ())) for column in columns if column.kind == "text"}
    kinds = {"float": pyarrow.float64(), "percent": pyarrow.float64(),
             "text": pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}  # fmt: skip
    schema = pyarrow.schema([(column.key, kinds.get(column.kind, pyarrow.int64())) for column in columns])
    stream = pyarrow.PythonFile(_Counted(sink), "w")
    with parquet.ParquetWriter(stream, schema) as writer:
        for part in rows.parts(GROUP):
            arrays = [_arrow(pyarrow, rows.profile, column, part, total, texts.get(column.key)) for column in columns]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
    return len(rows)


def _arrow(pyarrow: Any, profile: Profile, column: Column, part: Sequence[tuple[int, Ints, Ints]], total: int,
           texts: Sequence[str] | None) -> Any:  # fmt: skip
    count = sum(len(places) for _, _, places in part)
    kind: Any = np.int32 if texts is not None else np.float64 if column.kind in ("float", "percent") else np.int64
    values, missing = np.zeros(count, dtype=kind), np.ones(count, dtype=np.bool_)
    for number, some, places in part:
        lane = profile.lanes[number]
        source = column_source(profile, lane, column, total)
        if source is not None:
            found = source(some)
            gone = is_missing(found) if found.dtype.kind != "f" else ~np.isfinite(found)
            if texts is not None:
                gone = gone | (found >= len(texts))
            values[places], missing[places] = np.where(gone, found.dtype.type(0), found), gone
    if texts is None:
        return pyarrow.array(values, mask=missing)
    codes = pyarrow.array(values, mask=missing)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(map(utf8_text, texts)), pyarrow.string()))


class _Counted:
    """Adapts a sink to the file interface that pyarrow needs, including ``tell``."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._written = 0

    def write(self, data: Any) -> int:
        self._sink.write(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass  # the caller closes the sink
