"""Vocabulary of a source: its columns, kinds of lanes and groups, words, capabilities, colours, views, and files.

Each source defines one; its profiles refer to it, and generic code takes names and texts from it. All of it is plain
data: functions of a source are named by an entry ("module:function") and imported on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from .activity import Activity
from .columns import COUNTERS, EVENT, LANE_KIND, STEP, Column
from .view import View

#: Capabilities that generic code checks: operations have names; all details of each event are recorded.
NAMES: Final = "names"
DETAIL: Final = "detail"


class Word(Struct, frozen=True):
    """A noun in singular and plural; without ``many`` the plural is formed with -s."""

    one: str
    many: str = ""

    @property
    def plural(self) -> str:
        """The plural."""
        return self.many or f"{self.one}s"

    @property
    def with_article(self) -> str:
        """The singular with its article: ``a core``, ``an event``; abbreviations are spelled: ``an NPU``, ``a GPU``."""
        vowels = "AEFHILMNORSX" if self.one[:2].isupper() else "AEIOaeio"
        return f"{'an' if self.one[:1] in tuple(vowels) else 'a'} {self.one}"

    def of(self, count: int) -> str:
        """A count with the noun: ``1 core``, ``2,000 cores``."""
        return f"{count:,} {self.one if count == 1 else self.plural}"

    def more(self, base: int, other: int) -> str:
        """How many more, or fewer, of them another has than a base: ``2 cores fewer (8 -> 6)``."""
        return f"{self.of(abs(other - base))} {'more' if other > base else 'fewer'} ({base:,} -> {other:,})"


class Shades(Struct, frozen=True):
    """A colour, ``#rrggbb``, on dark and on light backgrounds, and safe for colour blindness.

    Empty ones are derived from ``dark``.
    """

    dark: str
    paper: str = ""
    safe: str = ""


class LaneKind(Struct, frozen=True):
    """A kind of lane."""

    key: str  #: Name in filters, files and options
    title: str  #: Name on the screen
    activity: Activity  #: Activity of most of its events
    order: int  #: Sort position among the kinds of a group
    shades: Shades | None = None  #: Colours of work without a category

    @property
    def on_host(self) -> bool:
        """Whether such lanes run on the host, as ``Lane.on_host``."""
        return self.activity is Activity.HOST


class GroupKind(Struct, frozen=True):
    """A kind of group: its key, its title, and the word for one such group."""

    key: str
    title: str
    word: Word


class Category(Struct, frozen=True):
    """A category of events, for colours: events whose type contains one of ``words``; the first match applies.

    With ``activity``, events with that value in the column ``activity`` instead, regardless of type. ``letter`` marks
    the category where colours cannot.
    """

    name: str
    letter: str
    shades: Shades
    words: tuple[str, ...] = ()
    activity: Activity | None = None


class Capability(Struct, frozen=True):
    """A kind of data that a profile may hold: its key, a description, and how to record it ("mode 2")."""

    key: str
    title: str
    needs: str


class ShareColouring(Struct, frozen=True):
    """A colour mode: events by their share of a hardware limit."""

    key: str  #: Name in settings
    title: str  #: Name in legends
    #: (column, peak) pairs, of which the first with a value applies; ``peak`` names the bandwidth (``Device.peaks``)
    #: that the value is divided by, empty if the column is in percent.
    columns: tuple[tuple[str, str], ...]
    peak_text: str = ""  #: Name of the limit, in words


class NameColouring(Struct, frozen=True):
    """A colour mode: events by names that the source computes."""

    key: str  #: Name in settings
    title: str  #: Name in legends
    needs: str  #: Key of the required capability
    #: Entry of a function from a session to (names by time on the device, for each lane an int32 array of indices into
    #: the names by row, -1: none). O(events), called in a worker thread.
    entry: str


class WorkOrigin(Struct, frozen=True):
    """What device work came from, by which recordings of other chips, libraries and sources are compared."""

    view: str  #: Id of the breakdown
    word: Word  #: Word for what it came from
    column: str = ""  #: Text column of the work; empty: the innermost frame (``Vocabulary.frames``) that called it
    #: Regular expression of the names; its group, if it has one, is what is compared. Empty: all names.
    pattern: str = ""


class Condition(Struct, frozen=True):
    """A filter condition ``KEY=WORD`` that is not based on a column."""

    key: str
    words: tuple[str, ...]
    fault: str  #: Error message for unknown words
    mask: str  #: Entry of a function (profile, lane, word) that returns a boolean mask of the lane's rows


class Output(Struct, frozen=True):
    """An export format: the files that a profile can be written to."""

    key: str  #: Name on the command line
    title: str
    #: Entry of a function ``(job, paths, progress) -> list[Path]`` that writes the files and returns their
    #: paths (``export.job``); ``paths`` are those of ``files``. Empty: a table of events in the format ``key``.
    writer: str = ""
    files: tuple[str, ...] = ()  #: Names of the files that are always written, in the output folder
    shown: str = ""  #: File names for messages and help; empty: ``files``
    pattern: str = ""  #: Regular expression of all possible file names; empty: ``files``
    names: str = ""  #: Entry of a function ``(job) -> names`` of the files that depend on the profile
    #: Entry of a function ``(query) -> (note, text)``: a note about the written files, and a function that
    #: returns the last output of the command line.
    finish: str = ""
    progress_name: str = ""  #: Name in progress messages; empty: the title
    action: str = ""  #: Name in the explorer; empty: the key
    letter: str = ""  #: Key in the export menu, with Alt outside of it; formats of other packages are chosen with Enter
    #: Help of that key, one sentence with the names of ``Vocabulary.words``; empty: derived from the title.
    help: str = ""
    short: str = ""  #: Label in the footer of the menu; empty: not shown there
    needs: str = ""  #: Package required for writing
    #: list_order, write_order: Sort positions in lists, and in the order of writing.
    list_order: int = 0
    write_order: int = 0
    #: Sets it belongs to, which command line options add, exclude or narrow: ``web``, ``doc``, ``beside`` (written only
    #: along with other outputs), ``perfetto``, ``summary``, ``enable_doc``, ``num_core``.
    sets: frozenset[str] = frozenset()
    #: cost, detailed: Measured (bytes, ns) per event, for estimates; ``detailed`` applies if all details of each event
    #: are recorded. 0: small and fast.
    cost: tuple[float, float] = (0.0, 0.0)
    detailed: tuple[float, float] = (0.0, 0.0)
    most: int = 0  #: Maximum number of events; 0: unlimited

    @property
    def id(self) -> str:
        """Name in the explorer."""
        return self.action or self.key

    @property
    def sentence(self) -> str:
        """Help of its key."""
        needs = f" (needs {self.needs})" if self.needs else ""
        return self.help or f"Write the {self.title}{needs}."

    @property
    def is_table(self) -> bool:
        """Whether it is the explorer's table of events."""
        return not self.writer

    @property
    def file_text(self) -> str:
        """File names for messages and help."""
        return self.shown or ", ".join(self.files)


#: Examples of filters for every source.
FILTER_EXAMPLES: Final = (
    ("dur>10us", "numbers: = != < <= > >=, with units where the column has some"),
    ("name=A*", "texts: * and ? are wildcards; case matters if there are capitals"),
    ("name~^a.*b$", "texts: a regular expression"),
    ("step in 1,2", "any of a list; of numbers step=1,2 too"),
    ("a b", "a space means and"),
    ("a | b", "or; parentheses group"),
    ("!a", "not"),
    ("not a and (b or c)", "the same in words; in quotes they are searched for"),
    ("role=wait", "work, wait or sync; several with commas"),
)


class Vocabulary(Struct, frozen=True, eq=False, dict=True):
    """The vocabulary of a source."""

    source: str  #: Id of the source
    title: str  #: Name of the source on the screen
    #: unit, lane, event, scope, operation: Words for a unit that figures are computed for, a lane, an event, the launch
    #: or scope of events, and the name of an event.
    unit: Word = Word("unit")
    lane: Word = Word("lane")
    event: Word = Word("event")
    scope: Word = Word("scope")
    operation: Word = Word("name")
    #: step, step_column: Word for a step (iteration) of a run, and the column with its number, for profiles that do not
    #: list their steps.
    step: Word = Word("step")
    step_column: str = ""
    usual_name: str = ""  #: Common prefix of the names of its captures; the distinguishing part follows
    #: lane_kinds, group_kinds, categories, capabilities: See these classes; categories in the order of matching.
    lane_kinds: tuple[LaneKind, ...] = ()
    group_kinds: tuple[GroupKind, ...] = ()
    categories: tuple[Category, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    #: shares, named: Colour modes of this source.
    shares: tuple[ShareColouring, ...] = ()
    named: tuple[NameColouring, ...] = ()
    conditions: tuple[Condition, ...] = ()  #: Filter conditions of this source
    #: Names in filters that refer to the first known of several columns.
    either: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Text columns that a filter of one plain word searches.
    searched: tuple[str, ...] = ("engine", "name", "type", "kernel")
    page_columns: tuple[str, ...] = ()  #: Numeric columns that the web page draws besides times
    #: operation_codes, operands: Columns that identify the operation of an event, independent of its recorded name, and
    #: its operands; two profiles are compared by them.
    operation_codes: tuple[str, ...] = ()
    #: Regular expression for names with a generated end; its group is the operation if two recordings have no such
    #: names in common. May be empty.
    operation_class: str = ""
    operands: tuple[str, ...] = ("bytes",)
    #: Column that numbers the events of a launch on a lane anew, to find the launches of recordings that do not name
    #: them; may be empty.
    number_in_launch: str = ""
    #: (view, text column) pairs of the views that break down the sum of work by that column; empty: events are no work,
    #: and comparisons are those of the views.
    work_breakdowns: tuple[tuple[str, str], ...] = (("kernels", "kernel"), ("operations", "name"))
    #: (view, column) of views that break down a time of host events by name, for profiles in which no device works.
    host_breakdowns: tuple[tuple[str, str], ...] = ()
    origins: tuple[WorkOrigin, ...] = ()  #: What work came from
    #: Host events that form call paths: by type, a regular expression for the beginning of their names.
    frames: Mapping[str, str] = field(default_factory=dict)
    blocking: str = ""  #: Regular expression for names of host events that wait for the device; may be empty
    one_chip: bool = False  #: Whether profiles of different chips cannot be compared
    #: Whether host events are a recording of their own, and do not count among those of a worker.
    hosts_apart: bool = False
    #: Explanations of words on the screen that are specific to this source.
    help_words: Mapping[str, str] = field(default_factory=dict)
    #: Sentences of the screen that replace generic ones, by the id of their action or by their use: ``no_times``,
    #: ``no_links``, ``filter_hint``, ``sort_hint``, ``group_hint``, ``scopes`` (of a line), ``fields``, ``field``,
    #: ``bytes`` (recorded data of each event), ``untimed`` (an event without times), ``category`` (meaning of
    #: categories), ``waits`` (below tables of units), ``page_...`` (of the web page).
    phrases: Mapping[str, str] = field(default_factory=dict)
    help_filters: tuple[tuple[str, str], ...] = ()  #: Examples of filters with their meaning, before the generic ones
    #: Views of this source; one with the id of a generic view replaces it (``views.registry``).
    views: tuple[View, ...] = ()
    outputs: tuple[Output, ...] = ()  #: Export formats of this source
    #: File names of generic export formats, by key.
    output_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns_entry: str = ""  #: Entry of the schema, a tuple of columns
    #: Further columns that are named by a recording; they follow those of the schema.
    more_columns: tuple[Column, ...] = ()
    #: File of texts that the command line's help takes from this source, each below a line ``=== name``.
    texts_file: Path | None = None
    #: Entries of the source's own functions, by purpose (see ``entry``).
    entries: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The schema: all columns of events, in the order of tables and files."""
        own = (*(import_entry(self.columns_entry) if self.columns_entry else ()), *self.more_columns)
        keys = {column.key for column in own}
        return (*(() if LANE_KIND.key in keys else (LANE_KIND,)), *own, *(() if STEP.key in keys else (STEP,)))

    @cached_property
    def schema(self) -> Mapping[str, Column]:
        """The columns by key."""
        return {column.key: column for column in self.columns}

    @property
    def filter_examples(self) -> tuple[tuple[str, str], ...]:
        """Examples of filters with their meaning: its own, and the generic ones that say something else."""
        told = {meaning for _, meaning in self.help_filters}
        return (*self.help_filters, *(each for each in FILTER_EXAMPLES if each[1] not in told))

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts of this source for the command line's help, by name."""
        text = "" if self.texts_file is None else self.texts_file.read_text(encoding="utf-8")
        names_and_texts = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)[1:]
        return dict(zip(names_and_texts[::2], names_and_texts[1::2], strict=True))

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Replacement fields of `say`: ``unit``, ``units``, ``Units``, ``a_unit``; likewise for the other words."""
        titles = [share.title.partition(",")[0] for share in self.shares] + [named.title for named in self.named]
        first = self.phrases.get("category", "operation")
        found = {"colourings": join_words(dict.fromkeys((first, self.scope.one, *titles)), "or")}
        words = ("unit", self.unit), ("lane", self.lane), ("event", self.event), ("scope", self.scope)
        for key, word in (*words, ("operation", self.operation), ("step", self.step)):
            for name, text in ((key, word.one), (f"{key}s", word.plural)):
                found |= {name: text, name.capitalize(): text[:1].upper() + text[1:]}
            found[f"a_{key}"] = word.with_article
        return found

    def say(self, sentence: str, **more: object) -> str:
        """Formats a sentence with this source's words: ``No {event} selected`` (see `words`)."""
        return sentence.format_map({**self.words, **more})

    def phrase(self, key: str, sentence: str, **more: object) -> str:
        """Formats this source's own sentence for ``key``, or the generic ``sentence`` if it has none."""
        return self.say(self.phrases.get(key, sentence), **more)

    def heading(self, group: str) -> str:
        """Heading of a group of columns; for the event's own columns, the word for an event."""
        return self.event.one if group == EVENT else group

    def is_text(self, key: str) -> bool:
        """Whether a column holds texts."""
        column = self.schema.get(key)
        return column is not None and column.kind == "text"

    def listed(self) -> tuple[Column, ...]:
        """All columns except raw counters."""
        return tuple(column for column in self.columns if column.group != COUNTERS)

    def lane_kind(self, key: str) -> LaneKind | None:
        """The kind of lane with this key; None if the source has none."""
        return next((kind for kind in self.lane_kinds if kind.key == key), None)

    def group_kind(self, key: str) -> GroupKind | None:
        """The kind of group with this key; None if the source has none."""
        return next((kind for kind in self.group_kinds if kind.key == key), None)

    def event_word(self, *, timed: bool = True) -> Word:
        """The word for an event; without times (it was only issued) the source may have another one."""
        return self.event if timed or "untimed" not in self.phrases else Word(self.phrases["untimed"])

    def word_of(self, kind: str) -> Word:
        """The word for a group of a kind, by key."""
        found = self.group_kind(kind)
        return found.word if found is not None else Word(kind)

    def capability(self, key: str) -> Capability | None:
        """The capability with this key; None if the source has none."""
        return next((each for each in self.capabilities if each.key == key), None)

    def needs(self, key: str) -> str:
        """How to record a capability; the key itself if the source has no such capability."""
        found = self.capability(key)
        return found.needs if found is not None else key

    def all_needs(self) -> str:
        """How to record any of the capabilities: "mode 1 or 2"; empty if the source has none."""
        parts = [each.needs.rpartition(" ") for each in self.capabilities]
        if len({head for head, _, _ in parts}) == 1:
            return f"{parts[0][0]} {' or '.join(last for _, _, last in parts)}".strip()
        return " or ".join(each.needs for each in self.capabilities)

    def share(self, key: str) -> ShareColouring | None:
        """The share with this key; None if the source has none."""
        return next((share for share in self.shares if share.key == key), None)

    def names(self, key: str) -> NameColouring | None:
        """The colour mode by names with this key; None if the source has none."""
        return next((named for named in self.named if named.key == key), None)

    def entry(self, name: str) -> Callable[..., Any] | None:
        """Imports the source's own function for a purpose; None if generic code is used.

        Purposes: ``instructions``: writes all details of events (``cli.instructions``); ``instructions_sorted``: the
        same in the order of a table; ``rules``: its rules, an object (``views.rules.SourceRules``);
        ``steps``: steps as it defines them (``views.steps``); ``sentence``: its answer in one sentence
        (``views.sentence``);
        ``page_summary``, ``page_memory``: parts of the web page.
        """
        entry = self.entries.get(name)
        return import_entry(entry) if entry else None


#: Default vocabulary while no profile is open.
GENERIC: Final = Vocabulary("", "")


def join_words(words: Iterable[str], last: str = "and") -> str:
    """Joins words: ``a, b and c``."""
    *first, end = words
    return f" {last} ".join(part for part in (", ".join(first), end) if part)


def import_entry(entry: str) -> Any:
    """Imports the object that an entry ("module:name") refers to."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)
