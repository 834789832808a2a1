"""What is kept of large files that were read: found again, never stale, harmless, bounded, removable."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from ascend_profile import run_of, write_database

from tpuprof_tui.cli.main import main
from tpuprof_tui.model.mapped_arrays import pickled
from tpuprof_tui.sources import column_cache
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.torch.read import parallel_reading

COUNT = 3_000
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(column_cache.SWITCH)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tpuprof" / "columns"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of kernels with long names that do not repeat, so that it is large enough."""
    path = tmp_path / "rank0.pt.trace.json"
    of_all = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 5}
    events = [{**of_all, "name": f"kernel_{number:01500}", "ts": number * 10,
               "args": {"device": 0, "stream": 7, "correlation": number}} for number in range(COUNT)]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert path.stat().st_size > 4 << 20
    return path


def answer(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(path), "overview", "--json"]) == 0
    return capsys.readouterr().out


def test_the_second_answer_is_the_first_without_reading(
    trace: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = answer(trace, capsys)
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(parallel_reading, "read_trace", lambda *_, **__: pytest.fail("read again"))
    assert answer(trace, capsys) == first
    # arguments are still found in the file
    lane = open_profile(trace).lanes[0]
    assert lane.arguments is not None
    assert lane.arguments(3)["correlation"] == 3


@pytest.fixture(scope="module")
def ascend_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose slices are in a database."""
    return write_database(run_of(0), tmp_path_factory.mktemp("database"))


def test_timelines_of_databases_are_kept_too(
    ascend_database: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    test_other_formats_are_kept_too(str(ascend_database), folder, capsys, monkeypatch)


@pytest.mark.parametrize(
    "sample", ["torch_perfetto", "nsys_synthetic/run.sqlite", "memory_snapshot_synthetic.pickle.gz", "ascend_synthetic"]
)
def test_other_formats_are_kept_too(
    sample: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_cache, "_LEAST", 0)

    def told() -> str:
        assert main(["report", str(SAMPLES / sample), "--json"]) in (0, 1)
        return capsys.readouterr().out

    first, loaded = told(), []
    assert column_cache.files()
    load = column_cache._load
    monkeypatch.setattr(column_cache, "_load", lambda place: loaded.append(load(place)) or loaded[-1])
    assert told() == first
    assert loaded
    # without the text of its arguments a trace is read again
    for text in folder.glob("*.text"):
        text.unlink()
        assert told() == first
        assert text.exists()


def test_a_changed_file_is_read_again(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = answer(trace, capsys)
    trace.write_text(trace.read_text().replace('"dur": 5', '"dur": 6'))
    assert answer(trace, capsys) != first
    assert len(column_cache.files()) == 2


@pytest.mark.parametrize("damage", ["cut", "begin", "sizes", "empty"])
def test_damaged_files_are_read_again(
    trace: Path, folder: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = answer(trace, capsys)
    (file,) = folder.iterdir()
    data = file.read_bytes()
    file.write_bytes({"cut": data[:-40_000], "begin": b"?" + data[1:], "empty": b"",
                      "sizes": data.replace(b"\n[", b"\n[9", 1)}[damage])  # fmt: skip
    assert answer(trace, capsys) == first


def test_nothing_is_called_that_a_file_names(trace: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Evil:
        def __init__(self, function: object, *arguments: object) -> None:
            self.call = function, arguments

        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return self.call  # type: ignore[return-value]

    first = answer(trace, capsys)
    (file,) = folder.iterdir()
    done = trace.with_name("done")
    for evil in (Evil(os.mkdir, str(done)), Evil(shutil.rmtree, str(done)), Evil(open_profile, str(done))):
        column_cache._store(file, evil)
        assert answer(trace, capsys) == first
    for name in (b"os.system", b"json"):
        text = b"\x80\x04\x8c\x1ftpuprof_tui.sources.column_cache\x8c" + bytes([len(name)]) + name + b"\x93."
        with pytest.raises((pickle.UnpicklingError, ValueError, AttributeError)):
            column_cache._Unpickler(__import__("io").BytesIO(text)).load()
    assert not done.exists()


def test_the_least_recently_used_go_first(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_cache, "_LEAST", 0)
    monkeypatch.setattr(column_cache, "MOST", 3 * 80_000)
    for number in range(5):
        file = tmp_path / f"{number}"
        file.write_text("x")
        column_cache.read_or_kept([file], lambda: np.zeros(9_000))
        os.utime(max(folder.iterdir(), key=lambda each: each.stat().st_ctime_ns), ns=(number, number))
    sizes = [size for _, size in column_cache.files()]
    assert len(sizes) == 3
    assert sum(sizes) <= column_cache.MOST


def test_a_folder_that_cannot_be_used_changes_nothing(
    trace: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    assert answer(trace, capsys)


def test_users_see_and_remove_what_is_kept(
    trace: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(trace, capsys)
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{folder}: 1 file, ")
    assert main(["cache", "--clear"]) == 0
    assert not list(folder.iterdir())
    monkeypatch.setenv(column_cache.SWITCH, "off")
    answer(trace, capsys)
    assert not list(folder.iterdir())
    assert main(["cache"]) == 0
    assert "Nothing is kept" in capsys.readouterr().out


def test_small_arrays_are_in_the_pickle_and_large_ones_are_not() -> None:
    data, buffers = pickled([np.zeros(10), np.zeros(100_000)])
    assert [each.nbytes for each in buffers] == [800_000]
    assert len(data) < 1_000
