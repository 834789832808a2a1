"""A source of other words: screen, help, palette, commands, messages and page of the oven say its own words alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installed_sources import OVEN, installed
from screen import frame, opened, press, settled
from web_browser import chromium, open_page

from tpuprof_tui import open_profile
from tpuprof_tui.cli.main import main

PAGE_PARTS = Path(__file__).parents[2] / "tpuprof_tui" / "export" / "web" / "page_parts"
#: Words of the Sophgo source.
OTHERS = re.compile(
    r"\b(cores?|instructions?|kernel functions?|kernels?|engines?|registers?"
    r"|TIU|GDMA|SDMA|CDMA|DDR|L2M|uArch|bmodel)\b",
    re.IGNORECASE,
)
#: Names that are typed, whatever the source: of columns, views and commands.
TYPED = re.compile(
    r"^keys .*|engine, core, order, name, type, kernel.*|^Columns .*|^Views .*|^kernels  .*"
    r"|tpuprof instructions PATH.*|Command: core\b"
)


def foreign(text: str) -> list[str]:
    """Lines that say a word of the Sophgo source, but for names that are typed."""
    cells = (part.strip() for line in text.splitlines() for part in re.split("[│|]", line))
    return [cell for cell in cells if OTHERS.search(TYPED.sub("", cell))]


@pytest.fixture
def recorded(tmp_path):
    with installed(OVEN):
        from tpuprof_oven.example import bakery
        from tpuprof_oven.recording import write_recording

        path = tmp_path / "x.oven.json"
        write_recording(bakery(), path)
        yield path


def test_what_is_foreign_is_found():
    assert foreign("a core here\n| keys   engine, core, order | 3 trays │ two engines │\n") == [
        "a core here",
        "two engines",
    ]


#: Keys pressed one group after another; a frame is looked at after each.
WALK = (
    "", "j j full_stop enter", "e", "e", "C", "C", "L", "B", "r", "r", "2 j j enter", "S", "escape", "F", "escape",
    "b b", "b b", "escape", "c", "escape", "3 J J enter", "Z", "Z", "4", "enter", "t j j enter", "y", "o", "o", "f",
    "left_square_bracket", "right_square_bracket", "colon", "escape", "ampersand", "escape", "slash", "escape", "x",
    "n", "escape escape",
    "m a", "right_curly_bracket", "1 comma full_stop y", "question_mark", *["pagedown"] * 10, "escape",
)  # fmt: skip
COMMANDS = ("core 77", "oven 77", "group zzz", "window 1", "export zzz", "sort zzz", "step 99", "filter dur>9s",
            "filter", "row 5", "move 3", "oven 11")  # fmt: skip


async def test_the_explorer_says_the_words_of_the_source(recorded):
    seen = set()
    async with opened(open_profile(recorded), (160, 48)) as pilot:
        for keys in WALK:
            await press(pilot, keys)
            seen.update(foreign(frame(pilot.app)))
        for told in pilot.app.get_system_commands(pilot.app.screen):
            seen.update(foreign(f"{told.title}  {told.help}"))
        for text in COMMANDS:
            named = {" ": "space", ">": "greater_than_sign"}
            await pilot.press("colon", *(named.get(letter, letter) for letter in text))
            await settled(pilot)
            seen.update(foreign(frame(pilot.app)))
            await press(pilot, "enter")
            seen.update(foreign(frame(pilot.app)))
            await press(pilot, "escape")
        assert "ovens" in frame(pilot.app).lower()
    assert not seen


@pytest.mark.parametrize(
    "words",
    ["summary PATH", "info PATH", "info PATH --memory", "report PATH", "report PATH --list", "describe PATH",
     "instructions PATH --core 77", "instructions PATH --engine zz", "export PATH OUT --cores 77",
     "export PATH OUT --cores x", "export PATH OUT --range 100s..", "export PATH OUT --only web,xlsx"],
)  # fmt: skip
def test_the_command_line_says_the_words_of_the_source(recorded, tmp_path, capsys, words):
    main([{"PATH": str(recorded), "OUT": str(tmp_path / "out")}.get(word, word) for word in words.split()])
    told = capsys.readouterr()
    assert told.out or told.err
    assert not foreign(told.out + told.err)


def test_the_page_names_nothing_of_a_source_but_what_its_record_holds():
    tools = re.compile(r"\b(TIU|GDMA|SDMA|CDMA|DDR|L2M|LMEM|uArch|bmodel|TPU|bigTpuProfile)\b", re.IGNORECASE)
    for path in sorted(PAGE_PARTS.iterdir()):
        assert not tools.findall(path.read_text(encoding="utf-8")), path.name


@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")
def test_the_page_says_the_words_of_the_source(recorded, tmp_path, capsys):
    assert main(["export", str(recorded), str(tmp_path / "out"), "--only", "web"]) == 0
    with open_page(tmp_path / "browser") as page:
        page.open(tmp_path / "out" / "profile.html")
        page.wait("document.documentElement.dataset.ready")
        for view in ("overview", "timeline"):
            page.run(f"tpuprof.showView('{view}')")
            text = page.run(
                "document.body.innerText + [...document.querySelectorAll('[title]')].map((e) => '\\n' + e.title)"
            )
            assert not foreign(text)
            assert "oven" in text.lower()
            # what the source has no column for is not offered
            assert not re.search(r"stall|rate as height", page.run("document.body.innerText"))
        for panel in ("shares", "table"):
            page.run(f"tpuprof.showPanel('{panel}'); tpuprof.drawNow()")
            assert not foreign(page.run("document.getElementById('panel').innerText"))
        assert not page.complaints
