"""A memory snapshot as a profile: allocations as events of their GPU, pool and stream, memory over time as counters.

The trace of a GPU lists what its allocator did, in order. An allocation begins with ``alloc`` and ends with the next
``free_completed`` of its address; older ones are known by their end, or by the segments, which are the state at the
snapshot. Times have microseconds: of entries at the same one, each is 1 ns later, so that times have the trace's order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Column, Group, Groups, Lane, Role, Strings
from tpuprof_tui.model.profile import Counter, Device, Problem, Profile, RecordingMode, Scopes, Severity, time_of_day
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.table import Table, TableColumns
from tpuprof_tui.model.vocabulary import NAMES
from tpuprof_tui.sources.chrome.columns import Codes
from tpuprof_tui.sources.chrome.inflate import PackedText, text_of
from tpuprof_tui.sources.column_cache import read_or_kept
from tpuprof_tui.sources.source import ProgressCallback, progress_of_part

from ..vocabulary import BLOCKS, HISTORY, SEGMENTS, STACKS, STATES, TRACE, VOCABULARY
from .pickled import Columns, Items, Pickled, columns_of

I64 = npt.NDArray[np.int64]
#: Largest block of the small pool, and largest size that is believed, bytes.
_SMALL, _LARGEST = 1 << 20, 1 << 50
#: Most GPUs, and streams of one, that are believed.
_MOST_GPUS, _MOST_STREAMS = 1024, 256
#: Most frames of a stack as text, and letters of each.
_MOST_FRAMES, _MOST_LETTERS = 64, 200
#: In the paths of frames of libraries: not what the user wrote.
_LIBRARIES: Final = ("/torch/", "/site-packages/", "/dist-packages/", "<frozen ", "<string>")
#: Counters: entries that add and take, and states of blocks that are part of it at the snapshot.
_WAITING: Final = ("active_awaiting_free", "active_pending_free")
_COUNTERS: Final = {
    "Allocated": (("alloc",), ("free_requested",), ("active_allocated",)),
    "Active": (("alloc",), ("free_completed",), ("active_allocated", *_WAITING)),
    "Reserved": (("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"),
                 ("active_allocated", *_WAITING, "inactive")),
}  # fmt: skip
#: Kinds of entries of a trace.
_ACTIONS: Final = {"oom", "snapshot", *(each for kind in _COUNTERS.values() for part in kind[:2] for each in part)}


def read(path: Path, progress: ProgressCallback | None) -> Profile:
    """Reads a snapshot.

    Raises:
        UnreadableError: It holds neither segments nor a trace, or an opcode that would call something.
    """
    problems: list[Problem] = []

    def decode() -> Pickled:
        with path.open("rb") as file:
            size, text = os.fstat(file.fileno()).st_size, text_of(path, file)
            report = progress_of_part(progress, path.name, 0, size)

            def more(count: int) -> bytes:
                report(file.tell(), 0)
                return text.read(count)

            try:
                found = Pickled(more)
            except UnreadableError as error:
                raise UnreadableError(f"{path} is no memory snapshot: {error}. Nothing of it was executed.") from None
            if isinstance(text, PackedText) and text.fault is not None:
                problems.append(Problem(Severity.ERROR, *text.fault, file=path.name))
            return found

    # of a damaged one it is told again what is wrong with it
    pickled = read_or_kept([path], decode, lambda found: None if found.fault or problems else found)
    if pickled.fault:
        problems.append(Problem(Severity.ERROR, f"The pickle is not whole: {pickled.fault}.",
                                "What comes before is shown; memory over time is at least what its trace has.",
                                file=path.name, offset=pickled.offset))  # fmt: skip
    return _Snapshot(path, pickled, problems).profile()


class _Snapshot:
    """A profile being made of a pickle."""

    def __init__(self, path: Path, pickled: Pickled, problems: list[Problem]) -> None:
        root = {"segments": pickled.root} if type(pickled.root) is Items else pickled.root
        self._root: dict[Any, Any] = root if type(root) is dict else {}
        self._path, self._pickled, self._problems = path, pickled, problems
        segments, traces = (each if type(each := self._root.get(key)) is Items else Items()
                            for key in ("segments", "device_traces"))  # fmt: skip
        self._segments, self._blocks = (columns_of(kind, segments.parts[kind]) for kind in ("total_size", "state"))
        self._blocks["segment"] = np.repeat(np.arange(len(self._segments["blocks"])), self._segments["blocks"])
        for key in ("device", "stream", "segment_type", "segment_pool_id"):
            self._blocks[key] = self._segments[key][self._blocks["segment"]]
        self._traces = {number: columns_of("action", each.parts["action"])
                        for number, each in enumerate(traces[:_MOST_GPUS]) if type(each) is Items}  # fmt: skip
        known = {number for number, trace in self._traces.items() if len(trace["addr"])}
        self._gpus = sorted(known | {each for each in self._segments["device"].tolist() if 0 <= each < _MOST_GPUS})
        if not self._gpus:
            why = f": {pickled.fault} at offset {pickled.offset:,}" if pickled.fault else ""
            raise UnreadableError(f"{path} holds no segments and no trace of a memory snapshot{why}.")
        for number in self._gpus:
            self._traces.setdefault(number, columns_of("action", []))
        for columns, key in ((self._segments, "total_size"), (self._blocks, "size"),
                             *((self._traces[number], "size") for number in self._gpus)):  # fmt: skip
            wrong = (columns[key] < 0) | (columns[key] > _LARGEST)
            self._note("Sizes are missing or impossible.", "They count as 0.", int(wrong.sum()), Severity.ERROR)
            columns[key] = np.where(wrong, 0, columns[key])
        known_codes = [pickled.texts.get(word, -2) for word in _ACTIONS]
        unknown = sum(int(np.isin(self._traces[each]["action"], known_codes, invert=True).sum()) for each in self._gpus)
        self._note("Entries of the trace are of unknown kinds.", "They are left out.", unknown)
        self._zero, self._times = self._read_times()
        self._end = max((int(times[-1]) + 1 for times in self._times.values() if len(times)), default=1000)

    def profile(self) -> Profile:
        """The whole."""
        stacks, texts = self._pickled.stacks, Strings(self._pickled.texts)
        labels, frames, user = _user_frames(self._pickled)
        lanes = [lane for group in range(len(self._gpus)) for lane in self._lanes(group, user)]
        counters = [counter for group in range(len(self._gpus)) for counter in self._counters(group)]
        has_history = any(map(len, self._times.values()))
        only = "Only what is held at the snapshot is shown."
        self._note("No history of allocations is recorded.", only, not has_history)
        self._note("No stacks are recorded.", "Who allocated is not known.", not stacks)
        capabilities = (NAMES, *[HISTORY] * has_history, *[STACKS] * bool(stacks))
        settings = self._root.get("allocator_settings")
        told = settings if type(settings) is dict else {}
        return Profile(
            path=str(self._path), name=self._path.name, vocabulary=VOCABULARY, device=Device("GPU"),
            recording=RecordingMode("snapshot", meaning="memory"), capabilities=frozenset(capabilities), source_data={},
            groups=Groups(Group(f"GPU {number}", "gpu", number=number) for number in self._gpus), lanes=tuple(lanes),
            strings={"name": Strings(labels), "frame": Strings(frames), "state": Strings(STATES), "category": texts,
                     "type": Strings(("small", "large")), "metadata": texts, "stack": self._stack_texts},
            scopes=Scopes(), problems=tuple(self._problems), counters=tuple(counters), tables=self._tables(),
            facts={key: value for key, value in told.items() if type(value) in (str, int, float, bool)},
            wall_ns=time_of_day(self._zero),
        )  # fmt: skip

    def _note(self, what: str, done: str, count: int = 1, severity: Severity = Severity.NOTE) -> None:
        """Adds a problem, if there are any."""
        if count:
            self._problems.append(Problem(severity, what, done, file=self._path.name, count=int(count)))

    def _read_times(self) -> tuple[int, dict[int, I64]]:
        """Time of the first entry, and times of each trace's entries since then, ascending; ns."""
        given = {number: self._traces[number]["time_us"] for number in self._gpus}
        sound = {number: (times >= 10**15) & (times < 4 * 10**15) for number, times in given.items()}
        zero = min((int(given[number][each].min()) for number, each in sound.items() if each.any()), default=0)
        found = {}
        for number, times in given.items():
            steps = np.arange(len(times))
            if len(times) and not sound[number].any():
                self._note(f"The trace of GPU {number} has no times.", "Its entries are shown 1 us apart.", len(times))
                found[number] = steps * 1000
                continue
            wrong = int((~sound[number]).sum())
            self._note(f"Times of GPU {number} are missing or impossible.", "Those before them are shown.", wrong)
            since = np.where(sound[number], times - zero, 0) * 1000
            found[number] = np.maximum.accumulate(since - steps) + steps
        return zero * 1000, found

    def _is(self, codes: npt.NDArray[Any], *words: str) -> npt.NDArray[np.bool_]:
        """Mask of the codes of some texts."""
        return np.isin(codes, [self._pickled.texts.get(word, -2) for word in words])

    def _is_whole(self, number: int) -> bool:
        """Whether the state at the snapshot is that at the end of a trace, which may be cut."""
        return not (self._pickled.fault and len(self._times[number]))

    def _allocations(self, number: int) -> Columns:
        """Allocations of a GPU by start: of its trace, older ones that are freed in it, older ones that are held."""
        trace, times = self._traces[number], self._times[number]
        blocks = {key: values[self._blocks["device"] == number] for key, values in self._blocks.items()}
        rows = np.flatnonzero(self._is(trace["action"], "alloc", "free_completed"))
        rows = rows[np.argsort(trace["addr"][rows], kind="stable")]
        address, begins = trace["addr"][rows], self._is(trace["action"][rows], "alloc")
        same = address[1:] == address[:-1]
        following = np.where(np.append(same, False), np.append(rows[1:], -1), -1)[: len(rows)]
        opened, closed = rows[begins], following[begins]
        self._note(f"GPU {number} allocates addresses again that were not freed.", "The older allocation ends there.",
                   int(self._is(trace["action"][closed[closed >= 0]], "alloc").sum()))  # fmt: skip
        freed = rows[~begins & ~np.append(False, same & begins[:-1])[: len(rows)]]
        waiting, used = self._is(blocks["state"], *_WAITING), ~self._is(blocks["state"], "inactive")
        used &= self._is_whole(number)
        old = np.flatnonzero(used & ~np.isin(blocks["address"], trace["addr"][opened[closed < 0]]))
        self._note(f"Allocations of GPU {number} are older than the history.", "They begin with it; who made those "
                   "that are freed in it is not known.", len(freed) + len(old) if len(times) else 0)  # fmt: skip
        if used.any():
            elsewhere = ~np.isin(trace["addr"][opened[closed < 0]], blocks["address"][used])
            self._note(f"Allocations of GPU {number} are held in the trace, but in no segment.", "Shown as held.",
                       int(elsewhere.sum()))  # fmt: skip
        is_held = (closed < 0) * np.where(np.isin(trace["addr"][opened], blocks["address"][waiting]), 2, 1)
        none = np.full(len(freed) + len(old), -1)
        parts = {
            "start": (times[opened], none + 1),
            "end": (np.where(closed < 0, self._end, np.append(times, 0)[closed]), times[freed], 0 * old + self._end),
            "bytes": (trace["size"][opened], trace["size"][freed], blocks["size"][old]),
            "address": (trace["addr"][opened], trace["addr"][freed], blocks["address"][old]),
            "stream": (trace["stream"][opened], trace["stream"][freed], blocks["stream"][old]),
            "order": (opened, np.full(len(none), INT_MISSING)),
            "stack": (trace["frames"][opened], none[: len(freed)], blocks["frames"][old]),
            "state": (is_held, 0 * freed + 3, np.where(waiting[old], 5, 4)),
            "category": (trace["category"][opened], none),
            "metadata": (trace["user_metadata"][opened], none),
        }
        whole = {key: np.concatenate(values).astype(np.int64) for key, values in parts.items()}
        order = np.lexsort((whole["order"], whole["start"]))
        return {key: values[order] for key, values in whole.items()}

    def _lanes(self, group: int, user: npt.NDArray[np.int32]) -> Iterator[Lane]:
        """A lane for each pool and stream of a GPU."""
        number = self._gpus[group]
        every = self._allocations(number)
        streams = np.unique(every["stream"])
        if len(streams) > _MOST_STREAMS:
            known = np.isin(every["stream"], streams[:_MOST_STREAMS])
            self._note("There are too many streams.", "Others are left out as streams.", int((~known).sum()))
            every["stream"] = np.where(known, every["stream"], INT_MISSING)
        every["type"] = (every["bytes"] > _SMALL).astype(np.int64)
        for pool, stream in sorted({*zip(every["type"].tolist(), every["stream"].tolist(), strict=True)}):
            rows = np.flatnonzero((every["type"] == pool) & (every["stream"] == stream))
            sublane, _ = split_overlaps(every["start"][rows], every["end"][rows])
            columns = {key: values[rows].astype(np.int32 if VOCABULARY.is_text(key) else np.int64)
                       for key, values in every.items()}  # fmt: skip
            columns["name"] = columns["frame"] = user[columns["stack"]]
            yield Lane(
                kind="pool", group=group, number=-1 if stream == INT_MISSING else stream,
                label=f"{('small', 'large')[pool]} pool, stream {'-' if stream == INT_MISSING else stream}",
                columns={**columns, "core": np.full(len(rows), number), "role": np.full(len(rows), Role.WORK, np.int8),
                         "sublane": np.zeros(len(rows), np.int16) if sublane is None else sublane},
            )  # fmt: skip

    def _counters(self, group: int) -> Iterator[Counter]:
        """Memory of a GPU over time: that of its blocks at the snapshot, and backwards from it by the trace."""
        trace, times = self._traces[self._gpus[group]], self._times[self._gpus[group]]
        blocks = self._blocks["device"] == self._gpus[group]
        for name, (adding, taking, states) in _COUNTERS.items():
            signs = self._is(trace["action"], *adding) * 1 - self._is(trace["action"], *taking)
            rows = np.flatnonzero(signs)
            amounts = np.append(0, np.cumsum((signs * trace["size"])[rows]))
            last = int(self._blocks["size"][blocks & self._is(self._blocks["state"], *states)].sum())
            last *= self._is_whole(self._gpus[group])
            first = 1 if len(rows) and not times[rows[0]] else 0
            if last or len(rows):
                values = amounts + max(last - int(amounts[-1]), -int(amounts.min()))
                yield Counter(group, name, "B", np.append(0, times[rows])[first:], values[first:].astype(np.float64))

    @property
    def _stack_texts(self) -> Strings:
        """Each stack as text, the innermost frame first."""
        labels = [_label(*frame)[:_MOST_LETTERS] for frame in self._pickled.frames]
        return Strings(lambda: (
            " < ".join([labels[frame] for frame in stack[:_MOST_FRAMES]])
            + (f" < {len(stack) - _MOST_FRAMES} more" if len(stack) > _MOST_FRAMES else "")
            for stack in self._pickled.stacks
        ))  # fmt: skip

    def _tables(self) -> tuple[Table, ...]:
        """Segments and their blocks at the snapshot, the trace, and of it failed allocations."""
        texts, stacks = tuple(self._pickled.texts), self._stack_texts

        def columns(read: Callable[[], Columns], schema: Sequence[Column]) -> TableColumns:
            found = read()
            named = {each.key: stacks if each.key == "frames" else texts for each in schema if each.kind == "text"}
            return {each.key: found[each.key] for each in schema}, named

        tables = (("segments", lambda: self._segments, SEGMENTS), ("blocks", lambda: self._blocks, BLOCKS),
                  ("trace", self._entries, TRACE), ("out_of_memory", partial(self._entries, "oom"), TRACE))  # fmt: skip
        return tuple(Table(name, -1, self._path.name, partial(columns, read, schema), schema)
                     for name, read, schema in tables)  # fmt: skip

    def _entries(self, *actions: str) -> Columns:
        """Entries of all traces; with ``actions`` only these."""
        parts = []
        for number in self._gpus:
            times = self._times[number]
            trace = {**self._traces[number], "start": times, "device": np.full(len(times), number)}
            rows = np.flatnonzero(self._is(trace["action"], *actions)) if actions else slice(None)
            parts.append({key: values[rows] for key, values in trace.items()})
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _user_frames(pickled: Pickled) -> tuple[list[str], list[str], npt.NDArray[np.int32]]:
    """Of each stack its innermost frame outside of libraries, else the innermost of Python, else the innermost.

    Returns:
        Short and long texts of these frames; the code of each stack's, and -1 for no stack at the end.
    """
    frames, codes = tuple(pickled.frames), Codes()
    python = [file.endswith(".py") for file, _, _ in frames]
    own = [is_python and not any(each in frame[0] for each in _LIBRARIES)
           for is_python, frame in zip(python, frames, strict=True)]  # fmt: skip
    found = [codes[next((frame for known in (own, python) for frame in stack if known[frame]), stack[0])]
             for stack in pickled.stacks]  # fmt: skip
    chosen = [frames[code] for code in codes]
    long = [f"{file}({line}): {name}" for file, line, name in chosen]
    return [_label(*frame) for frame in chosen], long, np.array([*found, -1], np.int32)


def _label(file: str, line: int, name: str) -> str:
    return f"{file.rpartition('/')[2]}:{line} {name}"
