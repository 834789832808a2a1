"""What is remembered for a user, and that nothing depends on it."""

from __future__ import annotations

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import make_lane, make_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.selecting.state import Sort
from tpuprof_tui.app.drawing.colouring import FIFTHS, OTHER, kernel_category, lane_shades
from tpuprof_tui.app.drawing.theme import THEMES, next_theme_name
from tpuprof_tui.app.settings.actions import ACTIONS, keys_of
from tpuprof_tui.app.settings.config import Config, config_path, read_config, write_config
from tpuprof_tui.model import Device
from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.vocabulary import LaneKind
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def test_the_file_lies_where_the_platform_wants_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "tpuprof" / "config.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert config_path() == tmp_path / "home" / ".config" / "tpuprof" / "config.json"


def test_what_is_written_is_read():
    assert read_config() == Config()
    assert write_config({"theme": "light"})
    assert write_config({"columns": ["name", "start"]})
    assert write_config({"keys": {"timeline.fit": "home,0"}})
    assert read_config() == Config("light", ("name", "start"), {"timeline.fit": "home,0"})


def test_two_explorers_keep_what_the_other_wrote():
    write_config({"theme": "light", "of another version": [1]})
    write_config({"columns": ["start"]})
    held = json.loads(config_path().read_text())
    assert held == {"theme": "light", "of another version": [1], "columns": ["start"]}
    assert [path.name for path in config_path().parent.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"theme": 3}', "\x00\xff", '"' + "x" * 300_000]
)
def test_a_broken_file_is_as_good_as_none(text):
    config_path().parent.mkdir(parents=True)
    config_path().write_text(text, encoding="utf-8")
    assert read_config() == Config()
    assert write_config({"theme": "safe"})
    assert read_config().theme == "safe"


@given(st.fixed_dictionaries(dict.fromkeys(("theme", "columns", "keys"), JSON)))
def test_no_content_is_believed_blindly(content):
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    config = read_config()
    assert isinstance(config.theme, str)
    assert all(isinstance(name, str) for name in config.columns)
    assert set(config.keys) <= {action.id for action in ACTIONS}


def test_a_folder_in_the_way_harms_nothing(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "kept").write_text("")
    assert read_config(path) == Config()
    assert not write_config({"theme": "light"}, path)
    assert (path / "kept").exists()
    (tmp_path / "file").write_text("")
    assert not write_config({"theme": "light"}, tmp_path / "file" / "config.json")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_what_is_no_file_is_neither_waited_for_nor_replaced(tmp_path):
    path = tmp_path / "config.json"
    os.mkfifo(path)
    assert read_config(path) == Config()
    assert not write_config({"theme": "dark"}, path)
    assert path.is_fifo()
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert not write_config({"theme": "dark"}, link)
    assert path.is_fifo()


def test_keys_for_actions_there_are_none_of_are_left_out():
    write_config({"keys": {"timeline.fit": "home", "no.such": "a", "timeline.next": "", "table.sort": "\x1b"}})
    assert read_config().keys == {"timeline.fit": "home"}


# -- in the explorer ------------------------------------------------------------


async def test_keys_can_be_mapped_anew_and_help_says_so(profile):
    write_config({"keys": {"timeline.zoom-in": "B", "app.help": "K"}})
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        span = screen.state.span
        await press(pilot, "w")
        assert screen.state.span == span, "the key of the table no longer works"
        await press(pilot, "B")
        assert screen.state.span == pytest.approx(span / 2, abs=8)
        assert "K Help" in frame(pilot.app).splitlines()[-1]
        await press(pilot, "K")
        line = next(line for line in frame(pilot.app).splitlines() if "Zoom in about the cursor" in line)
        # what lies below the help shows beside it
        assert re.search(r"\bB\s+Zoom in about the cursor", line)
    write_config({"keys": {}})
    async with opened(profile):
        assert all(keys_of(action) == action.keys for action in ACTIONS)


async def test_t_goes_through_the_themes_and_the_next_start_has_it(profile):
    async with opened(profile) as pilot:
        app = pilot.app
        assert (app.theme, app.preferences.palette) == ("tpuprof-dark", THEMES["dark"][1])
        await press(pilot, "T")
        assert (app.theme, app.preferences.palette) == ("tpuprof-light", THEMES["light"][1])
        assert "Theme: light" in frame(app)
        for widget in app.screen.walk_children():
            assert getattr(widget, "palette", app.preferences.palette) == app.preferences.palette
        colours = {segment.style.color.name for strip in app.screen._compositor.render_strips() for segment in strip
                   if segment.style is not None and segment.style.color is not None}  # fmt: skip
        assert THEMES["light"][1].title.color.name in colours
        assert THEMES["dark"][1].title.color.name not in colours
        await press(pilot, "T")
        assert "Theme: colour-blind safe" in frame(app)
    async with opened(profile) as pilot:
        assert pilot.app.theme == "tpuprof-safe"


async def test_no_color_has_no_themes(profile, monkeypatch):
    write_config({"theme": "light"})
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(profile) as pilot:
        assert pilot.app.theme == "ansi-dark"
        await press(pilot, "T")
        assert "NO_COLOR" in frame(pilot.app)
        assert not pilot.app.preferences.palette.colour


async def test_columns_are_remembered_as_far_as_a_capture_has_them(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.store.change(replace(screen.state, columns=("name", "start"), sort=Sort("start", True)))
        await settled(pilot)
        await pilot.press("q")
    assert read_config().columns == ("name", "start")
    write_config({"columns": ["name", "nothing"]})
    async with opened(profile) as pilot:
        assert explorer(pilot).state.columns == ("name",)
        # an order that no column in sight tells of would be a riddle
        assert explorer(pilot).state.sort == Sort()


async def test_the_timelines_looks_are_remembered_as_far_as_a_capture_knows_them(profile):
    async with opened(profile) as pilot:
        await press(pilot, "C C L B u")
        await pilot.press("q")
    chosen = {"colouring": "bandwidth", "legend": True, "strip": "bandwidth", "scale": "cycles"}
    assert json.loads(config_path().read_text())["timeline"] == chosen
    async with opened(profile) as pilot:
        state = explorer(pilot).state
        assert {name: getattr(state, name) for name in chosen} == chosen
    bare = make_profile([make_lane("TIU", 0, starts=[0, 50], ends=[10, 90])], device=Device("host trace"))
    async with opened(bare) as pilot:
        state = explorer(pilot).state
        assert (state.colouring, state.legend, state.strip, state.scale) == ("operation", True, "", "time")
        await pilot.press("q")
    assert read_config().timeline_options == chosen


async def test_a_way_of_colouring_of_another_source_is_passed_over(profile):
    config_path().parent.mkdir(parents=True, exist_ok=True)
    looks = {"colouring": "rainbow", "legend": True, "strip": "", "scale": "time"}
    config_path().write_text(json.dumps({"timeline": looks}))
    async with opened(profile) as pilot:
        state = explorer(pilot).state
        assert (state.colouring, state.legend) == ("operation", True)


@pytest.mark.parametrize(
    "looks", [5, {}, {"colouring": ["bandwidth"], "legend": 1, "strip": None, "scale": []}, {"legend": True}]
)
def test_looks_there_are_none_of_are_left_out(looks):
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(json.dumps({"timeline": looks}))
    assert read_config().timeline_options == {}


async def test_nothing_is_written_where_nothing_was_chosen(profile):
    async with opened(profile) as pilot:
        await press(pilot, "w j 2")
        await pilot.press("q")
    assert not config_path().exists()


async def test_a_config_folder_that_cannot_be_written_does_not_matter(profile, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    async with opened(profile) as pilot:
        await press(pilot, "T")
        assert pilot.app.theme == "tpuprof-light"


# -- themes ---------------------------------------------------------------------


def luminance(colour) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [value / 255 for value in colour.get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_everything_can_be_read_on_its_ground(name):
    from rich.color import Color

    theme, palette = THEMES[name]
    ground = Color.parse(theme.background)
    for style in (palette.text, palette.strong, palette.title, palette.key, palette.caution, palette.bad, palette.good,
                  palette.cursor):  # fmt: skip
        assert contrast(style.color, ground) >= 4.5
    for family in (*VOCABULARY.categories, OTHER):
        assert contrast(palette.shaded(family.shades).color, ground) >= 3
        filled = palette.filled(family.shades)
        assert contrast(filled.color, filled.bgcolor) >= 3
    for kind in (*VOCABULARY.lane_kinds, LaneKind("new", "New", Activity.HOST, 9)):
        assert contrast(palette.shaded(lane_shades(VOCABULARY, kind.key)).color, ground) >= 3
    for family in (*FIFTHS, *(kernel_category(code, f"k{code}") for code in range(12))):
        assert contrast(palette.shaded(family.shades).color, ground) >= 2.8
        filled = palette.filled(family.shades)
        assert contrast(filled.color, filled.bgcolor) >= 2.8
    for style in (palette.wait, palette.sync, palette.exposed, palette.compute, palette.transfer):
        assert contrast(style.color, ground) >= 3
        # a cell with work and more waiting
        tinted = palette.tinted(style)
        assert contrast(tinted.color, tinted.bgcolor) >= 2.8
        assert contrast(tinted.bgcolor, ground) < 1.6
    assert 1.5 < contrast(palette.hidden.color, ground) < contrast(palette.text.color, ground) / 2
    assert contrast(palette.linked_event.color, palette.linked_event.bgcolor) >= 4.5


@pytest.mark.parametrize("name", THEMES)
def test_shares_go_one_way_from_little_to_much(name):
    palette = THEMES[name][1]
    steps = [luminance(palette.shaded(fifth.shades).color) for fifth in FIFTHS]
    assert steps in (sorted(steps), sorted(steps, reverse=True))


def test_themes_follow_one_another():
    assert [next_theme_name(name) for name in ("dark", "light", "safe", "gone")] == ["light", "safe", "dark", "dark"]
