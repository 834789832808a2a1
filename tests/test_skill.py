"""What ``tpuprof skill`` teaches is true: its examples are run, its way to the evidence is gone; what it may write."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest
from command_line import SAMPLES
from test_agent_page import at

from tpuprof_tui.cli.agent import ABOUT, PAGE, QUESTIONS, RULES
from tpuprof_tui.cli.main import build_parser, main, split_command
from tpuprof_tui.cli.skill import examples, skill_text
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH
from tpuprof_tui.views.findings import rules_of
from tpuprof_tui.views.registry import views_of

EACH = [pytest.param(*each.split("\n", 1), id=each.split("?")[0]) for each in examples()]
#: Examples that must not conclude, by what their answers begin with.
REFUSED = ("not recorded", "not known", "probably")


def answers(words: list[str], capfd) -> tuple[int, list[Any]]:
    """Exit status and JSON answers of a command."""
    status = main(words)
    return status, [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize(("question", "body"), EACH)
def test_each_example_is_answered_as_it_says(question, body, capfd, monkeypatch):
    monkeypatch.chdir(SAMPLES)
    shown, answer = body.split("\nAnswer: ")
    told, status, found = question, 0, []
    for line in map(str.strip, shown.replace("\\\n", "").splitlines()):
        if line.startswith("$ tpuprof "):
            status, found = answers(shlex.split(line)[2:], capfd)
            assert len(found) == 1, line
            assert ("exit status 1" in answer) == (status == 1), line
            continue
        place, said = line.removeprefix("-> ").split(" = ", 1)
        (value,) = at(place, found[0])
        written = json.dumps(value, ensure_ascii=False)
        assert written.startswith(said[:-3]) if said.endswith("...") else written == said, line
        told += f" {said} exit status {status}"
    numbers = re.findall(r"\d+(?:\.\d+)?", answer)
    assert numbers
    assert set(numbers) <= set(re.findall(r"\d+(?:\.\d+)?", told)), answer


def test_examples_that_must_not_conclude_are_among_them():
    told = [each.values[1].split("\nAnswer: ")[1] for each in EACH]
    for refused in REFUSED:
        assert any(answer.startswith(refused) for answer in told), refused
    assert sum(answer.startswith("not recorded") for answer in told) >= 2
    # what is not recorded is asked for, and the answer repeats what it needs
    for each, answer in zip(EACH, told, strict=True):
        if answer.startswith("not recorded"):
            needs = re.findall(r'missing\.0\.needs = "(.*)"', each.values[1])
            assert needs
            assert all(need in " ".join(answer.split()) for need in needs)


@pytest.mark.parametrize(
    "name", ["torch_cuda_synthetic", "torch_cpu_recorded", "aks_decode_mode0", "aks_decode_mode2", "ascend_synthetic"]
)
def test_evidence_leads_to_its_events(name, capfd):
    """The way that the skill tells: offset_us plus start_us is where ``--range`` finds an event of this length."""
    path = str(SAMPLES / name)
    _, (report,) = answers(["report", path, "findings", "--json"], capfd)
    offsets = {worker["key"]: worker["offset_us"] for worker in report["workers"]}
    # evidence that names a lane is an event
    events = [(row, seen) for row in rows_of(report) for seen in row["evidence"] if seen["lane"] is not None]
    assert events
    for row, seen in events[:: max(1, len(events) // 3)]:
        start, length = round(offsets[row["worker"]] + seen["start_us"], 3), seen["duration_us"]
        _, found = answers(
            ["instructions", path, "--range", f"{start}us..+{length}us", "--columns", "start,duration"], capfd
        )
        assert {"start": round(start * 1e3), "duration": round(length * 1e3)} in found, (row, start)


def test_a_fragmentary_trace_is_not_judged(tmp_path, capfd):
    """Where the skill says that rules do not speak, they do not, and the problems say why."""
    with gzip.open(next((SAMPLES / "torch_cuda_synthetic").glob("*4000.*.gz"))) as stream:
        trace = json.load(stream)
    kernels = [number for number, event in enumerate(trace["traceEvents"]) if event.get("cat") == "kernel"]
    lost = set(kernels[::3])
    whole, part = tmp_path / "whole.pt.trace.json", tmp_path / "part.pt.trace.json"
    whole.write_text(json.dumps(trace))
    trace["traceEvents"] = [each for number, each in enumerate(trace["traceEvents"]) if number not in lost]
    part.write_text(json.dumps(trace))
    complete = {rule.id for rule in rules_of(TORCH) if rule.sees == "complete"}
    _, (report,) = answers(["report", str(whole), "findings", "--json"], capfd)
    assert complete & {row["rule"] for row in rows_of(report)}
    _, (report,) = answers(["report", str(part), "findings", "--json"], capfd)
    assert not complete & {row["rule"] for row in rows_of(report)}
    assert any(problem["what"].endswith("idle is not known.") for problem in report["problems"])


def rows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table of findings of all workers, by column."""
    view = report["views"]["findings"]
    tables = [each["tables"]["findings"] for each in view.get("workers", {"": view}).values()]
    return [row for table in tables for row in at("rows.*", table)]


def test_it_has_front_matter_and_no_sentence_of_the_page_is_missing():
    text = skill_text()
    head = re.match(r'---\nname: tpuprof\ndescription: ("[^\n]+")\n---\n', text)
    assert head
    assert 100 < len(json.loads(head[1])) < 1024
    page, skill = " ".join(PAGE.split()), " ".join(text.split())
    for part in (ABOUT, RULES, QUESTIONS):
        assert " ".join(part.split()) in page
        assert " ".join(part.split()) in skill
    # the registries are in it
    for vocabulary in vocabularies():
        assert all(f"{each.title} ({each.needs})" in text for each in vocabulary.capabilities)
        assert all(re.search(rf"\b{view.id}\b", text) for view in views_of(vocabulary))
    assert text.count("```") % 2 == 0


def test_its_own_commands_are_understood():
    for line in re.findall(r"`(tpuprof [^`]+)`", skill_text()):
        words = line.replace("PATH VIEW", "x units").replace("COMMAND", "report").replace("A..B", "1us..2us").split()
        name, rest = split_command(words[1:])
        build_parser(name).parse_intermixed_args(rest)


# -- --install ----------------------------------------------------------------


def test_it_is_printed_and_written(tmp_path, capsys):
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == skill_text()
    path = tmp_path / "new" / "tpuprof" / "SKILL.md"
    for _ in range(2):  # its own file is replaced
        assert main(["skill", "--install", str(tmp_path / "new")]) == 0
        assert capsys.readouterr().out == f"{path} is written.\n"
        assert path.read_text() == skill_text()
        assert sorted(os.listdir(path.parent)) == ["SKILL.md"]
        path.write_text(path.read_text()[:-100])


def refused(folder: Path, capsys) -> str:
    assert main(["skill", "--install", str(folder)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def test_what_is_not_its_own_stays(tmp_path, capsys):
    path = tmp_path / "tpuprof" / "SKILL.md"
    path.parent.mkdir()
    path.write_text("---\nname: tpuprof\n---\nmine\n")
    assert f"{path} was not written by tpuprof skill" in refused(tmp_path, capsys)
    assert path.read_text().endswith("mine\n")
    path.unlink()
    os.mkfifo(path)
    assert "was not written by tpuprof skill" in refused(tmp_path, capsys)
    assert stat.S_ISFIFO(path.stat().st_mode)
    path.unlink()
    path.mkdir()
    assert "was not written by tpuprof skill" in refused(tmp_path, capsys)
    path.rmdir()
    path.write_bytes(b"x" * 10_000 + skill_text().encode())
    assert "was not written by tpuprof skill" in refused(tmp_path, capsys)


@pytest.mark.parametrize("dangling", [False, True])
def test_links_are_not_followed(tmp_path, capsys, dangling):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "skills"
    folder.mkdir()
    if not dangling:
        elsewhere.mkdir()
        (elsewhere / "SKILL.md").write_text(skill_text() + "kept")
    (folder / "tpuprof").symlink_to(elsewhere)
    assert f"{folder / 'tpuprof'} is a link" in refused(folder, capsys)
    (folder / "tpuprof").unlink()
    (folder / "tpuprof").mkdir()
    (folder / "tpuprof" / "SKILL.md").symlink_to(elsewhere / "SKILL.md")
    assert "SKILL.md is a link" in refused(folder, capsys)
    assert elsewhere.exists() is not dangling
    assert dangling or (elsewhere / "SKILL.md").read_text().endswith("kept")


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    assert "could not be written" in refused(tmp_path / "file", capsys)
    assert main(["skill", "--install", ""]) == 2
