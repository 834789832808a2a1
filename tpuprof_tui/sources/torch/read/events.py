"""Structs that the events of a PyTorch trace are decoded to, and the columns that their arguments become."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from tpuprof_tui.sources.chrome.columns import ANY, FLOAT, INTEGER, JSON, TEXT, ArgumentColumns, Kind, to_int64
from tpuprof_tui.sources.chrome.events import FLOW, Metadata, Phases, Sample, complete_events, event

#: Bytes of an element by the type that PyTorch names in the arguments of collectives.
ELEMENT_BYTES: Final = {
    name: size for size, names in {
        1: "Byte Char Bool QInt8 QUInt8 Float8_e5m2 Float8_e4m3fn Float8_e5m2fnuz Float8_e4m3fnuz Float8_e8m0fnu",
        2: "Short Half BFloat16 UInt16", 4: "Int Float ComplexHalf QInt32 UInt32", 8: "Long Double ComplexFloat UInt64",
        16: "ComplexDouble",
    }.items() for name in names.split()
}  # fmt: skip

_ID: Final = Kind(lambda values, texts, _: np.array(
    [-1 if value is None else texts[str(value)] for value in values], np.int32))  # fmt: skip
_COUNT: Final = Kind(lambda values, texts, _: np.array([texts[str(value)] for value in values], np.int32))
_GIVEN: Final = Kind(lambda values, *_: np.array([value is not None for value in values], np.bool_))
_ELEMENT: Final = Kind(lambda values, *_: to_int64(
    [ELEMENT_BYTES.get(value) if isinstance(value, str) else None for value in values]))  # fmt: skip

#: Arguments of device work; others of all complete events: ids, and what identifies a collective.
WORK: Final = ArgumentColumns(
    {"external": (INTEGER, "External id", "external id"), "correlation": (INTEGER, "correlation", "correlation_id"),
     "comms": (ANY, "Comms Id"), "sequence": (ANY, "Seq"), "group": (ANY, "Process Group Name"),
     "ranks": (JSON, "Process Group Ranks")},
    device=(_ID, "device"), stream=(_ID, "stream"), grid=(JSON, "grid"), block=(JSON, "block"),
    registers=(_COUNT, "registers per thread"), shared_memory=(_COUNT, "shared memory"),
    blocks=(FLOAT, "blocks per SM"), occupancy=(FLOAT, "est. achieved occupancy %"), bytes=(INTEGER, "bytes"),
    collective=(_GIVEN, "Collective name"),
)  # fmt: skip
#: Arguments of memory instants (``[memory]``).
MEMORY: Final = ArgumentColumns(
    device_type=(INTEGER, "Device Type"), device_id=(INTEGER, "Device Id"), change=(INTEGER, "Bytes"),
    address=(INTEGER, "Addr"), allocated=(INTEGER, "Total Allocated"), reserved=(INTEGER, "Total Reserved"),
    event_index=(INTEGER, "Ev Idx"),
)  # fmt: skip

# -- read on demand

#: Arguments of operators and annotations: shapes, types and call stacks.
OPERATORS: Final = ArgumentColumns(
    shapes=(JSON, "Input Dims", "Input dims"), input_types=(JSON, "Input type"), stack=(TEXT, "Call stack")
)
#: Arguments of Python frames.
FRAMES: Final = ArgumentColumns(
    id=(INTEGER, "Python id"), parent=(INTEGER, "Python parent id"), module=(INTEGER, "Python module id")
)
#: Arguments of collectives, on ``record_param_comms`` and on kernels of NCCL.
MESSAGES: Final = ArgumentColumns(
    sent=(INTEGER, "In msg nelems"), received=(INTEGER, "Out msg nelems"), element_bytes=(_ELEMENT, "dtype"),
    size=(INTEGER, "Group size"), group=(JSON, "Process Group Name"), ranks=(JSON, "Process Group Ranks"),
)  # fmt: skip

# -- events

Complete: Final = complete_events(WORK.struct)


_INSTANT: Final = {"name": Any, "pid": Any, "tid": Any, "ts": msgspec.Raw, "args": MEMORY.struct | None}
#: Instants, of which only those of memory are used; older PyTorch writes phase ``I``.
Instant, OldInstant = event("i", **_INSTANT), event("I", **_INSTANT)
#: Starts of flows in the first pass, which only collects the processes that flows begin in.
FlowBegin: Final = event("s", pid=Any)
#: Ends of flows: in a legacy trace at the operator, and at the kernel, of its name.
NamedStart, NamedEnd = event("s", **FLOW, name=Any), event("f", **FLOW, name=Any)
#: Events with a duration, their arguments as text.
AnyComplete: Final = event("X", args=msgspec.Raw)
#: Phases that PyTorch writes; events of others are not read.
PHASES: Final = Phases({
    Complete: "add_complete", Instant: "add_memory", OldInstant: "add_memory", Metadata: "add_names",
    Sample: "add_samples", FlowBegin: "add_flows",
}, "ft")  # fmt: skip
FLOWS: Final = Phases({NamedStart: "", NamedEnd: ""})
ARGUMENTS: Final = Phases({AnyComplete: ""})
