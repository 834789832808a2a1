"""The documents: what they show works, what they link to is there, both languages say the same."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tpuprof_tui import __version__
from tpuprof_tui.app.settings.actions import ACTIONS, GROUPS
from tpuprof_tui.app.settings.config import read_config
from tpuprof_tui.cli.completion import words_of
from tpuprof_tui.cli.main import COMMANDS, build_parser, split_command

ROOT = Path(__file__).resolve().parents[2]
#: The table of benchmarks stands in one of them alone, for whoever measures.
_MEASURED = re.compile(r"<!-- benchmarks -->.*?<!-- /benchmarks -->\n", re.DOTALL)
#: Documents in both languages, the README first.
BOTH = ("README", *(f"docs/{name}" for name in ("SOPHGO", "KEYS", "FIGURES", "COMMANDS", "INSTALL", "BENCHMARKS")))
#: All of them as one text in each language.
ENGLISH, CHINESE = (
    "\n".join(_MEASURED.sub("", (ROOT / f"{name}{suffix}").read_text()) for name in BOTH)
    for suffix in (".md", ".zh.md")
)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "samples" / "README.md"])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    [^\n]*\n)+)")


def headings(text):
    return re.findall(r"^(#+) (.+)$", FENCE.sub("", text), re.MULTILINE)


def anchor(title):
    """The anchor that a heading gets."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def command_of(line):
    """A line of a block without the words that explain it."""
    line = re.split(r"\s{2,}(?=#|//|--\s|[^\s])", line.strip())[0]
    return re.sub(r"\s*(?:# |// |-- |^-- ).*$", "", line).strip()


def blocks(text):
    """Code blocks of a document without their comments: language, lines."""
    found = [(match.start(), match[1], match[2]) for match in FENCE.finditer(text)]
    plain = FENCE.sub(lambda match: "\n" * 2 + "x" * len(match[0]), text)
    found += [(match.start(), "", match[1]) for match in INDENTED.finditer(plain)]
    return [(language, [command_of(line) for line in body.splitlines()]) for _, language, body in sorted(found)]


# -- both languages -----------------------------------------------------------


def test_both_have_the_same_sections():
    assert [level for level, _ in headings(ENGLISH)] == [level for level, _ in headings(CHINESE)]
    assert len(headings(ENGLISH)) > 15


def test_both_have_the_same_code():
    english, chinese = blocks(ENGLISH), blocks(CHINESE)
    assert len(english) > 20
    assert english == chinese


def test_both_have_the_same_tables():
    def shape(text):
        rows = [line for line in text.splitlines() if line.startswith("|")]
        return [row.replace("\\|", "").count("|") for row in rows]

    assert shape(ENGLISH) == shape(CHINESE)


def test_both_name_the_same_options_and_files():
    def spans(text):
        return {span for span in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)) if re.search(r"[-_./]", span)}

    assert spans(ENGLISH) == spans(CHINESE)


def test_the_chinese_key_table_is_chinese():
    texts = json.loads((ROOT / "docs" / "keys.zh.json").read_text())
    wanted = {action.id for action in ACTIONS} | set(GROUPS)
    assert len(wanted ^ set(texts)) <= 0.05 * len(wanted), wanted ^ set(texts)
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in texts.values())


# -- what is shown ------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith("https://"):
            name, _, place = target.partition("#")
            found = path.parent / name if name else path
            assert found.exists(), target
            assert not place or place in {anchor(title) for _, title in headings(found.read_text())}, target


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_is_short_and_leads_to_its_sections_and_to_all_documents(name):
    text = (ROOT / name).read_text()
    assert len(text.encode()) < 20_000
    suffix = name.removeprefix("README")
    assert {
        f"docs/{each.name}"
        for each in (ROOT / "docs").glob("[A-Z]*.md")
        if each.name.endswith(".zh.md") == (suffix == ".zh.md")
    } <= set(re.findall(r"\]\(([^)#]+)\)", text))
    sections = {anchor(title) for level, title in headings(text) if level == "##"}
    assert sections <= set(re.findall(r"\]\(#([^)]+)\)", text.split("\n## ")[0]))


def test_python_blocks_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    ran = [
        body for language, body in ((match[1], match[2]) for match in FENCE.finditer(ENGLISH)) if language == "python"
    ]
    for body in ran:
        if "tpuprof_tui" in body:
            exec(compile(body, "COMMANDS.md", "exec"), names)  # our own document
    assert len(names["frame"]) == names["profile"].instructions
    assert "Core 0 TIU" in capsys.readouterr().out


def test_the_example_of_keys_is_understood(tmp_path):
    body = next(match[2] for match in FENCE.finditer(ENGLISH) if match[1] == "json")
    (tmp_path / "config.json").write_text(body)
    assert read_config(tmp_path / "config.json").keys == json.loads(body)["keys"] != {}


def commands():
    """Lines of the documents in English that call the tool, without optional parts."""
    texts = (path.read_text() for path in DOCUMENTS if not path.name.endswith(".zh.md"))
    for language, lines in (block for text in texts for block in blocks(text)):
        for line in lines:
            found = re.match(r"(?:\.venv/bin/)?tpuprof(?: |$)", line)
            if language == "" and found:
                yield re.split(r" [|>] ", re.sub(r"\[[^]]*\]", "", line))[0]


@pytest.mark.parametrize("line", list(commands()))
def test_every_command_is_understood(line):
    line = line.replace("jsonl|csv|parquet", "csv").replace("COMMAND|KEYS|COLUMNS|man", "KEYS")
    command, words = split_command(shlex.split(line.replace("bash|zsh|fish", "bash"))[1:])
    build_parser(command).parse_args(words)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_command_and_option_is_there(text):
    for name in COMMANDS:
        assert name == "open" or f"tpuprof {name}" in text
        for word in words_of(name):
            if word.flags and word.flags[0] not in ("-h", "--version"):
                assert word.flags[0] in text, f"{name} {word.flags[0]}"


def test_the_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == __version__
    assert versions[1][1]


def test_the_table_of_packages_has_the_bounds_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    for name, lowest in re.findall(r'^    "(numpy|textual|rich|perfetto|plotext)>=([\d.]+)', project, re.MULTILINE):
        row = next(line for line in ENGLISH.splitlines() if re.match(rf"\| (?:textual, )?{name}\b", line))
        assert ".".join(lowest.split(".")[:2]) in row, name
