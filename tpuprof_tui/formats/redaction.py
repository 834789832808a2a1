"""Redaction: hosts, users, paths and addresses in texts are replaced by placeholders, equal texts by equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern

_END: Final = r"\s:;,'\"()<>|*?\[\]{}=\\"
#: Top-level folders of file systems, which distinguish paths from names of layers.
_TOPS: Final = (
    "Users|Volumes|bin|data\\d*|dev|etc|efs|gpfs|home\\d*|lib\\w*|lustre|media|mnt|net|nfs|nvme\\w*|opt|private|proc|root|run|"
    "sbin|scratch|share|shared|srv|ssd\\w*|storage|sys|tmp|usr|var|work\\w*"
)
_SUFFIXES: Final = (
    "py|pyx|pyc|so|c|cc|cpp|cxx|cu|cuh|h|hpp|json|gz|zip|csv|db|txt|log|sh|yaml|yml|toml|cfg|ini|onnx|pt|pth|bin|om|mlir|"
    "\\w*model|profile|prof|safetensors|ckpt|ipynb|exe|dll"
)
_PATHS: Final = (
    # file:///..., \\host\share\..., C:\... and C:/...
    rf"\bfile://[^{_END}]+|\\\\[\w.-]+(?:\\[^\\/{_END}]+)+|\b[A-Za-z]:[\\/](?:[^\\/:*?\"<>|\r\n]+[\\/])*[^\\/{_END}]*",
    # below a top-level folder, below a home directory, or with a file suffix
    rf"(?<![\w./~-])/(?:{_TOPS})(?:/[^/{_END}]+)+/?|(?<![\w/])~[\w.-]*(?:/[^/{_END}]+)+/?",
    rf"(?<![\w./~-])(?:/|\.{{1,2}}/)?(?:[^/{_END}]+/)+[^/{_END}]*\.(?:{_SUFFIXES})(?:\.\d+)*(?![\w/])",
)
#: Any absolute path; not applied to event names.
_ANY_PATH: Final = rf"(?<![\w./~:-])/(?:[^/{_END}]+/)*[^/{_END}]+/?"
_ADDRESS: Final = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"
_HOME: Final = lazy_pattern(r"(?:/home\d*/|/Users/|\\Users\\|(?<!\w)~)([\w.-]+)")
#: User names that occur on every machine, and the length below which words are not searched for within texts.
_ANYONE: Final = frozenset(("root", "user", "users", "admin", "home", "public", "shared", "work", "data", "ubuntu"))
_SHORTEST: Final = 4


class Redactor:
    """Replaces texts that identify the machine and the user of a recording.

    Names of kernels, operations and modules are kept, except for paths, addresses, users and hosts within them.
    """

    def __init__(self, words: Mapping[str, str], texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """Builds the patterns.

        Args:
            words: Words to replace wherever they occur as whole words, each with its kind ("host", "capture").
            texts: Texts that are searched for home directories; the user names found there are replaced too.
            names: Names to keep even if they are among the words.
        """
        self._found: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        users = {found[1]: "user" for text in texts for found in _HOME.finditer(text) if found[1] not in _ANYONE}
        stay = {name.casefold() for name in names}
        known = {word.casefold(): kind for word, kind in (users | dict(words)).items() if word}
        self._kinds = {word: kind for word, kind in known.items() if word not in stay}
        searched = sorted((word for word in self._kinds if len(word) >= _SHORTEST), key=len, reverse=True)
        word = rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, searched))})(?![A-Za-z0-9])" if searched else r"(?!)"
        paths = "|".join(_PATHS)
        self._in_names = re.compile(f"(?P<path>{paths})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")
        self._anywhere = re.compile(f"(?P<path>{paths}|{_ANY_PATH})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")

    def text(self, text: str) -> str:
        """Redacts a text, including all absolute paths."""
        return self._replaced(self._anywhere, text)

    def name(self, text: str) -> str:
        """Redacts the name of an event; possible paths of layers are kept."""
        return self._replaced(self._in_names, text)

    def placeholder(self, kind: str, text: str) -> str:
        """Placeholder for a text: its kind and a number, the same for equal texts."""
        key = (kind, text)
        if key not in self._found:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._found[key] = f"{kind}{self._counts[kind]}"
        return self._found[key]

    def _replaced(self, pattern: re.Pattern[str], text: str) -> str:
        kind = self._kinds.get(text.casefold())
        return self.placeholder(kind, text.casefold()) if kind else pattern.sub(self._placeholder_of_match, text)

    def _placeholder_of_match(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        if kind == "word":
            return self.placeholder(self._kinds[found[0].casefold()], found[0].casefold())
        return self.placeholder(kind, found[0])
