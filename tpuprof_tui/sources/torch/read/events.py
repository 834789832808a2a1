"""Structs that the events of a PyTorch trace are decoded to, with only the keys that are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Union

import msgspec
import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.chunks import NOTHING, decoded_alone

NULL: Final = msgspec.Raw(b"null")
as_tuple: Final = msgspec.structs.astuple


class _NameArgs(msgspec.Struct, gc=False):
    """Arguments of process and thread names."""

    name: Any = None


class MemoryArgs(msgspec.Struct, gc=False, rename={
    "device_type": "Device Type", "device_id": "Device Id", "change": "Bytes", "address": "Addr",
    "allocated": "Total Allocated", "reserved": "Total Reserved", "event_index": "Ev Idx",
}):  # fmt: skip
    """Arguments of memory instants (``[memory]``)."""

    device_type: Any = INT_MISSING
    device_id: Any = INT_MISSING
    change: Any = INT_MISSING
    address: Any = INT_MISSING
    allocated: Any = INT_MISSING
    reserved: Any = INT_MISSING
    event_index: Any = INT_MISSING


class WorkArgs(msgspec.Struct, gc=False, rename={
    "external": "External id", "external_old": "external id", "registers": "registers per thread",
    "shared_memory": "shared memory", "blocks": "blocks per SM", "occupancy": "est. achieved occupancy %",
    "collective": "Collective name", "comms": "Comms Id", "sequence": "Seq", "group": "Process Group Name",
    "ranks": "Process Group Ranks",
}):  # fmt: skip
    """Arguments of complete events: correlation ids, properties of device work, and what identifies a collective."""

    external: Any = INT_MISSING
    external_old: Any = INT_MISSING
    correlation: Any = INT_MISSING
    device: Any = None
    stream: Any = None
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: Any = None
    shared_memory: Any = None
    blocks: Any = np.nan
    occupancy: Any = np.nan
    bytes: Any = INT_MISSING
    collective: Any = None
    comms: Any = None
    sequence: Any = None
    group: Any = None
    ranks: msgspec.Raw = NOTHING


# -- events, by phase


class Complete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """An event with a duration."""

    cat: str = ""
    name: str = "None"
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: WorkArgs | None = None


class Instant(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    """An instant event; only memory instants are used."""

    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    args: MemoryArgs | None = None


class OldInstant(Instant, gc=False, tag_field="ph", tag="I"):
    """`Instant` as older PyTorch writes it: phase ``I``."""


class Metadata(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    """Metadata event: the name of a process or thread."""

    name: Any = None
    pid: Any = None
    tid: Any = None
    args: _NameArgs | None = None


class CounterSample(msgspec.Struct, gc=False, tag_field="ph", tag="C"):
    """Counter sample: values from a time on."""

    name: Any = None
    pid: Any = None
    ts: msgspec.Raw = NOTHING
    args: Any = None


class FlowBegin(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    """Start of a flow in the first pass, which only collects the processes that flows begin in."""

    pid: Any = None


def _skipped(phases: str) -> dict[str, Any]:
    """Empty structs for events that are skipped, by phase."""
    return {phase: msgspec.defstruct(f"_Other{number}", [], gc=False, tag_field="ph", tag=phase)
            for number, phase in enumerate(("", *phases))}  # fmt: skip


#: Struct of each phase.
_PHASES: Final[dict[str, Any]] = {
    "X": Complete, "i": Instant, "I": OldInstant, "M": Metadata, "C": CounterSample, "s": FlowBegin,
    **_skipped("ftBEnbe"),
}  # fmt: skip
#: Phases that PyTorch writes; events of others are not read.
KNOWN_PHASES: Final = tuple("XiIMCsft")
UNKNOWN: Final = tuple(kind for phase, kind in _PHASES.items() if phase not in KNOWN_PHASES)
ANY_EVENT: Final[Any] = Union[tuple(_PHASES.values())]  # noqa: UP007

# -- flows, read on demand


class FlowStart(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    """Start of a flow."""

    cat: Any = None
    id: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING


class FlowEnd(FlowStart, gc=False, tag_field="ph", tag="f"):
    """End of a flow."""


#: Struct of each phase when reading flow starts and ends; all other phases are skipped.
_FLOW_PHASES: Final[dict[str, Any]] = {"s": FlowStart, "f": FlowEnd, **_skipped("XiIMCtBEnbe")}
FLOW_ENDS: Final[Any] = Union[tuple(_FLOW_PHASES.values())]  # noqa: UP007


class LaunchStart(FlowStart, gc=False, tag_field="ph", tag="s"):
    """Start of a flow in a legacy trace: at the operator of its name."""

    name: Any = None


class LaunchEnd(LaunchStart, gc=False, tag_field="ph", tag="f"):
    """End of a flow in a legacy trace: at the kernel of its name."""


#: Struct of each phase when reading the flows of a legacy trace.
LAUNCH_ENDS: Final[Any] = Union[tuple((_FLOW_PHASES | {"s": LaunchStart, "f": LaunchEnd}).values())]  # noqa: UP007

# -- arguments of complete events that are read on demand


class HostArgs(msgspec.Struct, gc=False, rename={
    "dims": "Input Dims", "dims_old": "Input dims", "types": "Input type", "call_stack": "Call stack",
}):  # fmt: skip
    """Arguments of operators and annotations: shapes, types and the call stack."""

    dims: msgspec.Raw = NOTHING
    dims_old: msgspec.Raw = NOTHING
    types: msgspec.Raw = NOTHING
    call_stack: Any = None


class MessageArgs(msgspec.Struct, gc=False, rename={
    "sent": "In msg nelems", "received": "Out msg nelems", "element": "dtype", "group": "Process Group Name",
    "size": "Group size", "ranks": "Process Group Ranks",
}):  # fmt: skip
    """Arguments of collectives, on ``record_param_comms`` and on kernels of NCCL."""

    sent: Any = INT_MISSING
    received: Any = INT_MISSING
    element: Any = None
    size: Any = INT_MISSING
    group: msgspec.Raw = NOTHING
    ranks: msgspec.Raw = NOTHING


class FrameArgs(msgspec.Struct, gc=False, rename={
    "id": "Python id", "parent": "Python parent id", "module": "Python module id",
}):  # fmt: skip
    """Arguments of Python frames."""

    id: Any = INT_MISSING
    parent: Any = INT_MISSING
    module: Any = INT_MISSING


class ArgumentsOf:
    """Decoder of arguments to columns.

    Args:
        kind: Struct type with a field for each column.
    """

    def __init__(self, kind: Any) -> None:
        self._decode = msgspec.json.Decoder(list[kind | None]).decode
        self._one = msgspec.json.Decoder(kind).decode
        self._none = kind()
        self._fields = msgspec.structs.fields(kind)

    def columns(self, texts: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Values of JSON texts as a column for each field of the struct; defaults for texts that are no object."""
        if not texts:
            return [() for _ in self._fields]
        joined = b"".join((b"[", b",".join(texts), b"]"))
        try:
            found: list[Any] = self._decode(joined)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            found = [self._alone(text) for text in texts]
        if None in found:
            found = [each or self._none for each in found]
        return list(zip(*map(as_tuple, found), strict=True))

    def _alone(self, text: Any) -> Any:
        try:
            return self._one(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self._none


# -- events that were decoded alone, with numbers as texts


def from_dict(event: dict[str, Any], kind: Any = ANY_EVENT) -> Any:
    """The struct of an event that was decoded alone; None if it does not fit."""
    fields = {key: value for key, value in event.items() if value is not None}
    phase = fields.get("ph")
    fields["ph"] = phase if isinstance(phase, str) and phase in _PHASES else ""
    if phase == "X":
        fields |= {key: str(fields[key]) for key in ("name", "cat") if key in fields}
    if not isinstance(fields.get("args"), dict):
        fields.pop("args", None)
    return decoded_alone(fields, kind)
