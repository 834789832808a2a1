"""Five questions an engineer has, answered from the first screen in at most twelve keys, also at 80x24.

Each key script below is the way to the answer. A letter typed into a prompt counts as a key. What the screen then says
is compared with the answer computed here, row by row, from the profile alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from screen import explorer, frame, opened, press

from tpuprof_tui import open_profile
from tpuprof_tui.formats.units import exact_time, percent_text, time_text
from tpuprof_tui.model import INT_MISSING, Profile, Role

SAMPLES = Path(__file__).parents[2] / "samples"
SIZES = [(80, 24), (160, 48)]
MOST_KEYS = 12

#: Question and keys, in Textual's spelling. A wide screen's timeline begins with a line for each engine: e, pressed
#: first where cores are stepped through, makes that one for each core, which is what small screens begin with.
SCRIPTS = {
    # select core 3: the summary is about it; 3 goes there, Enter on the first kernel function narrows all panes to it
    "the slowest kernel function on core 3 and what takes its time": "(e) j j j j o 3 o",
    # the findings name single instructions that stand out, below what whole cores and kernel functions show
    "the most exposed transfer": "3 V V V",
    # the same by the table: sorted by the column that begins with exp, largest first; i tells all of the first row
    "the most exposed transfer, by the table": "2 S e x p enter",
    # the least loaded core is named in the top line; with the cursor on it the summary says how it spent its time
    "the least loaded core and why": "(e) j j j o",
    # the findings hold the slowest of the large transfers; Enter goes there
    "the DMA with the worst bandwidth over 100 KiB": "3 V V V G",
    # core 0, then the time; the timeline's bottom line tells what each engine does there
    "what ran on core 0 at 1.2 ms": "(e) j g 1 . 2 m s enter",
}


@pytest.mark.parametrize("question", SCRIPTS)
def test_no_script_is_long(question):
    assert len(SCRIPTS[question].split()) <= MOST_KEYS


@pytest.fixture(scope="module")
def mode2() -> Profile:
    """4 cores, 0.9 ms; core 2 is the least loaded."""
    return open_profile(SAMPLES / "aks_decode_mode2")


@pytest.fixture(scope="module")
def mode1() -> Profile:
    """8 cores, 3.1 ms."""
    return open_profile(SAMPLES / "aks_decode_mode1")


async def answered(profile: Profile, size: tuple[int, int], question: str) -> str:
    """The screen after the script, as lines of text."""
    keys = SCRIPTS[question].replace("(e) ", "e " if size[0] > 120 else "")
    async with opened(profile, size) as pilot:
        await press(pilot, keys)
        return frame(pilot.app)


def told_in(text: str) -> str:
    """All sentences of the screen as one line; of panes side by side the first column of the right one."""
    parts = [line.strip("│ ").split("│")[-1] for line in text.splitlines()]
    return " ".join(re.split(r" {2,}", part.strip())[0] for part in parts)


def line_with(text: str, *words: str) -> str:
    """The first line that holds all of some words."""
    found = [line for line in text.splitlines() if all(word in line for word in words)]
    assert found, f"no line with {words} in\n{text}"
    return found[0]


def after(text: str, heading: str) -> list[str]:
    """Lines below a heading."""
    lines = text.splitlines()
    return lines[next(number for number, line in enumerate(lines) if heading in line) + 1 :]


# the model, looked at row by row


def rows_of(profile: Profile, core: int | None = None):
    """Lane and row of all instructions of the device, or of a core."""
    for lane in profile.lanes:
        if core in (None, profile.unit_number(lane)):
            for row in range(len(lane)):
                yield lane, row


def named(profile, lane, row):
    """What tells an instruction: lane, name and start."""
    return profile.title_of(lane), name(profile, lane, row), exact_time(int(lane["start"][row]), 100)


def name(profile: Profile, lane, row: int, key: str = "name") -> str:
    code = int(lane[key][row])
    return profile.text(key, code) if code >= 0 else "-"


def time_by(profile: Profile, core: int, key: str, kernel: str = "") -> dict[str, int]:
    """ns of work of a core by the text of a column, of one kernel function alone where it is named."""
    found: dict[str, int] = {}
    for lane, row in rows_of(profile, core):
        if lane["role"][row] == Role.WORK and kernel in ("", name(profile, lane, row, "kernel")):
            label = name(profile, lane, row, key)
            found[label] = found.get(label, 0) + int(lane["end"][row] - lane["start"][row])
    return found


def busy_ns(profile: Profile, core: int, engines: tuple[str, ...] = ("TIU", "GDMA", "SDMA")) -> np.ndarray:
    """Which ns of the profile some engine of a core works, as booleans."""
    busy = np.zeros(profile.end_ns - profile.start_ns, np.bool_)
    for lane, row in rows_of(profile, core):
        if lane["role"][row] == Role.WORK and lane.kind in engines:
            busy[int(lane["start"][row]) - profile.start_ns : int(lane["end"][row]) - profile.start_ns] = True
    return busy


@pytest.mark.parametrize("size", SIZES)
async def test_the_slowest_kernel_function_on_core_3_and_what_takes_its_time(mode2, size):
    kernels = time_by(mode2, 3, "kernel")
    slowest = max(kernels, key=kernels.__getitem__)
    operations = time_by(mode2, 3, "name", slowest)
    longest = max(operations, key=operations.__getitem__)
    text = await answered(mode2, size, "the slowest kernel function on core 3 and what takes its time")
    below = after(text, "Kernel functions ")
    assert f" {kernels[slowest] / 1000:,.3f} " in below[0]
    assert f"kernel={slowest}" in text
    below = after(text, "Operations ")
    assert longest in below[0]
    assert percent_text(operations[longest] / kernels[slowest]) in below[0]
    assert f" {operations[longest] / 1000:,.3f} " in below[0]


def most_exposed(profile: Profile):
    """ns, lane and row of the transfer of which most is not covered by its core's computing."""
    computing = {core: busy_ns(profile, core, ("TIU",)) for core in profile.groups.numbers}
    best = (0, None, -1)
    for lane, row in rows_of(profile):
        if lane.kind in ("GDMA", "SDMA") and lane["role"][row] == Role.WORK:
            span = slice(int(lane["start"][row]) - profile.start_ns, int(lane["end"][row]) - profile.start_ns)
            exposed = int((~computing[profile.unit_number(lane)][span]).sum())
            best = max(best, (exposed, lane, row), key=lambda each: each[0])
    return best


@pytest.mark.parametrize("size", SIZES)
async def test_the_most_exposed_transfer(mode2, size):
    exposed, lane, row = most_exposed(mode2)
    async with opened(mode2, size) as pilot:
        await press(pilot, SCRIPTS["the most exposed transfer"])
        table = explorer(pilot).query_one("#summary").answers.by_view["findings"].table("findings")
        table = table.merged()
        place = table.column("rule").index("exposed_transfer")
        await press(pilot, " ".join("j" * place) or "k")
        shown = frame(pilot.app)
    assert f"{time_text(exposed)} to win." in told_in(shown)
    began = exact_time(int(lane["start"][row]), 100).partition(" ")[0]
    for word in (mode2.title_of(lane), name(mode2, lane, row), began):
        assert word in table.column("text")[place]
    text = await answered(mode2, size, "the most exposed transfer, by the table")
    first = after(text, "Exposed ns ▼")[0]
    for word in (f"{exposed:,}", lane.kind, f"{int(lane['start'][row]):,}", name(mode2, lane, row)):
        assert word in first


@pytest.mark.parametrize("size", SIZES)
async def test_the_least_loaded_core_and_why(mode2, size):
    busy = {core: busy_ns(mode2, core) for core in mode2.groups.numbers}
    least = min(busy, key=lambda core: busy[core].sum())
    assert least == 2, "the script steps to core 2"
    text = await answered(mode2, size, "the least loaded core and why")
    window = len(busy[least])
    share = percent_text(float(busy[least].mean()))
    assert f"busy core {least} {share if size[0] > 120 else f'{float(busy[least].mean()) * 100:.0f}%'}" in text
    told = " ".join(told_in(text).split())
    assert f"Core {least} is busy {time_text(int(busy[least].sum()))}, {share}  Place 4 of 4" in text
    computing = busy_ns(mode2, least, ("TIU",))
    for words, part in (("Computes", computing), ("Only moves data", busy[least] & ~computing)):
        assert f"{words} {time_text(int(part.sum()))}, {percent_text(float(part.mean()))}" in text
    # what it got less of than the mean of the cores
    mine, every = time_by(mode2, least, "kernel"), [time_by(mode2, core, "kernel") for core in mode2.groups.numbers]
    missing = {label: sum(each.get(label, 0) for each in every) / 4 - mine.get(label, 0) for label in every[0]}
    kernel = max(missing, key=missing.__getitem__)
    assert f"Most below the mean {kernel}: {time_text(-round(missing[kernel]))}" in told
    # its longest pause, and what it waited in
    edges = np.flatnonzero(np.diff(np.concatenate(([True], busy[least], [True])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    pause = int(ends[longest] - starts[longest])
    assert window > pause > 0
    waited = told.partition("Longest pause")[2].partition("Most below")[0]
    assert "waits (system.wait_msg) in" in waited
    assert f": {time_text(pause)}" in waited


@pytest.mark.parametrize("size", SIZES)
async def test_the_dma_with_the_worst_bandwidth_over_100_kib(mode2, size):
    worst = (float("inf"), None, -1)
    for lane, row in rows_of(mode2):
        if "bytes" in lane and lane.kind != "TIU" and lane["role"][row] == Role.WORK:
            moved = int(lane["bytes"][row])
            if moved != INT_MISSING and moved >= 100 * 1024:
                speed = moved / int(lane["end"][row] - lane["start"][row])
                worst = min(worst, (speed, lane, row), key=lambda each: each[0])
    speed, lane, row = worst
    text = await answered(mode2, size, "the DMA with the worst bandwidth over 100 KiB")
    began = exact_time(int(lane["start"][row]), 100).partition(" ")[0]
    assert f"Slow, {speed:.2f} GB/s: {mode2.title_of(lane)} {name(mode2, lane, row)} at {began}" in told_in(text)


@pytest.mark.parametrize("size", SIZES)
async def test_what_ran_on_core_0_at_a_time(mode1, size):
    time, kernels = 1_200_000, set()
    running: dict[str, str] = {}
    for lane, row in rows_of(mode1, 0):
        if lane["start"][row] <= time < lane["end"][row]:
            length = time_text(int(lane["end"][row] - lane["start"][row]))
            running[lane.kind] = f"{lane.kind} {name(mode1, lane, row)} {length}"
            kernels.add(name(mode1, lane, row, "kernel"))
    assert set(running) == {"GDMA"}
    text = await answered(mode1, size, "what ran on core 0 at 1.2 ms")
    told = line_with(text, "1.2", "Core 0")
    for word in (*running.values(), "TIU idle", *kernels):
        assert word in told


async def test_enter_goes_to_what_was_found(mode2):
    exposed, lane, row = most_exposed(mode2)
    async with opened(mode2, (80, 24)) as pilot:
        # all findings, down to the first of single transfers
        await press(pilot, "3 V V V")
        table = explorer(pilot).query_one("#summary").answers.by_view["findings"].table("findings")
        rules = table.merged().column("rule")
        await press(pilot, " ".join("j" * rules.index("exposed_transfer")) + " enter")
        selection = explorer(pilot).state.selection
        assert (mode2.lanes[selection.lane], selection.row) == (lane, row)
        assert exposed > 0
