"""Notes of an investigation, stored as a JSON file: marks, spans, their texts, and the filter."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.files import WriteError, whole_file
from tpuprof_tui.model import Profile

from .state import DisplayState

#: Name of the file in a capture's folder; for a capture that is a file, prefixed with that file's name.
FILE: Final = ".tpuprof-notes.json"
SCHEMA: Final = "1.0"
#: Limits of untrusted input: characters of a text or filter, bytes of a file.
_LONGEST: Final = 2_000
_MOST_BYTES: Final = 1 << 20
_LATEST: Final = (1 << 63) - 1


class NotesError(TpuprofError):
    """A file of notes that cannot be read."""


class Notes(Struct, frozen=True):
    """A user's notes on a profile."""

    marks: tuple[tuple[str, int], ...] = ()  #: Letter and time, ns
    spans: tuple[tuple[str, int, int], ...] = ()  #: Letter, start and end, ns
    texts: tuple[tuple[str, str], ...] = ()  #: Letter of a mark or span, and its text
    filter: str = ""  #: The filter in use; empty: none

    @classmethod
    def of(cls, state: DisplayState) -> Notes:
        """The notes contained in a state."""
        return cls(state.marks, state.spans, state.texts, state.filter)

    @property
    def any(self) -> bool:
        """Whether there are marks or spans; a filter alone does not count."""
        return bool(self.marks or self.spans)

    def applied_to(self, state: DisplayState) -> DisplayState:
        """The state with these notes, without marks and spans outside the capture."""
        start, end = state.full_start, state.full_end
        marks = tuple(mark for mark in self.marks if start <= mark[1] < end)
        spans = tuple(span for span in self.spans if start <= span[1] < span[2] <= end)
        known = {letter for letter, *_ in (*marks, *spans)}
        texts = tuple(text for text in self.texts if text[0] in known)
        return replace(state, marks=marks, spans=spans, texts=texts, filter=self.filter or state.filter)


def notes_path(profile: Profile) -> Path | None:
    """Path of a profile's notes: the one given by the user, else in or next to the capture; None for standard input."""
    if profile.notes:
        return Path(profile.notes)
    if profile.path == "-":
        return None
    path = Path(profile.path)
    return path / FILE if path.is_dir() else path.with_name(f".{path.name}{FILE}")


def read_notes(path: Path) -> Notes:
    """Reads notes, ignoring invalid entries; empty if there is no file. Raises NotesError if it is not a notes file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NotesError(f"{path} is not a notes file.")
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        found = json.loads(text) if len(text) <= _MOST_BYTES else None
    except FileNotFoundError:
        return Notes()
    except OSError as error:
        raise NotesError(f"{path} could not be read: {(error.strerror or str(error)).lower()}.") from error
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not str(found.get("schema", "")).startswith("1."):
        raise NotesError(f"{path} is not a notes file.", "Choose another: --notes FILE.")
    marks: dict[str, int] = {}
    spans: dict[str, tuple[int, int]] = {}
    texts: dict[str, Any] = {}
    for letter, entry in _entries(found.get("marks")):
        if _is_time(entry.get("time_ns")):
            marks[letter] = entry["time_ns"]
            texts[letter] = entry.get("text")
    for letter, entry in _entries(found.get("spans")):
        start, end = (time if _is_time(time) else 0 for time in (entry.get("start_ns"), entry.get("end_ns")))
        if letter not in marks and start < end:
            spans[letter] = start, end
            texts[letter] = entry.get("text")
    return Notes(
        tuple(sorted(marks.items())),
        tuple((letter, start, end) for letter, (start, end) in sorted(spans.items())),
        tuple((letter, text[:_LONGEST]) for letter, text in sorted(texts.items()) if isinstance(text, str) and text),
        filter_[:_LONGEST] if isinstance(filter_ := found.get("filter"), str) else "",
    )


def write_notes(path: Path, notes: Notes) -> None:
    """Writes a file of notes atomically; WriteError if it cannot be written."""
    texts = dict(notes.texts)
    record = {
        "schema": SCHEMA,
        "filter": notes.filter,
        "marks": [{"letter": letter, "time_ns": time, "text": texts.get(letter, "")} for letter, time in notes.marks],
        "spans": [{"letter": letter, "start_ns": start, "end_ns": end, "text": texts.get(letter, "")}
                  for letter, start, end in notes.spans],
    }  # fmt: skip
    if not path.parent.is_dir():
        raise WriteError(f"There is no folder {path.parent}.")
    with whole_file(path) as stream:
        stream.write(json.dumps(record, indent=1).encode() + b"\n")


def set_note_text(state: DisplayState, letter: str, text: str) -> DisplayState:
    """The state with a text for a mark or span; an empty text removes it."""
    others = [each for each in state.texts if each[0] != letter]
    return replace(state, texts=tuple(sorted([*others, *([(letter, text[:_LONGEST])] if text else [])])))


def _entries(found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in found if isinstance(found, list) else ():
        letter = entry.get("letter") if isinstance(entry, dict) else None
        if isinstance(letter, str) and len(letter) == 1 and letter.isascii() and letter.isalnum():
            yield letter, entry


def _is_time(value: Any) -> TypeGuard[int]:
    return type(value) is int and -_LATEST <= value <= _LATEST
