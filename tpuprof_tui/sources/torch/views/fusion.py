"""Fusion view: sequences of light kernels that repeat, and what making one kernel of each could win."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

import numpy as np

from tpuprof_tui.analysis.events import column_of
from tpuprof_tui.analysis.pivot import Frame, Groups, key, mean, pivot, rows, total
from tpuprof_tui.model.uniques import distinct_together, uniques
from tpuprof_tui.views.answer import Answer, Column, Table, Target

from ..kernel_names import CATEGORIES, FUSIBLE
from .by_name import short_name
from .worker_events import WorkerEvents, of_streams

#: Kernels of a sequence, at most: longer ones are cut.
_LONGEST: Final = 32
#: Least number of times that a sequence runs.
_LEAST: Final = 2
_COLUMNS: Final = (
    Column("sequence", "Sequence"), Column("module", "Module", spare=3), Column("source", "Source line"),
    Column("kernels", "Kernels", "count", spare=2), Column("times", "Times", "count"),
    Column("total_us", "Total", "duration", spare=1), Column("mean_us", "Mean", "duration", spare=5),
    Column("gaps_us", "Gaps", "duration", spare=4), Column("gain_us", "To win", "duration"),
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
        Table.of_rows("sequences", "Sequences that repeat", _COLUMNS, [row[:9] for row in found],
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
    found = list(_sequences(frame))
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


def _sequences(frame: Frame) -> Iterator[tuple[str, Any, Any]]:
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
        groups = Groups(Frame({"index": index}, {}), ("index",))
        for group in np.flatnonzero(groups.sizes >= _LEAST).tolist():
            of_group = starts[groups.index == group]
            names = [frame.texts["label"][column[groups.first[group]]] for column in labels]
            told = (f"{name} x{times}" if times > 1 else name for name, times in _counted(names))
            yield ", ".join(told), of_group, np.full(len(of_group), count)
