"""The line to type in: text, history, faults, and who gets the keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from profiles import small_profile
from screen import explorer, frame, opened, press
from textual import events

from tpuprof_tui.app.panes.prompt import Hint, PromptRequest, ask


@pytest.fixture(scope="module")
def profile():
    return small_profile(1, event_count=60)


def bottom(pilot) -> str:
    return frame(pilot.app).splitlines()[-1]


async def test_letters_are_typed_not_obeyed(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        taken: list[str] = []
        screen.prompt.open(PromptRequest("Name", accepted=taken.append))
        await press(pilot, "q w a s question_mark colon tab ctrl+r 4")
        assert bottom(pilot).startswith(" Name: qwas?:4 ")
        assert "Quit" not in bottom(pilot)
        await press(pilot, "enter")
        assert taken == ["qwas?:4"]
        assert "Quit" in bottom(pilot)
        assert screen.focused.id == "timeline"
        assert screen.state.fits_all


async def test_escape_leaves_without_a_text(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        left: list[bool] = []
        request = PromptRequest("Name", "abc", accepted=lambda text: pytest.fail("accepted"))
        screen.prompt.open(replace(request, cancelled=lambda: left.append(True)))
        await press(pilot, "x backspace backspace escape")
        assert left == [True]
        assert not screen.prompt.is_open
        assert "Quit" in bottom(pilot)


async def test_ctrl_c_quits_from_the_text_too(profile):
    async with opened(profile) as pilot:
        explorer(pilot).prompt.open(PromptRequest("Name"))
        await pilot.press("a", "ctrl+c")
        await pilot.pause(0.1)
        assert not pilot.app.is_running


async def test_the_text_is_edited_as_hands_expect(profile):
    async with opened(profile) as pilot:
        prompt = explorer(pilot).prompt
        for keys, text in (
            ("left left X", "one tXwo"), ("home X", "Xone two"), ("ctrl+w X", "one X"), ("left ctrl+u", "o"),
            ("home right ctrl+k", "o"), ("home delete", "ne two"), ("ctrl+left X", "one Xtwo"),
            ("home ctrl+right X", "oneX two"), ("backspace backspace", "one t"), ("end end space", "one two "),
        ):  # fmt: skip
            prompt.open(PromptRequest("Name", "one two"))
            await press(pilot, keys)
            assert prompt.text == text
            await press(pilot, "escape")


async def test_older_texts_come_back_and_drafts_are_kept(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        for text in ("one", "two", "one"):
            screen.prompt.open(PromptRequest("Name"))
            await press(pilot, f"{' '.join(text)} enter")
        screen.prompt.open(PromptRequest("Name"))
        await press(pilot, "d r up")
        assert screen.prompt.text == "one"
        await press(pilot, "up up up")
        assert screen.prompt.text == "two"
        await press(pilot, "down down down")
        assert screen.prompt.text == "dr"
        await press(pilot, "escape")
        screen.prompt.open(PromptRequest("Other"))
        await press(pilot, "up")
        assert screen.prompt.text == "", "another kind of text has a history of its own"


async def test_a_fault_is_marked_where_it_is_and_keeps_the_prompt_open(profile):
    def validate(text: str) -> Hint | None:
        return Hint("no x, please", text.index("x"), fault=True) if "x" in text else None

    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        screen.prompt.open(PromptRequest("Name", "", validate, validate))
        await press(pilot, "a b x c d")
        assert "no x, please" in bottom(pilot)
        strip = screen.prompt.render_line(0)
        marked = [segment.text for segment in strip if segment.style.underline]
        assert marked == ["x"]
        await press(pilot, "enter")
        assert screen.prompt.is_open
        await press(pilot, "left left backspace enter")
        assert not screen.prompt.is_open


async def test_what_is_pasted_is_one_harmless_line(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        screen.prompt.open(PromptRequest("Name"))
        await pilot.pause()
        screen.prompt.post_message(events.Paste("dur>1us\n\x1b]0;x\x07name=a"))
        await pilot.pause()
        assert screen.prompt.text == "dur>1us \ufffd]0;x\ufffdname=a"
        assert "\x1b" not in frame(pilot.app)


async def test_long_texts_scroll_with_the_cursor(profile):
    async with opened(profile, (40, 12)) as pilot:
        screen = explorer(pilot)
        text = "".join(chr(ord("a") + number % 26) for number in range(90))
        screen.prompt.open(PromptRequest("Name", text, lambda text: Hint("7 of 9 pass")))
        await pilot.pause()
        assert text[-5:] in bottom(pilot)
        await press(pilot, "home")
        assert "Name: abcde" in bottom(pilot)
        assert len(bottom(pilot)) == 40


async def test_panes_ask_by_message(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        taken: list[str] = []
        ask(screen.timeline, PromptRequest("Time", accepted=taken.append))
        await pilot.pause()
        await press(pilot, "5 u s enter")
        assert taken == ["5us"]


async def test_what_a_pane_says_goes_when_another_is_shown(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 greater_than_sign")
        assert "(s sorts)" in bottom(pilot)
        await press(pilot, "s")
        assert "(s sorts)" in bottom(pilot)
        await press(pilot, "4")
        assert screen.manager.focused == "problems"
        assert screen.prompt.message == ""
        assert "Help" in bottom(pilot)
        # also of a prompt that gives the focus back to its pane, and with Tab
        await press(pilot, "2 S d u r enter")
        assert "(s sorts)" in bottom(pilot)
        await press(pilot, "tab")
        assert screen.prompt.message == ""
        # what is about all panes stays
        await press(pilot, "2 ampersand n a m e equals_sign m m 2 enter")
        assert "changes the filter" in bottom(pilot)
        await press(pilot, "4")
        assert "changes the filter" in bottom(pilot)
