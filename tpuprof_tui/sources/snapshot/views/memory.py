"""Views of memory snapshots: what holds memory at the peak and at the end, and what is reserved but free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.events import frame_of
from tpuprof_tui.analysis.pivot import Frame, count_true, key, most, pivot, quotient, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.units import bytes_text, plural
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.table import Table as RecordedTable
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target
from tpuprof_tui.views.generic_rules import RULES as GENERIC
from tpuprof_tui.views.rules import Finding, Rule, SourceRules, evidence

from ..vocabulary import BLOCKS, HISTORY

UNKNOWN: Final = "<not recorded>"


class Gpu:
    """Memory of one GPU in what a query selects: times in ns, amounts in bytes.

    Attributes:
        end: Last moment of the selected time.
        peak, peak_at: Most active memory in that time, and when.
        reserved_peak, active_at_end, reserved_at_end: Memory as their names say; None: unknown.
    """

    def __init__(self, query: Query, group: int) -> None:
        start, end = query.extent
        lanes = [lane for lane in query.session.lanes_in(query.scope) if query.profile.lanes[lane].group == group]
        self._events = query.events(("start", "end", "bytes", "name", "stack", "category"), lanes, reaching=True)
        self.title, self.number = query.profile.groups.title(group), query.profile.groups.number(group)
        self.end = end - 1
        self.peak, self.peak_at, self.active_at_end = 0, start, 0
        self.reserved_peak = self.reserved_at_end = None
        for counter in query.profile.counters:
            first = max(int(np.searchsorted(counter.times, start, "right")) - 1, 0)
            values = counter.values[first : max(int(np.searchsorted(counter.times, end)), first + 1)]
            if counter.group == group and counter.name == "Active":
                self.peak, self.active_at_end = int(values.max()), int(values[-1])
                self.peak_at = max(int(counter.times[first + values.argmax()]), start)
            elif counter.group == group and counter.name == "Reserved":
                self.reserved_peak, self.reserved_at_end = int(values.max()), int(values[-1])

    def alive_at(self, time: int) -> Frame:
        """The selected allocations that hold memory at a time."""
        return self._events.take((self._events["start"] <= time) & (self._events["end"] > time))

    @property
    def most_at_peak(self) -> tuple[str | None, int]:
        """The source line that holds most at the peak, and its bytes."""
        return next(iter(_by_line(self.alive_at(self.peak_at))), (None, 0))

    def holder_sentence(self, when: str) -> str:
        """Who holds most at the peak, a sentence."""
        name, size = self.most_at_peak
        return (
            f"{bytes_text(size)} of {bytes_text(self.peak)} {when} of {self.title} is held by {line_text(name or '')}."
        )


def table_of(query: Query, name: str) -> RecordedTable:
    """A table that each snapshot has."""
    return next(table for table in query.profile.tables if table.name == name)


def gpus(query: Query) -> list[Gpu]:
    """The GPUs of the scope; cached."""
    groups = sorted({query.profile.lanes[lane].group for lane in query.session.lanes_in(query.scope)})
    return query.local_cache.get("gpus", lambda: [Gpu(query, group) for group in groups])


def overview(query: Query) -> Answer:
    """Memory of each GPU at its peak and at the end."""
    found = []
    for gpu in gpus(query):
        name, size = gpu.most_at_peak
        found.append((gpu.title, gpu.peak, gpu.reserved_peak, gpu.peak_at, gpu.active_at_end, gpu.reserved_at_end, name,
                      size / gpu.peak if gpu.peak else None))  # fmt: skip
    table = Table.of_rows("gpus", "GPUs", (
        Column("gpu", "GPU"), Column("peak_active_bytes", "Peak active", "bytes"),
        Column("peak_reserved_bytes", "Peak reserved", "bytes"), Column("peak_at_us", "At", "time", drop_first=1),
        Column("end_active_bytes", "Active at the end", "bytes"),
        Column("end_reserved_bytes", "Reserved at the end", "bytes", drop_first=2),
        Column("most_by", "Most at the peak", is_key=False), Column("most_share", "Share", "share", bar=True),
    ), found, word="GPU")  # fmt: skip
    failed = len(table_of(query, "out_of_memory"))
    facts = (Fact("total_us", "Total time", query.span, "duration"),
             Fact("allocations", "Allocations", query.event_count),
             Fact("failed", "Failed allocations", failed, shown=failed > 0),
             *(Fact(key, title, max(row[place] or 0 for row in found), "bytes", shown=False) for place, key, title in
               ((1, "peak_active_bytes", "Peak active"), (2, "peak_reserved_bytes", "Peak reserved"),
                (4, "end_active_bytes", "Active at the end")) if found))  # fmt: skip
    return Answer(facts, (table,), notes=_not_narrowed("Peaks and the end", query.full_filter))


def held(query: Query) -> Answer:
    """What holds memory at the peak of each GPU, and at the end, by source line, stack and category."""
    tables = []
    for when in ("peak", "end"):
        alive = [(gpu.title, gpu.alive_at(gpu.peak_at if when == "peak" else gpu.end)) for gpu in gpus(query)]
        for column, title in (("name", "Source line"), ("stack", "Call stack"), ("category", "Category")):
            if column == "category" and not any((frame[column] >= 0).any() for _, frame in alive):
                continue
            found = [
                (gpu, text, size, count, largest, size / max(int(frame["bytes"].sum()), 1))
                for gpu, frame in alive
                for text, size, count, largest in pivot(frame, [column], {
                    "text": key(column, UNKNOWN), "size": total("bytes"), "count": rows, "most": most("bytes"),
                }, ("-size", "text"))
            ]  # fmt: skip
            tables.append(Table.of_rows(f"{when}_by_{column}", f"Held at the {when}, by {title.lower()}", (
                Column("gpu", "GPU", drop_first=0 if len(alive) > 1 else 3),
                Column(column, title, filter_column=column),
                Column("bytes", "Bytes", "bytes", bar=True),
                Column("allocations", "Allocations", "count", drop_first=1),
                Column("largest_bytes", "Largest", "bytes", drop_first=2), Column("share", "Share", "share"),
            ), found, word=title.lower()))  # fmt: skip
    return Answer(tables=tuple(tables))


def fragmentation(query: Query) -> Answer:
    """Reserved memory that is free at the snapshot, by pool and by segment."""
    figures = (
        (Column("reserved_bytes", "Reserved", "bytes"), total("size")),
        (Column("active_bytes", "Active", "bytes"), total("active")),
        (Column("free_bytes", "Free", "bytes", bar=True), total("free")),
        (Column("free_share", "Share", "share"), quotient(total("free"), total("size"))),
        (Column("free_blocks", "Free blocks", "count", drop_first=3), count_true("free")),
        (Column("largest_free_bytes", "Largest free", "bytes"), most("free")),
        (Column("rounding_bytes", "Rounding", "bytes", drop_first=4), total("rounding")),
    )
    place = ((Column("device", "GPU", "number"), key("device")), (Column("pool", "Pool"), key("segment_type", UNKNOWN)),
             (Column("pool_id", "Pool id", drop_first=6), key("segment_pool_id")),
             (Column("stream", "Stream", "number"), key("stream")))  # fmt: skip
    note = "A request needs one free block of its size in its pool and stream."
    return Answer(tables=(
        Table.of_pivot("pools", "Pools", _blocks(query), ("device", "segment_type", "segment_pool_id", "stream"), (
            *place, (Column("segments", "Segments", "count", drop_first=5), count_true("first")), *figures,
        ), ("-free_bytes",), word="pool", notes=(note,)),
        Table.of_pivot("segments", "Segments", _blocks(query), ("segment",), (
            (Column("address", "Address"), lambda groups: [f"{each:#x}" for each in groups.values("address").tolist()]),
            *place, *figures,
        ), ("-free_bytes",), word="segment"),
    ), notes=_not_narrowed("The state at the snapshot", query.full_filter or query.range))  # fmt: skip


def _not_narrowed(what: str, selection: object) -> tuple[str, ...]:
    """A note that something does not follow what is selected."""
    return (f"{what} is not narrowed by the selection.",) if selection else ()


def _blocks(query: Query) -> Frame:
    """Blocks of the segments, with their bytes that are ``active``, ``free``, or lost to ``rounding``."""
    blocks = frame_of(table_of(query, "blocks"), [column.key for column in BLOCKS])
    free, size, asked = blocks.has("state", "inactive".__eq__), blocks["size"], blocks["requested_size"]
    return blocks.with_columns(
        active=np.where(free, 0, size), free=np.where(free, size, 0),
        rounding=np.where(free | (asked <= 0), 0, size - asked), first=np.diff(blocks["segment"], prepend=-1) > 0,
    )  # fmt: skip


def sentence(query: Query) -> str:
    """Who holds most at the peak of the fullest GPU, and whether allocations failed; with a baseline what grew most."""
    if query.baseline is not None:
        return _grown(query.baseline, query)
    fullest = max(gpus(query), key=lambda gpu: gpu.peak, default=None)
    if fullest is None or not fullest.peak:
        return "No memory is held."
    failed = len(table_of(query, "out_of_memory"))
    told = fullest.holder_sentence("at the peak" if query.profile.has(HISTORY) else "at the snapshot")
    return f"{plural(failed, 'allocation')} failed; {told}" if failed else told


def _grown(base: Query, query: Query) -> str:
    """By how much the memory that is held at the end grew, and which line grew most."""
    before, after = (Counter[str]() for _ in range(2))
    for side, found in ((base, before), (query, after)):
        for gpu in gpus(side):
            found.update(dict(_by_line(gpu.alive_at(gpu.end))))
    text = f"Held at the end: {bytes_text(before.total())} -> {bytes_text(after.total())}"
    name, size = next(iter((after - before).most_common(1)), ("", 0))
    return f"{text}; {line_text(name)} grew by {bytes_text(size)}." if size else f"{text}."


def _by_line(held: Frame) -> list[tuple[str, int]]:
    """Bytes of allocations by source line, most first."""
    return pivot(held, ["name"], {"name": key("name", UNKNOWN), "size": total("bytes")}, ("-size", "name"))


def _free(query: Query, number: int) -> str:
    """Free blocks of a GPU at the snapshot, in words."""
    blocks = _blocks(query)
    free = blocks["free"][(blocks["device"] == number) & (blocks["free"] > 0)]
    return f"{plural(len(free), 'free block')} of up to {bytes_text(int(free.max(initial=0)))} at the snapshot"


def _finding(rule: Rule, place: str, at: int, text: str, name: str = "") -> Finding:
    return Finding(rule.id, place, None, text, evidence(place, at, 1, name), rule.advice, Target(time=(at, at + 1)))


def _failed(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    failed = table_of(query, "out_of_memory")
    columns = (failed[name].tolist() for name in ("device", "start", "size", "device_free"))
    for number, at, size, left in zip(*columns, strict=True):
        left_text = "" if left == INT_MISSING else f", {bytes_text(left)} left on the GPU"
        text = f"An allocation of {bytes_text(size)} failed: {_free(query, number)}{left_text}."
        yield _finding(rule, f"GPU {number}", at, text, "oom")


def _held_by_one(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for gpu in gpus(query):
        name, size = gpu.most_at_peak
        if gpu.peak and size >= rule.threshold * gpu.peak:
            yield _finding(rule, gpu.title, gpu.peak_at, gpu.holder_sentence("at the peak"), name or "")


def _fragmented(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    if (table_of(query, "segments")["is_expandable"] > 0).any():
        rule = replace(rule, advice="See which pools and streams keep memory: segments are expandable already.")
    for gpu in gpus(query):
        reserved = gpu.reserved_peak or 0
        if reserved - gpu.peak > rule.threshold * reserved:
            text = (f"{bytes_text(reserved - gpu.peak)} of {bytes_text(reserved)} reserved is beyond the peak of "
                    f"active memory; {_free(query, gpu.number)}.")  # fmt: skip
            yield _finding(rule, gpu.title, gpu.peak_at, text)


RULES: Final = SourceRules(
    adds=(
        Rule("failed_allocation", "A failed allocation", "Allocations that found no memory.", 0.0, "each one counts",
             "See what is held at that time, and whether free blocks are large enough.", _failed, ()),
        Rule("held_by_one", "Memory of one line", "Share of the memory at the peak that one source line holds.", 0.3,
             "about a third", "See whether all of it is needed at once.", _held_by_one),
        Rule("fragmented", "Reserved but not used", "Share of reserved memory beyond the peak of active memory.", 0.3,
             "as in traces of PyTorch", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow instead "
             "of reserving new ones.", _fragmented),
    ),
    leaves_out={rule.id: "No work of a device is recorded." for rule in GENERIC},
)  # fmt: skip
