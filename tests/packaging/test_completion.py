"""Completion scripts: made from the parsers, and doing in real shells what they should."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from functools import cache

import pytest

from tpuprof_tui.cli import completion
from tpuprof_tui.cli.completion import commands, words_of
from tpuprof_tui.cli.main import COMMANDS, build_parser, main
from tpuprof_tui.cli.options import lane_kinds
from tpuprof_tui.cli.texts import SHELLS
from tpuprof_tui.export.outputs import outputs_of
from tpuprof_tui.sources.sophgo.chips.chip import chip_names
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

#: Made once: all parsers are built for it.
completion_script = cache(completion.completion_script)
NAMES = sorted(name for name in COMMANDS if name != "open")
#: What is typed (a capture is a folder named ``cap``, beside the file ``host.json``), and what is offered.
CASES = [
    ("tpuprof exp", ["export"]),
    ("tpuprof c", ["cache", "cap", "completion"]),
    ("tpuprof help ", [*NAMES, "COLUMNS", "FILTER", "KEYS", "agent", "schema", "man"]),
    ("tpuprof help schema rep", ["report"]),
    ("tpuprof completion ", ["bash", "fish", "zsh"]),
    ("tpuprof instructions cap --eng", ["--engine"]),
    (
        "tpuprof instructions cap --engine ",
        [
            "CDMA", "GDMA", "SDMA", "TIU", "annotation", "communication", "overlap", "plane", "pool", "stream",
            "wait",
        ],
    ),
    ("tpuprof instructions cap --format c", ["csv"]),
    ("tpuprof info cap --chip A", ["AKS", "AKSV"]),
    ("tpuprof --chip AKS inf", ["info"]),
    ("tpuprof export cap --only x", ["xlsx"]),
    ("tpuprof export cap --only xlsx,we", ["xlsx,web"]),
    ("tpuprof export cap --trace_file ho", ["host.json"]),
    ("tpuprof export ca", ["cap"]),
    ("tpuprof export cap ca", ["cap"]),
    ("tpuprof info cap --js", ["--json"]),
    ("tpuprof cap --fol", ["--follow"]),
    ("tpuprof options ", ["check", "explain", "make"]),
    ("tpuprof options explain task_t", ["task_time", "task_trace"]),
    ("tpuprof options explain ca", ["cap"]),
    ("tpuprof options explain task_time l", ["l0", "l1"]),
    ("tpuprof options explain torch with_", ["with_flops", "with_modules", "with_stack"]),
    ("tpuprof options check s", ["sophgo"]),
    ("tpuprof options make pipe", ["pipe-utilisation"]),
    ("tpuprof options make iterations --mode training comm", ["communication"]),
    ("tpuprof options make sophgo ti", ["times"]),
    ("tpuprof options make iterations --product atlas-a", ["atlas-a2-training"]),
]  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a capture and a host trace, as the current one."""
    (tmp_path / "cap").mkdir()
    (tmp_path / "host.json").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def bare(offered):
    """Offers without the slash of a folder and the equals sign of an option that takes a value."""
    return sorted(word.rstrip("/=") for word in offered)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_and_command_is_in_the_script(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == completion_script(shell)
    for name in COMMANDS:
        for word in words_of(name):
            for flag in word.flags:
                assert (flag if shell != "fish" else flag.lstrip("-")) in script
    for name in commands():
        assert name in script


def test_what_is_offered_is_what_there_is():
    kinds = next(word.choices for word in words_of("export") if "--only" in word.flags)
    assert kinds == tuple(output.key for output in outputs_of(VOCABULARY))
    assert kinds == ("xlsx", "web", "pftrace", "summary", "regs", "collapsed")
    engines = next(word.choices for word in words_of("instructions") if "--engine" in word.flags)
    assert engines == lane_kinds() == (
        "TIU", "GDMA", "SDMA", "CDMA", "stream", "communication", "plane", "overlap", "annotation", "wait", "pool",
    )  # fmt: skip
    chips = next(word.choices for word in words_of("info") if "--chip" in word.flags)
    assert sorted(chip.lower() for chip in chips) == sorted(chip_names())
    hidden = {flag for action in build_parser("export")._actions for flag in action.option_strings}
    assert hidden - {flag for word in words_of("export") for flag in word.flags} == {"--machine", "--expect"}


@without("bash")
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash(typed, offered, place):
    program = f"""
    {completion_script("bash")}
    COMP_LINE={typed!r}
    COMP_WORDS=($COMP_LINE)
    [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    _tpuprof
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, cwd=place, check=True)
    assert done.stderr == ""
    assert bare(done.stdout.split()) == sorted(offered)


@without("bash")
def test_bash_has_an_equals_sign_as_a_word_of_its_own(place):
    program = (
        completion_script("bash")
        + """
    COMP_WORDS=(tpuprof info cap --chip = B) COMP_CWORD=5
    _tpuprof
    echo "${COMPREPLY[@]}"
    COMP_WORDS=(tpuprof --chip = AKS inf) COMP_CWORD=4
    _tpuprof
    echo "${COMPREPLY[@]}"
    """
    )
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, cwd=place, check=True)
    assert done.stdout.split() == ["BM1684X", "BM1688", "info"]


@without("fish")
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish(typed, offered, place, monkeypatch):
    monkeypatch.setenv("HOME", str(place))
    (place / "tpuprof.fish").write_text(completion_script("fish"))
    program = f"source tpuprof.fish; complete -C {typed!r}"
    done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, cwd=place, check=True)
    assert done.stderr == ""
    found = {line.split("\t")[0] for line in done.stdout.splitlines()} - {"tpuprof.fish"}
    assert bare(found) == sorted(offered)


#: Reads what zsh would insert or list: matches are printed where they are added.
ZSH = textwrap.dedent("""\
    autoload -Uz compinit && compinit -u -D -d ./dump
    zstyle ':completion:*' list-rows-first yes
    compadd() {
        local -a kept flags
        [[ " $* " == *" -O "* || " $* " == *" -A "* || " $* " == *" -D "* ]] && { builtin compadd "$@"; return }
        builtin compadd -O kept "$@"
        for word in $kept; do print -r -- "offer:$word" >> ./offers; done
        builtin compadd "$@"
    }
    source ./completion.zsh
    bindkey '^I' complete-word
    zle -C offered complete-word offer
    offer() { _main_complete; compstate[insert]=; compstate[list]= }
    bindkey '^T' offered
    print ready
""")


@without("zsh")
@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_zsh(typed, offered, place, monkeypatch):
    pexpect = pytest.importorskip("pexpect")
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("TERM", "dumb")
    (place / ".hidden").mkdir()
    (place / "completion.zsh").write_text(completion_script("zsh"))
    (place / "start.zsh").write_text(ZSH)
    shell = pexpect.spawn("zsh", ["-f", "-i"], cwd=str(place), timeout=10, encoding="utf-8")
    shell.sendline("source ./start.zsh")
    shell.expect("ready\r\n")
    shell.send(f"{typed}\x14")
    shell.send("\x15print do''ne\r")
    shell.expect("done\r\n")
    shell.close(force=True)
    lines = (place / "offers").read_text().splitlines() if (place / "offers").exists() else []
    ours = {"completion.zsh", "start.zsh", "dump", "offers"}
    found = {line.removeprefix("offer:") for line in lines} - ours
    assert bare(found) == sorted(offered)


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_have_no_syntax_errors(shell, place):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (place / "script").write_text(completion_script(shell))
    done = subprocess.run([shell, "-n", "script"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
