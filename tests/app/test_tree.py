"""The tree: what its lines tell, its filter, narrowing to a node, and the captures beside this one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch_trace
from profiles import make_lane, make_profile, session_of, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.panes.tree import GroupTree, nodes_of
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.model import Role
from tpuprof_tui.sources.sophgo.groups import RX_NAMES, TX_NAMES
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def cdma():
    return open_profile(SAMPLES / "aksv_cdma")


def tree_of(pilot) -> GroupTree:
    return explorer(pilot).query_one("#tree", GroupTree)


def labels(tree: GroupTree) -> list[str]:
    return [tree.nodes[place].label for place in tree._visible]


def test_every_lane_has_a_node_under_its_core_or_group(cdma):
    nodes = nodes_of(session_of(cdma))
    assert [node.scope for node in nodes if node.scope and node.scope.lane >= 0 and not node.condition] == [
        Scope(cdma.unit_number(lane), number) for number, lane in enumerate(cdma.lanes)
    ]
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert parent.children
        assert parent.depth == node.depth - 1


def test_ports_have_their_directions(cdma):
    nodes = nodes_of(session_of(cdma))
    for number, lane in enumerate(cdma.lanes):
        ways = [node for node in nodes if node.scope == Scope(cdma.unit_number(lane), number) and node.condition]
        if lane.number < 0:
            assert not ways
            continue
        names = [cdma.text("name", int(code)) for code in lane["name"]]
        for node, wanted in zip(ways, (TX_NAMES, RX_NAMES), strict=True):
            rows = [row for row, name in enumerate(names) if name in wanted]
            assert node.count == len(rows) > 0
            working = [row for row in rows if lane["role"][row] == Role.WORK]
            busy = np.zeros(cdma.end_ns - cdma.start_ns, np.bool_)
            for row in working:
                busy[int(lane["start"][row]) - cdma.start_ns : int(lane["end"][row]) - cdma.start_ns] = True
            assert node.busy == int(busy.sum())
            passes = compile_filter(node.condition, cdma)
            assert np.flatnonzero(passes(lane)).tolist() == rows
            assert not passes(cdma.lanes[0]).any()


def test_directions_are_two():
    for text in ("link=up", "link>tx"):
        with pytest.raises(FilterError):
            compile_filter(text, small_profile(1, event_count=60))


def test_lanes_of_the_host_have_nodes():
    profile = with_host_trace(open_profile(SAMPLES / "aks_host_trace"), SAMPLES / "aks_host_trace" / "host_trace.json")
    nodes = nodes_of(session_of(profile))
    place = next(n for n, node in enumerate(nodes) if node.label == "Host")
    below = [node for node in nodes if node.parent == place]
    assert [node.scope.lane for node in below] == [n for n, lane in enumerate(profile.lanes) if lane.on_host]
    assert nodes[place].count == sum(node.count for node in below)


def test_nodes_have_the_mark_of_their_worst_problem(profile):
    nodes = nodes_of(session_of(profile))
    marks = {(node.label, node.scope.group if node.scope else -1): node.severity for node in nodes}
    assert nodes[0].severity == 2
    assert (marks["Core 0", 0], marks["Core 1", 1], marks["Core 2", 2]) == (0, 2, -1)
    assert (marks["GDMA", 0], marks["GDMA", 1]) == (-1, 2)
    assert marks["Port 1", -1] == 1
    assert marks["CDMA", -1] == 1


@pytest.mark.parametrize("size", [(80, 24), (140, 48)])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_a_line_tells_share_busy_time_count_and_problems(profile, size, ascii_only):
    async with opened(profile, size, ascii_only=ascii_only) as pilot:
        await press(pilot, "t" if size[0] == 80 else "w s")
        figures = Query(explorer(pilot).session).headline.units[1]
        line = next(line for line in frame(pilot.app).splitlines() if "Core 1" in line)
        for word in (percent_text(figures.utilisation), time_text(figures.busy).replace(" ", ""), " E"):
            assert word in line
        count = sum(each.count for each in figures.lanes.values())
        assert f"{count:,}" in line
        assert ("#" if ascii_only else "█") in line.split("Core 1")[1][:30]


async def test_the_filter_box_shows_nodes_of_a_name_and_what_they_belong_to(profile):
    async with opened(profile) as pilot:
        tree = tree_of(pilot)
        every = len(tree.nodes)
        await press(pilot, "shift+tab")
        assert tree.has_focus
        await press(pilot, "ampersand 1 space g d m")
        assert labels(tree) == [tree.nodes[0].label, "Core 1", "GDMA"]
        assert "1 of" in frame(pilot.app)
        await press(pilot, "enter")
        assert tree.has_focus
        assert "Cores (t)  &1 gdm" in frame(pilot.app)
        await press(pilot, "j j")
        assert explorer(pilot).state.selection.lane == 4
        await press(pilot, "escape")
        assert len(labels(tree)) == every
        await press(pilot, "slash exclamation_mark d m a enter")
        assert [label for label in labels(tree) if "DMA" in label] == []
        assert "TIU" in labels(tree)
        await press(pilot, "slash ctrl+u x x x")
        assert "No node is called" in frame(pilot.app)
        await press(pilot, "escape")
        assert "TIU" in labels(tree)


async def test_folding(profile):
    async with opened(profile) as pilot:
        tree = tree_of(pilot)
        await press(pilot, "shift+tab j h")
        assert labels(tree)[1:3] == ["Core 0", "Core 1"]
        await press(pilot, "l j")
        assert tree.node.label == "TIU"
        await press(pilot, "h")
        assert tree.node.label == "Core 0"
        every = labels(tree)
        await press(pilot, "e")
        assert labels(tree)[1:3] == ["Core 0", "Core 1"]
        await press(pilot, "e")
        assert labels(tree) == every
        # an engine folds the core it belongs to
        await press(pilot, "j j e")
        assert tree.node.label == "Core 0"
        assert labels(tree)[1:3] == ["Core 0", "Core 1"]
        await press(pilot, "C")
        assert labels(tree) == ["synthetic", *(f"Core {core}" for core in profile.groups.numbers), "CDMA"]
        await press(pilot, "E G")
        assert labels(tree) == every
        assert tree.node.label == every[-1]
        await press(pilot, "g pagedown pageup")
        assert tree.cursor == 0


async def test_keys_before_its_lines_are_built_do_nothing(profile):
    async with opened(profile) as pilot:
        tree = tree_of(pilot)
        await press(pilot, "shift+tab j j")
        tree.items = []
        for key in ["h", "l", "j", "k", "g", "G", "e", "E", "C", "y"]:
            await press(pilot, key)
            tree.items = []
        tree.rebuild()
        assert max(tree.items) >= tree.cursor


async def test_keys_find_no_lines_of_nodes_that_were_filtered_away_without_room(profile):
    async with opened(profile) as pilot:
        tree = tree_of(pilot)
        await pilot.resize_terminal(1, 1)
        await settled(pilot)
        assert not tree.size.width
        tree.set_filter("GDMA")
        tree.action_do("last")
        assert tree.node in tree.nodes
        await pilot.resize_terminal(160, 48)
        await settled(pilot)
        assert tree.items == list(range(len(tree._visible)))
        tree.action_do("last")
        assert tree.node.label == "GDMA"


async def test_enter_narrows_to_a_direction_of_a_port_and_back(cdma):
    async with opened(cdma) as pilot:
        screen, tree = explorer(pilot), tree_of(pilot)
        place = next(n for n, node in enumerate(tree.nodes) if node.label == "TX")
        await press(pilot, "shift+tab")
        tree.go_to(tree._visible.index(place))
        await settled(pilot)
        lane = tree.nodes[place].scope.lane
        assert screen.state.selection.lane == lane
        await press(pilot, "enter")
        assert (screen.state.scope, screen.state.filter) == (Scope(-1, lane), "link=tx")
        assert "TX*" in frame(pilot.app)
        await press(pilot, "2")
        assert len(screen.table.rows.order) == tree.nodes[place].count
        screen.manager.focus("tree")
        await press(pilot, "j enter")
        assert (screen.state.scope, screen.state.filter) == (Scope(-1, lane), "link=rx")
        await press(pilot, "enter")
        assert (screen.state.scope, screen.state.filter) == (Scope(), "")


async def test_many_lanes_begin_folded():
    lanes = [make_lane("TIU", core, starts=[core], ends=[core + 5]) for core in range(64)]
    async with opened(make_profile(lanes, cores=range(64)), (80, 24)) as pilot:
        await press(pilot, "t")
        tree = tree_of(pilot)
        assert len(labels(tree)) == 65
        await press(pilot, "G")
        assert tree.node.label == "Core 63"
        assert explorer(pilot).state.selection.group == 63


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """12 ranks of two hosts, named in turn."""
    folder = tmp_path_factory.mktemp("run")
    for rank, path in enumerate(torch_trace.write_run(folder, ranks=12, steps=1, layers=1)):
        path.rename(folder / path.name.replace("node0", f"node{rank % 2}"))
    return folder


def bottom(pilot):
    """What the bottom line says of Enter; None: nothing."""
    found = re.search(r" Enter (Only this|Show all|Fold|Unfold|Open) ", frame(pilot.app).splitlines()[-1])
    return found and found[1]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_ranks_of_several_hosts_are_folded_by_host(hosts, size):
    async with opened(open_profile(hosts), size) as pilot:
        screen, tree = explorer(pilot), tree_of(pilot)
        await press(pilot, "t" if size[0] == 80 else "w s")
        screen.manager.focus("tree")
        await press(pilot, "g")
        both = ["node0 6 ranks", "node1 6 ranks"]
        first, second = ([f"Rank {rank}" for rank in range(each, 12, 2)] for each in (0, 1))
        assert labels(tree) == [tree.nodes[0].label, *both]
        assert all(label in frame(pilot.app) for label in both)
        assert sum(tree.nodes[place].busy for place in tree._visible[1:]) == tree.nodes[0].busy
        # Enter unfolds a host, whose ranks are folded, and narrows nothing; the bottom line says so
        assert bottom(pilot) is None
        await press(pilot, "j j")
        assert bottom(pilot) == "Unfold"
        await press(pilot, "enter")
        assert bottom(pilot) == "Fold"
        assert labels(tree)[1:] == [*both, *second]
        assert "Rank 11" in frame(pilot.app)
        assert screen.state.scope == Scope()
        await press(pilot, "j j")
        assert screen.state.selection.group == tree.node.scope.group
        assert bottom(pilot) == "Only this"
        await press(pilot, "enter")
        assert bottom(pilot) == "Show all"
        assert screen.session.profile.groups.label(screen.state.scope.group) == tree.node.label == "Rank 3"
        await press(pilot, "enter h h")
        assert labels(tree)[1:] == both
        # a host is found, and by it what ran on it
        await press(pilot, "slash n o d e 0 enter")
        assert [label for label in labels(tree) if label.startswith(("node", "Rank"))] == [both[0], *first]
        await press(pilot, "escape E")
        assert labels(tree)[1:] == [node.label for node in tree.nodes[1:]]
        assert [label for label in labels(tree) if label.startswith("Rank")] == [*first, *second]


def test_ranks_are_listed_without_hosts_where_each_has_its_own_or_all_one(hosts, tmp_path):
    for names in (("a_1", "b_2"), ("a_1", "a_2"), ("rank0", "rank1")):
        folder = tmp_path / names[0] / names[1]
        folder.mkdir(parents=True)
        for path, name in zip(sorted(hosts.iterdir()), names, strict=False):
            shutil.copy(path, folder / f"{name}.17.pt.trace.json.gz")
        nodes = nodes_of(session_of(open_profile(folder)))
        assert [node.label.split()[0] for node in nodes if node.depth == 1] == ["Rank", "Rank"]


async def test_problems_are_stepped_through_from_anywhere(profile):
    async with opened(profile) as pilot:
        await press(pilot, "right_curly_bracket")
        assert "1/3 ERROR: 12 bytes" in frame(pilot.app)
        assert explorer(pilot).state.selection.group == 1
        await press(pilot, "right_curly_bracket")
        assert "2/3 warning:" in frame(pilot.app)
        await press(pilot, "left_curly_bracket left_curly_bracket")
        assert "3/3 note:" in frame(pilot.app)


@pytest.mark.parametrize(
    ("size", "told"),
    [((80, 24), ["Rank 0 python…4000", "Rank 0 python…4007", "Rank 1 python…4000", "Rank 1 python…4007"]),
     ((200, 60), ["stre…7", "str…13", "str…20"])],
)  # fmt: skip
async def test_names_that_end_apart_keep_their_numbers(size, told):
    async with opened(open_profile(SAMPLES / "torch_cuda_synthetic"), size) as pilot:
        screen = frame(pilot.app)
    assert [each for each in told if each not in screen] == []


@pytest.mark.parametrize("width", [80, 60, 40, 36])
async def test_a_blank_separates_names_from_bars(width):
    async with opened(open_profile(SAMPLES / "torch_cuda_synthetic"), (width, 24)) as pilot:
        await press(pilot, "t")
        lines = [line.text for line in tree_of(pilot).lines]
    assert any("█" in line for line in lines)
    assert [line for line in lines if re.search("[^ █-▏][█-▏]", line)] == []


async def test_a_line_is_copied_with_its_figures(profile):
    async with opened(profile) as pilot:
        await press(pilot, "shift+tab j j y")
        node = tree_of(pilot).node
        told = (percent_text(node.share), time_text(node.busy), f"{node.count:,} instructions")
        assert pilot.app.clipboard == "  ".join(("Core 0 TIU", *told))


# captures beside


def copies(folder: Path, names: list[str]) -> None:
    for name in names:
        shutil.copytree(SAMPLES / "aks_decode_mode0", folder / name)


async def waited(pilot) -> ExplorerScreen:
    for _ in range(500):
        if isinstance(pilot.app.screen, ExplorerScreen):
            break
        await pilot.pause(0.01)
    await settled(pilot)
    return explorer(pilot)


async def test_captures_of_a_folder_are_switched_without_leaving(tmp_path):
    names = ["cdm_profile_data_dev10_0", "cdm_profile_data_dev2_0", "cdm_profile_data_dev2_1"]
    copies(tmp_path, names)
    ordered = ["cdm_profile_data_dev2_0", "cdm_profile_data_dev2_1", "cdm_profile_data_dev10_0"]
    app = TpuprofApp(str(tmp_path / ordered[0]))
    async with app.run_test(size=(140, 48)) as pilot:
        screen = await waited(pilot)
        tree = tree_of(pilot)
        assert [Path(node.path).name for node in tree.nodes if node.path] == ordered
        assert f"{ordered[0]}*" in labels(tree)
        await press(pilot, "w w")
        span = screen.state.span
        await press(pilot, "right_parenthesis")
        screen = await waited(pilot)
        assert screen.session.profile.name == ordered[1]
        assert screen.state.span == span, "the view is kept"
        await press(pilot, "left_parenthesis left_parenthesis")
        await press(pilot, "shift+tab")
        screen = await waited(pilot)
        tree = tree_of(pilot)
        place = next(n for n, node in enumerate(tree.nodes) if node.path.endswith(ordered[2]))
        screen.manager.focus("tree")
        tree.go_to(tree._visible.index(place))
        await press(pilot, "enter")
        screen = await waited(pilot)
        assert screen.session.profile.name == ordered[2]


async def test_without_others_the_keys_say_so(tmp_path):
    copies(tmp_path, ["cdm_profile_data_dev0_0"])
    app = TpuprofApp(str(tmp_path / "cdm_profile_data_dev0_0"))
    async with app.run_test(size=(80, 24)) as pilot:
        await waited(pilot)
        assert not any(node.path for node in tree_of(pilot).nodes)
        await press(pilot, "right_parenthesis")
        assert "No other capture in this folder" in frame(pilot.app)


async def test_esc_in_the_list_of_captures_goes_back_to_the_open_one(tmp_path):
    copies(tmp_path, ["one", "two"])
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await waited(pilot)
        await press(pilot, "w w j")
        state = screen.state
        await press(pilot, "O")
        assert not isinstance(app.screen, ExplorerScreen)
        await press(pilot, "backspace")
        screen = await waited(pilot)
        assert screen.session.profile.name == "one"
        assert (screen.state.start, screen.state.end, screen.state.selection) == (
            state.start,
            state.end,
            state.selection,
        )


def test_lost_cores_and_ports_are_named_and_no_figure_is_theirs(tmp_path):
    path = shutil.copytree(SAMPLES / "aksv_cdma", tmp_path / "lost")
    (path / "cdmlib0_1.profile").unlink()
    (path / "cdma0_2.profile").unlink()
    nodes = nodes_of(session_of(open_profile(path)))
    lost = [node for node in nodes if node.lost]
    assert [(node.label, node.scope, node.share, node.severity) for node in lost] == [
        ("Core 1 lost", None, -1.0, 2), ("CDMA port 2 lost", None, -1.0, 2)]  # fmt: skip
    cores = [node for node in nodes if node.label.startswith("Core ")]
    assert [node.label for node in cores] == ["Core 0", "Core 1 lost", "Core 2", "Core 3"]
    there = [node.share for node in cores if not node.lost]
    assert nodes[0].share == pytest.approx(sum(there) / 3)


async def test_narrowing_to_a_lost_core_says_that_nothing_is_there(tmp_path):
    path = shutil.copytree(SAMPLES / "aksv_cdma", tmp_path / "lost")
    (path / "cdmlib0_0.profile").unlink()
    async with opened(open_profile(path)) as pilot:
        tree = tree_of(pilot)
        tree.focus()
        tree.go_to(labels(tree).index("Core 0 lost"))
        await press(pilot, "enter")
        assert "Core 0 lost: it has no data" in frame(pilot.app)
