"""The tables of a source, in one language."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import fields

#: Languages of all texts; the first is that of who has said nothing.
LANGUAGES: Final = ("en", "zh")
#: Names of options are no longer than this, nor is what is compared with them.
_LONGEST_NAME: Final = 64
_FOLDER: Final = Path(__file__).parent / "tables"
#: Sources that have tables: the folders they lie in.
SOURCES: Final = tuple(sorted(path.name for path in _FOLDER.iterdir() if path.is_dir()))


class Kind(Struct, frozen=True):
    """A form in which options are written.

    Attributes:
        name: What ``--kind`` takes.
        form: "json" (an object of texts in a variable), "call" (keyword arguments) or "variables" (an environment).
        unreadable: Code of the finding about a text that is not of this form.
        title: One line.
        about: What holds for all of its options.
        variable: Environment variable that holds the object of form "json".
        calls: Names of functions whose arguments are options.
        call: The function as it is written.
        positional: Names of the arguments of these functions, in their order.
        switch: Variable without which the options do not count, with a text for each of its values.
    """

    name: str
    form: str
    unreadable: str
    title: str
    about: Sequence[str] = ()
    variable: str = ""
    calls: Sequence[str] = ()
    call: str = ""
    positional: Sequence[str] = ()
    switch: Mapping[str, Any] | None = None


class Option(Struct, frozen=True):
    """An option.

    Attributes:
        name: As it is written.
        kind: Name of the kind it belongs to.
        type: Which values it takes (``values.py``).
        summary: What it does.
        values: Values of a choice, set or group of metrics.
        explains: What values do, by value.
        same_as: The same option under another name.
        meant: Value that is meant, by what people write in its place (lower case).
        range: Smallest and largest number; None where the documents name none.
        default: Value when it is not written; None: nothing, `default_means` says what happens.
        default_stated: Whether the documents say the default.
        files: Files of the result it yields.
        gains: What they gain.
        cost: Overhead.
        views: What the run can show with values that pass the test beside them.
        products: What products have of it, where that is not the usual.
        modes: Modes it is of; none: all.
        also: Other names that documents have for it.
        forbidden: Characters a path may not hold, and the code of that finding.
        empty: Code of the finding about an empty text.
        lenient: Code of the finding about a value that counts as another one.
        bare: Code of the finding about a size without `suffix`.
        missing: Code of the finding about a path that is not there.
        custom: How own registers are written, with the codes of findings about them.
        groups: Whether its values are groups of metrics.
    """

    name: str
    kind: str
    type: str
    summary: str
    values: Sequence[Any] = ()
    explains: Mapping[str, str] = field(default_factory=dict)
    same_as: str = ""
    meant: Mapping[str, Any] = field(default_factory=dict)
    range: tuple[int, int | None] | None = None
    unit: str = ""
    suffix: str = ""
    default: Any = None
    default_means: str = ""
    default_stated: bool = True
    since: str = ""
    deprecated: str = ""
    files: Sequence[str] = ()
    gains: str = ""
    cost: str = ""
    views: Sequence[Mapping[str, Any]] = ()
    products: Mapping[str, str] = field(default_factory=dict)
    modes: Sequence[str] = ()
    also: Sequence[str] = ()
    forbidden: Mapping[str, str] | None = None
    empty: str = ""
    lenient: str = ""
    bare: str = ""
    missing: str = ""
    custom: Mapping[str, Any] | None = None
    groups: bool = False


class Rule(Struct, frozen=True):
    """A rule; those with a test are about options together, the others are found while reading or by type of value.

    Attributes:
        code: Its name.
        option: The option that a finding is about; "*": the one in hand; None: none.
        severity: "error" or "warning"; by mode where it depends on that ("": any other).
        says: What is wrong.
        fix: What to do.
        test: Conditions as in ``conditions.py``, all of which must hold.
        repair: The one obvious correction: options to set, or one to drop.
        reasons: Why a text is unreadable, by a pattern that is found near the place.
        excludes: The option that excludes those the rule is about.
    """

    code: str
    option: str | None
    severity: str | Mapping[str, str]
    says: str
    fix: str
    test: Mapping[str, Any] = field(default_factory=dict)
    repair: Mapping[str, Any] | None = None
    reasons: Sequence[Mapping[str, str]] = ()
    excludes: str = ""

    def severity_in(self, mode: str | None) -> str:
        """Its severity in a mode; None: the mode is not known."""
        return self.severity if isinstance(self.severity, str) else self.severity.get(mode or "", self.severity[""])


class Wish(Struct, frozen=True):
    """Something that people want to see.

    Attributes:
        wish: Its id.
        title: The same in the reader's language.
        words: Other words for it.
        sets: Options that fulfil it, with their values.
        insists: Whether no wish for less overhead may lower what it sets.
        lowers: Values that it lowers to its own, unless another wish insists on them.
        every_run: Whether each of several runs should have it.
        form: The form of the line it asks for; empty: any.
    """

    wish: str
    title: str
    words: Sequence[str] = ()
    sets: Mapping[str, Any] = field(default_factory=dict)
    insists: bool = False
    lowers: Mapping[str, Any] = field(default_factory=dict)
    every_run: bool = False
    form: str = ""


class Tables(Struct, frozen=True):
    """What is known of a source, in one language."""

    source: str
    kinds: Mapping[str, Kind]
    options: Sequence[Option]
    rules: Mapping[str, Rule]
    wishes: Sequence[Wish]
    making: Mapping[str, Any]
    products: Mapping[str, Mapping[str, Any]]
    metric_groups: Sequence[Mapping[str, Any]]
    circumstances: Mapping[str, Sequence[str]]
    texts: Mapping[str, str]

    def of_kind(self, kind: str) -> dict[str, Option]:
        """Options of a kind by their names, in the order of the table."""
        return {option.name: option for option in self.options if option.kind == kind}

    def group(self, value: object) -> Mapping[str, Any] | None:
        """The group of metrics with a name or number."""
        found = (group for group in self.metric_groups if value == group["name"] or value is group["number"])
        return next(found, None)

    def say(self, key: str, **words: object) -> str:
        """A sentence of the table of texts."""
        return self.texts[key].format(**words)


def load(source: str, language: str) -> Tables:
    """The tables of a source of ``SOURCES``, texts in a language of ``LANGUAGES``."""
    options, rules, making = (_read(Path(source) / f"{name}.json", language) for name in ("options", "rules", "wishes"))
    return Tables(
        source=source,
        kinds={kind["name"]: Kind(**kind) for kind in options["kinds"]},
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
    """What the help of the command says, in a language of ``LANGUAGES``."""
    texts: dict[str, Any] = _read(Path("help.json"), language)
    return texts


def sources_of_kinds() -> dict[str, str]:
    """Kinds and the source that each belongs to."""
    return {kind["name"]: source for source in SOURCES for kind in
            json.loads((_FOLDER / source / "options.json").read_text(encoding="utf-8"))["kinds"]}  # fmt: skip


def language_of(environment: Mapping[str, str]) -> str:
    """The language that the locale of an environment asks for, of those there are."""
    wanted = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    return next((language for language in LANGUAGES if wanted.lower().startswith(language)), LANGUAGES[0])


def nearest(word: str, known: Mapping[str, Option] | Sequence[str], *, cutoff: float = 0.6) -> str:
    """The known name that a word was probably meant to be; empty: none is near."""
    if len(word) > _LONGEST_NAME:
        return ""
    plain = word.lower().replace("-", "_")
    names = {name.lower().replace("-", "_"): name for name in known}
    if isinstance(known, Mapping):
        names |= {other: option.name for option in known.values() for other in option.also}
    found = difflib.get_close_matches(plain, names, n=1, cutoff=cutoff)
    return names[found[0]] if found else ""


def _read(path: Path, language: str) -> Any:
    return _spoken(json.loads((_FOLDER / path).read_text(encoding="utf-8")), language)


def _spoken(data: Any, language: str) -> Any:
    """Data with every text that is there in all languages in one of them."""
    if isinstance(data, dict):
        if set(data) == set(LANGUAGES):
            return data[language]
        return {key: _spoken(value, language) for key, value in data.items()}
    return [_spoken(value, language) for value in data] if isinstance(data, list) else data


def _rule(data: dict[str, Any]) -> Rule:
    own = {each.name for each in fields(Rule)}
    test = {key: value for key, value in data.items() if key not in own}
    return Rule(**{key: value for key, value in data.items() if key in own}, test=test)
