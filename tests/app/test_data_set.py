"""A data set in the explorer: its captures with figures as columns, sorted, filtered, over days; Enter opens one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from screen import SIZES, explored, frame, press, settled

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.settings.actions import ACTIONS
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.data_set import CaptureTable, DataSetScreen
from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.dataset.listing import ListColumn, ListedCapture, Listing, over_days, spark_line

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("aks_bmodel", "aksv_cdma", "torch_cpu_recorded")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Three captures of two sources and days."""
    folder = tmp_path_factory.mktemp("fleet")
    for number, name in enumerate(NAMES):
        shutil.copytree(SAMPLES / name, folder / "captures" / name)
        for file in (folder / "captures" / name).iterdir():
            os.utime(file, (1.76e9 + number * 86_400, 1.76e9 + number * 86_400))
    building.build(folder / "out", [str(folder / "captures")], building.local(1))
    return folder / "out"


def lines(app: TpuprofApp) -> list[str]:
    """The captures on the screen, by name, in their order."""
    return [
        name for line in frame(app).splitlines() for name in NAMES if line.startswith((f" {name}", f" captures/{name}"))
    ]


async def test_a_data_set_is_a_list_of_captures_with_figures(out, monkeypatch):
    app = TpuprofApp(str(out))
    pressed = set()

    async def keys(pilot, action: str, *then: str) -> str:
        pressed.add(f"fleet.{action}")
        (found,) = [each for each in ACTIONS if each.id == f"fleet.{action}"]
        before = frame(app)
        await press(pilot, " ".join((found.keys[0], *then)))
        after = frame(app)
        assert after != before, action
        return after

    async with app.run_test(size=(140, 30)) as pilot:
        for _ in range(500):
            # the screen may not hold its table yet
            if any(table.listing is not None for table in app.screen.query(CaptureTable)):
                break
            await pilot.pause(0.01)
        await settled(pilot)
        first = frame(app)
        assert len(lines(app)) == 3
        assert "mean util" in first
        assert "3 captures" in first
        by_day = lines(app)
        await keys(pilot, "reverse")
        assert lines(app) == by_day[::-1]
        await keys(pilot, "sort-next")
        values = [row.values[0] for row in Listing.read(out).shown(column=0, down=False)]
        known = [value for value in values if value is not None]
        assert known == sorted(known)
        assert values[len(known) :] == [None] * (3 - len(known))
        await keys(pilot, "sort-previous")
        told = await keys(pilot, "filter", *"aksv", "enter")
        assert "1 of 3 captures" in told
        assert lines(app) == ["aksv_cdma"]
        await keys(pilot, "open")
        await explored(pilot)
        assert Path(app.opening.capture.path or "").name == "aksv_cdma"
        # the captures of the data set are listed again, as they were looked at, without reading them anew
        monkeypatch.setattr(Listing, "read", None)
        await press(pilot, "O")
        await settled(pilot)
        assert isinstance(app.screen, DataSetScreen)
        assert lines(app) == ["aksv_cdma"]
        # what is filtered by stays on the screen until Esc clears it
        assert "1 of 3 captures  &aksv" in frame(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, DataSetScreen)
        assert len(lines(app)) == 3
        assert "&aksv" not in frame(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, ExplorerScreen)
    assert pressed == {each.id for each in ACTIONS if each.pane == "fleet"}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_a_scroll_bar_stands_on_no_figure(size, out, monkeypatch):
    figures = tuple(ListColumn(f"figure {number}", "share") for number in range(6))
    rows = tuple(
        ListedCapture(f"/fleet/{number:03}", "", "2026-11-01", "0", 0, (0.5, 0.25, 0.123) * 2) for number in range(100)
    )
    monkeypatch.setattr(Listing, "read", lambda out: Listing(figures, rows))
    app = TpuprofApp(str(out))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        captures = [line for line in frame(app).splitlines() if "/fleet/" in line]
        assert len(captures) > size[1] // 2
        # the last cell is the scroll bar's
        assert {line[:-1].rpartition("25.0%")[2].strip() for line in captures} == {"12.3%"}
        # the figure that they are ordered by is there, however many there are
        for place in range(len(figures)):
            await press(pilot, "s" if place % 2 else "l")
            assert f"▼figure {place}" in frame(app)
        await press(pilot, "h")
        assert f"▼figure {len(figures) - 2}" in frame(app)


async def test_a_data_set_at_an_address_opens_and_its_captures_are_fetched(out, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.put(str(out.parent / "captures"), "/fleet/captures", recursive=True)
    address = "memory:///fleet/out"
    assert len(building.build(address, ["memory://fleet/captures"], building.local(1)).written) == 3
    assert is_data_set(address)
    app = TpuprofApp(address)
    async with app.run_test(size=(140, 30)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, DataSetScreen)
        # as they are called beside the data set, without the folder that all are in: one is too wide
        assert " aks_bmodel " in frame(app)
        (place,) = [number for number, row in enumerate(Listing.read(address).shown()) if "aks_bmodel" in row.path]
        await press(pilot, " ".join(["j"] * place + ["enter"]))
        await explored(pilot)
        copy = Path(app.opening.capture.path or "")
        assert copy.name == "aks_bmodel"
        assert copy.is_dir()
        await press(pilot, "O")
        await settled(pilot)
        assert isinstance(app.screen, DataSetScreen)
        # the cursor is where it was; what is there no more is told in a sentence
        system.rm("/fleet/captures/aks_bmodel", recursive=True)
        await press(pilot, "enter")
        await settled(pilot)
        assert isinstance(app.screen, DataSetScreen)
        assert "memory:///fleet/captures/aks_bmodel: no such file or folder." in frame(app)
        # what has been built meanwhile is shown when one comes back
        building.build(address, ["memory://fleet/captures"], building.local(1), prune=True)
        await press(pilot, "k enter" if place else "j enter")
        await explored(pilot)
        await press(pilot, "O")
        await settled(pilot)
        assert "2 captures" in frame(app)
    system.rm("/fleet", recursive=True)


def test_spark_lines_go_from_the_least_to_the_most(out):
    assert spark_line([1, 4.5, 8], 11, " 12345678") == "158"
    assert spark_line([5.0] * 4, 11, " 12345678") == "1111"
    assert spark_line([], 11, " 12345678") == ""
    assert len(spark_line(list(range(100)), 11, " 12345678")) == 11
    listing = Listing.read(out)
    assert len({row.day for row in listing.rows}) == 3
    # sources call a step's length differently
    titles = [figure.title for figure in listing.figures]
    assert titles.count("step") == 1
    assert all(row.values[titles.index("step")] is not None for row in listing.rows)
    for column, _ in enumerate(listing.figures):
        assert len(over_days(listing.rows, column)) == sum(row.values[column] is not None for row in listing.rows)
