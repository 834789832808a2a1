"""The documents: what they show works, what they link to is there, both languages say the same."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from tpuprof_tui import __version__
from tpuprof_tui.app.settings.actions import ACTIONS, GROUPS, commands_named, completions, key_text, views_named
from tpuprof_tui.app.settings.config import read_config
from tpuprof_tui.cli.completion import words_of
from tpuprof_tui.cli.main import COMMANDS, build_parser, main, split_command
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.views.registry import views_of

ROOT = Path(__file__).resolve().parents[2]
#: The table of benchmarks stands in one of them alone, for whoever measures.
_MEASURED = re.compile(r"<!-- benchmarks -->.*?<!-- /benchmarks -->\n", re.DOTALL)
#: Documents in both languages, the README first; what is for contributors is in English alone.
BOTH = ("README", *sorted(f"docs/{path.name[:-3]}" for path in (ROOT / "docs").glob("*.md")
                          if ".zh." not in path.name and path.name != "ARCHITECTURE.md"))  # fmt: skip
#: Their texts in each language.
ENGLISH, CHINESE = (
    {name: _MEASURED.sub("", (ROOT / f"{name}{suffix}").read_text(encoding="utf-8")) for name in BOTH}
    for suffix in (".md", ".zh.md")
)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "samples" / "README.md"])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    [^\n]*\n)+)")


def headings(text):
    return re.findall(r"^(#+) (.+)$", FENCE.sub("", text), re.MULTILINE)


def prose(text):
    """A text without its code blocks."""
    return INDENTED.sub("\n", FENCE.sub("", text))


def sections(text):
    """The parts of a text, each with its heading."""
    starts = [match.start() for match in re.finditer(r"^#+ .+$", text, re.MULTILINE)]
    fenced = [match.span() for match in FENCE.finditer(text)]
    starts = [start for start in starts if not any(first < start < last for first, last in fenced)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def anchor(title):
    """The anchor that a heading gets."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def command_of(line):
    """A line of a block without the words that explain it."""
    line = re.split(r"\s{2,}(?=#|//|--\s|[^\s])", line.strip())[0]
    return re.sub(r"\s*(?:# |// |-- |^-- ).*$", "", line).strip()


def blocks(text):
    """Code blocks of a document without their comments: language, lines; of a session in a shell only what is typed."""
    found = [(match.start(), match[1], match[2]) for match in FENCE.finditer(text)]
    plain = FENCE.sub(lambda match: "\n" * 2 + "x" * len(match[0]), text)
    found += [(match.start(), "", match[1]) for match in INDENTED.finditer(plain)]
    bodies = [(language, [command_of(line) for line in body.splitlines()]) for _, language, body in sorted(found)]
    return [(language, [line for line in lines if line.startswith("$ ")] or lines) for language, lines in bodies]


# -- both languages -----------------------------------------------------------

each_pair = pytest.mark.parametrize(("english", "chinese"), [
    pytest.param(ENGLISH[name], CHINESE[name], id=name) for name in BOTH
])  # fmt: skip


def same(of, english, chinese):
    """Asserts that each section has the same property in both languages."""
    for ours, theirs in zip(sections(english), sections(chinese), strict=True):
        assert of(ours) == of(theirs), f"{ours.splitlines()[0]} / {theirs.splitlines()[0]}"


@each_pair
def test_both_have_the_same_sections(english, chinese):
    assert [level for level, _ in headings(english)] == [level for level, _ in headings(chinese)]


@each_pair
def test_each_leads_to_the_other(english, chinese, request):
    name = request.node.callspec.id
    for text, title, other in ((english, "中文", ".zh.md"), (chinese, "English", ".md")):
        own = re.findall(r"\]\(([^)\s#]+)", prose(text))
        assert f"\n\n[{title}]({Path(name).name}{other})\n\n" in text
        # all other links lead to pages in the reader's language
        links = {os.path.normpath(f"{os.path.dirname(name)}/{link}".lstrip("/")) for link in own}
        assert not links & {f"{each}{other}" for each in BOTH if each != name}


@each_pair
def test_both_have_the_same_code(english, chinese):
    same(blocks, english, chinese)


@each_pair
def test_both_have_the_same_tables_lists_and_paragraphs(english, chinese):
    def shape(text):
        lines = prose(text).splitlines()
        marks = [line.replace("\\|", "").count("|") or line[:2] for line in lines if line[:2] in ("- ", "| ")]
        return marks, len(re.split(r"\n{2,}", prose(text).strip()))

    same(shape, english, chinese)


@each_pair
def test_both_name_the_same_options_files_and_keys(english, chinese):
    def spans(text):
        return {re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose(text)) if span.isascii()}

    same(spans, english, chinese)


@each_pair
def test_both_have_the_same_numbers(english, chinese):
    def numbers(text):
        text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose(text))
        found = re.findall(r"(\d[\d,]*(?:\.\d+)?)( million| 万)?", text)
        times = {"": 1, " million": 10**6, " 万": 10**4}
        return {round(float(number.rstrip(",").replace(",", "")) * times[word], 6) for number, word in found}

    same(numbers, english, chinese)


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
        for each in (ROOT / "docs").glob("*.md")
        if each.name.endswith(".zh.md") == (suffix == ".zh.md")
    } <= set(re.findall(r"\]\(([^)#]+)\)", text))
    sections = {anchor(title) for level, title in headings(text) if level == "##"}
    assert sections <= set(re.findall(r"\]\(#([^)]+)\)", text.split("\n## ")[0]))


def test_python_blocks_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for match in FENCE.finditer(ENGLISH["docs/COMMANDS"]):
        if match[1] == "python":
            exec(compile(match[2], "COMMANDS.md", "exec"), names)  # our own document
    assert len(names["frame"]) == names["profile"].event_count
    assert "Core 0 TIU" in capsys.readouterr().out


def test_the_example_of_keys_is_understood(tmp_path):
    body = next(match[2] for match in FENCE.finditer(ENGLISH["docs/KEYS"]) if match[1] == "json")
    (tmp_path / "config.json").write_text(body)
    assert read_config(tmp_path / "config.json").keys == json.loads(body)["keys"] != {}


def commands():
    """Calls of the tool in blocks and in the text, without optional parts."""
    for text in (path.read_text(encoding="utf-8") for path in DOCUMENTS if path.name != "CHANGELOG.md"):
        shown = [line for language, lines in blocks(text) if not language for line in lines]
        shown += [re.sub(r"\s+", " ", span) for span in re.findall(r"`(tpuprof [^`]+)`", prose(text))]
        for line in shown:
            for part in re.split(r" [|>] |; ", re.sub(r"\[[^]]*\]", "", line)):
                called = re.match(r"(?:\$ )?((?:\.venv/bin/)?tpuprof(?: .*)?)$", part)
                if called and called[1].removeprefix("tpuprof ") not in COMMANDS:
                    yield called[1]


@pytest.mark.parametrize("line", list(dict.fromkeys(commands())))
def test_every_command_is_understood(line):
    line = line.replace("jsonl|csv|parquet", "csv").replace("COMMAND|KEYS|COLUMNS|man", "KEYS")
    command, words = split_command(shlex.split(line.replace("bash|zsh|fish", "bash"))[1:])
    build_parser(command).parse_args(words)


def sessions():
    """What blocks of documents show: the command line, the lines of the answer, whether it is in Chinese."""
    for path in DOCUMENTS:
        for body in INDENTED.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
            typed = re.split(r"^    \$ ", body, flags=re.MULTILINE)[1:]
            yield from ((*each.split("\n", 1), path.name.endswith(".zh.md")) for each in typed)


@pytest.mark.parametrize(("typed", "answer", "chinese"), list(sessions()))
def test_what_is_shown_is_what_is_answered(typed, answer, chinese, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8" if chinese else "C.UTF-8")
    call, asked, _ = typed.partition("; echo $?")
    status = main(shlex.split(call)[1:])
    printed = capsys.readouterr()
    lines = [*(printed.out + printed.err).splitlines(), *([str(status)] if asked else [])]
    wanted = [line.removeprefix("    ") for line in answer.splitlines()]
    assert len(lines) == len(wanted)
    for line, shown in zip(lines, wanted, strict=True):
        assert line.startswith(shown.removesuffix(" ...")) if shown.endswith(" ...") else line == shown


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_command_and_option_is_there(texts):
    text = "\n".join(texts.values())
    for name in COMMANDS:
        assert name == "open" or f"tpuprof {name}" in text
        for word in words_of(name):
            if word.flags and word.flags[0] not in ("-h", "--version"):
                assert word.flags[0] in text, f"{name} {word.flags[0]}"


# -- keys ---------------------------------------------------------------------

KEYS = {key_text(key) for action in ACTIONS for key in action.keys}


@pytest.mark.parametrize("name", [*BOTH, "samples/README"])
def test_keys_are_named_as_on_the_screen(name):
    spans = set(re.findall(r"`([^`\n]+)`", prose((ROOT / f"{name}.md").read_text(encoding="utf-8"))))
    named = {key.lower() for key in KEYS if len(key) > 1}
    assert {span for span in spans if span.lower() in named} <= KEYS
    assert {span for span in spans if len(span) == 1 and span.isalnum()} <= KEYS


@pytest.mark.parametrize(
    ("name", "source"), [("torch", "torch"), ("ascend", "ascend"), ("compare", "sophgo"), ("COMMANDS", "sophgo")]
)
def test_views_that_are_typed_are_found(name, source):
    (vocabulary,) = (each for each in vocabularies() if each.source == source)
    views = [view.id for view in views_of(vocabulary, screen=True)]
    text = prose(ENGLISH[f"docs/{name}"])
    for typed in re.findall(r"`5` `(\w+)` `Enter`", text):
        assert len(completions(typed, views)) == 1, typed
    for typed in re.findall(r"`:(\w+)` `Enter`", text):
        assert not commands_named(typed, vocabulary), typed
        assert len(views_named(typed, views, vocabulary)) == 1, typed


def test_the_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == __version__
    assert versions[1][1]


def test_the_table_of_packages_has_the_bounds_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    for name, lowest in re.findall(r'^    "(numpy|textual|rich|perfetto|plotext)>=([\d.]+)', project, re.MULTILINE):
        row = next(
            line for line in ENGLISH["docs/INSTALL"].splitlines() if re.match(rf"\| (?:textual, )?{name}\b", line)
        )
        assert ".".join(lowest.split(".")[:2]) in row, name
