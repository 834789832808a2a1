"""Checks options against the rules of their documentation: violations, a verdict, and a corrected line if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from .conditions import Context, passes, subjects, value_text
from .reading import Digits, ParsedOptions, Unparsed, line_of
from .tables import Option, OptionKind, OptionRule, Tables, nearest
from .values import NO_FIX, expected, flaws

OK: Final = "ok"
#: Maximum number of unknown names for which a similar one is searched, which is slow.
_MOST_COMPARED: Final = 50
#: Maximum number of correction rounds; a correction may make another one necessary.
_MOST_ROUNDS: Final = 5

#: Function that returns corrected options.
_Repair = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Violation:
    """A broken rule."""

    severity: str  #: "error" or "warning"
    code: str  #: Name of the rule
    option: str | None  #: Name of the option; None: the whole text
    value: Any  #: Value of that option as written; None also if it is not written
    text: str  #: What is wrong
    fix: str  #: What to do
    #: Applies the fix to options; None if there is no single obvious fix.
    repair: _Repair | None = field(default=None, compare=False, repr=False)


class CheckResult(Struct, frozen=True):
    """Result of a check."""

    verdict: str  #: "ok", "warnings" or "errors"
    kind: OptionKind  #: The kind of the options
    violations: list[Violation]  #: Violations in the order of the tables, regardless of the order in the text
    values: Mapping[str, Any]  #: The options as written
    readable: bool  #: Whether the text could be parsed
    #: Corrected options as a line to paste; None if there are no violations or not all have a single fix.
    line: str | None


def check(written: ParsedOptions, kind: OptionKind, tables: Tables, context: Context) -> CheckResult:
    """Checks options against the values and rules of their kind."""
    if written.problem:
        unreadable = _violation(tables.rules[kind.unreadable], None, {}, context, reason=written.problem)
        found = [unreadable, *_combination_violations({}, kind, tables, context, unread=True)]
        return CheckResult("errors", kind, found, {}, False, None)
    found = list(_violations(written, kind, tables, context))
    verdict = "errors" if any(each.severity == "error" for each in found) else "warnings" if found else OK
    corrected = _corrected(written, found, kind, tables, context) if found else None
    line = None if corrected is None else line_of(kind, corrected)
    return CheckResult(verdict, kind, found, written.values, True, line)


def check_values(values: Mapping[str, Any], kind: OptionKind, tables: Tables, context: Context) -> list[Violation]:
    """Violations for options given as values rather than as text."""
    return list(_violations(ParsedOptions(dict(values)), kind, tables, context))


def _violations(written: ParsedOptions, kind: OptionKind, tables: Tables, context: Context) -> Iterator[Violation]:
    options, values = tables.of_kind(kind.name), written.values
    order = {name: index for index, name in enumerate(options)}
    # reading has already merged repeated options, so that their repair changes nothing
    for name in sorted(written.repeated, key=lambda name: (order.get(name, len(order)), name)):
        yield _violation(tables.rules["duplicate_option"], name, values, context, repair=lambda options: options)
    known = {name: values[name] for name in options if name in values}
    for name, value in known.items():
        yield from _value_violations(options[name], value, tables, context)
    for number, name in enumerate(sorted(values.keys() - options.keys())):
        yield _unknown_option(name, values, options, tables, context, seek=number < _MOST_COMPARED)
    yield from _combination_violations(known, kind, tables, context)


def _value_violations(option: Option, value: Any, tables: Tables, context: Context) -> Iterator[Violation]:
    for flaw in flaws(option, value, context):
        repair = None if flaw.better is NO_FIX else _setting({option.name: flaw.better})
        words = {"reason": flaw.reason, "expected": expected(option, tables)}
        yield _violation(tables.rules[flaw.code], option.name, {option.name: value}, context, repair=repair, **words)


def _unknown_option(
    name: str, values: Mapping[str, Any], options: Mapping[str, Option], tables: Tables, context: Context, *, seek: bool
) -> Violation:
    similar = nearest(name, options) if seek else ""
    repair = _renaming(name, similar) if similar and similar not in values else None
    nearest_text = tables.say("nearest_is", name=similar) if similar else tables.say("none_near")
    return _violation(tables.rules["unknown_option"], name, values, context, repair=repair, nearest=nearest_text)


def _combination_violations(
    known: Mapping[str, Any], kind: OptionKind, tables: Tables, context: Context, *, unread: bool = False
) -> Iterator[Violation]:
    """Violations of rules between options; for unreadable text, only rules about no option."""
    for rule in tables.rules.values():
        if not rule.test or (unread and rule.option is not None):
            continue
        for subject in subjects(rule.test, kind.name, known, context):
            name = subject["option"] if rule.option == "*" else rule.option
            repair = _repair(rule, name, known, context)
            words = {"product": (tables.products.get(context.product or "") or {}).get("title", "")}
            yield _violation(rule, name, known, context, repair=repair, other=subject.get("without", ""), **words)


def _violation(
    rule: OptionRule, name: str | None, values: Mapping[str, Any], context: Context, *,
    repair: _Repair | None = None, **words: object,
) -> Violation:  # fmt: skip
    """Violation of a rule by an option (None: the whole text); ``words`` are placeholders of the rule's texts."""
    value = values.get(name) if name is not None else None
    words |= {"option": name if name is None or len(name) < 100 else f"{name[:97]}…", "value": value_text(value)}
    words |= {"records": context.records}
    severity, says, fix = rule.severity_in(context.mode), rule.says.format(**words), rule.fix.format(**words)
    return Violation(severity, rule.code, name, value, says, fix, repair)


# -- corrections ------------------------------------------------------------------


def _corrected(
    written: ParsedOptions, found: list[Violation], kind: OptionKind, tables: Tables, context: Context
) -> dict[str, Any] | None:
    """The options with all obvious fixes applied; None if violations remain."""
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


def _repair(rule: OptionRule, name: str | None, known: Mapping[str, Any], context: Context) -> _Repair | None:
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


def json_value(value: Any) -> Any:
    """A value for JSON: `Digits` of less than 16 characters as a number, other `Digits` and `Unparsed` as text."""
    if isinstance(value, Digits) and len(value) < 16:
        return float(value) if not value.lstrip("-").isdecimal() else int(value)
    return str(value) if isinstance(value, (Digits, Unparsed)) else value
