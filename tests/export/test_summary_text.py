"""summary.txt: the reference's table to the letter, and figures below it that add up."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS
from kept import DATA, HOST_TRACE, SAMPLES, kept_profile
from msgspec.structs import replace
from profiles import Texts, make_lane, make_profile, selected_query, session_of, small_profile

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.export.job import Job
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.model import INT_MISSING, Role, Strings, is_missing
from tpuprof_tui.sources.sophgo.files.summary_table import summary_record
from tpuprof_tui.sources.sophgo.files.summary_text import (
    NO_CORES,
    NO_EVENTS,
    summary_console,
    summary_missing,
    summary_text,
    write_summary,
)
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace
from tpuprof_tui.sources.sophgo.views.kernel_launches import kernel_launches
from tpuprof_tui.sources.sophgo.views.published_summary import published

WRITTEN = sorted((DATA / "summary").glob("*.txt"))


def job(folder, profile):
    return Job(folder, frozenset(("summary",)), query_of(profile))


def rows_below(text: str, title: str) -> list[list[str]]:
    """Cells of a table of the text: header, then rows."""
    lines = text.splitlines()
    first = lines.index(title) + 2
    last = next(place for place in range(first, len(lines)) if lines[place].startswith("="))
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[first:last] if not line.startswith("-")]


def dictionaries(text: str, title: str) -> list[dict[str, str]]:
    header, *rows = rows_below(text, title)
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.stem)
def test_report_and_page_have_the_cycles_and_bandwidths_of_the_text(written, tmp_path):
    profile = kept_profile(written.stem, tmp_path)
    table = published(Query(session_of(profile))).table("published")
    records = summary_record(query_of(profile))["rows"]
    clocks = [profile.device.clock(engine) for engine in ("TIU", "DMA", "DMA")]
    for cells, row, record in zip(
        dictionaries(summary_text(query_of(profile)), "Summary"), table.rows(), records, strict=True
    ):
        values = dict(zip([column.key for column in table.columns], row, strict=True))
        cycles = [values[f"{engine}_cycles"] for engine in ("tiu", "gdma", "sdma")]
        if cells["CoreId"] == "Overall":
            cycles = [f"{each / clock:.3f}(us)" for each, clock in zip(cycles, clocks, strict=True)]
        rates = [f"{values[key]:.2f}" for key in ("gdma_ddr", "gdma_l2", "sdma_ddr")]
        assert [cells[f"total{engine}Cycle"] for engine in ("Tiu", "Gdma", "Sdma")] == list(map(str, cycles))
        assert [cells[f"{each}AvgBW(GB/s)"] for each in ("GdmaDdr", "GdmaL2", "SdmaDdr")] == rates
        assert cells["Parallelism(%)"] == f"{values['parallelism']:.2f}%"
        assert record["cells"][: len(cells)] == list(cells.values())


@pytest.mark.parametrize("cores", [[0, 0, 1], [INT_MISSING] * 3])
def test_cdma_of_all_cores_is_the_sum_of_the_ports(cores):
    lanes = [
        make_lane("TIU", 0, starts=[0], ends=[1000], cycles=[1001]),
        make_lane("TIU", 1, starts=[0], ends=[1000], cycles=[1001]),
        make_lane("CDMA", 0, starts=[0, 100, 300], ends=[200, 250, 400], core=np.array(cores)),
        make_lane("CDMA", 3, starts=[50], ends=[150], core=np.array(cores[:1])),
    ]
    rows = dictionaries(summary_text(query_of(make_profile(lanes))), "Engines")
    ports = [row for row in rows if row["Engine"].startswith("port")]
    (overall,) = (row for row in rows if row["CoreId"] == "Overall" and row["Engine"] == "CDMA")
    for name in ("Instructions", "Effective(us)", "Idle(us)"):
        assert float(overall[name]) == pytest.approx(sum(float(row[name]) for row in ports))
    assert (overall["Instructions"], overall["Effective(us)"], overall["Utilisation"]) == ("4", "0.450", "22.50%")


def test_there_are_kept_summaries():
    assert len(WRITTEN) >= 15


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.stem)
def test_it_begins_with_the_references_block(written, tmp_path):
    profile = kept_profile(written.stem, tmp_path)
    block = written.read_text(encoding="ascii")
    text = summary_text(query_of(profile))
    assert text.startswith(block)
    assert len(text) > len(block)
    assert text.isascii()
    console = summary_console(query_of(profile))
    assert console.splitlines() == [line[:130] for line in block.splitlines()]


@pytest.mark.parametrize("mode", [0, 1])
def test_modes_without_operations_say_that_the_rate_means_nothing(mode):
    profile = small_profile(mode)
    text = summary_text(query_of(profile))
    block = text.index("=\nuArchURate")
    assert text[block + 2 :].startswith(f"uArchURate is meaningless in mode {mode}")
    assert text.splitlines()[2].startswith("=")


def test_the_rate_of_des_blocks_is_known_in_mode_1_too(tmp_path):
    """In the file, in the report and by kernel function; cores and windows without such blocks have none."""
    options = dataclasses.replace(KINDS["des_kv"], cores=(0, 1))
    profile = open_profile(write_capture(options, tmp_path, truth=False).path)
    text = summary_text(query_of(profile))
    assert "is meaningless" not in text
    assert "uArchURate in mode 1 is that of commands of DES blocks: of others no operations are known." in text
    lines = [line.split("|") for line in text.splitlines() if line.count("|") == 10][1:4]
    query = query_of(profile)
    (table,) = published(query).tables
    rates = table.column("uarch_rate")
    assert [f"{rate:.2f}%" for rate in rates] == [line[5].strip() for line in lines]
    assert any("DES blocks" in note for note in table.notes)
    (launched,) = kernel_launches(query).tables
    own, machine = (sum(launched.column(key)) for key in ("alg_ops", "uarch_ops"))
    # the file counts an operation for each command that has none
    assert rates[-1] == pytest.approx(100 * own / machine, abs=0.01)
    assert 0 < rates[-1] < 99

    tiu = next(lane for lane in profile.lanes if lane.kind == "TIU" and profile.unit_of(lane) == profile.units[1])
    known = ~is_missing(tiu["uarch_ops"])
    assert known.any()
    without = replace(profile, lanes=tuple(
        lane.select_rows(np.flatnonzero(~known)) if lane is tiu else lane for lane in profile.lanes
    ), links=None)  # fmt: skip
    assert "it is meaningless for cores without any" in summary_text(query_of(without))
    (table,) = published(query_of(without)).tables
    assert [rate is None for rate in table.column("uarch_rate")] == [False, True, False]
    early = min(
        int(lane["start"][~is_missing(lane["uarch_ops"])].min()) for lane in profile.lanes if lane.kind == "TIU"
    )
    (table,) = published(query_of(profile, range=(profile.start_ns, early))).tables
    assert table.column("uarch_rate")[-1] is None


def test_mode_2_does_not_say_so():
    assert "is meaningless" not in summary_text(query_of(small_profile(2)))


def two_engines():
    """A core of 1000 ns: TIU works 0-100 and 900-1000 and waits 100-400; GDMA reads 50-150 and writes 600-700."""
    tiu = make_lane("TIU", 0, starts=[0, 100, 900], ends=[100, 400, 1000], roles=[Role.WORK, Role.WAIT, Role.WORK],
                    cycles=[101, 301, 101])  # fmt: skip
    gdma = make_lane("GDMA", 0, starts=[50, 600, 700], ends=[150, 700, 750],
                     roles=[Role.WORK, Role.WORK, Role.SYNC], cycles=[101, 101, 51], bytes=[5000, 2000, 0],
                     direction=np.array([0, 1, -1], np.int32))  # fmt: skip
    strings = {"direction": Strings(["DDR->LMEM", "LMEM->DDR"]), "name": Strings(), "mode": Strings()}
    return make_profile([tiu, gdma], strings=strings, mode=2)


def test_engines_by_hand():
    tiu, gdma, all_tiu, all_gdma = dictionaries(summary_text(query_of(two_engines())), "Engines")
    assert tiu == {"CoreId": "0", "Engine": "TIU", "Instructions": "3", "Effective(us)": "0.200", "Wait(us)": "0.300",
                   "Sync(us)": "0.000", "Idle(us)": "0.500", "Utilisation": "20.00%"}  # fmt: skip
    assert gdma == {"CoreId": "0", "Engine": "GDMA", "Instructions": "3", "Effective(us)": "0.200",
                    "Wait(us)": "0.000", "Sync(us)": "0.050", "Idle(us)": "0.750", "Utilisation": "20.00%"}  # fmt: skip
    assert all_tiu == tiu | {"CoreId": "Overall"}
    assert all_gdma == gdma | {"CoreId": "Overall"}


def test_moves_by_hand():
    gdma, *_ = dictionaries(summary_text(query_of(two_engines())), "Read and write bandwidth")
    assert gdma == {"CoreId": "0", "Engine": "GDMA", "DdrRead(B)": "5000", "DdrWrite(B)": "2000",
                    "DdrTotal(B)": "7000", "ReadBW(GB/s)": "50.00", "WriteBW(GB/s)": "20.00",
                    "TotalBW(GB/s)": "35.00", "L2Total(B)": "0", "L2BW(GB/s)": "0.00"}  # fmt: skip


def test_shares_by_hand():
    core, overall = dictionaries(summary_text(query_of(two_engines())), "Compute and transfer")
    assert core == {"CoreId": "0", "Compute(us)": "0.200", "Transfer(us)": "0.200", "Overlap(us)": "0.050",
                    "Exposed(us)": "0.150", "Idle(us)": "0.350", "Compute": "20.00%", "Transfer": "20.00%",
                    "Overlap": "5.00%", "Exposed": "15.00%", "Idle": "35.00%"}  # fmt: skip
    assert overall == core | {"CoreId": "Overall"}


def test_cdma_sends_read_and_receives_write(tmp_path):
    text = summary_text(query_of(kept_profile("aks_cdma", tmp_path)))
    ports = [row for row in dictionaries(text, "Read and write bandwidth") if row["Engine"].startswith("port")]
    assert len(ports) == 4
    for port in ports:
        assert int(port["DdrRead(B)"]) > 0 < int(port["DdrWrite(B)"])
        assert int(port["DdrRead(B)"]) + int(port["DdrWrite(B)"]) == int(port["DdrTotal(B)"])
    engines = dictionaries(text, "Engines")
    submitted = [int(row["Instructions"]) for row in engines if row["Engine"] == "CDMA" and row["CoreId"] != "Overall"]
    assert sum(submitted) == sum(int(row["Instructions"]) for row in engines if row["Engine"].startswith("port"))


def test_other_cdma_commands_count_in_the_total_only():
    texts = Texts()
    names = texts.codes("name", ["send", "receive", "write"])
    tiu = make_lane("TIU", 0, starts=[0], ends=[90], cycles=[91])
    port = make_lane("CDMA", 0, starts=[0, 20, 40], ends=[10, 30, 50], name=names, bytes=[1, 2, 4],
                     direction=texts.codes("direction", ["DDR->DDR"] * 3))  # fmt: skip
    text = summary_text(query_of(make_profile([tiu, port], strings=texts.build())))
    (row,) = (row for row in dictionaries(text, "Read and write bandwidth") if row["Engine"] == "port0")
    assert [row[name] for name in ("DdrRead(B)", "DdrWrite(B)", "DdrTotal(B)")] == ["1", "2", "7"]
    assert "other commands count in the total only" in text


def test_guessed_figures_are_marked_and_unknown_ones_missing(tmp_path):
    text = summary_text(query_of(kept_profile("aks_mode0", tmp_path)))
    engines = dictionaries(text, "Engines")
    assert all(row["Utilisation"].startswith("~") for row in engines)
    moves = dictionaries(text, "Read and write bandwidth")
    assert all(row["DdrRead(B)"] == "-" and row["DdrTotal(B)"].isdecimal() for row in moves)


def test_times_of_an_engine_fill_the_window():
    profile = small_profile(1)
    total = profile.end_ns - profile.start_ns
    for row in dictionaries(summary_text(query_of(profile)), "Engines"):
        if row["Engine"] in ("TIU", "GDMA", "SDMA") and row["CoreId"] != "Overall":
            times = [float(row[key]) for key in ("Effective(us)", "Wait(us)", "Sync(us)", "Idle(us)")]
            assert sum(times) == pytest.approx(total / 1000, abs=0.003)


def test_idle_cores_have_rows():
    text = summary_text(query_of(small_profile(1)))
    idle = [row for row in dictionaries(text, "Engines") if row["CoreId"] == "2"]
    assert idle
    assert {row["Utilisation"] for row in idle} == {"0.00%"}


def test_the_host_does_not_count(tmp_path):
    profile = kept_profile("aks_host_trace", tmp_path)
    joined = with_host_trace(profile, HOST_TRACE)
    assert len(joined.lanes) == len(profile.lanes) + 2
    assert summary_text(query_of(joined)) == summary_text(query_of(profile))


def test_a_selection_counts_alone_and_is_named():
    profile = small_profile(1)
    text = summary_text(selected_query(profile, units=frozenset((1,))))
    assert [row["CoreId"] for row in dictionaries(text, "Summary")] == ["1", "Overall"]
    chosen = int(re.search(r"Of (\d+) instructions (\d+) were chosen", text)[2])
    rows = dictionaries(text, "Engines")
    by_engine = {row["Engine"]: int(row["Instructions"]) for row in rows if row["CoreId"] == "1"}
    ports = sum(int(row["Instructions"]) for row in rows if row["Engine"].startswith("port"))
    assert sum(by_engine.values()) - by_engine.get("CDMA", 0) + ports == chosen < profile.event_count


def test_a_range_narrows_the_window():
    profile = small_profile(1)
    middle = (profile.start_ns + profile.end_ns) // 2
    whole = dictionaries(summary_text(query_of(profile)), "Summary")[0]
    half = dictionaries(summary_text(selected_query(profile, end=middle)), "Summary")[0]
    assert float(half["totalTime(us)"]) < float(whole["totalTime(us)"])


def test_without_cores_or_instructions_there_is_no_file(tmp_path):
    target = tmp_path / "summary.txt"
    for profile, reason in ((make_profile([]), NO_CORES), (make_profile([], cores=[0, 1]), NO_EVENTS)):
        assert summary_missing(query_of(profile)) == reason
        assert summary_text(query_of(profile)) == summary_console(query_of(profile)) == ""
        assert write_summary(job(tmp_path, profile), [target], lambda share: None) == []
        assert not target.exists()


def test_the_file_holds_the_text_and_replaces_what_was_there(tmp_path):
    target = tmp_path / "summary.txt"
    target.write_text("old")
    profile = small_profile(2)
    told: list[float] = []
    assert write_summary(job(tmp_path, profile), [target], told.append) == [target]
    assert target.read_text(encoding="ascii") == summary_text(query_of(profile))
    assert told == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["summary.txt"]


def test_a_folder_in_the_way_is_one_sentence(tmp_path):
    target = tmp_path / "summary.txt"
    target.mkdir()
    with pytest.raises(WriteError, match="could not be written"):
        write_summary(job(tmp_path, small_profile(1)), [target], lambda share: None)


def test_names_cannot_reach_the_text():
    profile = small_profile(1)
    names = Strings([f"\x1b[31m{text}\u202e" for text in profile.strings["kernel"]])
    changed = replace(profile, strings={**profile.strings, "kernel": names})
    assert summary_text(query_of(changed)) == summary_text(query_of(profile))


@pytest.mark.parametrize(
    "sample", sorted(path.name for path in SAMPLES.iterdir() if (path / "global.profile").exists())
)
def test_every_sample_has_a_summary(sample):
    profile = open_profile(SAMPLES / sample)
    text = summary_text(query_of(profile))
    assert text.isascii()
    assert len(dictionaries(text, "Summary")) == len(profile.groups.numbers) + 1
