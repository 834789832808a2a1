"""What ``tpuprof help agent`` tells programs is true, and text answers are short: its commands are run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from capture_writer.capture import write_capture
from capture_writer.options import Options
from command_line import SAMPLES
from torch_trace import write_run

from tpuprof_tui.cli.agent import PAGE
from tpuprof_tui.cli.main import main
from tpuprof_tui.cli.printing import MOST_BYTES

_PLACE = re.compile(r"[a-z_]+(?:\.(?:[a-z_]+|\*))*")


def commands() -> list[tuple[str, list[str]]]:
    """Each command with what the page says of its answer: places, or an exit status."""
    found: list[tuple[str, list[str]]] = []
    for line in PAGE.splitlines():
        if line.strip().startswith("$ tpuprof "):
            found.append((line.strip().removeprefix("$ tpuprof "), []))
        elif line.strip().startswith("-> "):
            said = line.strip().removeprefix("-> ")
            found[-1][1].extend([said] if said.startswith("exit") else re.split(r"  +", said)[0].split(", "))
    return found


def at(place: str, value: Any) -> Iterator[Any]:
    """What stands at a place of an answer."""
    key, _, rest = place.partition(".")
    if isinstance(value, dict) and key == "rows" and isinstance(value.get("columns"), list) and rest:
        # of a table of report: rows by column
        keys = [column.get("key") for column in value["columns"]]
        value = {"rows": [dict(zip(keys, row, strict=True)) for row in value["rows"]]}
    if key == "*":
        inner = list(value.values() if isinstance(value, dict) else value)
    elif isinstance(value, list):
        inner = value[int(key) : int(key) + 1]
    else:
        inner = [value[key]] if isinstance(value, dict) and key in value else []
    for each in inner:
        yield from at(rest, each) if rest else (each,)


@pytest.fixture(scope="module", params=["capture", "trace"])
def paths(request, tmp_path_factory):
    """The places that the page names, for two kinds of profile."""
    folder = tmp_path_factory.mktemp("agent")
    if request.param == "trace":
        trace = SAMPLES / "torch_cuda_synthetic"
        write_run(folder / "after", ranks=2, layers=8)
        return {"CAPTURE": trace, "PMU_ONLY": SAMPLES / "aks_decode_mode0", "BEFORE": trace, "AFTER": folder / "after",
                "TRACE": SAMPLES / "aks_decode_mode2", "FOLDER": trace, "FLEET": folder / "fleet"}  # fmt: skip
    base = Options("cdm_profile_data_dev0-0", cores=(0,), batches=2)
    before = write_capture(base, folder / "before", truth=False).path
    slower = Options("cdm_profile_data_dev0-1", cores=(0,), batches=2, slower=("mlp:2",))
    after = write_capture(slower, folder / "after", truth=False).path
    return {"CAPTURE": SAMPLES / "aks_decode_mode2", "PMU_ONLY": SAMPLES / "aks_decode_mode0", "BEFORE": before,
            "AFTER": after, "TRACE": SAMPLES / "torch_cuda_synthetic", "FOLDER": folder / "before",
            "FLEET": folder / "fleet"}  # fmt: skip


def test_the_page_is_true(paths, capfd):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    asked = commands()
    assert len(PAGE.encode()) < MOST_BYTES
    assert sum(any(each.startswith("exit 2") for each in said) for _, said in asked) >= 4
    for command, said in asked:
        assert said, command
        words = [str(paths.get(word, word)) for word in shlex.split(command)]
        status = main(words)
        told = capfd.readouterr()
        expected = re.match(r"exit (\d): (.*)", said[0])
        if expected and expected[1] == "2":
            assert (status, told.out) == (2, ""), command
            assert told.err.startswith("tpuprof: "), command
            assert expected[2] in told.err, command
            continue
        if expected:
            assert status == int(expected[1]), command
            assert expected[2] in told.out, command
            continue
        assert status == 0, (command, told)
        answers = [json.loads(line) for line in told.out.splitlines()] if words[0] == "instructions" \
            else [json.loads(told.out)]  # fmt: skip
        if "figures" in command:
            names = {name for name, _ in answers[0]["rows"]}
            # the page names some of each kind
            named = set(re.findall(r"overview\.\w+_us", PAGE)) & names
            assert named
            paths["FIGURE"] = min(named)
        if words[:2] == ["dataset", "trend"]:
            assert answers[0]["rows"]
        for place in said:
            assert _PLACE.fullmatch(place), place
            assert all(list(at(place, answer)) for answer in answers), (command, place)


def test_text_answers_are_short_and_say_what_is_cut(capfd):
    path = str(SAMPLES / "torch_cuda_synthetic")

    def text(*words: str) -> str:
        assert main([words[0], path, *words[1:]]) in (0, 1)
        return capfd.readouterr().out

    whole, short, markdown = text("summary", "--limit", "1000"), text("summary"), text("report", "--markdown")
    assert len(whole.encode()) > MOST_BYTES
    assert "Left out" not in whole
    for told in (short, markdown):
        assert len(told.encode()) <= MOST_BYTES
        # tables that are not there and rows that are not there are told
        assert re.search(
            r"^Left out, as it is long: \w+, .*VIEW|^Left out, as it is long: .*Name one", told, re.MULTILINE
        )
        assert re.search(r"^\d[\d,]* more; ", told, re.MULTILINE)
    # what is worth a look stays
    assert any(line.startswith("Findings") for line in short.splitlines())
    assert short.splitlines()[0] == whole.splitlines()[0]
    # the answer, then the views
    assert markdown.split("\n\n")[1].startswith("### ")
    assert "| Severity |" in text("report", "findings", "--markdown")
    assert main(["report", path, "--markdown", "--json"]) == 2
