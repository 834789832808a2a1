"""What programs read: JSON of the form that ``tpuprof help schema`` prints, and nothing else on stdout."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache

import jsonschema
import pytest
from command_line import DAMAGED, SOUND, tool
from every_source import NAMES, every_source

from tpuprof_tui.cli.describe import MOST_BYTES
from tpuprof_tui.cli.json_schema import commands, schema_text
from tpuprof_tui.cli.main import main
from tpuprof_tui.formats.answers import SCHEMA, answer_text

MAKE = ["make", "sophgo", "registers", "--capture", str(SOUND)]
#: Words behind ``tpuprof options``.
ABOUT_OPTIONS = (
    ["explain"], ["explain", "task_time"], ["explain", "task_time", "on"], ["explain", "aic_metrics"],
    ["explain", "sophgo"], ["explain", "torch"], ["explain", '{"output":"/tmp/p","nothing":1}'],
    ["check", '{"output":"/tmp/p","task_trace":"bad"}'], ["check", '{"output":"/tmp/p","task_trace":"on"}'],
    MAKE, ["make", "torch", "kernels", "shapes"],
)  # fmt: skip


@cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(schema_text(command))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    with every_source(tmp_path_factory.mktemp("sources")) as found:
        yield found


@pytest.fixture(scope="module", params=NAMES)
def words(request, paths):
    """Words that name a profile."""
    return paths[request.param]


def said(capfd, *asked: str) -> str:
    """What a command writes to stdout."""
    assert main(asked) in (0, 1)
    return capfd.readouterr().out


def answer(capfd, *asked: str) -> dict:
    """The one object a command prints: stdout holds nothing else."""
    found = json.loads(said(capfd, *asked), parse_constant=pytest.fail)
    assert found["schema"] == SCHEMA
    assert next(iter(found)) == "schema"
    return found


# -- every profile ------------------------------------------------------------------


#: Sources whose answers are asked for in parts as well, each in another: cutting is the same for all.
FEW = ("aks_decode_mode0", "torch", "ascend")


def test_report(words, capfd):
    check_report(words, ("--limit", "30"), capfd)


@pytest.mark.parametrize(("name", "more"), [
    (FEW[0], ("--limit", "2", "--offset", "1")), (FEW[1], ("--range", "0..1us")), (FEW[2], ("--filter", "dur>0")),
])  # fmt: skip
def test_parts_of_a_report(paths, name, more, capfd):
    check_report(paths[name], more, capfd)


def check_report(words, more, capfd):
    found = answer(capfd, "report", *words, "--json", *more)
    validator("report").validate(found)
    tables = [table for view in found["views"].values()
              for told in (view["workers"].values() if "workers" in view else [view])
              for table in told["tables"].values()]  # fmt: skip
    assert tables
    for table in tables:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert table["truncated"] is (len(table["rows"]) < table["total_rows"])
        assert len(table["rows"]) <= (int(more[1]) if "--limit" in more else table["total_rows"])


def test_info(words, capfd):
    validator("info").validate(answer(capfd, "info", *words, "--json"))


@pytest.mark.parametrize("more", [("--why",), ("--memory", "--limit", "1")])
@pytest.mark.parametrize("name", FEW)
def test_more_in_info(paths, name, more, capfd):
    validator("info").validate(answer(capfd, "info", *paths[name], "--json", *more))


def test_describe(words, capfd):
    found = answer(capfd, "describe", *words, "--json")
    validator("describe").validate(found)
    assert len(answer_text({**found, "path": ""}, indent=None)) <= MOST_BYTES
    text = said(capfd, "describe", *words)
    assert len(text.encode()) <= MOST_BYTES
    for each in (*found["views"], *found["views_missing"], *found["columns"]):
        assert each in text
    listed = [line.split()[0] for line in said(capfd, "report", *words, "--list").splitlines()]
    assert set(found["views"]) | set(found["views_missing"]) == set(listed)
    info = answer(capfd, "info", *words, "--json")
    assert found["problems"] == {
        severity: count for severity in ("error", "warning", "note")
        if (count := sum(each["severity"] == severity for each in info["problems"]))
    }  # fmt: skip
    assert found["units"]["count"] + len(info["lost_cores"]) == len(info["cores"])


def test_a_description_counts_steps_in_the_words_of_the_source(capfd):
    assert "Steps      2 batches\n" in said(capfd, "describe", str(SOUND))


def test_a_description_is_short_whatever_names_say(monkeypatch, capfd):
    import numpy as np
    from msgspec.structs import replace
    from profiles import make_profile

    from tpuprof_tui.model import Counter, Device, Lane, Problem, Severity
    from tpuprof_tui.model.profile import RecordingMode
    from tpuprof_tui.sources import catalog

    for hostile in ("\x1b[2J\n\u202e\ud800<b>", "名字", "x", '"\\'):
        name = hostile * 500
        lanes = [Lane(kind=f"{hostile}{number}{name}", group=-1, label=name,
                      columns={"start": np.arange(2), "end": np.arange(2)}) for number in range(40)]  # fmt: skip
        counters = tuple(Counter(-1, f"{number}{name}", name, np.arange(1), np.zeros(1)) for number in range(40))
        device = Device(name, clocks=tuple((f"{number}{name}", 1e9) for number in range(40)))
        profile = replace(make_profile(lanes, problems=[Problem(Severity.ERROR, name, name)]), name=name, device=device,
                          counters=counters, recording=RecordingMode(name, name, name))  # fmt: skip
        monkeypatch.setattr(catalog, "open_profile", lambda path, found=profile, **_: found)
        text = said(capfd, "describe", "x")
        assert len(text.encode()) <= MOST_BYTES
        assert all(line.isprintable() for line in text.splitlines())
        found = answer(capfd, "describe", "x", "--json")
        assert len(answer_text({**found, "path": ""}, indent=None)) <= MOST_BYTES
        assert found["counters"][-1] == "..."
        validator("describe").validate(found)


def test_instructions(words, capfd):
    check_instructions(words, (), capfd)


@pytest.mark.parametrize("more", [("--sort", "dur:desc"), ("--columns", "engine,core,name,start,dur,share")])
@pytest.mark.parametrize("name", FEW)
def test_instructions_sorted_and_in_columns(paths, name, more, capfd):
    check_instructions(paths[name], more, capfd)


def check_instructions(words, more, capfd):
    lines = said(capfd, "instructions", *words, *more, "--limit", "200").splitlines()
    assert len(lines) == 200 or words[0].endswith(("town", ".gz"))
    check = validator("instructions")
    for line in lines:
        check.validate(json.loads(line))


@pytest.mark.parametrize("asked", ABOUT_OPTIONS, ids=" ".join)
def test_options(asked, capfd):
    validator("options").validate(answer(capfd, "options", *asked, "--json"))


def test_export_for_the_explorer(capfd, tmp_path):
    lines = said(capfd, "export", str(SOUND), str(tmp_path), "--only", "summary,web", "--machine").splitlines()
    check = validator("export")
    for line in lines:
        check.validate(json.loads(line))
    assert "written" in json.loads(lines[-1])


# -- the schemas --------------------------------------------------------------------


def test_every_schema_is_listed_and_printed(capfd):
    assert said(capfd, "help", "schema").split() == list(commands())
    for command in commands():
        schema = json.loads(said(capfd, "help", "schema", command))
        assert schema["title"].startswith(f"tpuprof {command} ")
    assert main(["help", "schema", "summary"]) == 2
    assert "Commands that print JSON: dataset, describe," in capfd.readouterr().err
    assert main(["help", "KEYS", "report"]) == 2


def test_the_schemas_refuse_what_is_not_of_their_form(capfd):
    found = answer(capfd, "report", str(DAMAGED), "lanes", "--json")
    check = validator("report")
    table = next(iter(found["views"]["lanes"]["workers"].values()))["tables"]["lanes"]
    changes = [({}, "schema"), ({"schema": "1.1"}, ""), ({"more": 1}, "")]
    for more, without in changes:
        assert not check.is_valid({key: value for key, value in {**found, **more}.items() if key != without})
    whole = dict(table)
    for more, without in [({}, "total_rows"), ({"rows": [1]}, ""), ({"columns": [{"title": "", "unit": ""}]}, "")]:
        table.clear()
        table.update({key: value for key, value in {**whole, **more}.items() if key != without})
        assert not check.is_valid(found)
    table.clear()
    table.update(whole)
    assert check.is_valid(found)
    facts = answer(capfd, "info", str(DAMAGED), "--json")
    facts["lanes"][0]["busy_ns"] = "1"
    assert not validator("info").is_valid(facts)


def test_what_is_no_number_in_json_is_null():
    assert json.loads(answer_text({"a": [float("inf"), {"b": float("nan")}], "schema": "9"})) == {
        "schema": SCHEMA, "a": [None, {"b": None}],
    }  # fmt: skip


def test_decimals_are_numbers_in_json():
    """DuckDB computes decimals from literals such as 0.5."""
    values = [Decimal("1.50"), [Decimal(2)], Decimal("NaN"), float("nan")]
    assert json.loads(answer_text({"a": values}))["a"] == [1.5, [2], None, None]


def test_a_list_of_views_is_no_json(capfd):
    assert main(["report", str(SOUND), "--list", "--json"]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("tpuprof: --list and --json do not go together.")


# -- stdout -------------------------------------------------------------------------

#: Words of each command; what the answer is, is all of stdout.
TEXTS = (
    ["summary"], ["report"], ["report", "--list"], ["info"], ["info", "--why"], ["describe"],
    ["instructions", "--format", "csv", "--limit", "3"],
)  # fmt: skip


@pytest.mark.parametrize("sample", [SOUND, DAMAGED], ids=lambda path: path.name)
@pytest.mark.parametrize("asked", TEXTS, ids=" ".join)
def test_warnings_and_notes_go_to_stderr(sample, asked, capfd):
    assert main([asked[0], str(sample), *asked[1:]]) in (0, 1)
    told = capfd.readouterr()
    assert "tpuprof: " not in told.out
    assert "Writing" not in told.out
    assert all(line.startswith("tpuprof: ") for line in told.err.splitlines())
    if asked[0] == "instructions":
        assert told.err.startswith("tpuprof: 3 of ")
        assert len(told.out.splitlines()) == 4
    else:
        assert told.err == ""


@pytest.mark.parametrize("sample", [SOUND, DAMAGED], ids=lambda path: path.name)
def test_an_export_tells_files_on_stdout_and_progress_on_stderr(sample, capfd, tmp_path):
    assert main(["export", str(sample), str(tmp_path), "--only", "web,pftrace,regs"]) in (0, 1)
    told = capfd.readouterr()
    files = [line.rpartition("  ")[0] for line in told.out.splitlines()]
    assert sorted(files) == sorted(str(path) for path in tmp_path.rglob("[!.]*") if path.is_file())
    assert all(line.startswith(("Writing ", "tpuprof: ")) for line in told.err.splitlines())
    assert told.err.count("Writing ") == 3


@pytest.mark.parametrize("asked", [["summary"], ["report", "--json"], ["info", "--json"], ["describe", "--json"],
                                   ["instructions"], ["export"], ["open"]])  # fmt: skip
def test_what_cannot_be_opened_says_nothing_on_stdout(asked, tmp_path):
    words = asked[1:] if asked == ["open"] else asked
    done = tool(*words[:1], tmp_path / "nothing", *words[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
