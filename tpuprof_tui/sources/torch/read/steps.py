"""Steps that the host annotated, and the step that a time is in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING

from .categories import Kind

if TYPE_CHECKING:
    from .trace import Trace

I64 = npt.NDArray[np.int64]
STEP: Final = "ProfilerStep#"
MODULE: Final = "nn.Module: "
#: Kinds and name patterns of the events by which inference servers mark executions of a model.
_EXECUTIONS: Final = (
    ((Kind.ANNOTATION,), re.compile(r"^execute_\d+_context_(?P<context>\d+)\(.*\)_generation_(?P<generation>\d+)\(")),
    ((Kind.ANNOTATION,), re.compile(r"^(?P<function>execute_model)\b")),
    ((Kind.FRAME,), re.compile(r"model_runner\.py\(\d+\): (?P<function>execute_model|forward_decode|forward_extend)$")),
)
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME)


def rows_named(trace: Trace, prefix: str, kinds: tuple[Kind, ...] = _HOST) -> I64:
    """Rows of events of some kinds whose name has a prefix, by start, then end."""
    rows = np.flatnonzero(trace.named(lambda name: name.startswith(prefix)) & np.isin(trace.kind, kinds))
    return rows[np.lexsort((trace.end[rows], trace.start[rows]))]


def marks_step(name: str) -> bool:
    """Whether events of a name may mark steps or executions of a model."""
    return name.startswith(STEP) or any(pattern.search(name) for _, pattern in _EXECUTIONS)


def executions(trace: Trace) -> tuple[I64, list[str]]:
    """Executions of a model by an inference server that marks no steps: rows by start, and labels (prefill, decode).

    vLLM's annotations state the number of requests of each kind; otherwise the Python frames of the functions that run
    models in vLLM and SGLang are used.
    """
    for kinds, pattern in _EXECUTIONS:
        found = [pattern.search(name) for name in trace.names]
        matching = np.array([match is not None for match in found], np.bool_)
        if not matching.any():
            continue
        rows = np.flatnonzero(matching[trace.name] & np.isin(trace.kind, kinds))
        rows = rows[np.lexsort((-trace.end[rows], trace.start[rows]))]
        # of nested matches only the outermost count
        reach = np.maximum.accumulate(trace.end[rows])
        outer = np.ones(len(rows), np.bool_)
        outer[1:] = trace.start[rows][1:] >= reach[:-1]
        rows = rows[outer]
        if len(rows):
            return rows, [_execution_label(found[code]) for code in trace.name[rows].tolist()]
    return np.zeros(0, np.int64), []


def _execution_label(match: re.Match[str] | None) -> str:
    """Label of an execution."""
    assert match is not None
    groups = match.groupdict()
    if "context" not in groups:
        return {"forward_decode": "decode", "forward_extend": "prefill"}.get(groups["function"], "execution")
    parts = [f"{phase} {count}" for phase, count in (("prefill", groups["context"]), ("decode", groups["generation"]))
             if count.strip("0")]  # fmt: skip
    return ", ".join(parts) or "empty"


def step_numbers(labels: Sequence[str]) -> I64:
    """Step numbers from the texts behind ``ProfilerStep#``; 0, 1, 2, ... if these are not distinct numbers."""
    numbers = [int(label) for label in labels if label.isascii() and label.isdecimal() and len(label) < 18]
    if len(set(numbers)) < len(labels):
        numbers = list(range(len(labels)))
    return np.array(numbers, np.int64)


def step_at(starts: I64, ends: I64, times: I64) -> I64:
    """Index of the step, in order of start, that contains each time; missing if none does."""
    index = np.searchsorted(starts, times, side="right") - 1
    inside = index >= 0
    inside[inside] = times[inside] < ends[index[inside]]
    return np.where(inside, index, INT_MISSING)
