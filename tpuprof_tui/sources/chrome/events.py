"""Structs that the events of a trace are decoded to, with only the keys that are used."""

from __future__ import annotations

from typing import Any, Final, Union

import msgspec

from .chunks import NOTHING, decoded_alone


def complete_events(arguments: Any) -> Any:
    """Struct of events with a duration, whose arguments are decoded to a struct ``arguments``."""
    fields = [("cat", str, ""), ("name", str, "None"), ("pid", Any, None), ("tid", Any, None),
              ("ts", msgspec.Raw, NOTHING), ("dur", msgspec.Raw, NOTHING),
              ("args", arguments | None, None)]  # fmt: skip
    return msgspec.defstruct("Complete", fields, gc=False, tag_field="ph", tag="X")


class _NameArgs(msgspec.Struct, gc=False):
    name: Any = None
    labels: Any = None
    sort_index: Any = None


class Metadata(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    """Metadata event: the name, labels or place of a process or thread."""

    name: Any = None
    pid: Any = None
    tid: Any = None
    args: _NameArgs | None = None


class Sample(msgspec.Struct, gc=False, tag_field="ph", tag="C"):
    """Counter sample: values from a time on."""

    name: Any = None
    pid: Any = None
    ts: msgspec.Raw = NOTHING
    args: Any = None


class FlowStart(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    """Start of a flow."""

    cat: Any = None
    id: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING


class FlowEnd(FlowStart, gc=False, tag_field="ph", tag="f"):
    """End of a flow."""


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
        others = {phase: msgspec.defstruct(f"_Other{number}", [], gc=False, tag_field="ph", tag=phase)
                  for number, phase in enumerate(("", *"XiIMCsftBEnbe")) if phase not in structs}  # fmt: skip
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
