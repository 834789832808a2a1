"""Generates the options that record what a user wants to know (wishes), in as few runs as possible."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.lazy_names import lazy_pattern

from .checking import check_values
from .conditions import Context, passes, subjects, value_text
from .reading import Unparsed, json_text, line_of
from .tables import OptionKind, Tables, Wish

_WORD: Final = lazy_pattern(r"[^\W_]+|[^\w\s]")
#: Maximum width of a generated call on one line; longer calls get one argument per line.
_MOST_COLUMNS: Final = 100
_CJK: Final = lazy_pattern(r"[\u3000-\u9fff\uff00-\uffef]")
#: Keys of ``global.profile`` with the number of records of an engine, per core or port.
_COUNT: Final = lazy_pattern(r"(?:(?:core)?\d+_)?([a-z]+?)\d*_record", re.ASCII)
_CAPACITY: Final = "max_record_num"
_MOST_DIGITS: Final = 12


class EngineRecords(Struct, frozen=True):
    """The engine with the most records in a capture."""

    engine: str  #: Name of the engine
    count: int  #: Number of its records
    size: int = 0  #: Capacity of a buffer, records; 0: unknown

    @property
    def new_size(self) -> int:
        """Buffer capacity to request: the old one if it exceeds the count by a quarter, else the next power of two.

        If the old buffer was full, so that records may be lost, twice the count is required.
        """
        spared = self.count + max(self.count // 4, 1)
        if spared <= self.size:
            return self.size
        needed = 2 * self.count if self.size and self.count >= self.size else spared
        return 1 << max(needed - 1, 1).bit_length()

    def sentence(self, tables: Tables) -> str:
        """Sentence that states the counts and the requested capacity."""
        lost = self.size and self.count >= self.size
        key = "counted" if not self.size else "lost" if lost else "enough" if self.new_size == self.size else "more"
        return tables.say(f"records_{key}", engine=self.engine, count=self.count, size=self.size, take=self.new_size)


class RunOptions(Struct, frozen=True):
    """Options of one profiling run."""

    wishes: Sequence[Wish]  #: Wishes that it fulfils
    values: Mapping[str, Any]  #: Options by name, in the order of the table
    reasons: Mapping[str, str]  #: Reason for each option, by name
    #: Lines to paste, by title of their destination; the title is empty if there is only one destination.
    forms: Mapping[str, Sequence[str]]


class GeneratedOptions(Struct, frozen=True):
    """Result of `make`: runs, notes, text about the next step, and its command."""

    runs: Sequence[RunOptions]
    notes: Sequence[str]
    after: str
    command: str


class MakeRequest(Struct, frozen=True):
    """Input of `make` besides wishes: values by argument name, records of an earlier capture, and context."""

    given: Mapping[str, str] = field(default_factory=dict)
    records: EngineRecords | None = None
    context: Context = field(default_factory=Context)


def make(words: Sequence[str], tables: Tables, request: MakeRequest) -> GeneratedOptions:
    """Generates options that fulfil wishes in few runs.

    Raises:
        UsageError: A word is not understood, or a wish cannot be fulfilled.
    """
    making = tables.making
    kind = tables.kinds[making["kind"]]
    context = replace(request.context, mode=request.context.mode or making.get("mode"))
    wishes = parsed_wishes(words, tables)
    groups = _groups(wishes, kind, tables) or [[]]
    notes = [tables.say("runs", count=len(groups))] if len(groups) > 1 else []
    if request.records is not None:
        notes.append(request.records.sentence(tables))
    if tables.products.get(context.product or "", {}).get("unstated"):
        notes.append(tables.say("unstated_product", product=tables.products[str(context.product)]["title"]))
    runs = [_run(group, kind, tables, request, context) for group in groups]
    for group, run in zip(groups, runs, strict=True):
        notes += _kept_levels(group, run, tables)
    for name, rule in making.get("given", {}).items():
        if name in request.given and not any(rule["option"] in run.values for run in runs):
            notes.append(tables.say("not_used", option=rule["option"]))
    after = making["after"]
    folder = request.given.get(after.get("option", ""), after.get("otherwise", ""))
    command = after["command"].replace("{output}", shlex.quote(folder) if folder else "")
    return GeneratedOptions(runs, list(dict.fromkeys(notes)), after["text"].replace("{command}", command), command)


def parsed_wishes(words: Sequence[str], tables: Tables) -> list[Wish]:
    """Parses wishes from words, in their order; empty only if the source can generate options without wishes.

    Raises:
        UsageError: There are no wishes, or a word is not understood.
    """
    phrases = sorted(
        {(phrase.lower(), number) for number, wish in enumerate(tables.wishes) for phrase in (wish.wish, *wish.words)},
        key=lambda each: (-len(each[0]), each),
    )
    fillers = set(tables.say("fillers").split())
    found: dict[str, Wish] = {}
    unknown: list[str] = []
    for argument in words:
        rest = re.sub(r"[-_\s]+", " ", argument.lower())
        places: dict[int, int] = {}
        for phrase, number in phrases:
            rest, hits = _blank_phrase(rest, phrase.replace("-", " "))
            places |= dict.fromkeys(hits, number)
        found |= {tables.wishes[number].wish: tables.wishes[number] for _, number in sorted(places.items())}
        left = [word for word in _WORD.findall(rest) if word not in fillers and re.search(r"\w", word)]
        unknown += [argument] if left else []
    known = tables.say("wishes_are", wishes=", ".join(wish.wish for wish in tables.wishes))
    if unknown:
        raise UsageError(tables.say("not_understood", words=", ".join(value_text(each) for each in unknown[:5])), known)
    if not found and not tables.making.get("wishless"):
        raise UsageError(tables.say("no_wishes"), known)
    return list(found.values())


def _blank_phrase(text: str, phrase: str) -> tuple[str, list[int]]:
    """Replaces whole-word occurrences of a phrase (or its plural with s) by blanks; returns the text and offsets."""
    plain = re.escape(phrase)
    pattern = plain if _CJK.search(phrase) else rf"(?<![^\W_]){plain}s?(?![^\W_])"
    places: list[int] = []

    def blank(found: re.Match[str]) -> str:
        places.append(found.start())
        return " " * len(found[0])

    return re.sub(pattern, blank, text), places


# -- runs -------------------------------------------------------------------------


def _groups(wishes: Sequence[Wish], kind: OptionKind, tables: Tables) -> list[list[Wish]]:
    """Groups wishes by run: each wish is added to the first run that it is compatible with (first fit)."""
    groups: list[list[Wish]] = []
    for wish in wishes:
        fitting = (group for group in groups if _merged([*group, wish], kind, tables) is not None)
        group = next(fitting, None)
        if group is None:
            groups.append([wish])
        else:
            group.append(wish)
    for group in groups:
        others = [wish for wish in wishes if wish.every_run and wish not in group]
        group += [wish for wish in others if _merged([*group, wish], kind, tables) is not None]
    return groups


def _merged(wishes: Sequence[Wish], kind: OptionKind, tables: Tables) -> dict[str, Any] | None:
    """Options that fulfil all given wishes; None if they exclude each other."""
    values: dict[str, Any] = {}
    insisted = {option: value for wish in wishes if wish.insists for option, value in wish.sets.items()}
    lowered = {option: wish.sets[option] for wish in wishes for option in wish.lowers}
    lowers = {option: value for wish in wishes for option, value in wish.lowers.items()}
    for wish in wishes:
        for option, value in wish.sets.items():
            before = values.setdefault(option, value)
            if before == value:
                continue
            if option in tables.making.get("largest", ()):
                values[option] = max(before, value)
            elif {before, value} == {lowered.get(option), lowers.get(option)}:
                values[option] = insisted.get(option, lowered[option])
            else:
                return None
    violations = check_values(values, kind, tables, Context())
    return None if any(tables.rules[each.code].excludes for each in violations) else values


def _kept_levels(group: Sequence[Wish], run: RunOptions, tables: Tables) -> Iterator[str]:
    for low in group:
        for option, value in low.lowers.items():
            if run.values.get(option) == value:
                wishes = ", ".join(wish.title for wish in group if wish.insists)
                yield tables.say("kept_level", wishes=wishes, option=option, value=value)


def _run(group: Sequence[Wish], kind: OptionKind, tables: Tables, request: MakeRequest, context: Context) -> RunOptions:
    making, options = tables.making, tables.of_kind(kind.name)
    values = _merged(group, kind, tables) or {}
    if request.records is not None:
        values |= {option: request.records.new_size if form == "number" else str(request.records.new_size)
                   for option, form in making.get("records", {}).items()}  # fmt: skip
    for added in making["added"]:
        test = {key: value for key, value in added.items() if key != "sets"}
        if subjects(test, kind.name, values, context):
            values = {**added["sets"], **values}
    for name, rule in making.get("given", {}).items():
        if name in request.given and (rule.get("always") or rule["option"] in values):
            values[rule["option"]] = _input_value(name, request.given[name], rule, tables)
    values = {name: Unparsed(values[name]) if option.type == "expression" else values[name]
              for name, option in options.items() if values.get(name) is not None}  # fmt: skip
    forms = {}
    reasons: dict[str, str] = {}
    asked = {wish.form for wish in group if wish.form}
    for form in making["forms"]:
        if form["form"] not in asked if asked else form.get("asked"):
            continue
        part = {name: value for name, value in values.items() if name in form.get("options", values)}
        reasons |= {name: _reason(name, values, group, tables, context) for name in part}
        violations = check_values(part, kind, tables, context)
        if violations:
            why = " ".join(dict.fromkeys(violation.text for violation in violations))
            raise UsageError(tables.say("refused", why=why), f"{tables.say('fix')}: {violations[0].fix}.")
        line = line_of(replace(kind, call=form.get("call", kind.call)), part, most=_MOST_COLUMNS)
        forms[form.get("title", "")] = [each.replace("{line}", line) for each in form["lines"]]
    return RunOptions(group, values, reasons, forms)


def _input_value(name: str, text: str, rule: Mapping[str, Any], tables: Tables) -> str:
    if re.search("[\ud800-\udfff]", text):
        raise UsageError(tables.say("not_shown_utf8", option=f"--{name.replace('_', '-')}"))
    return str(rule["as"]).replace("{text}", json_text(text)) if "as" in rule else text


def _reason(name: str, values: Mapping[str, Any], group: Sequence[Wish], tables: Tables, context: Context) -> str:
    for each in tables.making["reasons"]:
        if each["option"] == name and passes(each, values, context):
            return str(each["text"])
    option = next(each for each in tables.options if each.name == name)
    wishes = ", ".join(wish.title for wish in group if name in wish.sets)
    return ": ".join(part for part in (wishes, option.gains or option.summary) if part)


# -- records of an earlier capture ------------------------------------------------


def most_records(settings: str) -> EngineRecords | None:
    """The engine with the most records according to the text of a ``global.profile``; None if there are no counts."""
    counts: dict[str, int] = {}
    size = 0
    for line in settings.splitlines():
        key, _, digits = (part.strip() for part in line.partition("="))
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
            continue
        found = _COUNT.fullmatch(key)
        if key == _CAPACITY:
            size = int(digits)
        elif found:
            engine = found[1].upper()
            counts[engine] = max(counts.get(engine, 0), int(digits))
    return largest(counts, size)


def largest(counts: Mapping[str, int], size: int = 0) -> EngineRecords | None:
    """The engine with the most records, from counts by engine; None if all are 0."""
    engine = max(counts, key=lambda each: counts[each], default="")
    return EngineRecords(engine, counts[engine], size) if engine and counts[engine] else None
