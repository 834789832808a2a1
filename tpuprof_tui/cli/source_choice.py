"""``tpuprof info PATH --why``: which source opens a path, the reason of each source, and options not in ``--help``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.exit_status import NO_RESULT, OK
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.sources.catalog import WHY, Catalog, SourceOption, chosen

from .options import OWN_OPTIONS


def tell_source_choice(paths: Sequence[str], *, as_json: bool) -> int:
    """Prints the decisions of the sources on each path; returns the exit status: 2 if a path cannot be opened."""
    catalog = Catalog()
    records = [source_choice_record(catalog, path) for path in paths]
    if as_json:
        for record in records:
            print(answer_text(record))
    else:
        print("\n\n".join("\n".join(_lines(record)) for record in records))
    sys.stdout.flush()
    return NO_RESULT if any(record["source"] is None for record in records) else OK


def source_choice_record(catalog: Catalog, path: str) -> dict[str, Any]:
    """Decisions of all sources on a path, as plain values.

    Returns:
        ``path``; ``source``: id of the source that opens it, or None; ``decisions``: for each source, in the order of
        asking, its id, title, whether it recognises the path, by what (``name``, ``content`` or None) and why;
        ``options``: options of the opening source that ``--help`` does not list, by flags; ``faults``: errors of
        sources of other packages; ``says``: why no source opens it, or None.
    """
    decisions = catalog.decisions(path) if os.path.exists(path) else []
    found = chosen(decisions)
    says = None
    if found is None:
        try:
            catalog.recognised(path)
        except UnreadableError as error:
            says = str(error).removesuffix(WHY).rstrip()
    return {
        "path": path,
        "source": found.source.id if found else None,
        "decisions": [
            {
                "source": each.source.id,
                "title": each.source.title,
                "recognised": bool(each.recognition),
                "by": each.recognition.by or None,
                "reason": each.recognition.reason,
            }
            for each in decisions
        ],
        "options": _unlisted(found.source.options if found else ()),
        "faults": catalog.faults,
        "says": says,
    }


def _unlisted(options: Sequence[SourceOption]) -> dict[str, str]:
    """Help of options of other packages, which ``--help`` does not import, by flags in the style of ``--help``."""
    return {_flags(option): option.settings.get("help", "") for option in options if option not in OWN_OPTIONS}


def _flags(option: SourceOption) -> str:
    value = option.settings.get("metavar") or ("" if "action" in option.settings else option.name.upper())
    return ", ".join(f"{flag} {value}".rstrip() for flag in option.flags)


def _lines(record: dict[str, Any]) -> Iterator[str]:
    yield line_text(record["path"])
    width = max((len(each["source"]) for each in record["decisions"]), default=0)
    for each in record["decisions"]:
        verdict = f"yes, by {each['by']}" if each["recognised"] else "no"
        yield line_text(f"  {each['source']:{width}}  {verdict}: {each['reason']}")
    yield from (line_text(f"  {fault}") for fault in record["faults"])
    title = next((each["title"] for each in record["decisions"] if each["source"] == record["source"]), None)
    yield line_text(record["says"] if title is None else f"It is opened as {title}.")
    for flags, text in record["options"].items():
        yield line_text(f"  {flags}: {text}" if text else f"  {flags}")
