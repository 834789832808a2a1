"""Structs that the events of a trace are decoded to, with only the keys that are used."""

from __future__ import annotations

from typing import Any, Final, Union

import msgspec

from .chunks import NOTHING, decoded_alone

_MISSING: Final = {str: "", msgspec.Raw: NOTHING}


def event(phase: str, **fields: Any) -> Any:
    """Struct that events of a phase (``ph``) are decoded to: the types of their keys, or types and missing values."""
    pairs = [
        (key, *kind) if isinstance(kind, tuple) else (key, kind, _MISSING.get(kind)) for key, kind in fields.items()
    ]
    return msgspec.defstruct(f"Event{phase}", pairs, gc=False, tag_field="ph", tag=phase)


def complete_events(arguments: Any) -> Any:
    """Struct of events with a duration, whose arguments are decoded to a struct ``arguments``."""
    return event("X", cat=str, name=(str, "None"), pid=Any, tid=Any, ts=msgspec.Raw, dur=msgspec.Raw,
                 args=arguments | None)  # fmt: skip


class _NameArgs(msgspec.Struct, gc=False):
    name: Any = None
    labels: Any = None
    sort_index: Any = None


#: Names, labels or places of processes and threads; samples of counters; both ends of flows.
Metadata: Final = event("M", name=Any, pid=Any, tid=Any, args=_NameArgs | None)
Sample: Final = event("C", name=Any, pid=Any, ts=msgspec.Raw, args=Any)
FLOW: Final = {"cat": Any, "id": Any, "pid": Any, "tid": Any, "ts": msgspec.Raw}
FlowStart, FlowEnd = event("s", **FLOW), event("f", **FLOW)


class Phases:
    """What the events of each phase (``ph``) are decoded to.

    Args:
        methods: For each struct of events the method of a ``Collector`` that adds some; empty: none.
        skipped: Other phases that are known, whose events are left out.

    Attributes:
        any: Type of all events, also those of other phases.
        known: Values of ``ph`` in ``methods`` and ``skipped``.
        methods: By struct; of events of other phases ``add_unknown``.
    """

    def __init__(self, methods: dict[Any, str], skipped: str = "") -> None:
        structs = {kind.__struct_config__.tag: kind for kind in methods}
        self.known: Final = (*structs, *skipped)
        others = {phase: event(phase) for phase in ("", *"XiIMCsftBEnbe") if phase not in structs}
        self.methods = methods | {kind: "add_unknown" for phase, kind in others.items() if phase not in self.known}
        self._structs = structs | others
        self.any: Any = Union[tuple(self._structs.values())]  # noqa: UP007
        #: Keys of the fields of each phase, and whether they hold texts.
        self._fields = {phase: {field.encode_name: field.type is str for field in msgspec.structs.fields(kind)}
                        for phase, kind in self._structs.items()}  # fmt: skip

    def from_dict(self, event: dict[str, Any]) -> Any:
        """The struct of an event that was decoded alone; None if it does not fit."""
        phase = event.get("ph")
        phase = phase if isinstance(phase, str) and phase in self._structs else ""
        fields = {key: str(event[key]) if is_text else event[key] for key, is_text in self._fields[phase].items()
                  if event.get(key) is not None}  # fmt: skip
        if not isinstance(fields.get("args"), dict):
            fields.pop("args", None)
        return decoded_alone(fields | {"ph": phase}, self.any)
