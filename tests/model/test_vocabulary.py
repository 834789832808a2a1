"""What a source calls things, and what is derived from it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.columns import LANE_KIND, STEP, Column
from tpuprof_tui.model.vocabulary import Capability, GroupKind, LaneKind, Vocabulary, Word
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY
from tpuprof_tui.views.rules import SourceRules

#: A source with words of its own; its columns are in this module.
OVEN = Vocabulary(
    "oven",
    "oven",
    unit=Word("tray"),
    lane_kinds=(LaneKind("HEAT", "Heat", Activity.COMPUTE, 0),),
    group_kinds=(GroupKind("tray", "Trays", Word("tray")),),
    capabilities=(Capability("recipes", "recipes", "record with --recipes"),),
    columns_entry=f"{__name__}:COLUMNS",
    entries={"page_summary": f"{__name__}:summary"},
)
COLUMNS = (Column("name", "Dish", kind="text", needs="recipes"), Column("crumbs", "Crumbs", group="counters"))


def summary() -> str:
    return "burnt"


def test_words_have_a_singular_and_a_plural():
    assert [Word("core").of(count) for count in (0, 1, 2_000)] == ["0 cores", "1 core", "2,000 cores"]
    assert Word("axis", "axes").of(2) == "2 axes"


def test_columns_are_imported_when_they_are_asked_for():
    # the kind of lane and the step are columns of every source
    assert OVEN.columns == (LANE_KIND, *COLUMNS, STEP)
    assert OVEN.schema["name"] is COLUMNS[0]
    assert OVEN.listed() == (LANE_KIND, COLUMNS[0], STEP)
    assert OVEN.is_text("name")
    assert not OVEN.is_text("crumbs")
    assert not OVEN.is_text("nothing")
    assert Vocabulary("none", "none").columns == (LANE_KIND, STEP)
    assert [column.title for column in VOCABULARY.columns if column.key == LANE_KIND.key] == ["Engine"]


def test_what_a_source_leaves_to_generic_code_is_none():
    found = OVEN.entry("page_summary")
    assert found is not None
    assert found() == "burnt"
    assert OVEN.entry("page_memory") is None


def test_kinds_and_capabilities_are_found_by_key():
    assert OVEN.lane_kind("HEAT") is OVEN.lane_kinds[0]
    assert OVEN.lane_kind("TIU") is None
    assert OVEN.word_of("tray").one == "tray"
    assert OVEN.word_of("ports").one == "ports"
    assert (OVEN.needs("recipes"), OVEN.needs("names"), OVEN.all_needs()) == (
        "record with --recipes", "names", "record with --recipes",
    )  # fmt: skip
    assert VOCABULARY.all_needs() == "mode 1 or 2"
    assert Vocabulary("none", "none").all_needs() == ""


@pytest.mark.parametrize("key", sorted(VOCABULARY.entries))
def test_every_entry_of_the_sophgo_source_names_something(key):
    entry = VOCABULARY.entry(key)
    assert callable(entry) or isinstance(entry, SourceRules)


def test_columns_belong_to_kinds_of_lanes_and_need_capabilities_that_there_are():
    kinds = {kind.key for kind in VOCABULARY.lane_kinds}
    needs = {"", *(each.key for each in VOCABULARY.capabilities)}
    for column in VOCABULARY.columns:
        assert set(column.lanes) <= kinds
        assert column.needs in needs
    keys = set(VOCABULARY.schema)
    assert {key for share in VOCABULARY.shares for key, _ in share.columns} <= keys
    assert {key for several in VOCABULARY.either.values() for key in several} <= keys
    assert {*VOCABULARY.searched, *VOCABULARY.page_columns} <= keys


def test_a_vocabulary_is_known_without_numpy():
    code = (
        "import sys; from tpuprof_tui.sources.catalog import vocabularies;"
        "assert all(each.columns for each in vocabularies()) and any(each.texts for each in vocabularies());"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
