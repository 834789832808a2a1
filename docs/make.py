#!/usr/bin/env python3
"""Writes what is made from the program: the manual page, and the tables of keys and exit status, in both languages.

    python docs/make.py            write what has changed
    python docs/make.py --check    say what is not current; exit status 1 if anything is

A table stands between lines such as ``<!-- keys: start ... -->`` and ``<!-- keys: end -->``. The sentences of the keys
come from the registry of actions; `keys.zh.json` holds them in Chinese by id, and what it lacks stays English. Those of
the exit status are ``exit_status.TABLE``'s.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tpuprof_tui.app.settings.actions import GROUPS, Action, actions_of, key_text  # noqa: E402
from tpuprof_tui.cli.help import man_page  # noqa: E402
from tpuprof_tui.exit_status import meanings  # noqa: E402
from tpuprof_tui.model.vocabulary import GENERIC  # noqa: E402

_HEAD_STATUS: Final = {"en": "Exit status", "zh": "退出状态"}
_HEAD_EN: Final = ("Key", "What it does", "Id")
_HEAD_ZH: Final = ("按键", "作用", "标识")


def made() -> dict[Path, str]:
    """What each file should hold, by its path below the root."""
    texts = json.loads((ROOT / "docs" / "keys.zh.json").read_text(encoding="utf-8"))
    return {
        Path("docs/tpuprof.1"): man_page(),
        **{
            path: document(path, "keys", key_tables(head, known))
            for path, head, known in (
                (Path("docs/KEYS.md"), _HEAD_EN, {}),
                (Path("docs/KEYS.zh.md"), _HEAD_ZH, texts),
            )
        },
        **{
            path: document(path, "exit status", status_table(language))
            for path, language in ((Path("docs/COMMANDS.md"), "en"), (Path("docs/COMMANDS.zh.md"), "zh"))
        },
    }


def document(path: Path, name: str, lines: Iterator[str]) -> str:
    """A document with its table made anew."""
    return with_table((ROOT / path).read_text(encoding="utf-8"), path, name, lines)


def with_table(text: str, path: Path, name: str, lines: Iterator[str]) -> str:
    """A document with one table made anew; ValueError where it has no place for it."""
    table = "".join(f"{line}\n" for line in lines)
    block = re.compile(rf"(<!-- {name}: start[^\n]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    done, count = block.subn(lambda marks: f"{marks[1]}{table}{marks[2]}", text)
    if count != 1:
        raise ValueError(f"{path} has {count} places for the table of {name}, not one.")
    return done


def status_table(language: str) -> Iterator[str]:
    """What each exit status says."""
    yield from (f"| {_HEAD_STATUS[language]} | |", "|---|---|")
    yield from (f"| {code} | {text} |" for code, text in meanings(language=language))


def key_tables(head: tuple[str, ...], texts: Mapping[str, str]) -> Iterator[str]:
    """One table for each group of actions, folded away below its title."""
    for group, title in GROUPS.items():
        yield from ("<details>", f"<summary>{texts.get(group, title)}</summary>", "")
        yield from (f"| {' | '.join(head)} |", "|---|---|---|")
        for action in actions_of(group, GENERIC):
            yield f"| {_keys(action)} | {_cell(texts.get(action.id, action.help))} | `{action.id}` |"
        yield from ("", "</details>")


def _keys(action: Action) -> str:
    return " ".join(f"`{key_text(key)}`" for key in action.keys).replace("|", "\\|")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    """Writes or checks; gives the exit status."""
    check = "--check" in sys.argv[1:]
    stale = [path for path, text in made().items() if not _holds(ROOT / path, text)]
    for path in stale:
        print(f"{path} {'is not current: run make docs' if check else 'written'}")
        if not check:
            (ROOT / path).write_text(made()[path], encoding="utf-8")
    return int(check and bool(stale))


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
