"""What was explained, checked and made: as JSON, and as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .checking import Checked, plain
from .conditions import shown
from .explaining import default_text, explained, left_at_default, lines_of, views
from .making import Made
from .reading import Written
from .tables import Kind, Option, Tables

#: Characters of a value in front of the reason for it.
_MOST_SHOWN: Final = 80


def overview_json(written: Written | None, kind: Kind, tables: Tables) -> dict[str, Any]:
    """All options of a kind, those of a text first; with a text also what the run can show."""
    of_kind = tables.of_kind(kind.name)
    records = []
    for option in _sorted_by_text(of_kind, written):
        record = explained(option, tables)
        if written is not None:
            record |= {"written": option.name in written.values, "value": plain(written.values.get(option.name))}
        records.append(record)
    whole: dict[str, Any] = {"kind": kind.name, "title": kind.title, "about": list(kind.about), "options": records}
    if written is not None:
        whole["unknown"] = sorted(written.values.keys() - of_kind.keys())
        whole["views"] = [{"by": by, "views": text} for by, text in views(written.values, kind, tables)]
    return whole


def overview_lines(written: Written | None, kind: Kind, tables: Tables) -> Iterator[str]:
    """The same as text: with one line for each option that a text leaves at its default."""
    of_kind = tables.of_kind(kind.name)
    yield kind.title
    yield from kind.about
    if written is None:
        for option in of_kind.values():
            yield ""
            yield from lines_of(option, tables)
        return
    yield from ("", f"{tables.say('written')}:")
    for name, value in written.values.items():
        yield ""
        if name in of_kind:
            yield from lines_of(of_kind[name], tables, value)
        else:
            yield f"{name} = {shown(value, 200)}  ({tables.say('unknown')})"
    yield from ("", f"{tables.say('left')}:", "")
    for option in left_at_default(written.values, kind, tables):
        yield f"{option.name:<26}{default_text(option, tables)}"
    found = views(written.values, kind, tables)
    yield from ("", f"{tables.say('shows')}{': ' + tables.say('shows_nothing') if not found else ':'}", "")
    yield from (f"    {by:<32}  {text}" for by, text in found)


def _sorted_by_text(of_kind: Mapping[str, Option], written: Written | None) -> list[Option]:
    """Options of the text first, in its order."""
    first = [name for name in (written.values if written is not None else ()) if name in of_kind]
    return [of_kind[name] for name in [*first, *(name for name in of_kind if name not in first)]]


def checked_json(checked: Checked, notes: Sequence[str], tables: Tables) -> dict[str, Any]:
    """Verdict, findings, the options with whether they are at their default, and the corrected line."""
    of_kind = tables.of_kind(checked.kind.name)
    findings = [
        {"severity": each.severity, "code": each.code, "option": each.option, "value": plain(each.value),
         "text": each.text, "fix": each.fix} for each in checked.findings
    ]  # fmt: skip
    written = {name: {"value": plain(value), "default": name in of_kind and of_kind[name].default == plain(value)}
               for name, value in checked.values.items()}  # fmt: skip
    return {"verdict": checked.verdict, "kind": checked.kind.name, "findings": findings, "options": written,
            "line": checked.line, "notes": list(notes)}  # fmt: skip


def checked_lines(checked: Checked, notes: Sequence[str], tables: Tables) -> Iterator[str]:
    """One line for each finding, one for the verdict, then notes and the corrected line."""
    for each in checked.findings:
        about = each.option if each.option is not None else tables.say("the_text")
        yield f"{tables.say(each.severity):<8} {about}  {each.code}: {each.text} {tables.say('fix')}: {each.fix}"
    errors = sum(each.severity == "error" for each in checked.findings)
    warnings = len(checked.findings) - errors
    yield f"{checked.kind.name}: " + tables.say(f"verdict_{checked.verdict}", count=warnings, errors=errors,
                                                 warnings=warnings)  # fmt: skip
    yield from (f"{tables.say('note')}: {note}" for note in notes)
    if checked.line is not None:
        yield from (tables.say("corrected"), *checked.line.split("\n"))


def made_json(made: Made, kind: Kind) -> dict[str, Any]:
    """Each run with its options, their reasons and the lines to paste."""
    runs = [{"wishes": [wish.wish for wish in run.wishes],
             "options": {name: plain(value) for name, value in run.values.items()},
             "reasons": dict(run.reasons), "lines": [line for lines in run.forms.values() for line in lines]}
            for run in made.runs]  # fmt: skip
    return {"kind": kind.name, "runs": runs, "notes": list(made.notes), "command": made.command}


def made_lines(made: Made, tables: Tables) -> Iterator[str]:
    """Lines to paste; all that is said stands behind #."""
    yield from (f"# {note}" for note in made.notes)
    for number, run in enumerate(made.runs, 1):
        if len(made.runs) > 1:
            wishes = ", ".join(wish.title for wish in run.wishes)
            yield ""
            yield f"# {tables.say('run', number=number, count=len(made.runs), wishes=wishes)}"
        for title, lines in run.forms.items():
            yield from (f"# {title}" for _ in (title,) if title)
            yield from (part for line in lines for part in line.split("\n"))
        for name, reason in run.reasons.items():
            yield f"# {name}={str(plain(run.values[name]))[:_MOST_SHOWN]}  {reason}"
    yield f"# {made.after}"
