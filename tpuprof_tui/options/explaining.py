"""Output of ``tpuprof options``: explanations of options, results of checks, and generated options, as text or JSON."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern

from .checking import CheckResult, json_value
from .conditions import Context, passes, value_text
from .making import GeneratedOptions
from .reading import ParsedOptions
from .tables import Option, OptionKind, Tables

#: Marks an absent value.
UNSET: Final = object()
#: Maximum length of a value that is shown with its reason, characters.
_MOST_SHOWN: Final = 80
_INDENT: Final = " " * 4
_TERM: Final = 12
_WIDEST, _NARROWEST = 100, 50
#: Pieces between which lines may break: blanks, words, and single CJK characters, with trailing CJK punctuation.
_TOKENS: Final = lazy_pattern(r"\s+|(?:[\u2e80-\uffef]|[^\s\u2e80-\uffef]+)[\u3001\u3002\uff09\uff0c\uff1a\uff1b]*")


def option_record(option: Option, tables: Tables) -> dict[str, Any]:
    """All data of an option, for JSON."""
    record = {
        "name": option.name, "kind": option.kind, "type": option.type, "values": list(option.values),
        "range": list(option.range) if option.range else None, "unit": option.suffix or option.unit or None,
        "default": option.default, "default_means": option.default_means or None,
        "default_stated": option.default_stated, "since": option.since or None,
        "deprecated": option.deprecated or None, "modes": list(option.modes), "also": list(option.also),
        "summary": option.summary, "explains": dict(option.explains), "files": list(option.files),
        "gains": option.gains, "cost": option.cost, "conflicts": _conflicts(option, tables),
        "products": _products(option, tables),
        "views": [view["views"] for view in option.views],
    }  # fmt: skip
    if option.groups:
        record["groups"] = [dict(group) for group in map(tables.group, option.values) if group is not None]
    return record


def lines_of(option: Option, tables: Tables, value: Any = UNSET) -> Iterator[str]:
    """Explanation of an option as lines of text; with ``value``, only what applies to this value.

    The first line begins with the name of the option; all others are indented.
    """
    takes = _takes(option, tables)
    if value is UNSET:
        yield f"{option.name}  {takes}"
    else:
        yield f"{option.name} = {value_text(value, 200)}"
        option = restricted_to_value(option, value)
    yield from _wrapped("", option.summary)
    yield from _wrapped(tables.say("values"), takes if value is not UNSET else "")
    yield from _wrapped(tables.say("default"), _default_text(option, tables))
    for each, text in option.explains.items():
        yield from _wrapped(each, text)
    for group in map(tables.group, option.values) if option.groups else ():
        if group is not None:
            number = group["name"] if group["number"] is None else tables.say("group", **group)
            yield from _wrapped("", f"{number}: {group['what']}: {', '.join(group['columns']) or '-'}")
    yield from _wrapped(tables.say("files"), ", ".join(option.files))
    yield from _wrapped(tables.say("gains"), option.gains)
    yield from _wrapped(tables.say("views"), "; ".join(dict.fromkeys(view["views"] for view in option.views)))
    yield from _wrapped(tables.say("cost"), option.cost)
    yield from _wrapped(tables.say("conflicts"), _conflict_text(option, tables))
    yield from _wrapped(tables.say("products"), "; ".join(
        f"{tables.products[key]['title']}: {text}" for key, text in _products(option, tables).items()
    ))  # fmt: skip
    yield from _wrapped(tables.say("modes"), ", ".join(option.modes))
    yield from _wrapped(tables.say("since"), option.since)
    yield from _wrapped(tables.say("deprecated"), option.deprecated)
    yield from _wrapped(tables.say("also"), ", ".join(option.also))


def restricted_to_value(option: Option, value: Any) -> Option:
    """The option restricted to the data of one of its values."""
    written = {option.name: value}
    views = [view["views"] for view in option.views if passes({**view, "option": option.name}, written, Context())]
    explains = {each: text for each, text in option.explains.items() if each == str(value)}
    return replace(option, values=[value], explains=explains, views=[{"views": text} for text in views])


def _default_text(option: Option, tables: Tables) -> str:
    """Text of an option's default."""
    value = "" if option.default is None else tables.say("empty_text") if option.default == "" else str(option.default)
    if option.default_means:
        value = f"{value}: {option.default_means}" if value else option.default_means
    value = value or tables.say("nothing")
    return value if option.default_stated else tables.say("default_unstated", default=value)


def _views(written: Mapping[str, Any], kind: OptionKind, tables: Tables) -> list[tuple[str, str]]:
    """Views that a run with these options can show: (``NAME=VALUE`` of the option that yields them, views)."""
    options = tables.of_kind(kind.name)
    values = {name: written.get(name, written.get(option.same_as, option.default)) for name, option in options.items()}
    values = {name: value for name, value in values.items() if name in written or value is not None}
    found: dict[str, tuple[str, str]] = {}
    for name in values:
        if name not in written and options[name].same_as in written:
            continue
        for view in options[name].views:
            excluded = any(passes(test, values, Context()) for test in view.get("unless", ()))
            if not excluded and passes({**view, "option": name}, values, Context()):
                found.setdefault(view["views"], (f"{name}={json_value(values[name])}", view["views"]))
    return list(found.values())


def _takes(option: Option, tables: Tables) -> str:
    if option.range:
        low, high = option.range
        limits = f"{low}..{high}" if high is not None else f"{low}.."
        return f"{limits} {option.suffix or option.unit}".rstrip()
    if option.type == "boolean":
        return "True | False"
    more = f" | {option.custom['prefix']}0x49,0x8" if option.custom else ""
    joined = " | ".join(map(str, option.values)) + more
    return f"{joined} (,)" if option.type == "set" else joined or f"<{option.type}>"


def _products(option: Option, tables: Tables) -> dict[str, str]:
    """Support of an option by product; empty for kinds whose documents do not distinguish products."""
    if not tables.kinds[option.kind].variable:
        return {}
    return {key: option.products.get(key, product["usual"]) for key, product in tables.products.items()}


def _conflicts(option: Option, tables: Tables) -> list[str]:
    found: list[str] = []
    for rule in tables.rules.values():
        excluded = [test["option"] for test in rule.test.get("each", ())] if rule.excludes else []
        found += excluded if option.name == rule.excludes else [rule.excludes] if option.name in excluded else []
    return found


def _conflict_text(option: Option, tables: Tables) -> str:
    others = _conflicts(option, tables)
    return tables.say("excluded_by", others=", ".join(others)) if others else ""


def _wrapped(term: str, text: str) -> Iterator[str]:
    """Wrapped lines of a term and its text; no lines for an empty text."""
    if not text:
        return
    head = f"{_INDENT}{term}{' ' * max(_TERM - _width(term), 1)}" if term else _INDENT
    columns = max(min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST), _NARROWEST)
    for number, line in enumerate(_wrapped_lines(text, columns - _width(head))):
        yield f"{' ' * _width(head) if number else head}{line}"


def _wrapped_lines(text: str, columns: int) -> Iterator[str]:
    """Wraps a text into lines of at most ``columns`` columns, except for longer words; Chinese breaks anywhere."""
    line, length = "", 0
    for token in _TOKENS.findall(text):
        width = _width(token)
        if line and length + width > columns and not token.isspace():
            yield line.rstrip()
            line, length = "", 0
        if line or not token.isspace():
            line, length = line + token, length + width
    yield line.rstrip()


def _width(text: str) -> int:
    """Width of a text in terminal columns."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


# -- overview, results of checks, generated options --------------------------------


def overview_json(written: ParsedOptions | None, kind: OptionKind, tables: Tables) -> dict[str, Any]:
    """All options of a kind for JSON, written ones first; with a text also the views of the run."""
    of_kind = tables.of_kind(kind.name)
    records = []
    first = [name for name in (written.values if written is not None else ()) if name in of_kind]
    for option in (of_kind[name] for name in dict.fromkeys([*first, *of_kind])):
        record = option_record(option, tables)
        if written is not None:
            record |= {"written": option.name in written.values, "value": json_value(written.values.get(option.name))}
        records.append(record)
    overview: dict[str, Any] = {"kind": kind.name, "title": kind.title, "about": list(kind.about), "options": records}
    if written is not None:
        overview["unknown"] = sorted(written.values.keys() - of_kind.keys())
        overview["views"] = [{"by": by, "views": text} for by, text in _views(written.values, kind, tables)]
    return overview


def overview_lines(written: ParsedOptions | None, kind: OptionKind, tables: Tables) -> Iterator[str]:
    """The overview as text; options that are left at their default take one line each."""
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
            yield f"{name} = {value_text(value, 200)}  ({tables.say('unknown')})"
    yield from ("", f"{tables.say('left')}:", "")
    for name, option in of_kind.items():
        if name not in written.values and option.same_as not in written.values:
            yield f"{name:<26}{_default_text(option, tables)}"
    found = _views(written.values, kind, tables)
    yield from ("", f"{tables.say('shows')}{': ' + tables.say('shows_nothing') if not found else ':'}", "")
    yield from (f"    {by:<32}  {text}" for by, text in found)


def checked_json(checked: CheckResult, notes: Sequence[str], tables: Tables) -> dict[str, Any]:
    """Result of a check for JSON: verdict, findings, options (value and whether default), corrected line, notes."""
    of_kind = tables.of_kind(checked.kind.name)
    findings = [
        {"severity": each.severity, "code": each.code, "option": each.option, "value": json_value(each.value),
         "text": each.text, "fix": each.fix} for each in checked.violations
    ]  # fmt: skip
    values = {name: json_value(value) for name, value in checked.values.items()}
    written = {name: {"value": value, "default": name in of_kind and of_kind[name].default == value}
               for name, value in values.items()}  # fmt: skip
    return {"verdict": checked.verdict, "kind": checked.kind.name, "findings": findings, "options": written,
            "line": checked.line, "notes": list(notes)}  # fmt: skip


def checked_lines(checked: CheckResult, notes: Sequence[str], tables: Tables) -> Iterator[str]:
    """Result of a check as text: a line per violation, the verdict, notes, and the corrected line."""
    for each in checked.violations:
        about = each.option if each.option is not None else tables.say("the_text")
        yield f"{tables.say(each.severity):<8} {about}  {each.code}: {each.text} {tables.say('fix')}: {each.fix}"
    errors = sum(each.severity == "error" for each in checked.violations)
    warnings = len(checked.violations) - errors
    yield f"{checked.kind.name}: " + tables.say(f"verdict_{checked.verdict}", count=warnings, errors=errors,
                                                 warnings=warnings)  # fmt: skip
    yield from (f"{tables.say('note')}: {note}" for note in notes)
    if checked.line is not None:
        yield from (tables.say("corrected"), *checked.line.split("\n"))


def generated_json(generated: GeneratedOptions, kind: OptionKind) -> dict[str, Any]:
    """Generated options for JSON: each run with its options, their reasons and the lines to paste."""
    runs = [{"wishes": [wish.wish for wish in run.wishes],
             "options": {name: json_value(value) for name, value in run.values.items()},
             "reasons": dict(run.reasons), "lines": [line for lines in run.forms.values() for line in lines]}
            for run in generated.runs]  # fmt: skip
    return {"kind": kind.name, "runs": runs, "notes": list(generated.notes), "command": generated.command}


def generated_lines(generated: GeneratedOptions, tables: Tables) -> Iterator[str]:
    """Generated options as lines to paste; explanations are comments that start with #."""
    yield from (f"# {note}" for note in generated.notes)
    for number, run in enumerate(generated.runs, 1):
        if len(generated.runs) > 1:
            wishes = ", ".join(wish.title for wish in run.wishes)
            yield ""
            yield f"# {tables.say('run', number=number, count=len(generated.runs), wishes=wishes)}"
        for title, lines in run.forms.items():
            yield from (f"# {title}" for _ in (title,) if title)
            yield from (part for line in lines for part in line.split("\n"))
        for name, reason in run.reasons.items():
            yield f"# {name}={str(json_value(run.values[name]))[:_MOST_SHOWN]}  {reason}"
    yield f"# {generated.after}"
