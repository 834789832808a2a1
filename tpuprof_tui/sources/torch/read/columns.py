"""Columns of the lanes of a trace: what is stored of its events, and what is computed for the rows asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity, Lane, Role, StringsBuilder
from tpuprof_tui.model.intervals import interval_at
from tpuprof_tui.model.lane import Rows, constant, rows_at
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.model.strings import Strings, StringsOnDemand
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.uniques import distinct, uniques
from tpuprof_tui.sources.chrome.columns import I32, I64, lookup
from tpuprof_tui.sources.chrome.nesting import Nesting
from tpuprof_tui.sources.chrome.times import aside_lane

from ..categories import CATEGORIES, COLLECTIVES, COPY, DEVICE_WORK, MODULE, Kind, category_of
from ..records import given_id
from .trace import Trace

#: Text columns that are read from the file again.
_READ_AGAIN: Final = ("shapes", "input_types", "stack")
#: Text columns for views alone: of device work, and those that captures of graphs tell of replayed kernels.
_DEVICES: Final = ("device_text", "stream_text")
CAPTURED: Final = ("captured_operator", "captured_shape", "captured_module")
#: Text columns that hold JSON in the file.
_JSON: Final = ("shapes", "input_types", *CAPTURED)
_FIGURES: Final = ("device_self", "device_total", "host_self", "host_total", "tensor_self", "tensor_total",
                   "used_self", "used_total", "unknown_total")  # fmt: skip
_REPLAY: Final = lazy_pattern("Graph")
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
#: Values of a column for rows of a trace.
OfRows = Callable[[I64], Values]


class TextTables:
    """Texts of the text columns of a profile."""

    def __init__(self) -> None:
        self.builders = {key: StringsBuilder() for key in ("name", "type", "grid", "block", "module", "stage")}
        self.read_again = {key: StringsOnDemand() for key in (*_READ_AGAIN, *CAPTURED, *_DEVICES)}
        self._categories = Strings(CATEGORIES)

    def build(self) -> dict[str, Strings]:
        """String tables by column."""
        tables = {key: builder.build() for key, builder in self.builders.items()}
        return {**tables, **self.read_again, "operator": tables["name"], "frame": tables["name"],
                "op_category": self._categories}  # fmt: skip


class LaneColumns:
    """Builds the lanes of one trace.

    Args:
        texts: Those of the profile's text columns.
        shift: Offset added to times, ns.
        steps: Starts, ends and numbers of its steps.
        stages: Stage of each step; empty: no stages.
        rank: Rank of its process; -1: unknown.
    """

    def __init__(
        self, trace: Trace, texts: TextTables, shift: int, steps: tuple[I64, I64, I64], stages: Sequence[str],
        rank: int, arrays: MappedArrays,
    ) -> None:  # fmt: skip
        self._trace, self._steps, self._arrays, self._texts, self._rank = trace, steps, arrays, texts, rank
        builders = texts.builders
        names = [builders["name"].code(text) for text in trace.names]
        self._name_codes = np.array(names, np.int32)
        # share the array if the codes are identical
        self._name = trace.name if names == list(range(len(names))) else self._name_codes[trace.name]
        self._types = np.array([builders["type"].code(text) for text in trace.categories], np.int32)
        modules = [builders["module"].code(text[len(MODULE) :]) if text.startswith(MODULE) else -1
                   for text in trace.names]  # fmt: skip
        self._modules = np.array(modules, np.int32)
        self._stages = np.array([builders["stage"].code(stage) if stage else -1 for stage in stages], np.int32)
        self._start, self._end = trace.start, trace.end
        if shift:
            self._start, self._end = arrays.stored(trace.start + shift), arrays.stored(trace.end + shift)
        #: Values of columns of work by code of a text, the last for code -1.
        self._of_text = {
            **{key: _by_code(trace.work[key], trace.texts, partial(_coded_json, builders[key]), np.int32(-1))
               for key in ("grid", "block")},
            **{key: _by_code(trace.work[key], trace.texts, _number, INT_MISSING)
               for key in ("registers", "shared_memory")},
        }  # fmt: skip
        for key in _READ_AGAIN:
            texts.read_again[key].read_all.append(partial(self._codes_at, key, None))
        #: Rows and nesting of the host events of a thread, by its index.
        self._nesting: dict[int, tuple[I64 | slice, Nesting]] = {}

    def lane(self, kind: str, thread: int, rows: I64 | slice, group: int, title: str) -> Lane:
        """The lane of some events of a thread; ``kind``: stream, annotation, wait or thread."""
        trace = self._trace
        pid, tid = trace.threads[thread]
        start, end = self._start[rows], self._end[rows]
        count = len(start)
        role = {"annotation": Role.ANNOTATION, "wait": Role.WAIT}.get(kind, Role.WORK)
        columns: dict[str, Any] = {
            "start": start, "end": end, "order": trace.file_order[rows], "name": self._name[rows],
            "role": constant(count, role, np.int8), "duration": lambda some: end[some] - start[some],
            "correlation": trace.correlation[rows], "external": trace.external[rows],
        }  # fmt: skip
        places = {"process": pid, "thread": tid} if kind == "thread" else {"stream": tid}
        numbers = {"rank": self._rank, **{key: _number(text) for key, text in places.items()}}
        columns |= {key: constant(count, number, np.int64) for key, number in numbers.items() if number >= 0}
        if kind == "thread":
            nesting = Nesting(start, end)
            self._nesting[thread] = rows, nesting
            columns |= {"sublane": lambda some: nesting.sublane[some], "depth": lambda some: nesting.depth[some],
                        "parent": lambda some: nesting.parent[some]}  # fmt: skip
        else:
            found, _ = split_overlaps(start, end)
            columns["sublane"] = constant(count, 0, np.int16) if found is None else found
        word = {"stream": "stream", "annotation": "annotations", "wait": "waits"}.get(kind, "")
        stream = given_id(tid.removeprefix("stream ")) or ""
        label = f"{word} {stream}" if word else title if tid in title else f"{title} {tid}"
        if trace.writer and kind == "stream" and not stream.isdecimal():
            # it has a name of its own: XLA Ops
            label = stream
        columns = {key: self._arrays.stored(each) if isinstance(each, np.ndarray) else each
                   for key, each in columns.items()}  # fmt: skip
        columns |= {key: _computed(rows, values) for key, values in self._computed_columns(kind).items()}
        file_order = columns["order"]
        return Lane(kind=kind, group=group, label=label.strip(), number=_number(tid), columns=columns,
                    arguments=lambda row: trace.arguments.of(int(file_order[row])),
                    activity=Activity.HOST if kind == "thread" else Activity.COMPUTE)  # fmt: skip

    def _computed_columns(self, kind: str) -> dict[str, OfRows]:
        trace = self._trace
        found: dict[str, OfRows] = {"type": lambda rows: self._types[trace.category[rows]],
                                    "kind": lambda rows: trace.kind[rows]}  # fmt: skip
        # without marked steps, repetition decides
        if len(self._steps[0]):
            times = (lambda rows: trace.start[rows]) if kind == "thread" else self._device_times
            found["step"] = lambda rows: self._of_step(self._steps[2], times(rows), INT_MISSING)
            if len(self._stages):
                found["stage"] = lambda rows: self._of_step(self._stages, times(rows), -1)
        if kind in ("stream", "thread"):
            found |= self._launch_columns()
        if kind == "thread":
            found |= self._host_columns()
        return found | self._work_columns() if kind == "stream" else found

    def aside_lane(self, title: str, rows: slice, group: int) -> Lane:
        """The lane of set aside events in some rows of `Trace.aside`."""
        aside = self._trace.aside
        assert aside is not None
        columns: dict[str, Any] = {
            "order": aside.file_order[rows].astype(np.int64), "name": self._name_codes[aside.name[rows]],
            "type": self._types[aside.category[rows]], "correlation": aside.correlation[rows],
            "external": aside.external[rows],
        }  # fmt: skip
        return aside_lane(title, group, columns, aside.start[rows], aside.end[rows],
                          lambda row: aside.arguments.of(int(aside.file_order[rows.start + row])))  # fmt: skip

    # -- steps

    def _device_times(self, rows: I64) -> I64:
        """When device events belong to a step: work when it was launched, annotations and waits when they start."""
        times = self._trace.start[rows].copy()
        work = np.isin(self._trace.kind[rows], DEVICE_WORK)
        times[work] = self._trace.launchers.step_times[self._place(rows[work])]
        return np.asarray(times)

    def _of_step(self, values: Values, times: I64, missing: int) -> Values:
        step = interval_at(*self._steps[:2], times)
        return np.where(step == INT_MISSING, values.dtype.type(missing), values[np.maximum(step, 0)])

    # -- device work

    def _place(self, rows: I64) -> I64:
        """Index of device work among ``work_rows``."""
        return np.searchsorted(self._trace.work_rows, rows)

    def _work_columns(self) -> dict[str, OfRows]:
        trace, place = self._trace, self._place

        def of_work(key: str, rows: I64) -> Values:
            return np.asarray(trace.work[key][place(rows)])

        def by_text(key: str, rows: I64) -> Values:
            return self._of_text[key][of_work(key, rows)]

        def of_text(key: str, rows: I64) -> Values:
            return self._coded_texts(key, of_work(key.removesuffix("_text"), rows), trace.texts)

        return {
            "activity": self._activities, "op_category": self._categories, "blocks_per_sm": partial(of_work, "blocks"),
            "bytes": partial(of_work, "bytes"), "occupancy": partial(of_work, "occupancy"),
            **{key: partial(by_text, key) for key in self._of_text},
            **{key: partial(of_text, key) for key in _DEVICES},
            "call": self._call, "launched_together": self._launched_together,
            "call_start": lambda rows: self._of_call(self._start, rows),
            "call_end": lambda rows: self._of_call(self._end, rows), "delay": self._delay,
            "eligible": self._of_eligible, "by_operator": self._by_operator, "of_graph": self._of_graph,
            "replayed": partial(self._captured, "replayed"), "captured": partial(self._captured, "matched"),
            **{key: partial(self._captured, key) for key in CAPTURED},
            **{key: partial(of_work, key) for key in ("graph_node",) if key in trace.work},
        }  # fmt: skip

    def _activities(self, rows: I64) -> npt.NDArray[np.int8]:
        """Activities of device work; who launched it decides whether a kernel communicates."""
        trace = self._trace
        found = np.where(trace.kind[rows] == Kind.KERNEL, Activity.COMPUTE, Activity.TRANSFER).astype(np.int8)
        found[trace.launchers.communicates[self._place(rows)]] = Activity.COMMUNICATION
        return found

    def _categories(self, rows: I64) -> I32:
        """Codes of the categories of device work."""
        names, activities = self._trace.names, self._activities(rows)
        operator = _coded(np.arange(len(names), dtype=np.int32), self._trace.name, self._launcher(rows))
        pairs, inverse = distinct((operator + 1) * np.int64(len(names)) + self._trace.name[rows])
        operators, kernels = np.divmod(pairs, max(len(names), 1))
        texts = ["", *names]
        found = [category_of(texts[one], names[own]) for one, own in zip(operators, kernels, strict=True)]
        codes = np.array([CATEGORIES.index(each) for each in found], np.int32)[inverse]
        codes[activities == Activity.TRANSFER] = CATEGORIES.index(COPY)
        codes[activities == Activity.COMMUNICATION] = CATEGORIES.index(COLLECTIVES)
        return codes

    def _call(self, rows: I64) -> I64:
        """Row of the call that launched device work; -1 if it is not in the file."""
        return np.asarray(self._trace.call[self._place(rows)])

    def _of_call(self, times: I64, rows: I64) -> I64:
        """A time of the call that launched device work; missing without a call."""
        call = self._call(rows)
        return np.where(call >= 0, times[call] if len(times) else 0, INT_MISSING)

    def _delay(self, rows: I64) -> I64:
        end = self._of_call(self._end, rows)
        return np.where(end == INT_MISSING, end, np.maximum(self._start[rows] - end, 0))

    def _launched_together(self, rows: I64) -> I64:
        """Number of events of the device that the call of each launched, as of a graph; 0 without a call."""
        call, every = self._call(rows), self._trace.call
        together = np.bincount(every[every >= 0], minlength=1)
        return np.where(call >= 0, together[call], 0)

    def _of_eligible(self, rows: I64) -> Mask:
        """Whether device work was launched by an operator that can use tensor cores, or that called one that can."""
        tree = self._trace.tree
        node = tree.work_node[self._place(rows)]
        return np.asarray((node >= 0) & (tree.eligible & tree.operator)[node]) if len(tree.rows) else node >= 0

    def _by_operator(self, rows: I64) -> Mask:
        """Whether an operator launched device work, by a call in the file."""
        operators = np.append(self._trace.launchers.operators, False)
        return np.asarray((self._call(rows) >= 0) & operators[self._launcher(rows)])

    def _of_graph(self, rows: I64) -> Mask:
        """Whether a call that replays a graph launched device work, with no operator of its own in the file."""
        graphs = np.append(self._trace.named(_REPLAY.search), False)
        return np.asarray(graphs[self._call(rows)] & ~self._by_operator(rows))

    def _captured(self, key: str, rows: I64) -> Values:
        """What captures of graphs tell of device work: whether it is replayed, whether its call is known, and texts."""
        told = self._trace.replayed(None if self._rank < 0 else self._rank)
        if told is None:
            return np.full(len(rows), np.int32(-1) if key in CAPTURED else False)
        values: Values = getattr(told, key.removeprefix("captured_"))[self._place(rows)]
        return self._coded_texts(key, values, told.texts) if key in CAPTURED else values

    # -- who launched it, and where

    def _launch_columns(self) -> dict[str, OfRows]:
        names = self._name_codes
        return {
            "operator": lambda rows: _coded(names, self._trace.name, self._launcher(rows)),
            "module": lambda rows: _coded(self._modules, self._trace.name, self._above(rows, self._is_module)),
            "frame": lambda rows: _coded(names, self._trace.name, self._above(rows, self._is_frame)),
            **{key: partial(self._read_again, key) for key in _READ_AGAIN},
        }

    def _launcher(self, rows: I64) -> I64:
        """Row of the operator or annotation that launched device work or made a call; operators' own; else -1."""
        trace, kinds = self._trace, self._trace.kind[rows]
        found: I64 = np.where(trace.launchers.operators[rows], rows, np.int64(-1))
        work, calls = np.isin(kinds, DEVICE_WORK), kinds == Kind.CALL
        found[work] = trace.launchers.of_work[self._place(rows[work])]
        found[calls] = trace.launchers.of_call[rows[calls]]
        return found

    def _origin(self, rows: I64) -> I64:
        """Row of the host event that events come from: of device work its launcher, else its call; else their own."""
        trace, found = self._trace, rows.copy()
        work = np.flatnonzero(np.isin(trace.kind[rows], DEVICE_WORK))
        index = self._place(rows[work])
        found[work] = np.where((launcher := trace.launchers.of_work[index]) >= 0, launcher, trace.call[index])
        return np.asarray(found)

    def _is_module(self, rows: I64) -> Mask:
        return np.asarray((self._modules[self._trace.name[rows]] >= 0) & (self._trace.kind[rows] == Kind.FRAME))

    def _is_frame(self, rows: I64) -> Mask:
        frames = np.isin(self._trace.kind[rows], (Kind.FRAME, Kind.OLD_FRAME))
        return np.asarray(frames & (self._modules[self._trace.name[rows]] < 0))

    def _above(self, rows: I64, wanted: Callable[[I64], Mask]) -> I64:
        """Row of the innermost event of a kind that encloses what events come from, or is it; -1 if none."""
        trace = self._trace
        origins, inverse = distinct(self._origin(rows))
        found = np.full(len(origins), -1, np.int64)
        threads = trace.thread_of(origins)
        for thread in uniques(threads[origins >= 0]).tolist():
            own, nesting = self._nesting.get(thread, (slice(0, 0), None))
            if nesting is None:
                continue
            places = np.flatnonzero((threads == thread) & (origins >= 0))
            numbers = np.arange(own.start, own.stop) if isinstance(own, slice) else own
            row = lookup(numbers, origins[places])
            while len(places):
                inside = row >= 0
                places, row = places[inside], row[inside]
                hit = wanted(numbers[row])
                found[places[hit]] = numbers[row[hit]]
                places, row = places[~hit], nesting.parent[row[~hit]].astype(np.int64)
        return np.asarray(found[inverse])

    def _read_again(self, key: str, rows: I64) -> I32:
        """Codes of texts that the file states of the operators that events come from."""
        trace = self._trace
        stated = np.isin(trace.kind[rows], (Kind.OPERATOR, Kind.ANNOTATION))
        origin = np.where(stated, rows, self._launcher(rows))
        operators, inverse = distinct(origin[origin >= 0])
        found = np.full(len(rows), -1, np.int32)
        if len(operators):
            found[origin >= 0] = self._codes_at(key, operators)[inverse]
        return found

    def _codes_at(self, key: str, operators: I64 | None) -> I32:
        """Codes of what the file states of operators in some rows; None: of all."""
        trace = self._trace
        arguments, texts = trace.details("operators", operators)
        return self._coded_texts(key, arguments[key], texts)

    def _coded_texts(self, key: str, codes: I32, texts: Sequence[str]) -> I32:
        strings = self._texts.read_again[key]
        return _by_code(codes, texts, partial(_coded_json, strings) if key in _JSON else strings.code, np.int32(-1))[
            codes
        ]

    # -- host events

    def _host_columns(self) -> dict[str, OfRows]:
        """Columns of operators (times with what they call), of Python frames and of nn.Modules; missing for others.

        ``module_operators``: number of operators that a module calls itself; ``module_device_total``: device time of
        what it calls, ``module_device_self``: of these operators; ``module_host_self``: time that no operator, module
        or annotation in it covers; times are ns. ``unrecorded``: whether a call started work that was not recorded.
        """
        trace = self._trace

        def of_modules(values: Callable[[I64], I64], rows: I64) -> I64:
            found, modules = np.full(len(rows), INT_MISSING, np.int64), self._is_module(rows)
            found[modules] = values(rows[modules])
            return found

        def of_frames(key: str, rows: I64) -> I64:
            index = lookup(trace.frame_rows, rows)
            return np.where(index >= 0, np.append(trace.details("frames")[0][key], INT_MISSING)[index], INT_MISSING)

        def of_nodes(values: Callable[[], I64], rows: I64) -> I64:
            return values()[lookup(trace.tree.rows, rows)] if len(rows) else rows

        figures: dict[str, Callable[[], I64]] = {
            "module_operators": lambda: trace.tree.inner_operators[0],
            "module_device_self": lambda: trace.tree.inner_operators[1],
            "module_device_total": lambda: trace.tree.device[1] - trace.tree.device[0],
            "module_host_self": lambda: trace.tree.host_self_without_children,
        }
        return {
            **{key: partial(self._tree_figure, key) for key in (*_FIGURES, "eligible")},
            "module_id": partial(of_modules, lambda rows: trace.details("frames", rows)[0]["module"]),
            "python_id": partial(of_frames, "id"), "python_parent": partial(of_frames, "parent"),
            **{key: partial(of_modules, partial(of_nodes, values)) for key, values in figures.items()},
            "unrecorded": lambda rows: np.isin(rows, trace.launchers.launches[0][trace.launchers.launches[1]]),
        }  # fmt: skip

    def _tree_figure(self, key: str, rows: I64) -> I64:
        """Times of operators with what they call, ns; missing for events that are no operators of their own."""
        tree = self._trace.tree
        index = lookup(tree.rows, rows)
        kind, _, which = key.partition("_")
        figures = getattr(tree, kind)[which == "total"] if which else tree.eligible
        operators = (index >= 0) & (tree.operator & tree.unmerged)[index] if len(tree.rows) else index >= 0
        return np.where(operators, figures[index] if len(figures) else 0, INT_MISSING)


def compact(text: str) -> str:
    """JSON without blanks; a JSON string without its quotes; other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _computed(rows: I64 | slice, values: OfRows) -> Callable[[Rows], Values]:
    return lambda some: values(rows_at(rows, some))


def _number(text: str) -> int:
    """The number of a thread, stream or process; -1 if it is none."""
    return int(text[:9]) if text.isascii() and text.isdecimal() else -1


def _coded(codes: I32, name: I32, rows: I64) -> I32:
    """Codes of the names of events in some rows; -1 for row -1."""
    if not len(name):
        return np.full(len(rows), -1, np.int32)
    return np.where(rows >= 0, codes[name[rows]], np.int32(-1))


def _coded_json(strings: StringsBuilder | StringsOnDemand, text: str) -> int:
    return strings.code(compact(text))


def _by_code(codes: I32, texts: Sequence[str], value_of: Callable[[str], int], missing: int | np.int32) -> Values:
    """Values by code of the texts in use; missing for others, for those below 0, and for code -1, the last."""
    found = np.full(len(texts) + 1, missing)
    for code in np.flatnonzero(np.bincount(codes[codes >= 0])).tolist():
        value = value_of(texts[code])
        found[code] = value if value >= 0 else missing
    return found
