"""Texts of the command line's help: descriptions, examples, environment variables, files."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model.vocabulary import GENERIC

#: Topics of help besides the commands, and shells with completion.
TOPICS: Final = ("KEYS", "COLUMNS", "FILTER", "schema", "agent", "man")
SHELLS: Final = ("bash", "zsh", "fish")
#: Marker among completions: file names are offered too.
FILE: Final = "FILE"

#: Environment variables that affect the program.
ENVIRONMENT: Final = (
    ("NO_COLOR", "if set, the explorer uses bold, dim and reverse instead of colours"),
    ("COLORTERM", "truecolor or 24bit: the terminal supports 24-bit colours"),
    ("TERM", "linux, vt100 and vt220 are drawn in ASCII; no explorer if dumb, unknown or unset"),
    ("LC_ALL, LC_CTYPE, LANG", "the first one set decides between Unicode and ASCII"),
    ("LC_ALL, LC_MESSAGES, LANG", "the first one set selects Chinese or English for tpuprof options"),
    ("PROFILING_OPTIONS, PROFILING_MODE", "what tpuprof options check checks by default"),
    ("XDG_CONFIG_HOME", "folder of tpuprof/config.json, ~/.config by default"),
    ("XDG_CACHE_HOME", "folder of tpuprof/columns, what is kept of large files, ~/.cache by default"),
    ("TPUPROF_CACHE", "off: nothing is kept of large files, nor looked for"),
    ("XDG_STATE_HOME", "folder of tpuprof's logs of unexpected errors, ~/.local/state by default"),
    ("TMPDIR", "folder of temporary files; /var/tmp by default for large ones"),
)

#: Files that the program reads or writes by default.
FILES: Final = (
    ("~/.config/tpuprof/config.json", "theme, columns, sort order and keys of the explorer; optional"),
    ("CAPTURE/.tpuprof-notes.json", "marks, kept spans, notes and filter; --notes FILE: elsewhere"),
    ("~/.cache/tpuprof/columns/*", "what was decoded of large files; tpuprof cache --clear removes them"),
    ("~/.local/state/tpuprof/*.log", "details of unexpected errors, the newest 20"),
)

INFO_HELP: Final = """\
What a capture is: device and mode, clocks, units and lanes with their counts, and every problem that was found in it.

With --why nothing is opened: each source says whether it recognises the path, by name or by content, and what it looked
for. Formats of other profilers are named, with tools that open or convert them. Options of sources that other packages
install are in no --help: they are listed here, for the source that opens the path.
"""
#: Hint to options that ``--help`` does not list: finding them would import all installed packages with sources.
MORE_OPTIONS: Final = "options of sources that other packages install: tpuprof info PATH --why\n"
DESCRIBE_HELP: Final = """\
What a profile holds, what was not recorded and how to record it, which views and columns there are, and the commands
that show them: at most 2 kB, with --json on one line (and the path). Shortened lists end in "...".
"""
REPORT_HELP: Final = """\
The figures of a profile, view by view: those of the screen as text, or with --json as one object for programs.

Durations are us in JSON, shares 0 to 1, unknown values null; keys are stable and "schema" is their version. A range
counts events by their start and cuts unions at its edges.
"""
QUERY_HELP: Final = """\
One SELECT of DuckDB over the tables of a profile, or of a data set: events with the columns that a data set has, lanes,
counters, steps, links between events, figures, problems, and what the source recorded beside events (recorded.NAME).
--schema names tables and columns; times are ns. It needs DuckDB and pyarrow: pip install 'tpuprof-tui[dataset]'.

A query reads and writes no file, and loads nothing. What is cut by the limits of rows, memory or time is said.
"""
QUERY_EXAMPLES: Final = """\
examples:
  tpuprof query PATH "select name, count(*), sum(duration) from events where role = 'work' group by all order by 3 desc"
  tpuprof query PATH --schema
"""
DIFF_HELP: Final = """\
What changed from one capture to another: a step (else the total), the cause first, what contributes, and whether it is
noise. Where most work of both sides has an operator, module or layer, it is compared by these, so also between chips,
libraries and sources. Three and more captures stand side by side, each compared with the reference.

A value is more or less only beyond the spread of repeats within each capture and the spread between runs, which is
assumed (--run-noise) for one capture per side. Views: those of report, waits and alignment, joined by the names of
their rows. The exit status is 0 for any difference; tpuprof gate judges.
"""
GATE_HELP: Final = """\
Whether a change may pass, for continuous integration: medians of several runs per side are compared.

A rule fails where the low end of the difference's interval is beyond its limit, passes where the high end is not, and
is inconclusive otherwise. Without --fail-on: total>5%, and no kernel function or operation longer beyond noise.
With three or more runs per side, noise between runs is measured, otherwise assumed (--run-noise). Many figures are
tested at once: --level limits the share of false alarms.

RULE is FIGURE>NUMBER% or FIGURE>NUMBERus; FIGURE is total, step, kernel:NAME, operation:NAME or VIEW.figure as report
--json names them; names with > need quotes.
"""
BASELINE_HELP: Final = """\
Saves figures of captures in a small file, which tpuprof gate --against takes in place of the captures.

Several runs of the same program show the spread between runs: save three or more.
"""
HELP_HELP: Final = """\
Help of a command, or on a topic:

  KEYS     all keys of the explorer, by pane, with the ids that config.json maps to other keys
  COLUMNS  columns of an event: names in filters and files, units, meaning
  FILTER   the filter language, by examples
  schema   the JSON Schema of a command's output; alone: the commands that print JSON
  agent    how programs use tpuprof: rules, and five worked questions
  man      the manual page, for man -l -

KEYS, COLUMNS and FILTER of a capture, named behind them, are in the words of its source: instruction, kernel, GPU, NPU.
"""
HELP_EXAMPLES: Final = """\
examples:
  tpuprof help export
  tpuprof help KEYS | less
  tpuprof help COLUMNS trace.json.gz
  tpuprof help schema report > report.schema.json
  tpuprof help man | man -l -
"""

SKILL_HELP: Final = """\
Prints a SKILL.md, with which an agent learns to use tpuprof: what to ask first, how to go from the answer to its
evidence, worked examples, and what must not be concluded. help agent is its short form.
"""
SKILL_EXAMPLES: Final = """\
examples:
  tpuprof skill | less
  tpuprof skill --install skills     writes skills/tpuprof/SKILL.md
"""

CACHE_HELP: Final = """\
What was decoded of large files (PyTorch and Perfetto traces, databases of Nsight Systems, memory snapshots) is kept on
disk, readable by you alone, so that the next question about one takes a fraction of the time. At most 4 GiB, the least
recently used go first; a changed file is read again.
"""
CACHE_EXAMPLES: Final = """\
examples:
  tpuprof cache            where it is, and how much
  tpuprof cache --clear    removes it; TPUPROF_CACHE=off keeps nothing
"""

COMPLETION_HELP: Final = """\
Prints a shell script that completes commands, options, their values and captures.
"""
COMPLETION_EXAMPLES: Final = """\
examples:
  eval "$(tpuprof completion bash)"                                     this bash; in ~/.bashrc: every bash
  tpuprof completion zsh > ~/.zfunc/_tpuprof                            with fpath+=~/.zfunc before compinit
  tpuprof completion fish > ~/.config/fish/completions/tpuprof.fish
"""


def said(sentence: str, **more: object) -> str:
    """Formats a sentence of the help with words for any source (``Vocabulary.say``), because no profile is open."""
    return GENERIC.say(sentence, **more)


def own_text(name: str) -> str:
    """Help text of this name from the first source whose vocabulary has it; empty if none has."""
    from tpuprof_tui.sources.catalog import vocabularies

    return next((each.texts[name] for each in vocabularies() if name in each.texts), "")


def examples(command: str) -> str:
    """Examples of a command from all sources; empty if there are none."""
    from tpuprof_tui.sources.catalog import vocabularies

    found = "".join(each.texts.get(command, "") for each in vocabularies())
    return f"examples:\n{found}" if found else ""
