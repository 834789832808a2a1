"""A source of another package, with words of its own: found by its entry point, opened through the catalog."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import SOUND, program
from installed_sources import OVEN, WITH_OVEN, installed
from screen import frame, opened, press
from web_reading import page_of

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.derived_columns import with_exposed
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.model import INT_MISSING, Activity, Counter, Links, Severity, Steps
from tpuprof_tui.sources.catalog import SOURCES, Catalog


@pytest.fixture(autouse=True)
def oven():
    with installed(OVEN):
        yield


@pytest.fixture
def written(tmp_path):
    """Writes an example; gives its path."""
    from tpuprof_oven.example import bakery
    from tpuprof_oven.recording import write_recording

    def write(name="x.oven.json", **settings) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        write_recording(bakery(**settings), path)
        return path

    return write


def test_what_is_written_is_read(written):
    from tpuprof_oven.example import bakery
    from tpuprof_oven.recording import read_recording

    made = bakery(1, 2, ovens=3, rounds=4)
    assert read_recording(written(number=1, bakeries=2, ovens=3, rounds=4)) == replace(made, doubts={})
    assert {event.does for lane in made.lanes for event in lane.events} == {"work", "bake", "carry", "pass", "rest"}
    for lane, event, other, to, _ in made.calls:
        assert made.lanes[lane].events[event].start < made.lanes[other].events[to].start
    baker = made.lanes[0].events
    assert all(baker[each.inside].start <= each.start < each.end <= baker[each.inside].end
               for each in baker if each.inside >= 0)  # fmt: skip
    assert [each.start for each in baker] == sorted(each.start for each in baker)


def test_it_is_found_by_its_entry_point(written):
    path = written()
    assert Catalog().source_of(path).id == "oven"
    profile = open_profile(path)
    assert (profile.vocabulary.source, len(profile.lanes)) == ("oven", 6)
    tray = next(lane for lane in profile.lanes if lane.label == "tray 0")
    assert (tray["start"][0], tray["end"][0]) == (50 * 125, 650 * 125)


def test_by_content_under_another_name(written):
    path = written("breakfast.json")
    found = Catalog().decisions(path)
    assert [(each.source.id, each.recognition.by) for each in found] == [
        *((each.id, "") for each in SOURCES),
        ("oven", "content"),
    ]
    assert open_profile(path).event_count == open_profile(written()).event_count


def test_a_folder_of_bakeries_is_one_profile(written, tmp_path):
    for number in range(2):
        written(f"town/bakery{number}.oven.json", number=number, bakeries=2)
    written("single.oven.json")
    (tmp_path / "town" / "notes.txt").touch()
    town = tmp_path / "town"
    assert open_profile(town).event_count == 2 * open_profile(tmp_path / "single.oven.json").event_count
    assert list(Catalog().find(tmp_path)) == [tmp_path / "single.oven.json", town]
    assert set(Catalog().siblings(town)) == {"single.oven.json", "town"}
    before = Catalog().fingerprint(town)
    (town / "notes.txt").write_text("more")
    assert Catalog().fingerprint(town) == before
    written("town/bakery1.oven.json", rounds=5)
    assert Catalog().fingerprint(town) != before


def test_its_option_is_on_the_command_line_and_not_on_other_paths(written, capsys):
    path = str(written())
    assert main(["info", path, "--json"]) == 0
    usual = json.loads(capsys.readouterr().out)
    assert main(["info", path, "--json", "--tick-ns", "250"]) == 0
    slower = json.loads(capsys.readouterr().out)
    assert [lane["busy_ns"] for lane in slower["lanes"]] == [2 * lane["busy_ns"] for lane in usual["lanes"]]
    assert main(["info", path, "--tick_ns", "fast"]) == 2
    assert "--tick_ns" in capsys.readouterr().err
    assert main(["info", str(SOUND), "--tick_ns", "250"]) == 2
    assert "goes with a recording of ovens, not with a Sophgo capture" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--chip"):
        open_profile(path, chip="AKS")


def test_why_tells_the_decision_of_a_source_of_another_package(written, capsys):
    assert main(["info", str(written()), "--why"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # its options are in no --help
    assert lines[len(SOURCES) + 1].split() == ["oven", "yes,", "by", "name:", "it", "ends", "in", ".oven.json"]
    assert lines[len(SOURCES) + 2 :] == ["It is opened as a recording of ovens.",
                         "  --tick_ns NS, --tick-ns NS: length of a tick; otherwise the recording's"]  # fmt: skip
    assert main(["info", str(SOUND), "--why"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "It is opened as a Sophgo capture."
    assert main(["info", str(written()), "--why", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["options"]) == ["--tick_ns NS, --tick-ns NS"]


def test_its_words_are_those_of_files_and_filters(written, tmp_path, capsys):
    path = str(written())
    assert main(["instructions", path, "--filter", "type=bake"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert {row["type"] for row in rows} == {"bake"}
    assert main(["summary", path]) == 0
    assert "bigTpuProfile" not in capsys.readouterr().out
    assert main(["export", path, str(tmp_path / "out")]) == 0
    written_files = (file.name for file in (tmp_path / "out").iterdir() if not file.name.startswith("."))
    assert sorted(written_files) == ["profile.html", "profile.xlsx"]
    capsys.readouterr()
    assert main(["export", path, str(tmp_path / "out"), "--only", "regs"]) == 2
    assert "Choose from pftrace, xlsx, web, collapsed." in capsys.readouterr().err


def test_as_a_program(written):
    path = written()
    done = program("info", path, "--json", env=WITH_OVEN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instructions"] == 3 * 2 * 6
    assert program("info", path).returncode == 2, "without its package nobody knows it"


@pytest.mark.parametrize("words", ["--help", "info --help", "--version", f"info {SOUND}", f"summary {SOUND}"])
def test_what_needs_no_plug_in_loads_none(words):
    code = f"import sys\nfrom tpuprof_tui.cli.main import main\ntry: main({words.split()!r})\nexcept SystemExit: pass\n"
    code += "print([name for name in ('importlib.metadata', 'tpuprof_oven') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


BROKEN = {
    "no_such_oven.source:OVEN": "ModuleNotFoundError: No module named 'no_such_oven'",
    "tpuprof_oven.source:NOTHING": "AttributeError",
    "tpuprof_oven.recording:VERSION": "tpuprof_oven.recording:VERSION is not a Source",
    "burnt_oven:OVEN": "ZeroDivisionError: too hot",
}


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_one_is_a_sentence(value, tmp_path, monkeypatch, capsys):
    (tmp_path / "burnt_oven.py").write_text("raise ZeroDivisionError('too hot')")
    (tmp_path / "burnt-1.dist-info").mkdir()
    (tmp_path / "burnt-1.dist-info" / "METADATA").write_text("Name: burnt\nVersion: 1\n")
    (tmp_path / "burnt-1.dist-info" / "entry_points.txt").write_text(f"[tpuprof.sources]\nburnt = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "other").mkdir()
    assert main(["info", str(tmp_path / "other")]) == 2
    told = capsys.readouterr().err
    assert f"The source burnt cannot be used ({BROKEN[value]}" in told
    assert told.count("\n") == 1
    assert main(["info", str(tmp_path / "other"), "--why", "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert len(record["faults"]) == 1
    assert [each["source"] for each in record["decisions"]] == [*(each.id for each in SOURCES), "oven"]
    assert main(["info", str(SOUND)]) == 0


@pytest.mark.parametrize("text", ["", "[", '{"oven": 2}', '{"oven": 1, "lanes": 3}', "[" * 100_000])
def test_damaged_recordings_never_end_in_a_traceback(text, tmp_path):
    path = tmp_path / "x.oven.json"
    path.write_text(text)
    try:
        profile = open_profile(path)
    except UnreadableError:
        return
    assert profile.problems


def test_what_is_sound_in_a_damaged_recording_is_shown(written):
    path = written()
    record = json.loads(path.read_text())
    record["lanes"][2]["events"][2] = [1, 2]
    record["lanes"].append("no lane")
    path.write_text(json.dumps(record))
    profile = open_profile(path)
    assert profile.event_count == 3 * 2 * (2 + 6) - 1
    assert {problem.severity for problem in profile.problems} == {Severity.ERROR}
    assert {problem.file for problem in profile.problems} == {"x.oven.json"}
    assert len(profile.problems) == 2
    # what lies behind the lost event is linked as before
    links = profile.links()
    assert len(links) == 2 * 3 * 2
    names = [profile.text("name", int(code)) for lane in profile.lanes for code in lane["name"]]
    assert {(names[one], names[other]) for one, other in zip(links.from_row, links.to_row, strict=True)} == {
        pair for recipe in ("rye", "brioche", "pretzel")
        for pair in (("put.tray", f"bake_{recipe}"), (f"bake_{recipe}", f"crust_{recipe}"))
    }  # fmt: skip


def test_what_counters_rounds_and_calls_lack_is_told(written):
    path = written()
    record = json.loads(path.read_text())
    record["meters"] += [{"oven": 10, "name": "heat", "unit": "K", "ticks": [2, 1], "values": [0, 0]},
                         {"oven": 77, "name": "heat", "unit": "K", "ticks": [1], "values": [0]}]  # fmt: skip
    record["rounds"][0]["from"] = "early"
    record["calls"] += [[0, 99, 1, 0, "puts"], ["x"]]
    record["lanes"][0]["events"][0][6] = 0
    path.write_text(json.dumps(record))
    profile = open_profile(path)
    assert (len(profile.counters), len(profile.steps), len(profile.links())) == (2, 5, 12)
    assert sum(problem.severity is Severity.ERROR for problem in profile.problems) == 4
    tray = next(lane for lane in profile.lanes if lane.label == "tray 0")
    assert tray["step"].tolist() == 4 * [INT_MISSING] + 4 * [1] + 4 * [2]
    baker = next(lane for lane in profile.lanes if lane.kind == "baker")
    assert baker["parent"].tolist()[:2] == [-1, 0]


# A round of an oven, in ticks of 125 ns from where the baker sets up (the next round: 1,000 later; the next oven: 100):
#
#     tray 0   bake 50-650   carry 650-750   pass 750-900   rest 900-950
#     tray 1                                      bake 800-1000
#     cart                                                     carry 980-1040
#
# compute 600 + 200 = 800; transfer 100 + 60 = 160; communication 150; busy 50-1040 = 990. Overlap: 100 of the passing
# and 20 of the cart. Exposed: the carrying and 40 of the cart; of the passing 50. Device: from 50 to 2000 + 100 + 1040.
TICK = 125
TOTAL = (3140 - 50) * TICK
#: Of an oven in three rounds.
TRUTH = {"compute": 3 * 800 * TICK, "transfer": 3 * 160 * TICK, "communication": 3 * 150 * TICK,
         "overlap": 3 * 120 * TICK, "exposed": 3 * 140 * TICK, "exposed_communication": 3 * 50 * TICK,
         "busy": 3 * 990 * TICK, "idle": TOTAL - 3 * 990 * TICK, "window": TOTAL}  # fmt: skip


@pytest.fixture
def town(written):
    """Two bakeries that number their ovens alike."""
    paths = [written(f"town/bakery{number}.oven.json", number=number, bakeries=2) for number in range(2)]
    return paths[0].parent


def test_figures_of_units(written, town):
    for path, labels in ((written(), ["Oven 10", "Oven 11"]),
                         (town, [f"Bakery {each} Oven {oven}" for each in range(2) for oven in (10, 11)])):  # fmt: skip
        profile = open_profile(path)
        found = query_of(profile).headline
        assert found.device_ns == TOTAL
        assert [unit.label for unit in found.units] == labels
        for unit in found.units:
            assert {key: getattr(unit, key) for key in TRUTH} == TRUTH
            # what the cart carries for an oven is the oven's
            assert {kind: each.count for kind, each in unit.lanes.items()} == {"tray": 15, "cart": 3}
            assert unit.lanes["cart"].busy == 3 * 60 * TICK
        profile = with_exposed(profile)
        tray, cart = (next(lane for lane in profile.lanes if lane.label == label) for label in ("tray 0", "cart 0"))
        # bake, carry, pass, rest; the cart for both ovens
        assert tray["exposed"].tolist() == 3 * [INT_MISSING, 100 * TICK, 50 * TICK, INT_MISSING]
        assert cart["exposed"].tolist() == 6 * [40 * TICK]


def test_groups_lanes_and_their_columns(town):
    profile = open_profile(town)
    groups = profile.groups
    assert [(group.label, group.kind, group.parent, group.number, group.is_unit) for group in groups] == [
        ("Bakery 0", "bakery", -1, 0, False), ("Oven 10", "oven", 0, 0, True), ("Oven 11", "oven", 0, 1, True),
        ("Bakery 1", "bakery", -1, 1, False), ("Oven 10", "oven", 3, 2, True), ("Oven 11", "oven", 3, 3, True),
    ]  # fmt: skip
    assert [profile.title_of(lane) for lane in profile.lanes_of(3)] == [
        "Bakery 1 baker 0", "Bakery 1 cart 0", "Bakery 1 Oven 10 tray 0", "Bakery 1 Oven 10 tray 1",
        "Bakery 1 Oven 11 tray 0", "Bakery 1 Oven 11 tray 1",
    ]  # fmt: skip
    baker, cart, tray = profile.lanes_of(3)[:3]
    assert (baker["depth"].tolist()[:4], baker["parent"].tolist()[:4]) == ([0, 1, 0, 1], [-1, 0, -1, 2])
    assert (baker.activity, cart.activity, tray.activity) == (Activity.HOST, Activity.TRANSFER, None)
    assert tray["activity"].tolist() == 3 * [Activity.COMPUTE, Activity.TRANSFER, Activity.COMMUNICATION, 0]
    assert cart["owner"].tolist() == 3 * [4, 5]
    assert cart["core"].tolist() == 3 * [2, 3]


def test_counters_steps_and_links(town):
    profile = open_profile(town)
    assert [(each.group, each.name, each.unit, len(each)) for each in profile.counters] == [
        (group, "heat", "K", 12) for group in (1, 2, 4, 5)
    ]
    assert profile.counters[0].times.tolist()[:3] == [0, 250 * TICK, 500 * TICK]
    assert profile.counters[0].values.tolist()[:4] == [293.0, 543.0, 793.0, 343.0]
    steps = profile.steps
    assert [steps.labels[code] for code in steps.label.tolist()[:6]] == [
        f"{recipe} {turn}" for turn, recipe in enumerate(("rye", "brioche", "pretzel")) for _ in range(2)
    ]
    assert steps.group.tolist() == 3 * [1, 2] + 3 * [4, 5]
    assert (steps.start.tolist()[1], steps.end.tolist()[1]) == (100 * TICK, 1100 * TICK)
    tray = profile.lanes_of(4)[0]
    assert tray["step"].tolist() == 4 * [0] + 4 * [1] + 4 * [2]
    links = profile.links()
    assert links.kinds == ("puts", "hands on")
    starts = np.concatenate([lane["start"] for lane in profile.lanes])
    # from the setting up at 10 to the baking at 50, from there to the crust at 800
    apart = starts[links.to_row] - starts[links.from_row]
    assert apart.tolist() == 2 * 6 * [40 * TICK, 750 * TICK]
    assert links.kind.tolist() == 2 * 6 * [0, 1]


def test_columns_of_another_length_are_refused():
    some, more = np.zeros(2, np.int64), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="counter"):
        Counter(0, "heat", "K", some, np.zeros(3))
    with pytest.raises(ValueError, match="steps"):
        Steps(start=some)
    with pytest.raises(ValueError, match="links"):
        Links(("puts",), np.zeros(2, np.int8), some, more)


def test_summary(written, capsys):
    assert main(["summary", str(written())]) == 0
    text = capsys.readouterr().out
    assert "Total time        386.3 us\n" in text
    assert "Busiest oven      Oven 10: 371.3 us, 96.1%\n" in text
    assert "Exposed transfer  Oven 10: 52.50 us, 13.6%\n" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for row in ("Oven 10 96.1% 371.250 300.000 60.000 56.250 18.750 45.000 52.500 0.000 15.000",
                "Bakery 0 cart 0 6 11.7% 45.000 0.000 0.000 341.250",
                # two ovens: bake, carry, pass, crust and the cart
                "33.3% 277.500 10 27.750 75.000 rye", "18.0% 150.000 2 75.000 75.000 bake_rye",
                "13.5% 112.500 6 18.750 18.750 to_next_bakery", "5.4% 45.000 6 7.500 7.500 rack>shop"):  # fmt: skip
        assert row in lines


def test_info(town, capsys):
    assert main(["info", str(town), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["device_ns"], record["cores"], record["instructions"]) == (TOTAL, [0, 1, 2, 3], 2 * 2 * 3 * 6)
    assert record["kernel_launches"] == 2 * 2 * 3
    lanes = {(lane["group"], lane["label"]): (lane["instructions"], lane["busy_ns"] // TICK, lane["wait_ns"] // TICK)
             for lane in record["lanes"]}  # fmt: skip
    assert lanes == {
        (group, label): figures
        for bakery in ("Bakery 0", "Bakery 1")
        for group, label, figures in ((bakery, "cart 0", (6, 360, 0)),
                                      (f"{bakery} Oven 10", "tray 0", (12, 2550, 150)),
                                      (f"{bakery} Oven 10", "tray 1", (3, 600, 0)),
                                      (f"{bakery} Oven 11", "tray 0", (12, 2550, 150)),
                                      (f"{bakery} Oven 11", "tray 1", (3, 600, 0)))
    }  # fmt: skip
    assert record["counters"] == [
        {"group": f"Bakery {bakery} Oven {oven}", "name": "heat", "unit": "K", "count": 12}
        for bakery in range(2) for oven in (10, 11)
    ]  # fmt: skip
    assert record["steps"] == [{"name": name, "count": 4} for name in ("rye 0", "brioche 1", "pretzel 2")]
    assert main(["info", str(SOUND), "--json"]) == 0
    assert not {"counters", "steps"} & json.loads(capsys.readouterr().out).keys()


def _rows(capsys, *arguments) -> list[dict]:
    assert main(["instructions", *map(str, arguments)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_instructions(written, town, capsys):
    path = written()
    assert main(["instructions", str(path), "--format", "csv", "--core", "11"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "engine,core,order,name,type,kernel,start,end,duration,grams,step,depth"
    assert lines[1:6] == [
        "cart,11,1,rack>shop,carry,rye,135000,142500,7500,900,0,",
        "cart,11,3,rack>shop,carry,brioche,260000,267500,7500,900,1,",
        "cart,11,5,rack>shop,carry,pretzel,385000,392500,7500,900,2,",
        "tray,11,0,bake_rye,bake,rye,18750,93750,75000,,0,",
        "tray,11,1,oven>rack,carry,rye,93750,106250,12500,800,0,",
    ]
    assert len(lines) == 1 + 3 * 6
    every = _rows(capsys, path)
    assert len(every) == 3 * 2 * (2 + 6)
    assert every[1] == {"engine": "baker", "core": None, "order": 1, "name": "put.tray", "type": "work",
                        "kernel": "rye", "start": 1250, "end": 5000, "duration": 3750, "grams": None, "step": None,
                        "depth": 1}  # fmt: skip
    passed = _rows(capsys, town, "--filter", "type=pass")
    assert [row["core"] for row in passed] == [oven for oven in range(4) for _ in range(3)]
    assert sum(row["duration"] for row in passed) == 4 * TRUTH["communication"]
    assert sum(row["grams"] for row in _rows(capsys, town, "--core", "2", "--filter", "engine=cart")) == 3 * 900


def test_instructions_of_a_kind_of_lane(written, capsys):
    path = str(written())
    assert {row["engine"] for row in _rows(capsys, path, "--engine", "Cart")} == {"cart"}
    assert len(_rows(capsys, path, "--engine", "baker")) == 3 * 2 * 2
    assert main(["instructions", path, "--engine", "stove"]) == 2
    told = capsys.readouterr().err
    assert "tpuprof: The capture has no lane stove. Its lanes: tray, cart, baker." in told
    assert main(["instructions", str(SOUND), "--engine", "cart"]) == 2
    assert "no engine cart. Its engines: TIU, GDMA, SDMA, CDMA." in capsys.readouterr().err


def test_parquet(town, tmp_path):
    from pyarrow.parquet import read_table

    assert main(["instructions", str(town), "--format", "parquet", "--output", str(tmp_path / "x.parquet")]) == 0
    table = read_table(tmp_path / "x.parquet").to_pydict()
    assert len(table["core"]) == 2 * 3 * 2 * (2 + 6)
    assert sum(grams or 0 for grams in table["grams"]) == 2 * 3 * 2 * (800 + 800 + 900)


def test_page(town, tmp_path):
    page = page_of(query_of(open_profile(town)), tmp_path)
    assert [figures["core"] for figures in page.record["figures"]] == [0, 1, 2, 3]
    for figures in page.record["figures"]:
        assert {key: figures[key] for key in TRUTH if key in figures} == {
            key: value for key, value in TRUTH.items() if key in figures
        }
    lane = page.lane("Bakery 1 Oven 11 tray 0")
    assert (lane["busy"], lane["wait"], lane["count"]) == (2550 * TICK, 150 * TICK, 12)
    assert page.texts("name", lane["columns"]["kind"])[:4] == ["bake_rye", "oven>rack", "to_next_bakery",
                                                              "wait_for_dough"]  # fmt: skip


async def test_explorer(town, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with opened(open_profile(town), (200, 60)) as pilot:
        lines = [" ".join(line.replace("│", " ").split()) for line in frame(pilot.app).splitlines()]
        text = "\n".join(lines)
        assert "total 392.5 us device 386.3 us busiest bakery 0 Oven 10 96.1%" in lines[0]
        assert "exposed transfer bakery 0 Oven 10 52.50 us 13.6% 72 steps" in lines[0]
        for node in (r"▾town █\S* 96\.1% 1\.485ms 72 ", r"▾Bakery 1 █\S* 96\.1% 742\.5us 36 ",
                     r"baker 0 ?\S+ 11\.5% 45\.00us 12 ", r"cart 0 ?\S+ 11\.7% 45\.00us 6 ",
                     r"▾Oven 11 █\S* 96\.1% 371\.3us 18 ", r"tray 0 █\S* 82\.5% 318\.8us 12 "):  # fmt: skip
            assert re.search(node, text), node
        for core in range(4):
            where = f"Bakery {core // 2} Oven {10 + core % 2}"
            assert re.search(rf"{where} \S+ 96\.1% 371\.250( 318\.750 60\.000)? .*52\.500", text)
        await press(pilot, "2")
        table = frame(pilot.app)
        assert "bake_rye" in table
        assert "rack>shop" in table


def test_nothing_outside_its_folder_names_it():
    package = Path(__file__).parents[2] / "tpuprof_tui"
    assert OVEN.is_dir()
    words = re.compile(r"\b(tpuprof_)?(ovens?|trays?|baker(y|ies)?)\b", re.IGNORECASE)
    assert not [path for path in package.rglob("*.py") if words.search(path.read_text(encoding="utf-8"))]
