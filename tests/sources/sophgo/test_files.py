"""Files of a capture: names and numbers, blocks and what becomes of damaged ones, settings."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import raw_bytes as raw
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import CORES

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.read import files as framing
from tpuprof_tui.sources.sophgo.read.files import (
    BlockType,
    Settings,
    list_files,
    read_bytes,
    read_settings,
    walk_blocks,
)
from tpuprof_tui.sources.sophgo.read.problems import Problems

# -- names -----------------------------------------------------------------


def _listed(directory: Path, *names: str) -> tuple[dict[int, str], dict[int, str], Problems]:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"")
    chip, report = chip_by_name("aks"), Problems()
    assert chip is not None
    cores, ports = list_files(directory, report, replace(chip, core_count=1 << 12, cdma_ports=1 << 12))
    cores = {number: path.name for number, path in cores}
    return cores, {number: path.name for number, path in ports}, report


def test_cores_have_the_number_of_their_name(tmp_path: Path) -> None:
    """The reference numbers them by rank (limit 3)."""
    cores, _, report = _listed(tmp_path, *(f"cdmlib0_{number}.profile" for number in (0, 1, 4, 6, 10)))
    assert cores == {number: f"cdmlib0_{number}.profile" for number in (0, 1, 4, 6, 10)}
    assert list(cores) == sorted(cores)
    assert report.problems(CORES) == ()


def test_digits_elsewhere_play_no_part(tmp_path: Path) -> None:
    cores, ports, _ = _listed(tmp_path / "dev7_run12", "cdmlib3_0.profile", "cdmlib3_2.profile", "cdma3_1.profile")
    assert cores == {0: "cdmlib3_0.profile", 2: "cdmlib3_2.profile"}
    assert ports == {1: "cdma3_1.profile"}


def test_names_without_a_number_of_their_own_get_one_and_are_named(tmp_path: Path) -> None:
    names = [
        "cdmlib0_1.profile",
        "cdmlib1_1.profile",
        "cdmlib.profile",
        "cdmlib_x.profile",
        "cdmlib0_99999999999.profile",
    ]
    cores, _, report = _listed(tmp_path, *names)
    assert sorted(cores.values()) == sorted(names)
    assert cores[1] == "cdmlib0_1.profile"
    assert len(cores) == len(names)
    assert max(cores) < len(names)
    assert {problem.file for problem in report.problems(CORES)} == set(names) - {"cdmlib0_1.profile"}
    assert {problem.severity for problem in report.problems(CORES)} == {Severity.ERROR}


def test_a_copy_takes_no_number_of_another_core(tmp_path: Path) -> None:
    names = ["cdmlib0_0 (1).profile", *(f"cdmlib0_{number}.profile" for number in range(3))]
    cores, _, report = _listed(tmp_path, *names)
    assert [cores[number] for number in range(3)] == names[1:]
    assert [problem.file for problem in report.problems(CORES)] == names[:1]


def test_ports_without_a_number_of_their_own_are_named(tmp_path: Path) -> None:
    names = ["cdma0_0.profile", "cdma1_0.profile", "cdma_5.profile", "cdma.profile", "cdma0_x.profile",
             "cdma0_70000.profile"]  # fmt: skip
    _, ports, report = _listed(tmp_path, *names)
    assert ports == {0: "cdma0_0.profile", 5: "cdma_5.profile"}
    assert {problem.file for problem in report.problems(CORES)} == set(names[1:2] + names[3:])
    assert {problem.severity for problem in report.problems(CORES)} == {Severity.ERROR}


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    cores, ports, report = _listed(
        tmp_path, "cdmlib0_0.profile", "cdmlib0_1.profile.bak", "xcdmlib0_2.profile", "notes.txt", "host_trace.json",
        "CDMLIB0_3.profile", "cdma0_1.profile~")  # fmt: skip
    assert (list(cores), ports, report.problems(CORES)) == ([0], {}, ())


@pytest.mark.parametrize(
    "name", ["run[1]", "a*b", "what?", "{x}", "r\u00e9sum\u00e9 \u591a", "-rf", "a\nb", "%s", "[!a]"]
)
def test_a_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    """The reference takes the path for a glob pattern (limit 21)."""
    cores, _, _ = _listed(tmp_path / name, "cdmlib0_0.profile", "cdmlib0_3.profile")
    assert list(cores) == [0, 3]
    assert Catalog().source_of(tmp_path / name) is not None
    assert Catalog().whole(tmp_path / name / "cdmlib0_3.profile") == tmp_path / name


@raw.FIXED
@given(st.lists(st.from_regex(r"cdmlib[0-9_a-c]{0,6}\.profile", fullmatch=True), max_size=9, unique=True))
def test_every_core_file_gets_a_number_of_its_own(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    cores, _, _ = _listed(tmp_path_factory.mktemp("names"), *names)
    assert sorted(cores.values()) == sorted(names)


def test_only_a_directory_with_such_files_is_a_capture(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("x")
    for path in (tmp_path / "none", tmp_path / "other", tmp_path / "other" / "readme.txt"):
        with pytest.raises(UnreadableError) as refusal:
            Catalog().recognised(path)
        assert str(path) in str(refusal.value)


# -- bytes -----------------------------------------------------------------


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    report = Problems()
    assert len(read_bytes(tmp_path / "directory", report)) == 0
    assert len(read_bytes(tmp_path / "missing", report)) == 0
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.ERROR] * 2


def test_the_bytes_are_a_copy_of_the_file(tmp_path: Path) -> None:
    """A map of a file that is rewritten would kill the process."""
    path = tmp_path / "cdmlib0_0.profile"
    path.write_bytes(bytes(range(256)) * 40)
    data = read_bytes(path, Problems())
    path.write_bytes(b"")
    assert data.tobytes() == bytes(range(256)) * 40


# -- blocks ----------------------------------------------------------------

_KINDS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 100])
_BLOCKS = st.lists(st.tuples(_KINDS, st.binary(max_size=40)), max_size=8)


def _walk(data: bytes) -> tuple[list[tuple[int, bytes]], Problems]:
    report = Problems("f", 3)
    found = walk_blocks(np.frombuffer(data, np.uint8), report)
    return [(block.kind, data[block.offset : block.offset + block.length]) for block in found], report


@raw.FIXED
@given(_BLOCKS)
def test_blocks_follow_one_another(blocks: list[tuple[int, bytes]]) -> None:
    found, report = _walk(b"".join(raw.block(*item) for item in blocks))
    assert found == blocks
    assert report.problems(CORES) == ()


@raw.FIXED
@given(
    _BLOCKS, _BLOCKS, st.integers(0, 2**32 - 1).filter(lambda kind: kind not in set(BlockType)), st.binary(max_size=30)
)
def test_blocks_of_unknown_type_are_skipped_and_named(
    before: list[tuple[int, bytes]], behind: list[tuple[int, bytes]], kind: int, payload: bytes
) -> None:
    head = b"".join(raw.block(*item) for item in before)
    found, report = _walk(head + raw.block(kind, payload) + b"".join(raw.block(*item) for item in behind))
    assert found == before + behind
    problem = report.problems(CORES)[0]
    assert (problem.severity, problem.file, problem.offset, problem.group) == (Severity.ERROR, "f", len(head), 3)
    assert str(kind) in problem.what


@raw.FIXED
@given(_BLOCKS, st.binary(min_size=1, max_size=7))
def test_a_cut_header_is_named(blocks: list[tuple[int, bytes]], rest: bytes) -> None:
    data = b"".join(raw.block(*item) for item in blocks)
    found, report = _walk(data + rest)
    assert found == blocks
    assert [(problem.severity, problem.offset) for problem in report.problems(CORES)] == [(Severity.ERROR, len(data))]


@pytest.mark.parametrize("claim", [65, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", [3, 5, 77])
def test_a_block_that_claims_too_much_costs_no_block_behind_it(kind: int, claim: int) -> None:
    """The length is wrong, so the walk finds the next header from which blocks reach the end of the file."""
    behind = [(4, b"\xee" * 64), (5, b"\xdd" * 44)]
    data = (
        raw.block(1, b"x" * 20) + raw.block(kind, b"\xcc" * 60, claim) + b"".join(raw.block(*item) for item in behind)
    )
    found, report = _walk(data)
    wanted = [(1, b"x" * 20), *([(kind, b"\xcc" * 60)] if kind != 77 else []), *behind]
    if claim == 65:  # lies within the file: the next header would begin inside the next block
        assert found[: len(wanted) - 2] == [
            (1, b"x" * 20),
            *([(kind, (b"\xcc" * 60 + raw.block(*behind[0]))[:65])] * (kind != 77)),
        ]
        assert report.problems(CORES)
        return
    assert found == wanted
    assert [(problem.severity, problem.offset) for problem in report.problems(CORES)] == [(Severity.ERROR, 28)]


@raw.FIXED
@given(st.binary(max_size=300))
def test_any_bytes_walk_to_blocks_inside_the_file(data: bytes) -> None:
    report = Problems()
    blocks = walk_blocks(np.frombuffer(data, np.uint8), report)
    end = 0
    for block in blocks:
        assert block.offset >= end + 8
        end = block.offset + block.length
        assert end <= len(data)
    if data and end != len(data):
        assert report.problems(CORES)


@pytest.mark.parametrize("zeros", [8, 12, 256, 264, 1 << 26])
def test_zeros_are_skipped_at_once_and_counted(zeros: int) -> None:
    """As a full disk or a hole leaves them: a step for each eight would take minutes for a gigabyte."""
    data = np.zeros(28 + zeros, np.uint8)
    data[:28] = np.frombuffer(raw.block(1, b"x" * 20), np.uint8)
    report = Problems()
    assert [block.offset for block in walk_blocks(data, report)] == [8]
    found = [(problem.what, problem.offset, problem.count) for problem in report.problems(CORES)]
    assert found[0] == ("Block of unknown type 0.", 28, zeros // 8)
    assert found[1:] == ([("4 bytes of a block header at the end of the file.", 36, 1)] if zeros % 8 else [])


def test_blocks_behind_zeros_are_found_where_they_begin_like_one() -> None:
    found, report = _walk(bytes(400) + raw.block(3, b"abc"))
    assert found == [(3, b"abc")]
    assert [(problem.offset, problem.count) for problem in report.problems(CORES)] == [(0, 50)]


def test_headers_without_end_are_not_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_MOST_BLOCKS", 1000)
    found, report = _walk(raw.block(77, b"") * 5000 + raw.block(3, b"abc"))
    assert found == []
    assert [(problem.offset, problem.count) for problem in report.problems(CORES)] == [(0, 1000), (8000, 1)]


def test_ten_thousand_broken_lengths_are_linear() -> None:
    """Resynchronising is bounded: a file of nothing but false headers takes no time worth measuring."""
    data = struct.pack("<II", 3, 0xFFFFFFF0) * 40_000
    found, report = _walk(data)
    assert report.problems(CORES)
    assert sum(len(payload) for _, payload in found) <= len(data)


# -- settings --------------------------------------------------------------


def _settings(tmp_path: Path, text: str | bytes) -> tuple[Settings, Problems]:
    path = tmp_path / "global.profile"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    report = Problems()
    return read_settings(path, report), report


def test_lines_are_stripped_and_the_last_arch_wins(tmp_path: Path) -> None:
    text = "\n  arch = 6 \r\n\nnonsense\nother=1\narch=5\ncore_num=8\ntpu_freq= 900\ntail_offset_ns=-12\n=\n"
    settings, report = _settings(tmp_path, text)
    assert (settings.arch, settings.core_num, settings.tpu_freq, settings.tail_offset_ns) == ("5", 8, 900, -12)
    assert not settings.bmodel
    assert report.problems(CORES) == ()


def test_a_byte_order_mark_belongs_to_no_key(tmp_path: Path) -> None:
    settings, report = _settings(tmp_path, b"\xef\xbb\xbfarch=5\ntpu_freq=0\n")
    assert settings.arch == "5"
    assert [problem.offset for problem in report.problems(CORES)] == [10]


@pytest.mark.parametrize("line", ["bmodel=1", "run a bmodel here", "x=bmodel", "bmodel"])
def test_bmodel_anywhere_on_a_line_counts(tmp_path: Path, line: str) -> None:
    assert _settings(tmp_path, f"arch=5\n{line}\n")[0].bmodel


def test_record_counts_are_checked_against_what_came_before(tmp_path: Path) -> None:
    text = (
        "0_tiu_record=500\nmax_record_num=100\n0_gdma_record=99\n0_sdma_record=100\n1_tiu_record=1\n1_gdma_record=0\n"
    )
    _, report = _settings(tmp_path, text)
    found = [(problem.severity, problem.what.split("=")[0], problem.offset) for problem in report.problems(CORES)]
    assert found == [
        (Severity.ERROR, "0_sdma_record", text.index("0_sdma")),
        (Severity.ERROR, "1_tiu_record", text.index("1_tiu")),
        (Severity.NOTE, "1_gdma_record", text.index("1_gdma")),
    ]
    assert "larger max_record_num" in report.problems(CORES)[0].done


@pytest.mark.parametrize(
    "line",
    ["tpu_freq=0", "tpu_freq=-5", "tpu_freq=1e3", "core_num=many", "max_record_num=0x10", "tail_offset_ns=1.5",
     "tpu_freq=" + "9" * 5000, "core_num=\u0661\u0662x", "tpu_freq="],
)  # fmt: skip
def test_values_that_are_none_are_named(tmp_path: Path, line: str) -> None:
    settings, report = _settings(tmp_path, f"arch=5\n{line}\n")
    assert (settings.tpu_freq, settings.core_num, settings.tail_offset_ns) == (None, None, None)
    problem = report.problems(CORES)[0]
    assert (problem.severity, problem.file, problem.offset) == (Severity.ERROR, "global.profile", 7)
    assert len(problem.what) < 200


@raw.FIXED
@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace"))))
def test_no_settings_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    _settings(tmp_path_factory.mktemp("settings"), data)
    _settings(tmp_path_factory.mktemp("settings"), b"core_num=" + data + b"\narch=" + data)


def test_without_the_file_everything_is_unknown() -> None:
    report = Problems()
    assert read_settings(None, report) == Settings()
    assert [problem.severity for problem in report.problems(CORES)] == [Severity.WARNING]


# -- as many as the chip has --------------------------------------------------


def _limited(directory: Path) -> tuple[list[int], list[int], Problems]:
    chip = chip_by_name("aks")
    assert chip is not None
    report = Problems()
    cores, ports = list_files(directory, report, chip)
    return [number for number, _ in cores], [number for number, _ in ports], report


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_many_names_of_one_file_are_one_core(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    (tmp_path / "cdmlib0_0.profile").write_bytes(b"12345678")
    (tmp_path / "cdma0_4.profile").write_bytes(b"12345678")
    for number in range(1, 300):
        link(tmp_path / "cdmlib0_0.profile", tmp_path / f"cdmlib0_{number}.profile")
        link(tmp_path / "cdma0_4.profile", tmp_path / f"cdma0_{number + 4}.profile")
    cores, ports, report = _limited(tmp_path)
    assert (cores, ports) == ([0], [4])
    assert [problem.file for problem in report.problems(CORES)] == ["cdmlib0_0.profile", "cdma0_4.profile"]
    assert "300 names" in report.problems(CORES)[0].what
    assert "AKS has 8 cores" in report.problems(CORES)[0].what
    assert "AKS has 11 CDMA ports" in report.problems(CORES)[1].what


def test_empty_files_of_idle_cores_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "cdmlib0_0.profile").write_bytes(b"")
    os.link(tmp_path / "cdmlib0_0.profile", tmp_path / "cdmlib0_1.profile")
    cores, _, report = _limited(tmp_path)
    assert (cores, report.problems(CORES)) == ([0, 1], ())


@pytest.mark.parametrize("name", ["cdmlib0_{}.profile", "cdmlib_{}x.profile", "cdmlib_x{}_0.profile"])
def test_no_more_files_are_read_than_the_chip_has_cores(tmp_path: Path, name: str) -> None:
    for number in range(2000):
        (tmp_path / name.format(number)).write_bytes(b"x")
    cores, _, report = _limited(tmp_path)
    assert cores == list(range(8))
    told = report.problems(CORES)[-1]
    assert (told.count, told.severity) == (1992, Severity.ERROR)
    assert "AKS has 8 cores" in told.what
    assert len(report.problems(CORES)) < 10


def test_a_core_that_the_chip_does_not_have_is_shown_and_named(tmp_path: Path) -> None:
    for number in (0, 12):
        (tmp_path / f"cdmlib0_{number}.profile").write_bytes(b"x")
    cores, _, report = _limited(tmp_path)
    assert cores == [0, 12]
    assert [(problem.file, problem.severity) for problem in report.problems(CORES)] == [
        ("cdmlib0_12.profile", Severity.WARNING)
    ]


def test_many_ports_that_the_chip_does_not_have_are_one_problem(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"cdma0_{number}.profile").write_bytes(b"x")
    _, ports, report = _limited(tmp_path)
    assert ports == list(range(11))
    (problem,) = report.problems(CORES)
    assert problem.count == 989
    assert "AKS has 11 CDMA ports" in problem.what
