"""Which source opens a path: by name, then by content, this package's sources before those of others."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from profiles import small_profile

from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.sources.catalog import SOURCES, Catalog, open_profile
from tpuprof_tui.sources.known_formats import KNOWN_FORMATS, known_format
from tpuprof_tui.sources.source import Recognition, Source, SourceOption, first_bytes

SAMPLES = Path(__file__).parents[2] / "samples"
SOUND = SAMPLES / "aks_decode_mode1"


class Toy(Source):
    """Files of one ending by name, files with a mark by content; remembers what it was asked to open."""

    def __init__(self, name: str, ending: str = ".none", mark: bytes = b"\0none", options=()) -> None:
        self.id, self.title, self.expected = name, f"a {name}", f"a file *{ending}"
        self.ending, self.mark, self.options = ending, mark, options
        self.opened = []

    def recognises(self, path):
        if path.name.endswith(self.ending):
            return Recognition("name", f"it ends in {self.ending}")
        return (
            Recognition("content", "it has the mark") if self.mark in first_bytes(path) else Recognition("", "no mark")
        )

    def open(self, path, options, progress):
        self.opened.append((path.name, dict(options)))
        return small_profile(1, event_count=10)

    def find(self, folder, names):
        return [folder / name for name in names if name.endswith(self.ending)]


class Fails(Toy):
    """A source with a defect in everything it does."""

    def recognises(self, path):
        raise ZeroDivisionError("one\nby zero")

    find = whole = files = device_and_call = recognises


def catalog(*own, others=(), broken=None):
    return Catalog(own, lambda: (list(others), dict(broken or {})))


def never():
    raise AssertionError("sources of other packages are loaded")


def test_a_name_goes_before_content_and_the_first_of_several_opens(tmp_path):
    both = tmp_path / "x.cake"
    both.write_bytes(b"mark")
    by_content, by_name, later = Toy("one", mark=b"mark"), Toy("two", ".cake"), Toy("three", ".cake")
    assert catalog(by_content, by_name, later).source_of(both) is by_name
    assert catalog(by_content, later).source_of(both.rename(tmp_path / "plain")) is by_content
    assert catalog(by_name).source_of(tmp_path / "plain") is None
    assert catalog(by_name).source_of(tmp_path / "missing.cake") is None


def test_others_are_loaded_when_no_source_of_this_package_takes_a_path(tmp_path):
    assert Catalog(SOURCES, never).open(SOUND, {}).event_count
    with pytest.raises(AssertionError):
        Catalog(SOURCES, never).source_of(tmp_path)
    loads = []
    sources = Catalog((), lambda: loads.append(1) or ([Toy("late", ".cake")], {}))
    (tmp_path / "x.cake").touch()
    assert [sources.source_of(tmp_path / "x.cake").id for _ in range(3)] == ["late"] * 3
    assert len(loads) == 1


def test_a_source_of_this_package_goes_before_one_of_another(tmp_path):
    (tmp_path / "x.cake").write_bytes(b"mark")
    own, other = Toy("own", mark=b"mark"), Toy("other", ".cake")
    assert catalog(own, others=[other]).source_of(tmp_path / "x.cake") is own
    found = catalog(own, others=[other]).decisions(tmp_path / "x.cake")
    assert [(each.source, each.recognition.by) for each in found] == [(own, "content"), (other, "name")]


def test_one_of_another_package_that_fails_is_told_and_the_rest_goes_on(tmp_path):
    sources = catalog(others=[Fails("bad"), Toy("good", ".cake")], broken={"gone": "ModuleNotFoundError: no oven"})
    (tmp_path / "x.cake").touch()
    assert sources.source_of(tmp_path / "x.cake").id == "good"
    assert list(sources.find(tmp_path)) == [tmp_path / "x.cake"]
    with pytest.raises(UnreadableError) as refusal:
        sources.recognised(tmp_path / "..")
    assert "The source gone cannot be used (ModuleNotFoundError: no oven)." in refusal.value.hint
    assert "The source bad cannot be used (ZeroDivisionError: one by zero)." in refusal.value.hint


def test_a_defect_of_this_package_is_not_hidden(tmp_path):
    with pytest.raises(ZeroDivisionError):
        catalog(Fails("own")).source_of(tmp_path)


# -- opening ------------------------------------------------------------------

TRAYS = SourceOption("trays", ("--trays",), {"type": int, "help": "how many"})
FAN = SourceOption("fan", ("--fan",), {"action": "store_true", "help": "with air"})


def test_a_source_gets_the_options_that_were_given(tmp_path):
    path = tmp_path / "x.cake"
    path.touch()
    toy = Toy("toy", ".cake", options=(TRAYS, FAN))
    catalog(toy).open(path, {"trays": 3, "fan": None})
    assert toy.opened == [("x.cake", {"trays": 3})]
    assert catalog(toy).words(path, {"trays": 3, "fan": True}) == ["--trays", "3", "--fan"]
    assert catalog(toy).words(path, {"trays": None, "fan": False}) == []


def test_an_option_of_another_source_is_told(tmp_path):
    path = tmp_path / "x.cake"
    path.touch()
    sources = catalog(*SOURCES, others=[Toy("toy", ".cake", options=(TRAYS,))])
    with pytest.raises(UsageError, match=r"--chip .* goes with a Sophgo capture, not with a toy"):
        sources.open(path, {"chip": "AKS"})
    with pytest.raises(UsageError, match=r"--trays .* goes with a toy, not with a Sophgo capture"):
        sources.open(SOUND, {"trays": 3})
    with pytest.raises(TypeError, match="'nonsense'"):
        open_profile(SOUND, nonsense=1)


def test_a_host_trace_is_an_option_of_the_capture():
    sample = SAMPLES / "aks_host_trace"
    told = []
    profile = open_profile(sample, trace_file=str(sample / "host_trace.json"), progress=told.append)
    assert [lane.label for lane in profile.lanes[-2:]] == ["cpu op", "tpudnn op"]
    assert told[-1].text == "reading the host trace"
    assert 0 < told[-1].done <= told[-1].total


@pytest.mark.parametrize("name", ["missing", "missing/below", "file/below"])
def test_a_path_that_is_not_there_says_so(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableError, match=r": (no such file or directory|not a directory)\.$"):
        catalog().recognised(tmp_path / name)


def test_what_nobody_knows_says_what_is_looked_for(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    for path, what in ((tmp_path, "holds"), (tmp_path / "notes.txt", "is")):
        with pytest.raises(UnreadableError) as refusal:
            open_profile(path)
        assert str(refusal.value).startswith(
            f"{path} {what} no known kind of capture. Name a capture: a directory with "
        )
        assert "--why" in str(refusal.value)


# -- formats that are not read ------------------------------------------------

FOREIGN = {
    "report1.nsys-rep": (b"\1\2", "Nsight Systems", "nsys export"),
    "kernels.ncu-rep": (b"NVR\0", "Nsight Compute", "ncu --import"),
    "host.xplane.pb": (b"\x0a\x00", "XPlane", "XProf"),
    "0_results.db": (b"SQLite format 3\0...CREATE TABLE rocpd_kernel_dispatch(", "rocpd", "rocpd convert"),
    "trace.rpd": (b'SQLite format 3\0...CREATE TABLE IF NOT EXISTS "rocpd_api" (', "rocmProfileData", "rpd2tracing"),
    "1_results.json": (b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}', "rocprofv3", "--output-format pftrace"),
    "1_kernel_trace.csv": (
        b'"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n',
        "rocprofv3",
        "--output-format pftrace",
    ),
    "trace.JSON.gz": (gzip.compress(b'{"traceEvents": []}'), "Chrome trace", "ui.perfetto.dev"),
    "perf.data": (b"PERFILE2", "perf", "perf script"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_format_is_told_by_name_with_what_converts_it(tmp_path, name):
    content, title, advice = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(UnreadableError) as refusal:
            open_profile(path)
        assert title in refusal.value.message
        assert "does not read" in refusal.value.message
        assert advice in refusal.value.hint
    assert name in refusal.value.message, "in a folder the file is named"


def test_a_name_that_many_formats_have_needs_a_mark(tmp_path):
    for name in ("x.db", "x.json", "x.sqlite", "perf.data"):
        (tmp_path / name).write_bytes(b"something else")
        assert known_format(tmp_path / name) is None
    assert all(each.advice.endswith(".") for each in KNOWN_FORMATS)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(UnreadableError):
        open_profile(tmp_path / "x.json")
    assert first_bytes(tmp_path / "x.json") == b""


def test_first_bytes_are_few_whatever_is_packed_in_them(tmp_path):
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(1 << 24)))
    assert len(first_bytes(tmp_path / "bomb", 1000)) <= 1000
    (tmp_path / "cut").write_bytes(gzip.compress(b"abc" * 1000)[:20])
    (tmp_path / "odd").write_bytes(b"\x1f\x8bnonsense")
    assert b"abc".startswith(first_bytes(tmp_path / "cut")[:3])
    assert first_bytes(tmp_path / "odd") == b""


# -- what is on disk ----------------------------------------------------------


def test_files_and_folders_are_found_level_by_level(tmp_path):
    for name in ("b/x10.cake", "b/x2.cake", "a/deep/y.cake", "top.cake"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "global.profile").touch()
    (tmp_path / "capture" / "z.cake").touch()
    found = [path.relative_to(tmp_path).as_posix() for path in catalog(*SOURCES, Toy("toy", ".cake")).find(tmp_path)]
    assert found == ["top.cake", "b/x2.cake", "b/x10.cake", "capture", "a/deep/y.cake"]


def test_what_lies_beside_a_file_and_beside_a_folder(tmp_path):
    for name in ("one.cake", "two.cake", "note.txt", "capture/global.profile", "plain/x.cake"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    sources = catalog(*SOURCES, Toy("toy", ".cake"))
    for path in ("one.cake", "capture", "capture/global.profile"):
        assert set(sources.siblings(tmp_path / path)) == {"one.cake", "two.cake", "capture"}


def test_a_fingerprint_is_of_the_profiles_own_files(tmp_path):
    mine, other = tmp_path / "one.cake", tmp_path / "two.cake"
    mine.write_text("1")
    other.write_text("1")
    sources = catalog(Toy("toy", ".cake"))
    before = sources.fingerprint(mine)
    other.write_text("22")
    assert sources.fingerprint(mine) == before
    assert sources.size(mine) == 1
    mine.write_text("22")
    assert sources.fingerprint(mine) not in ("", before)
    assert sources.fingerprint(tmp_path / "missing") == ""


def test_a_capture_whose_files_are_gone_has_another_fingerprint(tmp_path):
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "global.profile").touch()
    before = Catalog().fingerprint(tmp_path / "capture")
    (tmp_path / "capture" / "global.profile").unlink()
    assert Catalog().fingerprint(tmp_path / "capture") not in ("", before)


# -- info --why ---------------------------------------------------------------


def test_why_tells_each_decision(tmp_path, capsys):
    from tpuprof_tui.cli.main import main

    (tmp_path / "x.nsys-rep").touch()
    assert main(["info", str(SOUND), "--why"]) == 0
    text = capsys.readouterr().out
    assert "sophgo" in text
    assert "yes, by name: it holds cdmlib0_0.profile and " in text
    assert text.endswith("It is opened as a Sophgo capture.\n")
    assert main(["info", str(SOUND), str(tmp_path), "/nowhere/at/all", "--why", "--json"]) == 2
    decoder, rest, records = json.JSONDecoder(), capsys.readouterr().out, []
    while rest.strip():
        record, end = decoder.raw_decode(rest.lstrip())
        rest = rest.lstrip()[end:]
        records.append(record)
    assert [record["source"] for record in records] == ["sophgo", None, None]
    (decision, *_) = records[0]["decisions"]
    assert (decision["source"], decision["recognised"], decision["by"]) == ("sophgo", True, "name")
    assert records[1]["decisions"][0]["recognised"] is False
    assert "Nsight Systems" in records[1]["says"]
    assert records[2]["says"].endswith("no such file or directory.")
