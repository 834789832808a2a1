"""The list of captures: what builds keep for it, and names that are told apart in few cells."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset.listing import LIST, Listing, shortened_paths
from tpuprof_tui.formats.text import cell_len

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("paths", "width", "told"),
    [
        (["captures/a", "captures/b"], 10, ["captures/a", "captures/b"]),
        (["captures/a", "captures/b"], 9, ["a", "b"]),
        (["one/host1/run/trace.json", "one/host2/run/trace.json"], 12, ["host1", "host2"]),
        (["host1/run/step1/x", "host1/run/step2/y", "host2/run/step1/x"], 15,
         ["host1/…/step1/x", "host1/…/step2/y", "host2/…/step1/x"]),
        (["fleet/2026-03-01/cdm_profile_dev0-1", "fleet/2026-03-02/cdm_profile_dev12-1"], 20,
         ["…01/…dev0…", "…02/…dev12…"]),
        (["a/b/c/d/aks_bmodel", "a/b/c/d/aksv_cdma", "x/y"], 12, ["…/aks_bmodel", "…/aksv_cdma", "x/y"]),
        (["llama_7b_with_a_long_name", "llama_13b_with_a_long_name"], 12, ["…7b…", "…13b…"]),
        (["a" * 30], 11, ["aaaaa…aaaaa"]),
    ],
)  # fmt: skip
def test_names_that_are_too_wide_show_where_they_differ(paths, width, told):
    assert shortened_paths(paths, width) == told


def test_no_name_is_wider_than_there_is_room_for():
    paths = ["日本/" + "語" * 20 + "/x", "日本/" + "語" * 19 + "y/x", "ascii/" + "z" * 50, "w"]
    for width in range(3, 40):
        assert all(0 < cell_len(each) <= width for each in shortened_paths(paths, width))


def test_the_list_comes_from_one_file_that_builds_keep(tmp_path, monkeypatch):
    out, folder = tmp_path / "out", tmp_path / "captures"
    for name in ("aks_bmodel", "aksv_cdma", "torch_cpu_recorded"):
        shutil.copytree(SAMPLES / name, folder / name)
    (folder / "cdm_profile_data_dev9-0").mkdir()
    (folder / "cdm_profile_data_dev9-0" / "global.profile").write_bytes(b"\xff\x00 nothing")
    building.build(out, [str(folder)], building.local(1))
    with monkeypatch.context() as patched:
        patched.setattr("tpuprof_tui.dataset.listing._rows_of", None)  # no file of a capture is looked into
        first = Listing.read(out)
    assert [Path(row.path).name for row in first.rows if row.values] == [Path(row.path).name for row in first.rows]
    assert len(first.rows) == 3
    # without it, or where it is damaged, the captures' own files tell the same
    whole = (out / LIST).read_bytes()
    for damage in (None, b"", whole[:100], whole[:-9] + b"\xff" * 9):
        (out / LIST).unlink(missing_ok=True)
        if damage is not None:
            (out / LIST).write_bytes(damage)
        assert Listing.read(out) == first
    # a capture that came, and one that went, since it was written
    (out / LIST).unlink()
    shutil.rmtree(folder / "aksv_cdma")
    building.build(out, [str(folder)], building.local(1), prune=True)
    fewer, copy = Listing.read(out), (out / LIST).read_bytes()
    shutil.copytree(SAMPLES / "aksv_cdma", folder / "aksv_cdma")
    building.build(out, [str(folder)], building.local(1))
    (out / LIST).write_bytes(copy)
    assert {row.path for row in Listing.read(out).rows} == {row.path for row in first.rows}
    (out / LIST).write_bytes(whole)
    shutil.rmtree(folder / "aksv_cdma")
    building.build(out, [str(folder)], building.local(1), prune=True)
    (out / LIST).write_bytes(whole)
    assert Listing.read(out) == fewer
    # few large files in place of many are the same captures
    building.compact(out)
    assert Listing.read(out) == fewer
