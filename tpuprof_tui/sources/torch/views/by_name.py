"""Views by name: operators, kernels, both by short name, fusion (repeated sequences), and names that colour a timeline.

Short names are the basis of comparing two runs, as in HTA's trace diff: kernel names differ between cards and versions,
so return type, template arguments and parameters are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.events import column_of
from tpuprof_tui.analysis.pivot import (
    Figure,
    Frame,
    GroupBy,
    any_true,
    cumulative_share,
    key,
    least,
    mean,
    most,
    per,
    pivot,
    quotient,
    rows,
    share,
    total,
    total_known,
    weighted_mean,
)
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.uniques import distinct_together, uniques
from tpuprof_tui.sources.chrome.columns import I32
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target, plain_value

from ..categories import CATEGORIES, ELIGIBLE, FUSIBLE, Kind, tensor_core_use, uses_tensor_cores
from .worker_events import WorkerEvents, of_streams, per_worker, ratio

#: Characters of joined texts.
_MOST_TEXT: Final = 1000
_NAME: Final = (Column("name", "Name", filter_column="name"), key("name"))
_TIMES: Final = (
    (Column("calls", "Calls", "count"), rows), (Column("total_us", "Total", "duration", bar=True), total("duration")),
    (Column("mean_us", "Mean", "duration"), mean("duration")),
    (Column("max_us", "Max", "duration", drop_first=1), most("duration")),
    (Column("min_us", "Min", "duration", drop_first=2), least("duration")),
)  # fmt: skip
_MEASURED: Final = (
    (Column("blocks_per_sm", "Blocks/SM", "number", drop_first=3), weighted_mean("blocks_per_sm", "duration")),
    (Column("occupancy", "Occupancy", "share", drop_first=4), weighted_mean("occupancy", "duration", 100)),
)  # fmt: skip
#: What captures of graphs tell of replayed kernels.
_CAPTURED: Final = (("captured_operator", "Captured operator"), ("captured_shape", "Its shapes"),
                    ("captured_module", "Its module"))  # fmt: skip
_LAUNCH: Final = ("operator", "grid", "block", "registers", "shared_memory")
_WORK: Final = ("name", "op_category", "activity", *_LAUNCH, "blocks_per_sm", "occupancy", "bytes")
_SIDES: Final = ("device_self", "device_total", "host_self", "host_total")
_SIDE_TIMES: Final = tuple(
    (Column(f"{side}_us", side.replace("_", " ").capitalize(), "duration", bar=side.endswith("self")), total(side))
    for side in _SIDES
)
#: Shares by more names than TensorBoard's list: their word, title, priority, and column of times.
_OWN_SHARES: Final = (
    ("time_self", "Tensor cores self", 2, "used_self"), ("time_total", "Tensor cores total", 1, "used_total"),
    ("unknown", "Tensor cores not known", 11, "unknown_total"),
)  # fmt: skip
_UNLINKED: Final = "What launched the work of the device is not recorded: device times of operators are not known."
#: Kinds of host events, without those of the profiler itself.
_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
_OPEN: Final = {">": "<", ")": "("}
_COLUMNS: Final = (
    Column("side", "Side"), Column("name", "Name"), Column("calls", "Calls", "count"),
    Column("total_us", "Total", "duration", bar=True),
    Column("calls_per_step", "Calls per step", "count", drop_first=2),
    Column("total_per_step_us", "Per step", "duration", drop_first=1),
)  # fmt: skip


@of_streams
def kernels(events: WorkerEvents) -> Answer:
    """The kernels view of one worker."""
    captured = events.recorded.captures()
    told = () if captured is None else ("captured", *(column for column, _ in _CAPTURED))
    work = events.frame("stream", *_WORK, *told, "in_steps")
    transfers = work["activity"] == Activity.TRANSFER
    frame, copies = work.take(~transfers), work.take(transfers)
    known = events.recorded.tensor_cores_known
    use = (
        (Column("tensor_core_use", "Tensor cores", drop_first=5, shown=known, is_key=False),
         _of_texts("name", _use if known else lambda _: "unknown")),
        (Column("tensor_cores", "TensorBoard's list", "flag", drop_first=6, shown=known),
         _of_texts("name", uses_tensor_cores)),
    )  # fmt: skip
    by_name = Table.of_pivot("by_name", "By name", frame, ["name"], [
        _NAME, *use, *_TIMES,
        (Column("calls_per_step", "Calls per step", "count", drop_first=7), per(total("in_steps"), events.step_count)),
        (Column("total_per_step_us", "Per step", "duration", drop_first=6),
         per(total("duration", "in_steps"), events.step_count)),
        *_MEASURED,
    ], ("-total_us", "name"))  # fmt: skip
    launch = [(Column("operator", events.query.vocabulary.schema["operator"].title), key("operator")),
              *((Column(name, name.replace("_", " ").capitalize(), drop_first=drop_first), _as_text(name))
                for drop_first, name in enumerate(_LAUNCH[1:], 6))]  # fmt: skip
    by_launch = Table.of_pivot("by_launch", "By launch", frame, ["name", *_LAUNCH], [
        _NAME, *launch, *use,
        (Column("operator_eligible", "Operator can", "flag", drop_first=10),
         _of_texts("operator", ELIGIBLE.__contains__)),
        *((Column(name, title, drop_first=11), _joined(name)) for name, title in _CAPTURED if told),
        *_TIMES, *_MEASURED,
    ], ("-total_us", "name", *_LAUNCH))  # fmt: skip
    sets = Table.of_pivot("copies", "Copies and sets", copies, ["name"], [
        _NAME, *_TIMES, (Column("bytes", "Bytes", "bytes"), total_known("bytes")),
    ], ("-total_us", "name"))  # fmt: skip
    categories = Table.of_pivot("categories", "By op category, with copies", work, ["op_category"], [
        (Column("category", "Op category", filter_column="op_category"), key("op_category")),
        *_TIMES[:2],
        (Column("share", "Share", "share"), share("duration")),
        (Column("cumulative_share", "Cumulative", "share", drop_first=1), cumulative_share("duration")),
        (Column("mean_us", "Mean", "duration", drop_first=2), mean("duration")),
    ], ("-total_us",))  # fmt: skip
    facts = (Fact("kernels", "Kernels", len(frame)),
             Fact("total_us", "Their time", int(frame["duration"].sum()), "duration"))  # fmt: skip
    tables = (by_name, categories, by_launch, *([_captured(frame)] if told else ()), sets)
    return Answer(facts, tables, notes=(*events.replay_notes, *events.overlap_notes),
                  missing=tuple(map(Missing, captured.lacking if captured is not None else ())))  # fmt: skip


def _captured(frame: Frame) -> Table:
    keys = [name for name, _ in _CAPTURED]
    matched, title = frame.take(frame["captured"] > 0), "Replayed kernels by what their capture tells"
    return Table.of_pivot("captured", title, matched, keys, [
        *((Column(name, title, drop_first=drop_first), key(name, None)) for (name, title), drop_first in
          zip(_CAPTURED, (0, 3, 4), strict=True)), *_TIMES,
    ], ("-total_us", *keys))  # fmt: skip


def _joined(name: str) -> Figure:
    """The distinct texts of a column, sorted; None where there is none."""

    def values(groups: GroupBy) -> list[str | None]:
        texts: list[set[str]] = [set() for _ in range(groups.count)]
        codes, table = groups.frame[name], groups.frame.texts[name]
        for group, code in set(zip(groups.index[codes >= 0].tolist(), codes[codes >= 0].tolist(), strict=True)):
            texts[group].add(table[code])
        return ["; ".join(sorted(of_group))[:_MOST_TEXT] or None for of_group in texts]

    return values


def _of_texts(name: str, tell: Callable[[str], Any]) -> Figure:
    return lambda groups: list(map(tell, key(name)(groups)))


def _as_text(name: str) -> Figure:
    """Values of a key column as text; what TensorBoard's table has for missing ones."""
    missing = "None" if name in ("grid", "block") else "0"
    return lambda groups: [missing if (known := plain_value(value)) is None else str(known)
                           for value in key(name, None)(groups)]  # fmt: skip


def _use(name: str) -> str:
    use = tensor_core_use(name)
    return "unknown" if use is None else "yes" if use else "no"


@per_worker()
def operators(events: WorkerEvents) -> Answer:
    """The operators view of one worker."""
    steps = events.step_count
    frame = events.frame("thread", "name", "shapes", "stack", *_SIDES, "tensor_self", "tensor_total", "used_self",
                            "used_total", "unknown_total", "eligible", "in_steps")  # fmt: skip
    frame = frame.take(frame["host_total"] != INT_MISSING).with_texts("shapes", missing="[]")
    known, main = events.recorded.tensor_cores_known, "device_self_us" if frame["device_self"].any() else "host_self_us"
    unlinked = _is_unlinked(events)
    times = tuple((replace(column, zero_unknown=unlinked and column.key.startswith("device")), figure)
                  for column, figure in _SIDE_TIMES)  # fmt: skip
    figures = (
        (Column("calls", "Calls", "count"), rows), *times,
        (Column("tensor_core_eligible", "Can use tensor cores", "flag", drop_first=3, shown=known),
         any_true("eligible")),
        *((Column(f"tensor_core_{part}_share", f"TensorBoard's list {part}", "share", drop_first=drop_first,
                  shown=known),
           quotient(total(f"tensor_{part}"), total(f"device_{part}")))
          for part, drop_first in (("self", 10), ("total", 9))),
        *((Column(f"tensor_core_{word}_share", title, "share", drop_first=drop_first, shown=known),
           _share(total(part), total(f"device_{part.partition('_')[2]}")) if known else _nothing)
          for word, title, drop_first, part in _OWN_SHARES),
    )  # fmt: skip
    per_step = (
        (Column("calls_per_step", "Calls per step", "count", drop_first=8), per(total("in_steps"), steps)),
        *((Column(f"{side}_per_step_us", f"{side.replace('_', ' ').capitalize()} per step", "duration",
                  drop_first=drop_first),
           _nothing if unlinked and side.startswith("device") else per(total(side, "in_steps"), steps))
          for side, drop_first in zip(_SIDES, (4, 6, 5, 7), strict=True)),
    )  # fmt: skip
    shapes, stack = (Column("shape", "Shapes"), key("shapes")), (Column("stack", "Call stack"), key("stack"))
    order = (f"-{main}", "name")
    told = (_UNLINKED,) if unlinked else ()
    return Answer(notes=(*told, *events.step_notes, *events.replay_notes, *events.overlap_notes), tables=(
        Table.of_pivot("by_name", "By name", frame, ["name"], [_NAME, *figures, *per_step], order),
        Table.of_pivot("by_shape", "By name and shapes", frame, ["name", "shapes"], [_NAME, shapes, *figures],
                       (*order, "shape")),
        Table.of_pivot("stacks", "By call stack", frame.take(frame["stack"] >= 0), ["name", "stack"],
                       [_NAME, stack, *figures], (*order, "stack")),
    ))  # fmt: skip


def _share(part: Figure, whole: Figure) -> Figure:
    return lambda groups: [ratio(*each) for each in zip(part(groups), whole(groups), strict=True)]


def _nothing(groups: GroupBy) -> list[None]:
    return [None] * groups.count


def _is_unlinked(events: WorkerEvents) -> bool:
    """Whether there is device work, and nothing tells what launched any of it."""
    work = events.whole.frame("stream", "call_start", "operator")
    return bool(len(work)) and not bool((work["call_start"] != INT_MISSING).any() or (work["operator"] >= 0).any())


@per_worker()
def names(events: WorkerEvents) -> Answer:
    """The names view of one worker."""
    host = events.frame("thread", "name", "kind", "in_steps")
    work = events.frame("stream", "name", "kind", "in_steps", "call_start")
    if events.query.step is not None and events.steps.annotated:
        # as HTA counts: work without a call is in no step
        work = work.take(work["call_start"] != INT_MISSING)
    host = host.take(np.isin(host["kind"], _HOST)).with_texts("name", lambda name: short_name(name, "<"))
    texts, kernels = work.texts["name"], uniques(work["name"][work["kind"] == Kind.KERNEL]).tolist()
    of_kernels = {texts[code] for code in kernels}
    work = work.with_texts("name", lambda name: short_name(name, "<", "(") if name in of_kernels else name)
    rows_by_side = [
        (side, *row) for side, frame in (("host", host), ("device", work)) for row in pivot(frame, ["name"], {
            "name": key("name"), "calls": rows, "total": total("duration"),
            "calls_per_step": per(total("in_steps"), events.step_count),
            "total_per_step": per(total("duration", "in_steps"), events.step_count),
        }, ())]  # fmt: skip
    rows_by_side.sort(key=lambda row: (-row[3], row[0], row[1]))
    return Answer(tables=(Table.of_rows("names", "Names", _COLUMNS, rows_by_side),))


def short_name(name: str, *signs: str) -> str:
    """A name with any of ``signs`` without <...> and (...), and without what stands before its last blank, its type."""
    if not any(sign in name for sign in signs):
        return name
    kept: list[str] = []
    depth = 0
    for sign in name:
        if sign in "<(":
            depth += 1
        elif sign in _OPEN:
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(sign)
    return "".join(kept).strip().rpartition(" ")[2]


def by_operator(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by operator: of device work its launching operator; of thread events the operator they belong to."""
    return _by_column(session, "operator")


def by_module(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by the innermost nn.Module around an event, or around what launched it."""
    return _by_column(session, "module")


def _by_column(session: Session, key: str) -> tuple[list[str], list[I32]]:
    """Names by falling device time, then thread time; and for each lane the name's index for each row, -1: none."""
    profile = session.profile
    texts = profile.strings[key]
    times = np.zeros((2, len(texts)))
    columns = []
    for lane in profile.lanes:
        codes = lane[key] if key in lane else np.full(len(lane), -1, np.int32)
        known = codes >= 0
        length = (lane["end"] - lane["start"])[known]
        times[int(lane.on_host)] += np.bincount(codes[known], length, len(texts))
        columns.append(profile.arrays.stored(codes))
        profile.arrays.release_pages()
    used = np.flatnonzero(times.any(axis=0))
    order = used[np.lexsort(-times[::-1, used])]
    rank = np.full(len(texts) + 1, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return [texts[code] for code in order.tolist()], [profile.arrays.stored(rank[codes]) for codes in columns]


# -- sequences of light kernels that repeat, and what making one kernel of each could win

#: Kernels of a sequence, at most: longer ones are cut.
_LONGEST: Final = 32
#: Least number of times that a sequence runs.
_LEAST: Final = 2
_SEQUENCES: Final = (
    Column("sequence", "Sequence"), Column("module", "Module", drop_first=3), Column("source", "Source line"),
    Column("kernels", "Kernels", "count", drop_first=2), Column("times", "Times", "count"),
    Column("total_us", "Total", "duration", drop_first=1), Column("mean_us", "Mean", "duration", drop_first=5),
    Column("gaps_us", "Gaps", "duration", drop_first=4), Column("gain_us", "To win", "duration"),
)  # fmt: skip
_NOTE: Final = "To win, at most: all but the longest kernel of each sequence, and the gaps between its kernels."


@of_streams
def fusion(events: WorkerEvents) -> Answer:
    """The fusion view of one worker."""
    sequences = repeated_sequences(events)
    found: list[tuple[Any, ...]] = pivot(sequences, ("sequence", "module"), {
        "sequence": key("sequence"), "module": key("module", None), "source": key("source", None),
        "kernels": lambda groups: groups.values("kernels"), "times": rows, "total": total("duration"),
        "mean": mean("duration"), "gaps": total("gaps"), "gain": total("gain"),
        "lane": lambda groups: groups.values("lane"), "row": lambda groups: groups.values("row"),
    }, ("-gain", "sequence"))  # fmt: skip
    return Answer(tables=(
        Table.of_rows("sequences", "Sequences that repeat", _SEQUENCES, [row[:9] for row in found],
                       target=lambda row: Target(event=found[row][9:]), word="sequence",
                       notes=(_NOTE,) if found else ()),),
        notes=events.replay_notes,
    )  # fmt: skip


def repeated_sequences(events: WorkerEvents) -> Frame:
    """Sequences of light kernels that run more than once, a row for each time.

    ``sequence``: the names of its operators, else kernels; ``lane`` and ``row``: its first kernel, ``module``: class of
    the module of that, ``source``: the first Python frame with a line around them, ``kernels``: their number; times
    are ns: ``duration`` of all, ``gaps`` between them, ``gain``: all but the longest, and the gaps.
    """
    frame = events.kernels("name", "op_category", "lane", "row")
    frame = frame.take(np.isin(frame["op_category"], [CATEGORIES.index(each) for each in FUSIBLE]))
    session = events.query.session
    more = {key: column_of(session, frame, key) for key in ("operator", "module", "frame")}
    frame = _labelled(frame.with_columns({key: session.profile.strings[key] for key in more}, **more)).with_texts(
        "module", lambda text: text.rstrip("0123456789").rstrip("_"), "module"
    )
    found = list(_runs_of_sequences(frame))
    if not found:
        keys = ("sequence", "module", "source", "kernels", "start", "duration", "gaps", "gain", "lane", "row")
        return Frame({key: np.zeros(0, np.int64) for key in keys}, {})
    texts = list(dict.fromkeys(each[0] for each in found))
    code_of = {text: code for code, text in enumerate(texts)}
    codes = np.concatenate([np.full(len(each[1]), code_of[each[0]]) for each in found])
    first, count = (np.concatenate([each[place] for each in found]) for place in (1, 2))
    edges = np.stack((first, first + count), axis=1).reshape(-1)
    own = np.append(frame["duration"], 0)
    duration, longest = (ufunc.reduceat(own, edges)[::2] for ufunc in (np.add, np.maximum))
    apart = np.append(0, np.maximum(frame["start"][1:] - frame["end"][:-1], 0))
    apart[first] = 0
    gaps = np.add.reduceat(np.append(apart, 0), edges)[::2]
    with_line = frame.has("frame", lambda text: "): " in text)
    next_line = np.append(np.minimum.accumulate(np.where(with_line, np.arange(len(frame)), len(frame))[::-1])[::-1], 0)
    place = next_line[first]
    source = np.where(place < first + count, np.append(frame["frame"], -1)[place], -1)
    return Frame(
        {"sequence": codes, "module": frame["module"][first], "source": source, "kernels": count,
         "start": frame["start"][first], "duration": duration,
         "gaps": gaps, "gain": duration - longest + gaps, "lane": frame["lane"][first], "row": frame["row"][first]},
        {"sequence": texts, "module": frame.texts["module"], "source": frame.texts["frame"]},
    )  # fmt: skip


def _labelled(frame: Frame) -> Frame:
    """The frame with ``label``: the operator's name, of kernels without one their short name."""
    operators = frame.with_texts("label", lambda text: text.removeprefix("aten::"), "operator")
    kernels = frame.with_texts("label", lambda text: short_name(text, "<", "(").rpartition("::")[2], "name")
    known, more = operators.texts["label"], kernels.texts["label"]
    labels = np.where(operators["label"] >= 0, operators["label"], len(known) + kernels["label"])
    return frame.with_columns({"label": [*known, *more]}, label=labels)


def _counted(names: list[str]) -> Iterator[tuple[str, int]]:
    for name, equal in groupby(names):
        yield name, len(list(equal))


def _runs_of_sequences(frame: Frame) -> Iterator[tuple[str, Any, Any]]:
    """Names of each sequence, first rows of the times that it runs, and its length as often."""
    if not len(frame):
        return
    follows = (np.diff(frame["lane"]) == 0) & (np.diff(frame["row"]) == 1)
    begins = np.append(True, ~follows)
    place = np.arange(len(frame)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    first = np.flatnonzero(place % _LONGEST == 0)
    length = np.diff(np.append(first, len(frame)))
    for count in uniques(length[length > 1]).tolist():
        starts = first[length == count]
        labels = [frame["label"][starts + step] for step in range(count)]
        index, _ = distinct_together(*labels, frame["module"][starts])
        groups = GroupBy(Frame({"index": index}, {}), ("index",))
        for group in np.flatnonzero(groups.sizes >= _LEAST).tolist():
            of_group = starts[groups.index == group]
            names = [frame.texts["label"][column[groups.first[group]]] for column in labels]
            told = (f"{name} x{times}" if times > 1 else name for name, times in _counted(names))
            yield ", ".join(told), of_group, np.full(len(of_group), count)
