"""Redaction: a profile without hosts, users, paths and names of captures, for files that are shared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.formats.redaction import Redactor
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Groups, Lane, Profile, Redaction, Strings

from .answer import TEXTS, Answer
from .report import workers_of

#: File names written by profilers: host, process, optional time.
_HOST: Final = lazy_pattern(r"(.+?)_\d{2,}(?:_\d+)*(?:_ascend_pt)?(?:\..*)?")
#: Text columns with names of what ran, which are kept; other texts are redacted.
_NAMES: Final = ("name", "kernel", "type")


def redacted(profile: Profile) -> Profile:
    """The profile with placeholders in its texts, and in all answers computed from it.

    Times, figures, and names of kernels, operations, modules and networks are kept. Its path is kept for readers of
    files next to the capture; no output contains it.
    """
    names = {text for key in _NAMES for text in profile.strings.get(key, ())}
    redactor = Redactor(_identifying_words(profile), _texts(profile), names)
    text, name = redactor.text, redactor.name
    strings = {key: Strings(map(name, texts)) for key, texts in profile.strings.items()}
    labels = replace(profile.steps, labels=Strings(map(name, profile.steps.labels)))
    return replace(
        profile,
        name=redactor.placeholder("capture", profile.name.casefold()),
        redactor=redactor,
        device=replace(profile.device, parameters=_map_texts(profile.device.parameters, text)),
        source_data=_map_texts(profile.source_data, text),
        groups=Groups(replace(group, label=text(group.label)) for group in profile.groups),
        lanes=tuple(_lane(lane, text) for lane in profile.lanes),
        strings=strings,
        problems=tuple(
            dataclasses.replace(
                each, what=text(each.what), done=text(each.done), file=text(each.file), lane=text(each.lane)
            )
            for each in profile.problems
        ),
        facts=_map_texts(profile.facts, text),
        counters=tuple(replace(each, name=text(each.name), family=text(each.family)) for each in profile.counters),
        steps=labels,
    )


def redacted_answer(answer: Answer, redactor: Redaction) -> Answer:
    """A view's answer with placeholders: texts in tables are treated as names, all others as prose."""
    text = redactor.text
    return replace(
        answer,
        facts=tuple(
            replace(each, title=text(each.title), about=text(each.about), value=_map_texts(each.value, text))
            for each in answer.facts
        ),
        tables=tuple(
            replace(
                table,
                title=text(table.title),
                notes=tuple(map(text, table.notes)),
                values=tuple(
                    _map_texts(list(each), redactor.name) if column.kind in TEXTS else each
                    for column, each in zip(table.columns, table.values, strict=True)
                ),
            )
            for table in answer.tables
        ),
        series=tuple(replace(each, title=text(each.title)) for each in answer.series),
        notes=tuple(map(text, answer.notes)),
        missing=tuple(
            replace(each, what=text(each.what), do=text(each.do), text=text(each.text)) for each in answer.missing
        ),
        source=text(answer.source),
    )


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map_texts(each, change) for each in value)
    return value


def _identifying_words(profile: Profile) -> dict[str, str]:
    """Identifying words (names of captures and hosts), with their kind."""
    workers = workers_of(profile)
    path = Path(profile.path)
    names = (each for worker in workers for each in (worker.key, worker.name))
    captures = [profile.name, path.name, path.absolute().name, *names]
    found = {each: "capture" for each in captures if each}
    found |= profile.identities
    for each in (*captures, *(Path(file).name for worker in workers for file in worker.files)):
        host = _HOST.fullmatch(each)
        if host is not None:
            found.setdefault(host[1], "host")
    return found


def _texts(profile: Profile) -> Iterator[str]:
    for texts in profile.strings.values():
        yield from texts
    yield from map(str, (profile.facts, profile.source_data, profile.device.parameters, Path(profile.path).absolute()))
    for problem in profile.problems:
        yield from (problem.what, problem.done, problem.file)


def _lane(lane: Lane, text: Callable[[str], str]) -> Lane:
    describe, arguments = lane.describe, lane.arguments
    return replace(
        lane,
        label=text(lane.label),
        describe=None if describe is None else lambda row: text(describe(row)),
        arguments=None if arguments is None else lambda row: _map_texts(arguments(row), text),
    )
