"""What runs beside the device: calls of the driver library (``bmlib_K.profile``), and its device memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Profile, Role, Strings
from tpuprof_tui.model.lane import Array, LazyColumn, constant
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.table import Table, TableColumns

from ...file_names import SETTINGS_FILE
from ..arrays import Bytes
from ..host_trace import GROUP, KIND
from ..problems import Report
from ..stream.blocks import Block
from .plan import Plan

#: Lists of a block of calls in their order: label of the lane, and the layout of an entry. ``api``: no end is recorded.
_LISTS: Final = (
    ("send", np.dtype([("code", "<u4"), ("begin", "<u8")])),
    ("sync", np.dtype([("begin", "<u8"), ("end", "<u8")])),
    ("mark", np.dtype([("code", "<u8"), ("begin", "<u8"), ("end", "<u8")])),
    (
        "copy",
        np.dtype(
            [("source", "<u8"), ("target", "<u8"), ("code", "<u4"), ("bytes", "<u4"), ("begin", "<u8"), ("end", "<u8")]
        ),
    ),
    ("memory", np.dtype([("address", "<u8"), ("bytes", "<u4"), ("code", "<u4"), ("begin", "<u8"), ("end", "<u8")])),
)
_NAMES: Final = {
    "copy": ("copy host->chip", "copy chip->host", "copy chip->chip"),
    "memory": ("allocate", "free", "invalidate", "flush"),
}
_LABELS: Final = tuple(label for label, _ in _LISTS)
_TYPE: Final = "driver"
#: Latest time (us since 1970) that is taken for one: the year 2286.
_LATEST_US: Final = 10**16


class Calls:
    """Calls of the driver library, by list: entries and their names."""

    def __init__(self) -> None:
        self.entries: dict[str, list[npt.NDArray[Any]]] = {label: [] for label in _LABELS}
        self.names: dict[str, list[list[str]]] = {label: [] for label in _LABELS}

    def read(self, data: Bytes, block: Block, report: Report, base: int) -> int:
        """Take the calls of a block; returns when they begin (us since 1970), 0 if that is not known.

        Args:
            data: Bytes of the folder.
            base: Offset of the block's file in them.
        """
        place, last = block.offset + 16, block.offset + block.length
        if place > last:
            return 0
        for label, layout in _LISTS:
            if place + 4 > last:
                break  # older libraries write fewer lists
            count = int(data[place : place + 4].view("<u4")[0])
            place += 4
            held = min(count, (last - place) // layout.itemsize)
            if held < count:
                report.error(
                    f"A list of {count:,} {label} calls is cut off: {held:,} are there.",
                    "Those are shown.",
                    offset=place - base,
                    count=count - held,
                )
            entries = data[place : place + held * layout.itemsize].view(layout)
            place += held * layout.itemsize if held == count else last - place
            kinds = _NAMES.get(label, ())
            codes = entries["code"].tolist() if "code" in (layout.names or ()) else [0] * held
            names = [
                kinds[code] if code < len(kinds) else f"{label} {code}" if label != "sync" else label for code in codes
            ]
            self.entries[label].append(entries)
            self.names[label].append(names)
        begin = int(data[block.offset : block.offset + 8].view("<u8")[0])
        return begin if begin < _LATEST_US else 0

    def remark(self, payload: Bytes) -> None:
        """Add the text of a block of remarks to the call that it is about."""
        if len(payload) < 12:
            return
        which, index, length = (int(value) for value in payload[:12].view("<u4"))
        text = payload[12 : 12 + length].tobytes().decode("utf-8", "replace").strip("\0 ")
        lists = self.names[_LABELS[which]] if which < len(_LABELS) else []
        if lists and index < len(lists[-1]) and text:
            lists[-1][index] += f": {text}"

    def earliest_us(self) -> int:
        """Begin of the first call, us since 1970; 0 without any."""
        begins = [int(entries["begin"].min()) for lists in self.entries.values() for entries in lists if len(entries)]
        return min(begins, default=0)


def with_calls(profile: Profile, calls: Calls, zero_us: int) -> Profile:
    """The profile with lanes of the driver's calls.

    Args:
        zero_us: Host time of the profile's zero, us since 1970.
    """
    tables = {key: dict.fromkeys(profile.strings.get(key, ())) for key in ("name", "type")}
    codes = {text: code for code, text in enumerate(tables["name"])}
    kind = list({**tables["type"], _TYPE: None}).index(_TYPE)
    lanes = []
    for label, lists in calls.entries.items():
        if not any(map(len, lists)):
            continue
        entries: npt.NDArray[Any] = np.concatenate(lists)
        begin = entries["begin"].astype(np.int64)
        fields = entries.dtype.names or ()
        end = entries["end"].astype(np.int64) if "end" in fields else begin
        order = np.argsort(begin, kind="stable")
        known = (begin > 0) & (begin < _LATEST_US) & (end >= begin) & (end < _LATEST_US)
        order = order[known[order]]
        texts = [text for names in calls.names[label] for text in names]
        name = np.array([codes.setdefault(texts[row], len(codes)) for row in order.tolist()], np.int32)
        start, stop = (begin[order] - zero_us) * 1000, (end[order] - zero_us) * 1000
        sublane, _ = split_overlaps(start, stop)
        count = len(order)
        columns: dict[str, Array | LazyColumn] = {
            "start": start,
            "end": stop,
            "order": order.astype(np.int64),
            "role": constant(count, Role.WORK, np.int8),
            "sublane": sublane if sublane is not None else constant(count, 0, np.int16),
            "name": name,
            "type": constant(count, kind, np.int32),
        }
        if "bytes" in fields:
            columns["bytes"] = entries["bytes"].astype(np.int64)[order]
        lanes.append(Lane(kind=KIND, group=len(profile.groups), label=label, activity=Activity.HOST, columns=columns))
    if not lanes:
        return profile
    strings = {**profile.strings, "name": Strings(codes), "type": Strings({**tables["type"], _TYPE: None})}
    return replace(profile, groups=Groups((*profile.groups, GROUP)), lanes=(*profile.lanes, *lanes), strings=strings)


def memory_table(plan: Plan, zero_us: int) -> Table:
    """Allocations of device memory: address, bytes, allocated and freed (ns on the time line), use."""
    memory = plan.memory

    def times(values: Sequence[int]) -> list[int]:
        return [(us - zero_us) * 1000 if 0 < us < _LATEST_US else int(INT_MISSING) for us in values]

    def read() -> TableColumns:
        address, size, allocated, freed, use = zip(*memory, strict=True)
        uses = list(dict.fromkeys(use))
        numbers = {"address": address, "bytes": size, "allocated": times(allocated), "freed": times(freed)}
        columns = {key: np.array(values, np.int64) for key, values in numbers.items()}
        return {**columns, "use": np.array([uses.index(text) for text in use], np.int32)}, {"use": uses}

    return Table("device_memory", -1, SETTINGS_FILE, read)
