"""Steps that the host annotated, and the step that a time is in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.times import step_numbers

from ..categories import STEP, Kind

if TYPE_CHECKING:
    from .trace import Trace

I64 = npt.NDArray[np.int64]
#: Number of requests or tokens in a name.
_COUNT: Final = r"(\d{1,15})"
#: vLLM: execute_context_0(0)_generation_32(32), in detail execute_32_context_0(sq0sk0..)_generation_32(sq32sk4096..).
_VLLM: Final = lazy_pattern(rf"execute_(?:{_COUNT}_)?context_{_COUNT}\(([^)]*)\)_generation_{_COUNT}\(([^)]*)\)?")
#: SGLang: step[EXTEND bs=2 toks=512], step[MIXED bs=2 c=1 g=1 c_sq=5 g_sq=1], step[TARGET_VERIFY bs=4].
_SGLANG: Final = lazy_pattern(r"step\[\s*([a-z]\w*)(?=[^\]]*\bbs=)([^\]]*)", re.IGNORECASE)
#: ATOM: prefill[bs=2 tok=512 ctx=[256, 256]], decode[bs=117/128 tok=120 p=1 d=116].
_ATOM: Final = lazy_pattern(r"(prefill|decode)\[(?=[^\]]*\b(?:bs|tok)=)(.*)")
#: Earlier vLLM: execute_new_2_cached_30; whether the cached ones are in decode is not told.
_OLD_VLLM: Final = lazy_pattern(rf"execute_new_{_COUNT}_cached_{_COUNT}$")
_DIFFUSION: Final = lazy_pattern(rf"execute_diffusion_{_COUNT}_")
_FIELD: Final = lazy_pattern(rf"\b(\w+)={_COUNT}\b")
#: Stages by the words of SGLang that mean one; others contain a stage's name, or are one.
_STAGES: Final = {"extend": "prefill", "dllm_extend": "prefill", "prebuilt": "prefill"}
_FRAME: Final = lazy_pattern(
    r"model_runner\.py\(\d+\): (?:execute_model|forward_decode|forward_extend)$"
    r"|(?:sglang/.*|atom/model_engine/)model_runner\.py\(\d+\): forward$"
)
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME)


class Execution(Struct, frozen=True):
    """What the name of an event tells of an execution of a model."""

    label: str = "execution"  #: Text for people: "decode 32"
    stage: str = ""  #: prefill, decode, mixed, verify, draft, idle, or a word of the server; empty if it is not told
    #: requests, tokens: Number of requests and of tokens computed; None if it is not told.
    requests: int | None = None
    tokens: int | None = None


def marked_steps(trace: Trace) -> tuple[I64, list[str], I64, list[Execution]]:
    """The steps that the host annotated: rows by start, labels and numbers; else the executions of a model."""
    rows = np.flatnonzero(trace.named(lambda name: name.startswith(STEP)) & np.isin(trace.kind, _HOST))
    rows = rows[np.lexsort((trace.end[rows], trace.start[rows]))]
    # one that is recorded twice, as by several threads
    once, ends = np.ones(len(rows), np.bool_), dict[int, int]()
    for index, row in enumerate(rows.tolist()):
        reach = ends.get(name := int(trace.name[row]), INT_MISSING)
        once[index] = trace.start[row] >= reach
        ends[name] = max(reach, int(trace.end[row]))
    rows = rows[once]
    labels = [trace.names[name] for name in trace.name[rows].tolist()]
    if labels:
        return rows, labels, step_numbers([label[len(STEP) :] for label in labels]), []
    if trace.step_labels:
        rows = _outermost(trace, trace.named(trace.step_labels.__contains__) & np.isin(trace.kind, (*_HOST, Kind.MARK)))
        labels = [trace.step_labels[trace.names[name]] for name in trace.name[rows].tolist()]
        return rows, labels, step_numbers(labels), []
    rows, told = executions(trace)
    return rows, [each.label for each in told], np.arange(len(rows)), told


def marks_step(name: str) -> bool:
    """Whether events of a name may mark steps or executions of a model."""
    return name.startswith(STEP) or any(told(name) is not None for _, told in _EXECUTIONS)


def executions(trace: Trace) -> tuple[I64, list[Execution]]:
    """Executions of a model by an inference server: rows by start, and what is told of each.

    The annotations of vLLM, SGLang and ATOM state stage and requests; otherwise the Python frames of the functions that
    run models are used. Of nested events only the outermost count.
    """
    for kinds, told in _EXECUTIONS:
        found = [told(name) for name in trace.names]
        matching = np.array([each is not None for each in found], np.bool_)
        if not matching.any():
            continue
        rows = _outermost(trace, matching[trace.name] & np.isin(trace.kind, kinds))
        if len(rows):
            return rows, [each for code in trace.name[rows].tolist() if (each := found[code]) is not None]
    return np.zeros(0, np.int64), []


def _outermost(trace: Trace, which: npt.NDArray[np.bool_]) -> I64:
    """Rows of the events of a mask that begin in no earlier one of them, by start."""
    rows = np.flatnonzero(which)
    rows = rows[np.lexsort((-trace.end[rows], trace.start[rows]))]
    reach = np.maximum.accumulate(trace.end[rows])
    outer = np.ones(len(rows), np.bool_)
    outer[1:] = trace.start[rows][1:] >= reach[:-1]
    return rows[outer]


def _annotated(name: str) -> Execution | None:
    """The execution that an annotation of a server marks; None for other names."""
    if name.startswith("execute_"):
        if (match := _VLLM.match(name)) is not None:
            return _of_vllm(match)
        if (match := _OLD_VLLM.match(name)) is not None:
            return Execution(f"new {match[1]}, cached {match[2]}", requests=int(match[1]) + int(match[2]))
        return Execution("diffusion", "diffusion", int(match[1])) if (match := _DIFFUSION.match(name)) else None
    if name[:5].lower() == "step[":
        return _of_sglang(match) if (match := _SGLANG.match(name)) is not None else None
    return _of_atom(match) if name.startswith(("prefill[", "decode[")) and (match := _ATOM.match(name)) else None


def _of_vllm(match: re.Match[str]) -> Execution:
    total, context, of_context, generation, of_generation = match.groups()
    tokens = None if total is None else int(total)
    if tokens is None and (counts := [_leading(of_context), _leading(of_generation)]) != [None, None]:
        tokens = sum(each or 0 for each in counts)
    return _of_both(int(context), int(generation), tokens)


def _leading(text: str) -> int | None:
    """The number of tokens at the beginning of a text: ``512``, or ``sq512`` of more."""
    found = re.match(rf"(?:sq)?{_COUNT}", text)
    return None if found is None else int(found[1])


def _of_sglang(match: re.Match[str]) -> Execution:
    word, fields = match[1].lower(), _fields(match[2])
    requests = fields.get("bs")
    queries = [fields[key] for key in ("c_sq", "g_sq") if key in fields]
    tokens = fields.get("toks", sum(queries) if queries else None)
    if word == "mixed" and "c" in fields and "g" in fields:
        both = _of_both(fields["c"], fields["g"], tokens)
        return replace(both, stage=word, requests=both.requests if requests is None else requests)
    stage = _STAGES.get(word) or next((each for each in ("verify", "draft", "prefill") if each in word), word)
    return Execution(f"{stage} {requests}" if requests else stage, stage, requests, tokens)


def _of_atom(match: re.Match[str]) -> Execution:
    stage, fields = match[1], _fields(match[2])
    requests, tokens = fields.get("bs"), fields.get("tok")
    if fields.get("p") and fields.get("d"):
        return _of_both(fields["p"], fields["d"], tokens)
    return Execution(f"{stage} {requests}" if requests else stage, stage, requests, tokens)


def _fields(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in reversed(_FIELD.findall(text))}


def _of_both(context: int, generation: int, tokens: int | None) -> Execution:
    parts = [f"{stage} {count}" for stage, count in (("prefill", context), ("decode", generation)) if count]
    stage = "mixed" if len(parts) > 1 else "prefill" if context else "decode" if generation else "idle"
    return Execution(", ".join(parts) or "empty", stage, context + generation, tokens)


def _of_frame(name: str) -> Execution | None:
    """The execution that a Python frame marks; None for other names."""
    if _FRAME.search(name) is None:
        return None
    stage = {"decode": "decode", "extend": "prefill"}.get(name.rpartition("_")[2], "")
    return Execution(stage or "execution", stage)


#: Kinds of the events by which inference servers mark executions of a model, best first, and what their names tell.
_EXECUTIONS: Final[tuple[tuple[tuple[Kind, ...], Callable[[str], Execution | None]], ...]] = (
    (_HOST, _annotated),
    (_HOST, lambda name: Execution() if re.match(r"execute_model\b", name) else None),
    ((Kind.FRAME,), _of_frame),
)
