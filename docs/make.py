#!/usr/bin/env python3
"""Writes what is made from the program: the manual page, and the key tables of README.md and README.zh.md.

    python docs/make.py            write what has changed
    python docs/make.py --check    say what is not current; exit status 1 if anything is

A key table stands between the lines ``<!-- keys: start ... -->`` and ``<!-- keys: end -->``. Its sentences come from
the registry of actions; `keys.zh.json` holds them in Chinese by id, and what it lacks stays English.
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
from tpuprof_tui.cli.man import man_page  # noqa: E402
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY  # noqa: E402

_BLOCK: Final = re.compile(r"(<!-- keys: start[^\n]*-->\n).*?(<!-- keys: end -->)", re.DOTALL)
_HEAD_EN: Final = ("Key", "What it does", "Id")
_HEAD_ZH: Final = ("按键", "作用", "标识")


def made() -> dict[Path, str]:
    """What each file should hold, by its path below the root."""
    texts = json.loads((ROOT / "docs" / "keys.zh.json").read_text(encoding="utf-8"))
    return {
        Path("docs/tpuprof.1"): man_page(),
        Path("README.md"): with_keys(Path("README.md"), _HEAD_EN, {}),
        Path("README.zh.md"): with_keys(Path("README.zh.md"), _HEAD_ZH, texts),
    }


def with_keys(path: Path, head: tuple[str, ...], texts: Mapping[str, str]) -> str:
    """A document with its key table made anew; ValueError where it has no place for one."""
    found = (ROOT / path).read_text(encoding="utf-8")
    table = "".join(f"{line}\n" for line in key_tables(head, texts))
    done, count = _BLOCK.subn(lambda marks: f"{marks[1]}{table}{marks[2]}", found)
    if count != 1:
        raise ValueError(f"{path} has {count} places for the key table, not one.")
    return done


def key_tables(head: tuple[str, ...], texts: Mapping[str, str]) -> Iterator[str]:
    """One table for each group of actions, folded away below its title."""
    for group, title in GROUPS.items():
        yield from ("<details>", f"<summary>{texts.get(group, title)}</summary>", "")
        yield from (f"| {' | '.join(head)} |", "|---|---|---|")
        for action in (each.said(VOCABULARY) for each in actions_of(group)):
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
