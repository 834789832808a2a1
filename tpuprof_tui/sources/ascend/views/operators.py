"""Operators view: time by kernel type, and of framework operators on host and device."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Figure, Frame, Groups, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Missing, Table

from ..recorded import RecordedRank
from .ranks import (
    TIMES,
    as_counted,
    by_texts,
    frame_of,
    is_everything,
    lacks,
    lanes_of,
    not_narrowed,
    per_rank,
    selected_rows,
    text_or_none,
)

_TYPED: Final = "profiler_level=Level1, or msprof --task-time=l1"
_SIDES: Final = ("host_self", "host_total", "device_self", "device_total", "device_self_aicore", "device_total_aicore")


def _known_total(name: str) -> Figure:
    def values(groups: Groups) -> np.ndarray:
        none = not bool((groups.frame[name] != INT_MISSING).any())
        return np.full(groups.count, INT_MISSING) if none else np.asarray(total(name)(groups))

    return values


_NAME: Final = (Column("name", "Name", narrows="name"), text_or_none("name"))
_SHAPES: Final = (Column("input_shapes", "Input Shapes"), text_or_none("shapes"))
_TIMES: Final = tuple(
    (Column(f"{side}_us", title, "duration", bar=side.endswith("total"), spare=spare), _known_total(side))
    for side, title, spare in zip(_SIDES, ("Host Self", "Host Total", "Device Self", "Device Total",
                                           "Device Self With AICore", "Device Total With AICore"),
                                  (0, 0, 0, 0, 1, 2), strict=True)
)  # fmt: skip
_FIGURES: Final = ((Column("calls", "Calls", "count"), rows), *_TIMES)
_ORDER: Final = ("-device_self_us", "-host_self_us", "name")


@per_rank
def operators(query: Query, rank: RecordedRank) -> Answer:
    """The operators view of one rank."""
    tables: list[Table] = []
    missing: list[Missing] = []
    source = ""
    by_type, file = _by_type(query, rank)
    if by_type is not None:
        tables.append(by_type)
        source = file
    else:
        missing.append(lacks("by_type", "The types of the kernels are not known.", "operator types (Level1)", _TYPED))
    notes: tuple[str, ...] = ()
    file, frame, follows = _calls(query, rank)
    if frame is not None:
        notes = () if follows else not_narrowed(query, "By name, as the exporter counted")
        source = source or file
        tables.append(
            Table.of_pivot("by_name", "By name", frame, ["name"], [_NAME, *_FIGURES], _ORDER, word="operator")
        )
        if (frame["shapes"] >= 0).any() or (follows and (_recorded_operators(query)["shapes"] >= 0).any()):
            shapes = frame.with_texts("shapes", lambda text: " ".join(text.split()))
            tables.append(Table.of_pivot("by_name_shape", "By name and input shapes", shapes, ["name", "shapes"],
                                         [_NAME, _SHAPES, *_FIGURES], _ORDER, word="operator"))  # fmt: skip
    else:
        missing.append(lacks("by_name", "There are no framework operators.", "operators of the framework",
                             "activities with CPU (torch_npu.profiler alone)"))  # fmt: skip
    return Answer(tables=tuple(tables), notes=notes, missing=tuple(missing), source=source)


def _by_type(query: Query, rank: RecordedRank) -> tuple[Table | None, str]:
    heads = (Column("type", "OP Type", narrows="type"), Column("core", "Core Type"))
    statistic = query.profile.table("statistic", rank.group)
    if is_everything(query) and statistic is not None and statistic.texts["type"]:
        keys = ("type", "core", "count", "total", "least", "mean", "most", "share")
        named = dict(zip(keys, (*heads, *(head for head, _ in TIMES)), strict=True))
        return as_counted("by_type", "By type", named, statistic), statistic.file
    kernels = query.profile.table("kernels", rank.group)
    if kernels is None or not kernels.texts["type"]:
        return None, ""
    chosen = selected_rows(query, kernels)
    chosen = chosen[~kernels["communicates"][chosen]]
    heads = (heads[0], Column("core", "Core Type", narrows="accelerator"))
    return by_texts("by_type", "By type", heads, frame_of(kernels, ("type", "core", "duration"), chosen)), kernels.file


def _calls(query: Query, rank: RecordedRank) -> tuple[str, Frame | None, bool]:
    """A row for each call of an operator, from operator_details.csv, else from events; for a selection from events.

    Returns:
        File name, rows, and whether they follow the selection; no rows if there are no operators.
    """
    exported = query.profile.table("operators", rank.group)
    if exported is None or not is_everything(query):
        frame = query.events(("name", "shapes", *_SIDES), lanes_of(query, "python", "other"))
        if len(_recorded_operators(query)):
            return rank.timeline, frame.take(frame["host_total"] != INT_MISSING), True
    if exported is None:
        return "", None, True
    return exported.file, frame_of(exported, ("name", "shapes", *_SIDES)), False


def _recorded_operators(query: Query) -> Frame:
    whole = replace(query, range=None, filter="", step=None)
    frame = whole.events(("shapes", "host_total"), lanes_of(query, "python", "other"))
    return frame.take(frame["host_total"] != INT_MISSING)
