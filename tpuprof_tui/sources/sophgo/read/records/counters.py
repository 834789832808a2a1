"""Raw counters of monitor records as lane columns, read from the records when asked for."""

from __future__ import annotations

from tpuprof_tui.model.lane import LazyColumn

from .monitor import Stream

#: Fields that are columns of their own already.
_OWN = ("inst_start_time", "inst_end_time", "inst_id")


def counter_columns(stream: Stream) -> dict[str, LazyColumn]:
    """A column for each counter of the stream's record layout, by the name it has there."""

    def column(name: str) -> LazyColumn:
        return lambda rows: stream.counter(name, rows)  # type: ignore[arg-type]

    names = (name for name in stream.layout.by_name if name not in _OWN and not name.startswith("reserved"))
    return {name: column(name) for name in names}
