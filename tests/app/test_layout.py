"""Which panes show and how large they are, decided without a screen."""

from __future__ import annotations

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.app.explorer.panes import PaneLayout, Sizes


def shown(layout: PaneLayout, *, selected: bool = False) -> str:
    return " ".join(name for name, display in layout.shown(selected).items() if display)


def test_size_and_choice_decide_which_panes_show():
    layout = PaneLayout()
    assert not layout.fit(120, 30)
    assert (shown(layout), shown(layout, selected=True)) == ("tree timeline summary", "tree timeline detail summary")
    layout.detail_wanted, layout.tree_wanted = False, False
    assert shown(layout, selected=True) == "timeline summary"
    assert layout.fit(119, 30)
    layout.maximise("table", "timeline")
    assert (shown(layout, selected=True), layout.tab) == ("table", "table")
    layout.maximise("detail", "table")
    layout.maximise("tree", "detail")
    assert layout.opened_from == ("table", "table"), "where the first of those that lie over others was opened"
    layout.maximise("", "tree")
    assert shown(layout) == "timeline table"


def test_the_timeline_takes_what_it_fills_but_leaves_room_for_the_rest():
    layout = PaneLayout()
    assert layout.sizes(200, 60, 10) == Sizes(12, 40, 60)
    assert layout.sizes(120, 60, 1000) == Sizes(31, 40, 42)
    assert layout.sizes(250, 60, 10).tree == 50, "names have room where there is room"
    assert layout.sizes(400, 9, 10) == Sizes("1fr", 64, 64)
    layout.fit(80, 24)
    assert layout.sizes(80, 24, 1000).timeline == 13
    layout.maximise("table", "")
    assert layout.sizes(80, 24, 1000) == Sizes("1fr", "1fr", "1fr")


def test_one_core_shows_its_engines_and_all_of_them_what_they_did():
    whole = DisplayState.of(0, 100)
    one = replace(whole, scope=Scope(1))
    layout = PaneLayout(small=True)
    assert (layout.rows_fitting(whole, None), layout.rows_fitting(one, None)) == ("units", "lanes")
    assert (layout.rows_fitting(whole, 3), layout.rows_fitting(whole, 24)) == ("lanes", "units")
    layout.rows_chosen = True
    cores = replace(whole, line_unit="units")
    assert layout.rows_fitting(cores, 3) == "units"
    narrowed = layout.adjust_rows(cores, replace(cores, scope=Scope(1)))
    assert narrowed.line_unit == "lanes"
    assert layout.adjust_rows(narrowed, replace(narrowed, scope=Scope())).line_unit == "units"
