"""``tpuprof skill``: a SKILL.md for agents, made from the registries; ``help agent`` is its short form."""

from __future__ import annotations

import argparse
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tpuprof_tui import __version__
from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import OK
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.formats.units import GUESS, MISSING
from tpuprof_tui.model.vocabulary import join_words
from tpuprof_tui.sources.catalog import SOURCES, vocabularies

from .agent import ABOUT, QUESTIONS, RULES
from .options import output_path
from .texts import said

#: Name of the skill: its folder, and ``name`` of its front matter.
NAME: Final = "tpuprof"
#: What a file written by ``--install`` holds; only such files are replaced.
_MARK: Final = "<!-- made by tpuprof skill"
#: The mark stands within so many first bytes.
_HEAD_BYTES: Final = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the option of the command to a parser."""
    parser.add_argument(
        "--install", metavar="DIR", type=output_path, help="write DIR/tpuprof/SKILL.md instead; follows no link there"
    )


def skill_command(options: argparse.Namespace) -> int:
    """Prints the skill, or writes it below a folder; returns the exit status."""
    if options.install is None:
        print(skill_text(), end="")
    else:
        print(f"{_installed(Path(options.install))} is written.")
    return OK


def _installed(folder: Path) -> Path:
    """Writes the skill below a folder; returns the path of the file.

    Raises:
        UsageError: Its folder or file is a link, or the file was not written by this command.
        WriteError: The file could not be written.
    """
    path = folder / NAME / "SKILL.md"
    for place in (path.parent, path):
        if os.path.islink(place):
            raise UsageError(f"{place} is a link, which is not followed.", "Remove it, or choose another folder.")
    if os.path.lexists(path) and not _is_own(path):
        raise UsageError(f"{path} was not written by tpuprof skill: it stays.", "Move it, or choose another folder.")
    with whole_file(path) as stream:
        stream.write(skill_text().encode())
    return path


def _is_own(path: Path) -> bool:
    """Whether a file was written by this command; one that cannot be read was not."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            with path.open("rb") as stream:
                return _MARK.encode() in stream.read(_HEAD_BYTES)
    return False


def skill_text() -> str:
    """The SKILL.md: YAML front matter, then Markdown; depends only on the version."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    """Parts of the text, each ending with a newline; empty lines are between them."""
    kinds = join_words((source.title for source in SOURCES), "or")
    about = f"Answers questions about {kinds} with the command tpuprof: where the time went, what to change, whether a "
    about += "run is slower than before and why. Use it for any profile, trace or capture of an accelerator."
    yield f"---\nname: {NAME}\ndescription: {json.dumps(about)}\n---\n"
    yield f"{_MARK} {__version__}; tpuprof skill --install replaces it -->\n"
    yield from ("# tpuprof\n", ABOUT, "## Rules that hold for every command\n", RULES, "## Ask first\n", _FIRST)
    yield from ("## From the sentence to its evidence\n", _EVIDENCE, "".join(_views()))
    yield from ("## What must not be concluded\n", _NOT, "".join(_needs()))
    yield "## Worked examples\n"
    yield "Paths are those of `samples` in tpuprof's repository. `rows.0.gain_us`: column gain_us of the first row.\n"
    yield "```\n" + "\n\n".join(examples()) + "\n```\n"
    yield from ("## Questions, and where their answers stand\n", f"```\n{QUESTIONS}```\n")


def examples() -> Iterator[str]:
    """Worked examples: questions about samples, from the texts of each source, which empty lines divide.

    ``$`` lines are commands, ``->`` lines values in their JSON (by keys; ``*``: any; of rows a number, then a
    column; ``...``: cut), then the answer. A test runs them and compares.
    """
    for vocabulary in vocabularies():
        yield from filter(None, vocabulary.texts.get("worked_examples", "").strip().split("\n\n"))


_FIRST: Final = """\
1. `tpuprof info PATH`: what it is, how it was recorded, and every problem. Read the problems before any figure.
2. `tpuprof report PATH findings --json --limit 5`: `sentence` is the answer in one sentence: what costs most of what is
   selected, by how much, and what to do; or that nothing stands out. It is one finding of the table below it.
3. `tpuprof describe PATH --json`: views and columns for any other question. Repeat the sentence with its number and
   unit; do not compute what a view has.
"""
_EVIDENCE: Final = """\
1. A row of the table findings (of each worker, or of all together: views.findings.tables) has `evidence`: `group`,
   `lane`, `name`, `start_us`, `duration_us`. Where these are null, it is about all of the selection: `figure`, `value`,
   `threshold`.
2. When: offset_us of its worker plus start_us is the start A, `--range Aus..+Dus` with its duration D. A range selects
   what starts in it.
3. Where: the number of `group` is `--core N` (`--gpu N`, `--npu N`); a worker is `--rank N` of report; `--group` of
   report also takes the name of a lane. What: `--filter 'name=...'`, see `tpuprof help FILTER PATH`.
4. Single events: `tpuprof instructions PATH --range A..B --sort duration:desc --limit 5 --columns name,start,duration`.
5. Sums: `tpuprof report PATH VIEW --range A..B --json`. A filter hides part of the work: findings that compare sums are
   left out under it.

Views of any profile; `tpuprof report PATH --list` says which one has:
"""
_NOT: Final = f"""\
- Exit status 1, or errors among `problems`: records are lost, and sums, idle time and lengths are not whole. Say which.
  Where many are lost ("idle is not known", "left out"), rules about idle time and sums do not speak: that they find
  nothing says nothing.
- A view has `missing`, or `missing` of describe names it: answer "not recorded", and what `needs` says, not 0 or none.
- No device work was recorded: figures are of the host alone; say nothing about the device.
- `{GUESS}` in text, `guessed` in JSON (numbers of rows, or true): inferred. Say "probably", and build nothing on it.
- `{MISSING}` in text, null in JSON: not known. No sum, mean or comparison has it.
- No steps: there is no time per step, iteration or batch. Do not divide the total by a number of them.
- `gain_us` is an upper bound, and gains overlap: do not add them. `confidence`: measured (recorded times show it),
  likely (it follows from names or from what others reach), guess.
- "Nothing stands out": no rule finds enough to win. What follows it was not judged; it is not that nothing can be won.
- `truncated` is true: what was not shown was not seen.

What a profile may hold, and what records it:
"""


def _views() -> Iterator[str]:
    """Lines that list the generic views with their help, and the ids of those of each source."""
    from tpuprof_tui.views.registry import GENERIC  # imports numpy: --help does not need it

    yield from (f"- `{view.id}`: {said(view.help)}\n" for view in GENERIC)
    known = {view.id for view in GENERIC}
    for vocabulary in vocabularies():
        more = ", ".join(view.id for view in vocabulary.views if view.id not in known)
        yield f"- {vocabulary.title} also: {more}.\n"


def _needs() -> Iterator[str]:
    """Lines that list what profiles of each source may hold, and how it is recorded."""
    for vocabulary in vocabularies():
        needs = "; ".join(f"{each.title} ({each.needs})" for each in vocabulary.capabilities)
        yield f"- {vocabulary.title}: {needs}.\n"
