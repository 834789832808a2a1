"""What the documents say against options: findings, a verdict, and a corrected line where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from .conditions import Context, passes, shown, subjects
from .reading import Number, Other, Written, line_of
from .tables import Kind, Option, Rule, Tables, nearest
from .values import NOTHING, expected, flaws

OK: Final = "ok"
#: Unknown names for which a near one is sought: it takes a while.
_MOST_SOUGHT: Final = 50
#: Corrections that may make another one necessary.
_MOST_ROUNDS: Final = 5

#: Options that are corrected, and what they are then.
_Repair = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Finding:
    """A broken rule.

    Attributes:
        severity: "error" or "warning".
        code: Name of the rule.
        option: What it is about; None: the text as a whole.
        value: The value of that option as it is written; None also where it is not.
        text: What is wrong.
        fix: What to do.
        repair: Does it to the options; None: more than one thing, or nothing, is obvious.
    """

    severity: str
    code: str
    option: str | None
    value: Any
    text: str
    fix: str
    repair: _Repair | None = field(default=None, compare=False, repr=False)


class Checked(Struct, frozen=True):
    """What a check found.

    Attributes:
        verdict: "ok", "warnings" or "errors".
        kind: The kind of the options.
        findings: In the order of the tables, whatever the order in the text.
        values: The options, as they are written.
        readable: Whether the text is of its form.
        line: The options without what was wrong, as a line to paste; None: nothing is wrong, or not all has one fix.
    """

    verdict: str
    kind: Kind
    findings: list[Finding]
    values: Mapping[str, Any]
    readable: bool
    line: str | None


def check(written: Written, kind: Kind, tables: Tables, context: Context) -> Checked:
    """Checks options against values and rules of their kind."""
    if written.problem:
        whole = _about(tables.rules[kind.unreadable], None, {}, context, reason=written.problem)
        found = [whole, *_together({}, kind, tables, context, unread=True)]
        return Checked("errors", kind, found, {}, False, None)
    found = list(_findings(written, kind, tables, context))
    verdict = "errors" if any(each.severity == "error" for each in found) else "warnings" if found else OK
    corrected = _corrected(written, found, kind, tables, context) if found else None
    line = None if corrected is None else line_of(kind, corrected)
    return Checked(verdict, kind, found, written.values, True, line)


def check_values(values: Mapping[str, Any], kind: Kind, tables: Tables, context: Context) -> list[Finding]:
    """Findings about options that were not read from a text."""
    return list(_findings(Written(dict(values)), kind, tables, context))


def _findings(written: Written, kind: Kind, tables: Tables, context: Context) -> Iterator[Finding]:
    options, values = tables.of_kind(kind.name), written.values
    places = {name: place for place, name in enumerate(options)}
    # what stands twice was read once: nothing more is to be corrected
    for name in sorted(written.repeated, key=lambda name: (places.get(name, len(places)), name)):
        yield _about(tables.rules["duplicate_option"], name, values, context, repair=lambda options: options)
    known = {name: values[name] for name in options if name in values}
    for name, value in known.items():
        yield from _of_value(options[name], value, tables, context)
    for number, name in enumerate(sorted(values.keys() - options.keys())):
        yield _unknown(name, values, options, tables, context, seek=number < _MOST_SOUGHT)
    yield from _together(known, kind, tables, context)


def _of_value(option: Option, value: Any, tables: Tables, context: Context) -> Iterator[Finding]:
    for flaw in flaws(option, value, context):
        repair = None if flaw.better is NOTHING else _setting({option.name: flaw.better})
        words = {"reason": flaw.reason, "expected": expected(option, tables)}
        yield _about(tables.rules[flaw.code], option.name, {option.name: value}, context, repair=repair, **words)


def _unknown(
    name: str, values: Mapping[str, Any], options: Mapping[str, Option], tables: Tables, context: Context, *, seek: bool
) -> Finding:
    near = nearest(name, options) if seek else ""
    repair = _renaming(name, near) if near and near not in values else None
    told = tables.say("nearest_is", name=near) if near else tables.say("none_near")
    return _about(tables.rules["unknown_option"], name, values, context, repair=repair, nearest=told)


def _together(
    known: Mapping[str, Any], kind: Kind, tables: Tables, context: Context, *, unread: bool = False
) -> Iterator[Finding]:
    """Rules between options; of an unreadable text, those about no option."""
    for rule in tables.rules.values():
        if not rule.test or (unread and rule.option is not None):
            continue
        for subject in subjects(rule.test, kind.name, known, context):
            name = subject["option"] if rule.option == "*" else rule.option
            repair = _repair(rule, name, known, context)
            words = {"product": (tables.products.get(context.product or "") or {}).get("title", "")}
            yield _about(rule, name, known, context, repair=repair, other=subject.get("without", ""), **words)


def _about(
    rule: Rule, name: str | None, values: Mapping[str, Any], context: Context, *,
    repair: _Repair | None = None, **words: object,
) -> Finding:  # fmt: skip
    """The finding about an option (None: the text as a whole), with the words that its rule speaks of."""
    value = values.get(name) if name is not None else None
    words |= {"option": name if name is None or len(name) < 100 else f"{name[:97]}…", "value": shown(value)}
    words |= {"records": context.records}
    severity, says, fix = rule.severity_in(context.mode), rule.says.format(**words), rule.fix.format(**words)
    return Finding(severity, rule.code, name, value, says, fix, repair)


# -- corrections ------------------------------------------------------------------


def _corrected(
    written: Written, found: list[Finding], kind: Kind, tables: Tables, context: Context
) -> dict[str, Any] | None:
    """The options with every obvious correction made; None where something is still wrong then."""
    values = written.values
    for _ in range(_MOST_ROUNDS):
        repairs = [each.repair for each in found if each.repair is not None]
        if not repairs:
            return None
        for repair in repairs:
            values = repair(values)
        found = check_values(values, kind, tables, context)
        if not found:
            return values
    return None


def _repair(rule: Rule, name: str | None, known: Mapping[str, Any], context: Context) -> _Repair | None:
    repair = rule.repair
    if repair is None or not all(passes(test, known, context) for test in repair.get("if", ())):
        return None
    if "set" in repair:
        return _setting(repair["set"])
    dropped = name if repair["drop"] == "*" else repair["drop"]
    return lambda options: {name: value for name, value in options.items() if name != dropped}


def _setting(values: Mapping[str, Any]) -> _Repair:
    return lambda options: {**options, **values}


def _renaming(name: str, to: str) -> _Repair:
    return lambda options: {(to if each == name else each): value for each, value in options.items()}


def plain(value: Any) -> Any:
    """A value for JSON: numbers as numbers where they are exact, all else as it is."""
    if isinstance(value, Number) and len(value) < 16:
        return float(value) if not value.lstrip("-").isdecimal() else int(value)
    return str(value) if isinstance(value, (Number, Other)) else value
