"""What a source calls things: its columns, kinds of lanes and groups, words, capabilities, colours, files.

One for each source; a profile carries that of its own, and what is said and written of a profile asks it. Everything
here is plain data: what a source computes itself is named by an entry ("module:function") and imported when it is
first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field

from .activity import Activity
from .columns import COUNTERS, EVENT, LANE_KIND, STEP, Column
from .view import View

#: Capabilities that generic code asks for, where a source has them: names of what ran, and everything of each event.
NAMES: Final = "names"
DETAIL: Final = "detail"


class Word(Struct, frozen=True):
    """One word for a thing, and for several."""

    one: str
    many: str = ""

    @property
    def plural(self) -> str:
        """The word for several."""
        return self.many or f"{self.one}s"

    @property
    def with_article(self) -> str:
        """One of them: ``a core``, ``an event``; letters are spelled: ``an NPU``, ``a GPU``."""
        vowels = "AEFHILMNORSX" if self.one[:2].isupper() else "AEIOaeio"
        return f"{'an' if self.one[:1] in tuple(vowels) else 'a'} {self.one}"

    def of(self, count: int) -> str:
        """A number of them: ``1 core``, ``2,000 cores``."""
        return f"{count:,} {self.one if count == 1 else self.plural}"


class Shades(Struct, frozen=True):
    """A colour on each kind of ground, ``#rrggbb``: dark, paper, and one for all eyes; empty: made of the first."""

    dark: str
    paper: str = ""
    safe: str = ""


class LaneKind(Struct, frozen=True):
    """A kind of lane: its name in filters, files and options, and for people; what most of its events do.

    Attributes:
        order: Its place among the kinds of a group.
        shades: Colours of work that no category colours.
    """

    key: str
    title: str
    activity: Activity
    order: int
    shades: Shades | None = None

    @property
    def on_host(self) -> bool:
        """Whether it runs beside the device, as ``Lane.on_host`` says it of a lane."""
        return self.activity is Activity.HOST


class GroupKind(Struct, frozen=True):
    """A kind of group: its key, what it is called, and the word for one of them."""

    key: str
    title: str
    word: Word


class Category(Struct, frozen=True):
    """Events of one sort: those whose type has one of these words, of several sorts the first; a letter tells it.

    Where ``activity`` is given it is those with that in their column ``activity``, whatever their type.
    """

    name: str
    letter: str
    shades: Shades
    words: tuple[str, ...] = ()
    activity: Activity | None = None


class Capability(Struct, frozen=True):
    """Something a profile can know: its name in code, what is then known, and how to record it ("mode 2")."""

    key: str
    title: str
    needs: str


class Share(Struct, frozen=True):
    """A way of colouring by a share of what the hardware could do: its name in settings, and in legends.

    Attributes:
        columns: Columns it rests on, the first that is known and set counts; each with the name of the peak
            (``Device.peaks``) it is a share of, or nothing where the column is in percent.
        peak_text: What it is a share of, in words.
    """

    key: str
    title: str
    columns: tuple[tuple[str, str], ...]
    peak_text: str = ""


class Named(Struct, frozen=True):
    """A way of colouring by names that the source finds for events: its name in settings, and in legends.

    Attributes:
        needs: The capability it takes.
        entry: Entry of a function from a session to the names, in the order of their time on the device, and which of
            them events have: int32 by row for each lane, -1 without. O(events): it is called in a thread.
    """

    key: str
    title: str
    needs: str
    entry: str


class Condition(Struct, frozen=True):
    """A condition of filters that is no column: ``KEY=WORD``.

    Attributes:
        fault: What to say of any other word.
        mask: Entry of a function from profile, lane and word to a boolean mask of the lane's rows.
    """

    key: str
    words: tuple[str, ...]
    fault: str
    mask: str


class Output(Struct, frozen=True):
    """Files that a profile can be written as.

    Attributes:
        key: What the command line calls it.
        writer: Entry of a function ``(profile, job, paths, progress) -> list[Path]`` that writes the files and says
            which (``export.job``), where ``paths`` are those of ``files``; empty: the table of the explorer, in the
            form ``key``.
        files: Names in the output folder that it always has.
        shown: The names as people are told them; empty: ``files``.
        pattern: Regular expression of all names it may have; empty: ``files``.
        names: Entry of a function ``(profile, job) -> names`` of the files that depend on the profile.
        prepare: Entry of a function ``(profile) -> profile`` that finds problems of files beside the capture.
        finish: Entry of a function ``(profile, selection) -> (note, text)``: what to know of what was written, and a
            function that gives what the command line prints at the end.
        told: What progress calls it; empty: the title.
        action: Its name in the explorer; empty: the key.
        letter: Its key in the export menu, with Alt outside of it; those of other packages are chosen with Enter.
        help: What the menu's key does, one sentence with the names of ``Vocabulary.words``; empty: made of the title.
        short: What the footer of the menu calls it; empty: it is not there.
        needs: Package that writes it.
        place, turn: Its place in lists, and among what is written.
        sets: Sets of outputs it belongs to, which options of the command line add, leave out or narrow: ``web``,
            ``doc``, ``beside`` (where there is anything else), ``perfetto``, ``summary``, ``enable_doc``, ``num_core``.
        cost, detailed: Measured bytes and ns of an event, the latter where everything of each is known; 0: it is small
            and fast.
        most: Events that it holds at most; 0: any number.
    """

    key: str
    title: str
    writer: str = ""
    files: tuple[str, ...] = ()
    shown: str = ""
    pattern: str = ""
    names: str = ""
    prepare: str = ""
    finish: str = ""
    told: str = ""
    action: str = ""
    letter: str = ""
    help: str = ""
    short: str = ""
    needs: str = ""
    place: int = 0
    turn: int = 0
    sets: frozenset[str] = frozenset()
    cost: tuple[float, float] = (0.0, 0.0)
    detailed: tuple[float, float] = (0.0, 0.0)
    most: int = 0

    @property
    def id(self) -> str:
        """Its name in the explorer."""
        return self.action or self.key

    @property
    def sentence(self) -> str:
        """What its key does."""
        needs = f" (needs {self.needs})" if self.needs else ""
        return self.help or f"Write the {self.title}{needs}."

    @property
    def is_table(self) -> bool:
        """Whether it is the explorer's table."""
        return not self.writer

    @property
    def file_text(self) -> str:
        """The names of its files, as people are told them."""
        return self.shown or ", ".join(self.files)


class Vocabulary(Struct, frozen=True, eq=False, dict=True):
    """The words of a source.

    Attributes:
        source: Its id.
        title: Its name for people.
        usual_name: What the names of all its captures begin with: what tells them apart follows.
        unit, lane, event, scope, operation: Words for what figures are made for, what runs one thing at a time, what it
            runs, what those belong to, and what their names are.
        step, step_column: Word for what a run does again and again, and the column that numbers it where profiles do
            not list their steps.
        lane_kinds, group_kinds, categories, capabilities: See there; categories in the order they are tried.
        shares, named: Ways of colouring of its own.
        conditions: Conditions of filters of its own.
        either: Names in filters that mean the first known of several columns.
        searched: Text columns in which a word alone is looked for.
        page_columns: Columns of numbers that the page draws, beside times.
        operation_codes, operands: Columns that tell the operation of an event whatever a recording calls it, and what
            it was asked to do: by these two profiles are compared.
        operation_class: Regular expression of names of which a recording makes up the end: its group is the operation
            where two recordings have no such name in common; empty: none.
        restarts: Column of numbers that start anew with each launch on a lane: in recordings that do not name launches
            these are told by it; empty: none.
        work_cuts: Views that cut the sum of work into parts, each with the text column it cuts by.
        host_cuts: Where the device did nothing: views, tables and columns that cut the time of the host.
        frames: Events of the host that make call paths: by type, a regular expression that their names begin with.
        blocking: Regular expression of names of the host's events that end with what the device did; empty: none.
        one_chip: Whether profiles of different chips cannot be compared.
        help_words: What words of the screen mean here, where it is more than generic code can say.
        phrases: Sentences of the screen that say more here than generic ones do, by the id of their action, or by what
            asks for them: ``no_times``, ``no_links``, ``filter_hint``, ``sort_hint``, ``group_hint``, ``scopes``
            (of a line), ``fields``, ``field``, ``bytes`` (what was recorded of each), ``untimed`` (one without times),
            ``category`` (what categories tell), ``waits`` (below tables of units), ``page_...`` (of the page).
        help_filters: What filters look like: examples and what they mean; empty: generic ones.
        views: Its own views; one with the id of a generic view stands in its place (``views.registry``).
        outputs: Files of its own.
        output_files: Names that files of generic outputs have, by key.
        columns_entry: Entry of the schema, a tuple of columns.
        more_columns: Columns that a recording names itself, which stand behind those of the schema.
        texts_entry: Entry of what the command line's help says with this source's words: texts by name.
        entries: What the source says and writes itself, by what asks for it (see ``entry``).
    """

    source: str
    title: str
    unit: Word = Word("unit")
    lane: Word = Word("lane")
    event: Word = Word("event")
    scope: Word = Word("scope")
    operation: Word = Word("name")
    step: Word = Word("step")
    step_column: str = ""
    usual_name: str = ""
    lane_kinds: tuple[LaneKind, ...] = ()
    group_kinds: tuple[GroupKind, ...] = ()
    categories: tuple[Category, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    shares: tuple[Share, ...] = ()
    named: tuple[Named, ...] = ()
    conditions: tuple[Condition, ...] = ()
    either: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searched: tuple[str, ...] = ("engine", "name", "type", "kernel")
    page_columns: tuple[str, ...] = ()
    operation_codes: tuple[str, ...] = ()
    operation_class: str = ""
    operands: tuple[str, ...] = ("bytes",)
    restarts: str = ""
    work_cuts: tuple[tuple[str, str], ...] = (("kernels", "kernel"), ("operations", "name"))
    host_cuts: tuple[tuple[str, str, str], ...] = ()
    frames: Mapping[str, str] = field(default_factory=dict)
    blocking: str = ""
    one_chip: bool = False
    help_words: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)
    help_filters: tuple[tuple[str, str], ...] = ()
    views: tuple[View, ...] = ()
    outputs: tuple[Output, ...] = ()
    output_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns_entry: str = ""
    more_columns: tuple[Column, ...] = ()
    texts_entry: str = ""
    entries: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The schema: every column an event can have, in the order of tables and files."""
        own = (*(imported(self.columns_entry) if self.columns_entry else ()), *self.more_columns)
        keys = {column.key for column in own}
        return (*(() if LANE_KIND.key in keys else (LANE_KIND,)), *own, *(() if STEP.key in keys else (STEP,)))

    @cached_property
    def schema(self) -> Mapping[str, Column]:
        """The same, by key."""
        return {column.key: column for column in self.columns}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """What the command line's help says with this source's words."""
        found: Mapping[str, str] = imported(self.texts_entry) if self.texts_entry else {}
        return found

    @cached_property
    def words(self) -> Mapping[str, str]:
        """What `say` puts in place of names: ``unit``, ``units``, ``Units``, ``a_unit``; of the other words alike."""
        titles = [share.title.partition(",")[0] for share in self.shares] + [named.title for named in self.named]
        first = self.phrases.get("category", "operation")
        found = {"colourings": joined(dict.fromkeys((first, self.scope.one, *titles)), "or")}
        words = ("unit", self.unit), ("lane", self.lane), ("event", self.event), ("scope", self.scope)
        for key, word in (*words, ("operation", self.operation), ("step", self.step)):
            for name, text in ((key, word.one), (f"{key}s", word.plural)):
                found |= {name: text, name.capitalize(): text[:1].upper() + text[1:]}
            found[f"a_{key}"] = word.with_article
        return found

    def say(self, sentence: str, **more: object) -> str:
        """A sentence of the screen with this source's words: ``No {event} selected`` (see `words`)."""
        return sentence.format_map({**self.words, **more})

    def phrase(self, key: str, sentence: str, **more: object) -> str:
        """A sentence of the screen in this source's words: its own under this key, else a generic one."""
        return self.say(self.phrases.get(key, sentence), **more)

    def heading(self, group: str) -> str:
        """The heading of a group of columns: those of the event itself stand below its word."""
        return self.event.one if group == EVENT else group

    def is_text(self, key: str) -> bool:
        """Whether a column holds texts."""
        column = self.schema.get(key)
        return column is not None and column.kind == "text"

    def listed(self) -> tuple[Column, ...]:
        """All columns but raw counters."""
        return tuple(column for column in self.columns if column.group != COUNTERS)

    def lane_kind(self, key: str) -> LaneKind | None:
        """The kind of lane with this key; None where the source declares none."""
        return next((kind for kind in self.lane_kinds if kind.key == key), None)

    def group_kind(self, key: str) -> GroupKind | None:
        """The kind of group with this key; None where the source declares none."""
        return next((kind for kind in self.group_kinds if kind.key == key), None)

    def event_word(self, *, timed: bool = True) -> Word:
        """The word for an event; for one without times, which was only issued, where the source has another."""
        return self.event if timed or "untimed" not in self.phrases else Word(self.phrases["untimed"])

    def word_of(self, kind: str) -> Word:
        """The word for one group of a kind, by key."""
        found = self.group_kind(kind)
        return found.word if found is not None else Word(kind)

    def capability(self, key: str) -> Capability | None:
        """The capability with this key; None where the source has none."""
        return next((each for each in self.capabilities if each.key == key), None)

    def needs(self, key: str) -> str:
        """How to record a capability; the key itself where the source does not say, empty for none."""
        found = self.capability(key)
        return found.needs if found is not None else key

    def all_needs(self) -> str:
        """How to record everything: "mode 1 or 2"; empty where the source does not say."""
        parts = [each.needs.rpartition(" ") for each in self.capabilities]
        if len({head for head, _, _ in parts}) == 1:
            return f"{parts[0][0]} {' or '.join(last for _, _, last in parts)}".strip()
        return " or ".join(each.needs for each in self.capabilities)

    def share(self, key: str) -> Share | None:
        """The share with this key; None where the source has none."""
        return next((share for share in self.shares if share.key == key), None)

    def names(self, key: str) -> Named | None:
        """The way of colouring by names with this key; None where the source has none."""
        return next((named for named in self.named if named.key == key), None)

    def entry(self, name: str) -> Callable[..., Any] | None:
        """What the source says or writes itself, imported now; None where it leaves that to generic code.

        ``instructions``: writes all that is known of events (``cli.instructions``); ``instructions_sorted``: the same
        in the order of a table; ``workers``: who recorded a profile (``views.report``);
        ``identities``: hosts and users that it names (``views.redacting``);
        ``findings``: what is worth a look beside what any profile shows (``views.finding_rules``); ``page_summary``,
        ``page_memory``: its parts of the page.
        """
        where = self.entries.get(name)
        return imported(where) if where else None


#: The words of nothing in particular: where no profile is open.
GENERIC: Final = Vocabulary("", "")


def joined(words: Iterable[str], last: str = "and") -> str:
    """``a, b and c``."""
    *first, end = words
    return f" {last} ".join(part for part in (", ".join(first), end) if part)


def imported(where: str) -> Any:
    """What an entry ("module:name") names."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)
