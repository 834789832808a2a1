"""Export jobs: which files appear, what of an earlier run goes, and what the options mean."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace
from profiles import selected_query

from tests.profiles import make_profile, small_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.export import requested_kinds
from tpuprof_tui.cli.main import build_parser, main
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.job import OWN_LIST, Job, parse_cores, parse_kinds, run_export
from tpuprof_tui.export.outputs import keys_of, outputs_of
from tpuprof_tui.formats.files import WriteError, whole_file
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY


def run(folder: Path, *kinds: str, document_units=None, **selection) -> list[str]:
    query = selected_query(small_profile(1), **selection)
    written = run_export(Job(folder, frozenset(kinds), query, document_units))
    assert all(file.size == file.path.stat().st_size > 0 for file in written)
    return sorted(str(file.path.relative_to(folder)) for file in written)


def files(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != OWN_LIST
    )


def test_every_kind_lies_where_it_is_documented(tmp_path: Path) -> None:
    names = run(tmp_path, "summary", "pftrace", "regs", "xlsx", "web")
    assert names == files(tmp_path)
    fixed = {
        "summary.txt",
        "perfetto.pftrace",
        "PerfDoc/PerfAI_output.xlsx",
        "PerfDoc/PerfAI_output.csv",
        "PerfWeb/result.html",
    }
    assert fixed <= set(names)
    assert {"tiuRegInfo_0.txt", "tdmaRegInfo_0.txt"} <= set(names)


def test_only_stale_files_of_the_same_kind_go(tmp_path: Path) -> None:
    (tmp_path / "tiuRegInfo_77.txt").write_text("somebody else's")
    (tmp_path / "notes.txt").write_text("mine")
    first = run(tmp_path, "regs", "summary")
    again = run(tmp_path, "regs", document_units=frozenset({0}))
    assert set(again) < set(first)
    left = files(tmp_path)
    assert set(left) == {*again, "summary.txt", "tiuRegInfo_77.txt", "notes.txt"}


def test_a_forged_list_removes_nothing_else(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    out = tmp_path / "out"
    out.mkdir()
    (out / OWN_LIST).write_text(json.dumps(["../victim.txt", str(victim), "PerfWeb/../../victim.txt", 3, None]))
    run(out, "regs")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("text", ["[", "[" * 100_000, '{"a": 1}', "\x00\xff"])
def test_a_broken_list_is_no_list(tmp_path: Path, text: str) -> None:
    (tmp_path / OWN_LIST).write_text(text, encoding="latin-1")
    assert run(tmp_path, "summary") == ["summary.txt"]


def test_nothing_is_written_into_the_capture(tmp_path: Path) -> None:
    profile = replace(small_profile(1), path=str(tmp_path))
    with pytest.raises(WriteError, match="inside the capture"):
        run_export(Job(tmp_path / "out", frozenset({"summary"}), query_of(profile)))
    assert not (tmp_path / "out").exists()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def interrupted(error: type[BaseException]) -> None:
        with whole_file(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(RuntimeError):
        interrupted(RuntimeError)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(KeyboardInterrupt)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
def test_what_is_no_file_is_not_replaced_by_one(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(str(path))
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(WriteError, match="not a pipe, socket or device"), whole_file(path):
        pytest.fail("nothing may be written")
    assert path.lstat() == before


def test_the_folders_of_devices_get_no_files() -> None:
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/none"):
        with pytest.raises(WriteError, match="not a pipe, socket or device"), whole_file(Path(path)):
            pytest.fail("nothing may be written")


def test_a_link_to_a_file_is_replaced_not_followed(tmp_path: Path) -> None:
    """What it leads to may lie anywhere."""
    (tmp_path / "elsewhere").write_bytes(b"old")
    path = tmp_path / "out.csv"
    path.symlink_to("elsewhere")
    with whole_file(path) as stream:
        stream.write(b"new")
    assert not path.is_symlink()
    assert (path.read_bytes(), (tmp_path / "elsewhere").read_bytes()) == (b"new", b"old")


def test_a_list_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / OWN_LIST)
    run_export(Job(tmp_path, frozenset({"summary"}), query_of(small_profile(1))))
    assert (tmp_path / "summary.txt").is_file()


def test_a_folder_that_is_a_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WriteError, match="could not be written"):
        run_export(Job(tmp_path / "out", frozenset({"summary"}), query_of(small_profile(1))))


def test_the_selection_reaches_the_files(tmp_path: Path) -> None:
    run(tmp_path, "regs", units=frozenset({1}))
    assert {"tiuRegInfo_1.txt"} <= set(files(tmp_path))
    assert "tiuRegInfo_0.txt" not in files(tmp_path)


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ("", "regs web xlsx"),
        ("--disable_web", "regs xlsx"),
        ("--disable_doc", "regs web"),
        ("--perfetto", "pftrace regs summary web xlsx"),
        ("--perfetto --disable_summary", "pftrace regs web xlsx"),
        ("--perfetto --disable_web --disable_doc", "pftrace summary"),
        ("--enable_doc", "pftrace regs summary xlsx"),
        ("--enable_doc --disable_summary", "pftrace regs xlsx"),
        ("--only web,summary --disable_web", "summary web"),
    ],
)
def test_options_of_the_published_tool(options: str, kinds: str) -> None:
    parsed = build_parser("export").parse_args(["capture", *options.split()])
    assert sorted(requested_kinds(parsed, outputs_of(VOCABULARY))) == kinds.split()


def test_nothing_to_write_is_an_error() -> None:
    parsed = build_parser("export").parse_args(["capture", "--disable_web", "--disable_doc"])
    with pytest.raises(UsageError, match="nothing to write"):
        requested_kinds(parsed, outputs_of(VOCABULARY))


def test_unknown_options_are_an_error() -> None:
    with pytest.raises(UsageError):
        build_parser("export").parse_args(["capture", "--disable_everything"])


def test_a_choice_that_leaves_nothing_writes_nothing(tmp_path: Path, capsys) -> None:
    sample = str(Path(__file__).parents[2] / "samples" / "aks_decode_mode0")
    for words in (["--range", "100s.."], ["--filter", "name=nothing"]):
        assert main(["export", sample, str(tmp_path / "out"), *words]) == 2
        assert "No instruction matches these options: nothing was written." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_instructions_there_is_no_summary_and_an_old_one_goes(tmp_path: Path) -> None:
    (tmp_path / "summary.txt").write_text("somebody else's")
    empty = replace(small_profile(1), lanes=())
    written = run_export(Job(tmp_path, frozenset({"summary", "web"}), query_of(empty)))
    assert [file.path.name for file in written] == ["result.html"]
    assert (tmp_path / "summary.txt").read_text() == "somebody else's"
    run(tmp_path, "summary")
    run_export(Job(tmp_path, frozenset({"summary"}), query_of(empty)))
    assert files(tmp_path) == ["PerfWeb/result.html"]


def test_lists_of_cores() -> None:
    assert parse_cores("0,3", make_profile([], cores=range(4))) == {0, 3}
    # core 4 is the third unit
    assert parse_cores("1-9", make_profile([], cores=(0, 1, 4))) == {1, 2}
    for text in ("7", "x", "0-", "", "99999999999", "5-9", "0,8-9"):
        with pytest.raises(UsageError):
            parse_cores(text, make_profile([], cores=range(2)))


def test_lists_of_kinds() -> None:
    assert parse_kinds("xlsx, web", keys_of(outputs_of(VOCABULARY))) == {"xlsx", "web"}
    for text in ("", "xlsx,pdf"):
        with pytest.raises(UsageError):
            parse_kinds(text, keys_of(outputs_of(VOCABULARY)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_message(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(WriteError, match="could not be written"):
        run_export(Job(tmp_path / "out", frozenset({"summary"}), query_of(small_profile(1))))
