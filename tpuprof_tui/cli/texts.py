"""What the help of the command line says besides its options: descriptions, examples, exit status, environment."""

from __future__ import annotations

from typing import Final

#: Topics of help beside the commands, shells there is completion for, and kinds of exports.
TOPICS: Final = ("KEYS", "COLUMNS", "man")
SHELLS: Final = ("bash", "zsh", "fish")
#: Among words to complete: here files may stand as well.
FILE: Final = "FILE"
OUTPUTS: Final = ("xlsx", "web", "pftrace", "summary", "regs")

#: Exit status and its meaning, of every command but export.
STATUS: Final = (
    ("0", "all is well"),
    ("1", "something in the capture is lost or unreadable; the rest is shown, and the problems say what"),
    ("2", "nothing could be shown or written; one sentence says why"),
    ("130", "stopped with Ctrl+C"),
)

#: Environment variables that change what the tool does.
ENVIRONMENT: Final = (
    ("NO_COLOR", "when set to anything, the explorer uses bold, dim and reverse in place of colours"),
    ("TERM", "linux, vt100 and vt220 are drawn in ASCII; dumb, unknown or nothing means no explorer"),
    ("LC_ALL, LC_CTYPE, LANG", "the first that is set decides between Unicode and ASCII"),
    ("LC_ALL, LC_MESSAGES, LANG", "the first that is set decides whether tpuprof options speaks Chinese or English"),
    ("PROFILING_OPTIONS, PROFILING_MODE", "what tpuprof options check checks when nothing is named"),
    ("XDG_CONFIG_HOME", "folder of tpuprof/config.json, ~/.config by default"),
    ("XDG_STATE_HOME", "folder of tpuprof's logs of unexpected errors, ~/.local/state by default"),
)

#: Files the tool reads or writes without being asked.
FILES: Final = (
    ("~/.config/tpuprof/config.json", "theme, columns, sort order and keys of the explorer; nothing needs it"),
    ("~/.local/state/tpuprof/*.log", "details of unexpected errors, the newest 20"),
)

#: The same in a line, below examples.
STATUS_LINE: Final = "exit status: 0 fine, 1 something in the capture is lost or unreadable, 2 nothing could be shown\n"

OPEN_EXAMPLES: Final = f"""\
examples:
  tpuprof                                     choose among the captures below this directory
  tpuprof cdm_profile_data_dev0-0             open one
  tpuprof cdm_profile_data_dev*               choose among these
  tpuprof cdm_profile_data_dev0-0 --tiu_freq 900
  tpuprof cdm_profile_data_dev0-0 --trace_file host.json --follow
  tpuprof summary cdm_profile_data_dev0-0     where the time went, as text
  tpuprof info cdm_profile_data_dev0-0 --json
  tpuprof instructions cdm_profile_data_dev0-0 --format csv --core 0 --engine TIU > tiu.csv
  tpuprof export cdm_profile_data_dev0-0 out --perfetto
  tpuprof help KEYS                           all keys of the explorer
  tpuprof ./info                              a capture that is named like a command

{STATUS_LINE}"""

INFO_HELP: Final = """\
What a capture is: chip and mode, clocks, cores and lanes with their counts, and every problem that was found in it.

With --why nothing is opened: each source says whether it recognises the path, by name or by content, and what it looked
for. Formats of other profilers are told by name, with what opens or converts them.
"""
INFO_EXAMPLES: Final = f"""\
examples:
  tpuprof info cdm_profile_data_dev0-0                          as text
  tpuprof info cdm_profile_data_dev0-0 --json | jq .problems    for other programs
  tpuprof info cdm_profile_data_dev0-0 --chip AKSV              a capture that lost its global.profile
  tpuprof info cdm_profile_data_dev0-0 --memory                 and what it takes of memory when it is opened
  tpuprof info cdm_profile_data_dev*                            each of several
  tpuprof info trace.nsys-rep --why                             who would open it, who would not, and why

{STATUS_LINE}"""

SUMMARY_HELP: Final = """\
Where the time went, as text: totals, cores, engines, kernel functions and operations that took it.

Figures are those of the explorer; `tpuprof export CAPTURE OUT --only summary` writes the table of bigTpuProfile.
"""
SUMMARY_EXAMPLES: Final = f"""\
examples:
  tpuprof summary cdm_profile_data_dev0-0
  tpuprof summary cdm_profile_data_dev0-0 --tiu_freq 900        another TIU clock than the capture's
  tpuprof summary cdm_profile_data_dev0-0 > before.txt          plain text where it is not a terminal

{STATUS_LINE}"""

HELP_HELP: Final = """\
Help of a command, or on a topic:

  KEYS     all keys of the explorer, by pane, with the ids that config.json maps to other keys
  COLUMNS  what can be known of an instruction: names in filters and files, units, meaning
  man      the manual page, for man -l -
"""
HELP_EXAMPLES: Final = """\
examples:
  tpuprof help export
  tpuprof help KEYS | less
  tpuprof help man | man -l -
"""

COMPLETION_HELP: Final = """\
Prints a script that makes a shell complete commands, options, their values and captures.
"""
COMPLETION_EXAMPLES: Final = """\
examples:
  eval "$(tpuprof completion bash)"                                     this bash; in ~/.bashrc: every bash
  tpuprof completion zsh > ~/.zfunc/_tpuprof                            with fpath+=~/.zfunc before compinit
  tpuprof completion fish > ~/.config/fish/completions/tpuprof.fish
"""
