"""Loads the tables of options, rules and wishes of a source, in one language."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import fields

#: Languages of all texts; the first is the default.
LANGUAGES: Final = ("en", "zh")
#: Maximum length of option names, and of words that are compared with them.
_LONGEST_NAME: Final = 64
_FOLDER: Final = Path(__file__).parent / "tables"
#: Sources with tables, by folder name.
SOURCES: Final = tuple(sorted(path.name for path in _FOLDER.iterdir() if path.is_dir()))


class OptionKind(Struct, frozen=True):
    """A kind of options: where and in which syntax they are written."""

    name: str  #: Value of ``--kind``
    form: str  #: "json" (object of texts in a variable), "call" (keyword arguments) or "variables" (environment)
    unreadable: str  #: Code of the rule for unparsable text
    title: str  #: Title, one line
    about: Sequence[str] = ()  #: Lines that apply to all of its options
    variable: str = ""  #: Environment variable with the object, for the form "json"
    calls: Sequence[str] = ()  #: Names of functions whose arguments are options
    call: str = ""  #: Function name to write
    positional: Sequence[str] = ()  #: Names of the positional arguments of these functions, in order
    switch: Mapping[str, Any] | None = None  #: Variable that enables the options, with a text for each of its values


class Option(Struct, frozen=True):
    """An option."""

    name: str  #: Name as written
    kind: str  #: Name of its kind
    type: str  #: Type of its values (``values.py``)
    summary: str  #: What it does
    values: Sequence[Any] = ()  #: Allowed values of a choice, a set or metric groups
    explains: Mapping[str, str] = field(default_factory=dict)  #: Explanation of each value
    same_as: str = ""  #: Name of an equivalent option
    meant: Mapping[str, Any] = field(default_factory=dict)  #: Intended value by common misspelling (lower case)
    range: tuple[int, int | None] | None = None  #: Smallest and largest number; None if not documented
    unit: str = ""
    suffix: str = ""
    default: Any = None  #: Value if it is not written; None: no value, see `default_means`
    default_means: str = ""  #: What happens by default
    default_stated: bool = True  #: Whether the default is documented
    since: str = ""
    deprecated: str = ""
    files: Sequence[str] = ()  #: Result files that it produces
    gains: str = ""  #: What these files show
    cost: str = ""  #: Overhead
    views: Sequence[Mapping[str, Any]] = ()  #: Views that the run can show, with a test of the value
    products: Mapping[str, str] = field(default_factory=dict)  #: Support by product, where it differs from the usual
    modes: Sequence[str] = ()  #: Modes it applies to; empty: all
    also: Sequence[str] = ()  #: Other documented names
    forbidden: Mapping[str, str] | None = None  #: Characters that a path must not contain, and the code of the rule
    empty: str = ""  #: Code of the rule for an empty text
    lenient: str = ""  #: Code of the rule for a value that is treated as another one
    bare: str = ""  #: Code of the rule for a size without `suffix`
    missing: str = ""  #: Code of the rule for a path that does not exist
    custom: Mapping[str, Any] | None = None  #: Syntax of custom registers, with the codes of its rules
    groups: bool = False  #: Whether its values are metric groups


class OptionRule(Struct, frozen=True):
    """A rule. Those with a test concern combinations of options; parsing or types of values apply the others."""

    code: str  #: Name of the rule
    option: str | None  #: Option of the violation; "*": the option of the current subject; None: none
    severity: str | Mapping[str, str]  #: "error" or "warning"; or one by mode ("": any other mode)
    says: str  #: What is wrong
    fix: str  #: What to do
    test: Mapping[str, Any] = field(default_factory=dict)  #: Conditions as in ``conditions.py``, all of which must hold
    repair: Mapping[str, Any] | None = None  #: The single obvious correction: options to set, or one to drop
    #: Reasons why a text is unreadable, by a pattern to search near the error.
    reasons: Sequence[Mapping[str, str]] = ()
    excludes: str = ""  #: Option that excludes those in ``each`` of the test

    def severity_in(self, mode: str | None) -> str:
        """Severity in a mode; None: unknown mode."""
        return self.severity if isinstance(self.severity, str) else self.severity.get(mode or "", self.severity[""])


class Wish(Struct, frozen=True):
    """A wish: something that a user wants to see in the profile."""

    wish: str  #: Id
    title: str  #: Title in the user's language
    words: Sequence[str] = ()  #: Synonyms
    sets: Mapping[str, Any] = field(default_factory=dict)  #: Options and values that fulfil it
    insists: bool = False  #: Whether wishes for less overhead must not lower its values
    #: Values of options that it lowers to its own, unless another wish insists.
    lowers: Mapping[str, Any] = field(default_factory=dict)
    every_run: bool = False  #: Whether it should be part of all runs
    form: str = ""  #: Required form of the output line; empty: any


class Tables(Struct, frozen=True):
    """All tables of a source, in one language."""

    source: str
    kinds: Mapping[str, OptionKind]
    options: Sequence[Option]
    rules: Mapping[str, OptionRule]
    wishes: Sequence[Wish]
    making: Mapping[str, Any]
    products: Mapping[str, Mapping[str, Any]]
    metric_groups: Sequence[Mapping[str, Any]]
    circumstances: Mapping[str, Sequence[str]]
    texts: Mapping[str, str]

    def of_kind(self, kind: str) -> dict[str, Option]:
        """Options of a kind by name, in the order of the table."""
        return {option.name: option for option in self.options if option.kind == kind}

    def group(self, value: object) -> Mapping[str, Any] | None:
        """The metric group with a name or number; None if there is none."""
        found = (group for group in self.metric_groups if value == group["name"] or value is group["number"])
        return next(found, None)

    def say(self, key: str, **words: object) -> str:
        """Formats a sentence of the table of texts."""
        return self.texts[key].format(**words)


def load(source: str, language: str) -> Tables:
    """Loads the tables of a source (of ``SOURCES``) in a language (of ``LANGUAGES``)."""
    options, rules, making = (_read(Path(source) / f"{name}.json", language) for name in ("options", "rules", "wishes"))
    return Tables(
        source=source,
        kinds={kind["name"]: OptionKind(**kind) for kind in options["kinds"]},
        options=[Option(**option) for option in options["options"]],
        rules={rule["code"]: _rule(rule) for rule in rules["rules"]},
        wishes=[Wish(**wish) for wish in making["wishes"]],
        making=making,
        products=options.get("products", {}),
        metric_groups=options.get("metric_groups", ()),
        circumstances={key: options[key] for key in ("modes", "frameworks") if key in options},
        texts=_read(Path("texts.json"), language),
    )


def help_texts(language: str) -> dict[str, Any]:
    """Texts of the command's help, in a language of ``LANGUAGES``."""
    texts: dict[str, Any] = _read(Path("help.json"), language)
    return texts


def sources_of_kinds() -> dict[str, str]:
    """Source of each kind, by name."""
    return {kind["name"]: source for source in SOURCES for kind in
            json.loads((_FOLDER / source / "options.json").read_text(encoding="utf-8"))["kinds"]}  # fmt: skip


def language_of(environment: Mapping[str, str]) -> str:
    """Language of the locale of an environment, if available; else the default."""
    wanted = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    return next((language for language in LANGUAGES if wanted.lower().startswith(language)), LANGUAGES[0])


def nearest(word: str, candidates: Mapping[str, Option] | Sequence[str], *, cutoff: float = 0.6) -> str:
    """The known name most similar to a word; empty if none is similar enough."""
    if len(word) > _LONGEST_NAME:
        return ""
    plain = word.lower().replace("-", "_")
    names = {name.lower().replace("-", "_"): name for name in candidates}
    if isinstance(candidates, Mapping):
        names |= {other: option.name for option in candidates.values() for other in option.also}
    found = difflib.get_close_matches(plain, names, n=1, cutoff=cutoff)
    return names[found[0]] if found else ""


def _read(path: Path, language: str) -> Any:
    return _translated(json.loads((_FOLDER / path).read_text(encoding="utf-8")), language)


def _translated(data: Any, language: str) -> Any:
    """Replaces each object of translations in the data by the text in one language."""
    if isinstance(data, dict):
        if set(data) == set(LANGUAGES):
            return data[language]
        return {key: _translated(value, language) for key, value in data.items()}
    return [_translated(value, language) for value in data] if isinstance(data, list) else data


def _rule(data: dict[str, Any]) -> OptionRule:
    own = {each.name for each in fields(OptionRule)}
    test = {key: value for key, value in data.items() if key not in own}
    return OptionRule(**{key: value for key, value in data.items() if key in own}, test=test)
