"""Redaction: what is secret in texts, and a profile without hosts, users, paths and names of captures, to be shared."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Groups, Lane, Profile, Redaction, Strings

from .answer import TEXTS, Answer
from .report import workers_of

_END: Final = r"\s:;,'\"()<>|*?\[\]{}=\\"
#: Top-level folders of file systems, which distinguish paths from names of layers.
_TOPS: Final = (
    "Users|Volumes|bin|data\\d*|dev|etc|efs|gpfs|home\\d*|lib\\w*|lustre|media|mnt|net|nfs|nvme\\w*|opt|private|proc|root|run|"
    "sbin|scratch|share|shared|srv|ssd\\w*|storage|sys|tmp|usr|var|work\\w*"
)
_SUFFIXES: Final = (
    "py|pyx|pyc|so|c|cc|cpp|cxx|cu|cuh|h|hpp|json|gz|zip|csv|db|txt|log|sh|yaml|yml|toml|cfg|ini|onnx|pt|pth|bin|om|mlir|"
    "\\w*model|profile|prof|safetensors|ckpt|ipynb|exe|dll"
)
_PATHS: Final = (
    # s3://..., file:///..., \\host\share\..., C:\... and C:/...
    r"(?i:\b(?!file:)[a-z][a-z0-9+.-]*://[^\s'\"<>|(),\]}]+)",
    rf"\bfile://[^{_END}]+|\\\\[\w.-]+(?:\\[^\\/{_END}]+)+|\b[A-Za-z]:[\\/](?:[^\\/:*?\"<>|\r\n]+[\\/])*[^\\/{_END}]*",
    # below a top-level folder, below a home directory, or with a file suffix
    rf"(?<![\w./~-])/(?:{_TOPS})(?:/[^/{_END}]+)+/?|(?<![\w/])~[\w.-]*(?:/[^/{_END}]+)+/?",
    rf"(?<![\w./~-])(?:/|\.{{1,2}}/)?(?:[^/{_END}]+/)+[^/{_END}]*\.(?:{_SUFFIXES})(?:\.\d+)*(?![\w/])",
)
#: Any absolute path; not applied to event names.
_ANY_PATH: Final = rf"(?<![\w./~:-])/(?:[^/{_END}]+/)*[^/{_END}]+/?"
_ADDRESS: Final = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"
_HOME: Final = lazy_pattern(r"(?:/home\d*/|/Users/|\\Users\\|(?<!\w)~)([\w.-]+)")
#: User names that occur on every machine, and the length below which words are not searched for within texts.
_ANYONE: Final = frozenset(("root", "user", "users", "admin", "home", "public", "shared", "work", "data", "ubuntu"))
_SHORTEST: Final = 4


class Redactor:
    """Replaces texts that identify the machine and the user of a recording.

    Names of kernels, operations and modules are kept, except for paths, addresses, users and hosts within them.
    """

    def __init__(self, words: Mapping[str, str], texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """Builds the patterns.

        Args:
            words: Words to replace wherever they occur as whole words, each with its kind ("host", "capture").
            texts: Texts that are searched for home directories; the user names found there are replaced too.
            names: Names to keep even if they are among the words.
        """
        self._found: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        users = {found[1]: "user" for text in texts for found in _HOME.finditer(text) if found[1] not in _ANYONE}
        stay = {name.casefold() for name in names}
        known = {word.casefold(): kind for word, kind in (users | dict(words)).items() if word}
        self._kinds = {word: kind for word, kind in known.items() if word not in stay}
        searched = sorted((word for word in self._kinds if len(word) >= _SHORTEST), key=len, reverse=True)
        word = rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, searched))})(?![A-Za-z0-9])" if searched else r"(?!)"
        paths = "|".join(_PATHS)
        self._in_names = re.compile(f"(?P<path>{paths})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")
        self._anywhere = re.compile(f"(?P<path>{paths}|{_ANY_PATH})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")

    def text(self, text: str) -> str:
        """Redacts a text, including all absolute paths."""
        return self._replaced(self._anywhere, text)

    def name(self, text: str) -> str:
        """Redacts the name of an event; possible paths of layers are kept."""
        return self._replaced(self._in_names, text)

    def placeholder(self, kind: str, text: str) -> str:
        """Placeholder for a text: its kind and a number, the same for equal texts."""
        key = (kind, text)
        if key not in self._found:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._found[key] = f"{kind}{self._counts[kind]}"
        return self._found[key]

    def _replaced(self, pattern: re.Pattern[str], text: str) -> str:
        kind = self._kinds.get(text.casefold())
        return self.placeholder(kind, text.casefold()) if kind else pattern.sub(self._placeholder_of_match, text)

    def _placeholder_of_match(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        if kind == "word":
            return self.placeholder(self._kinds[found[0].casefold()], found[0].casefold())
        return self.placeholder(kind, found[0])


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
