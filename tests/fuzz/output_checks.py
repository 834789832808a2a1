"""What must hold of every output, whatever the names in it: read back by rules of its own."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import raw_bytes as raw
from trace_reading import TraceReader
from web_reading import WrittenPage

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.export.outputs import keys_of, outputs_of
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions
from tpuprof_tui.sources.sophgo.files.summary_text import summary_console, summary_text
from tpuprof_tui.views.info import info_json
from tpuprof_tui.views.text_pages import info_report, summary_report

#: What steers a terminal, ends a line where none should end, or turns the direction of writing.
_STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: The same without tabs and the separators of lines that only some editors know: what no file of data may hold raw.
_STEERS_DATA = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?|-")
#: Files that an export may write, by its documentation.
_FILES = re.compile(
    r"summary\.txt|perfetto\.pftrace|(tiu|tdma|cdma)RegInfo_\d+\.txt|PerfDoc/PerfAI_output\.(xlsx|csv)"
    r"|PerfWeb/result\.html|calltree\.collapsedstack\.txt|\.tpuprof_files\.json"
)


def check_refusal(error: TpuprofError) -> None:
    """One sentence, and a status that says that nothing could be shown."""
    assert error.message
    assert "\n" not in str(error)
    assert error.exit_code == 2


def check_light_outputs(profile: Profile) -> None:
    """What the command line prints: texts for people, JSON, CSV."""
    for text in (info_report(profile).text(), summary_report(profile).text()):
        assert not _STEERS.search(text), _around(_STEERS, text)
    for text in (summary_text(query_of(profile)), summary_console(query_of(profile))):
        assert not _STEERS.search(text.replace("\t", " ")), _around(_STEERS, text)
    facts = info_json(profile)
    assert facts.isascii()
    assert json.loads(facts)["instructions"] == profile.device_part.event_count
    check_json_lines(_printed(profile, "jsonl"), profile.device_part.event_count)
    check_csv(_printed(profile, "csv"), profile.device_part.event_count)


def _printed(profile: Profile, form: str) -> bytes:
    sink = io.BytesIO()
    write_instructions(query_of(profile), sink, form=form)  # type: ignore[arg-type]
    return sink.getvalue()


def check_json_lines(data: bytes, count: int) -> None:
    text = data.decode("utf-8")
    assert not _STEERS_DATA.search(text)
    lines = text.split("\n")
    assert len(lines) == count + 1
    assert all(isinstance(json.loads(line), dict) for line in lines[:-1])
    assert len(text.splitlines()) == count


def check_csv(data: bytes, count: int) -> None:
    """Every row has the header's length, and no text is a formula."""
    text = data.decode("utf-8-sig")
    assert not _STEERS_DATA.search(text), _around(_STEERS_DATA, text)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows:
        return
    assert len(rows) == count + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    for row in rows:
        for cell in row:
            assert cell[:1] not in ("=", "@", "\t", "\r"), cell
            assert cell[:1] not in ("+", "-") or _NUMBER.fullmatch(cell), cell


def check_all_outputs(profile: Profile, folder: Path) -> None:
    """All files of an export, and that there are no others beside the folder."""
    check_light_outputs(profile)
    before = _below(folder.parent)
    written = run_export(Job(folder, frozenset(keys_of(outputs_of(profile.vocabulary))), query_of(profile)))
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert all(_FILES.fullmatch(name) for name in names), names
    assert {file.path.relative_to(folder).as_posix() for file in written} | {".tpuprof_files.json"} == names
    assert {path for path in _below(folder.parent) if folder not in (path, *path.parents)} == before
    for path in folder.glob("*.txt"):
        text = path.read_bytes().decode("utf-8").replace("\t", " ")
        assert not _STEERS.search(text), _around(_STEERS, text)
    check_csv((folder / "PerfDoc" / "PerfAI_output.csv").read_bytes(), profile.device_part.event_count)
    check_workbook(folder / "PerfDoc" / "PerfAI_output.xlsx")
    check_page(folder / "PerfWeb" / "result.html")
    TraceReader((folder / "perfetto.pftrace").read_bytes())


def _below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def check_workbook(path: Path) -> None:
    """All parts are XML, no cell is a formula, links and charts stay in the workbook, and no text can steer."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            assert not name.startswith("/")
            assert ".." not in name
            for element in ElementTree.fromstring(archive.read(name)).iter():
                tag = element.tag.rpartition("}")[2]
                assert tag != "externalReference", name
                if tag == "f":
                    assert name.startswith("xl/charts/"), name
                    assert re.fullmatch(r"'Charts'!\$?[A-Z]+\$?\d+(:\$[A-Z]+\$\d+)?", element.text or ""), element.text
                if tag == "hyperlink":
                    assert set(element.attrib) <= {"ref", "location", "display"}, element.attrib
                    assert re.fullmatch(r"'[\w ()]+'!A1", element.attrib["location"]), element.attrib
                assert element.attrib.get("TargetMode") != "External", name
                assert not _STEERS.search(element.text or "")


def check_page(path: Path) -> None:
    """The page has the elements and the code of a harmless one."""
    page, harmless = WrittenPage(path), _harmless_page()
    assert set(page.tags) <= set(harmless.tags)
    without = [[tag for tag in each.tags if tag != "script"] for each in (page, harmless)]
    assert without[0] == without[1]
    assert page.code == harmless.code
    assert set(page.links) <= set(harmless.links)
    assert not _STEERS_DATA.search(page.text)


@cache
def _harmless_page() -> WrittenPage:
    with tempfile.TemporaryDirectory() as scratch:
        path = raw.write_capture(Path(scratch), {0: raw.core_file(raw.opening(), raw.OPENING_NODES)})
        run_export(Job(Path(scratch) / "out", frozenset({"web"}), query_of(open_profile(path))))
        return WrittenPage(Path(scratch) / "out" / "PerfWeb" / "result.html")


def _around(form: re.Pattern[str], text: str) -> str:
    found = form.search(text)
    assert found is not None
    return repr(text[max(0, found.start() - 40) : found.end() + 20])
