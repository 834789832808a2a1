"""Help texts, the list of keys and of columns, the manual page: made from what is there, and true."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tpuprof_tui import __version__
from tpuprof_tui.app.settings.actions import ACTIONS, GROUPS, actions_for, key_text
from tpuprof_tui.cli import texts as cli_texts
from tpuprof_tui.cli.help import help_text, man_page
from tpuprof_tui.cli.main import COMMANDS, build_parser, main, split_command
from tpuprof_tui.cli.options import OPTIONS
from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import TABLE, help_lines, meanings
from tpuprof_tui.model.vocabulary import GENERIC
from tpuprof_tui.sources.ascend.vocabulary import VOCABULARY as ASCEND
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.sources.sophgo.schema import COLUMNS
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")


def shown(capsys, *words):
    with suppress(SystemExit):
        assert main(words) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def examples():
    """All examples of all commands: command of the help they are in, words after the program's name."""
    found = []
    for name in COMMANDS:
        parser = build_parser(name)
        block = (parser.epilog or "").split("examples:\n")[1].split("\n\n")[0]
        for line in block.splitlines():
            typed = re.split(r"\s{3,}", line.strip())[0].replace('eval "$(', "").replace(')"', "")
            words = shlex.split(typed)[1:]
            for mark in ("|", ">"):
                words = words[: words.index(mark)] if mark in words else words
            found.append(pytest.param(name, words, id=typed))
    return found


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "open"])
def test_every_command_has_help_with_examples(name, capsys):
    text = shown(capsys, name, "--help")
    assert "examples:" in text
    assert f"usage: tpuprof {name}" in text
    assert text == shown(capsys, "help", name)
    for status in TABLE:
        meaning = status.also.get(name, status.meaning)[0]
        assert re.search(rf"^  {status.code} +{re.escape(meaning)}$", text.partition("exit status:\n")[2], re.M)


def test_the_main_help_names_every_command_and_the_exit_status(capsys):
    text = shown(capsys, "--help")
    for name, command in COMMANDS.items():
        assert name == "open" or re.search(rf"^  {name} +{re.escape(command.help)}$", text, re.M)
    assert help_lines("") in text
    assert shown(capsys, "help") == text


@pytest.mark.parametrize(("name", "words"), examples())
def test_every_example_is_understood(name, words):
    if words[:1] == ["./info"]:
        assert split_command(words) == ("open", words)
        return
    command, rest = split_command(words)
    assert name in ("open", command) or command == "open"
    build_parser(command).parse_args(rest)


def test_no_line_of_help_is_wider_than_a_terminal():
    for name in COMMANDS:
        for line in (build_parser(name).description or "").splitlines():
            assert len(line) <= 120


def test_every_key_is_listed_once_with_its_action(capsys):
    samples = Path(__file__).parents[2] / "samples"
    of_source = ((VOCABULARY, "aks_decode_mode1"), (TORCH, "torch_cuda_synthetic"), (ASCEND, "ascend_synthetic"))
    for vocabulary, sample in ((GENERIC, ""), *of_source):
        text = " ".join(shown(capsys, "help", "KEYS", *([str(samples / sample)] if sample else [])).split())
        for action in actions_for(vocabulary):
            keys = " ".join(key_text(key) for key in action.keys)
            assert f"{keys} {action.help} [{action.id}]" in text
            assert text.count(f"[{action.id}]") == 1
        told = re.sub(r"\[[^]]*\]", "", text)
        of_sophgo = [word for word in ("instruction", "engine", " core") if word in told]
        assert bool(of_sophgo) == (vocabulary is VOCABULARY), (sample, of_sophgo)
    assert {action.pane for action in ACTIONS} <= set(GROUPS)


def test_keys_are_those_the_user_chose(tmp_path, capsys):
    (tmp_path / "tpuprof").mkdir()
    (tmp_path / "tpuprof" / "config.json").write_text(json.dumps({"keys": {"timeline.fit": "9"}}))
    try:
        text = " ".join(shown(capsys, "help", "keys").split())
    finally:
        from tpuprof_tui.app.settings.actions import remap

        remap({})
    assert "9 Show all of the time: no range, and the timeline zoomed out. [timeline.fit]" in text


def test_every_column_is_listed(capsys):
    text = " ".join(shown(capsys, "help", "COLUMNS").split())
    assert all(f"{each.title}: time" in text for each in vocabularies())
    assert "Needs any" not in text
    for column in COLUMNS:
        assert column.key in text
        assert column.help in text
        assert column.file_name in text


def test_help_fits_the_terminal(monkeypatch):
    for width in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        for topic in ("KEYS", "COLUMNS"):
            longest = max(len(line) for line in help_text(topic).splitlines())
            assert longest <= max(min(width, 100), 62)


def test_an_unknown_topic_names_those_there_are():
    with pytest.raises(
        UsageError,
        match=r"There is no help on nonsense\. Topics: summary, report, .*KEYS, COLUMNS, FILTER, schema, agent, man\.",
    ):
        help_text("nonsense")


# -- the manual page ----------------------------------------------------------


def test_the_page_has_every_command_and_every_option():
    page = man_page()
    assert f'"tpuprof {__version__}"' in page
    for name in COMMANDS:
        assert name == "open" or f"\n.SS {name}\n" in page
    for option in OPTIONS:
        if option.settings.get("help") != "==SUPPRESS==":
            for flag in option.flags:
                assert f"\\fB{flag}\\fR".replace("-", "\\-") in page
    for name, _ in (*cli_texts.ENVIRONMENT, *meanings()):
        assert f"\\fB{name}\\fR" in page


def test_what_is_made_from_the_program_is_current():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "run: make docs"


def test_the_page_is_the_same_on_every_terminal(monkeypatch):
    before = man_page()
    monkeypatch.setenv("COLUMNS", "40")
    assert man_page() == before


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_complain_about():
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-rLL=150n"], input=man_page(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"):
        assert f"\n{heading}\n" in text
    assert 'tpuprof export cdm_profile_data_dev0-0 out --only web --filter "kernel=rmsnorm* dur>1us"' in text
