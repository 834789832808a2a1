"""Exit status of all commands: the table from which the help, the manual page and the documents are generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

OK: Final = 0
DATA_LOSS: Final = 1
NO_RESULT: Final = 2
GATE_FAILED: Final = 3
GATE_INCONCLUSIVE: Final = 4
INTERRUPTED: Final = 130


class Status(Struct, frozen=True):
    """An exit status."""

    code: int  #: The number
    meaning: tuple[str, str]  #: Its meaning for every command; in English and Chinese
    #: Its meaning for single commands, by command, which replaces ``meaning``; in English and Chinese.
    also: dict[str, tuple[str, str]] = field(default_factory=dict)


TABLE: Final = (
    Status(OK, ("all is well", "一切正常"), {
        "export": ("every file was written", "所有文件都已写出"),
        "options": ("correct, or only warnings", "正确，或仅有警告"),
    }),
    Status(DATA_LOSS, ("something in the capture is lost or unreadable; the rest is shown, and the problems say what",
                  "有记录丢失或无法读取；其余照常显示，问题列表说明是什么"), {
        "export": ("written from a capture with errors", "数据有错误，但文件已写出"),
        "options": ("the options have errors", "选项有错误"),
    }),
    Status(NO_RESULT, ("nothing could be shown or written; one sentence on stderr says why",
                     "什么都无法显示或写出；stderr 上有一句话说明原因"), {
        "options": ("unreadable input, or an invalid request", "输入无法读取，或请求无效"),
    }),
    Status(GATE_FAILED, ("tpuprof gate: a rule is broken", "tpuprof gate：有规则被违反")),
    Status(GATE_INCONCLUSIVE, ("tpuprof gate: no rule is broken, but noise or missing data hides whether one is",
                       "tpuprof gate：没有规则被违反，但噪声或缺失的数据使其中一些无法判断")),
    Status(INTERRUPTED, ("stopped with Ctrl+C", "被 Ctrl+C 中止")),
)  # fmt: skip
#: Languages of the table, in the order of its texts.
LANGUAGES: Final = ("en", "zh")
_BETWEEN, _COLONS, _BRACKETS = ("; ", "；"), (": ", "："), (" ({})", "（{}）")
_HEADINGS: Final = ("exit status:", "退出状态：")


def meanings(command: str = "", language: str = "en") -> Iterator[tuple[str, str]]:
    """Yields (code, meaning) for a command; without a command, the general meaning and those of single commands."""
    index = LANGUAGES.index(language)
    for status in TABLE:
        text = status.also.get(command, status.meaning)[index]
        if not command and status.also:
            by_command = (f"{name}{_COLONS[index]}{texts[index]}" for name, texts in status.also.items())
            text += _BRACKETS[index].format(_BETWEEN[index].join(by_command))
        yield str(status.code), text


def help_lines(command: str, language: str = "en") -> str:
    """The exit status section at the end of a command's help."""
    lines = "".join(f"  {code:5}{text}\n" for code, text in meanings(command, language))
    return f"{_HEADINGS[LANGUAGES.index(language)]}\n{lines}"
