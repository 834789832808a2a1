"""Hosts, users, paths and addresses in texts, replaced by placeholders: the same text by the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_END: Final = r"\s:;,'\"()<>|*?\[\]{}=\\"
#: Folders at the top of file systems: what begins with one is no name of a layer.
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
    # below a folder of the file system, below a home, or with a file's suffix
    rf"(?<![\w./~-])/(?:{_TOPS})(?:/[^/{_END}]+)+/?|(?<![\w/])~[\w.-]*(?:/[^/{_END}]+)+/?",
    rf"(?<![\w./~-])(?:/|\.{{1,2}}/)?(?:[^/{_END}]+/)+[^/{_END}]*\.(?:{_SUFFIXES})(?:\.\d+)*(?![\w/])",
)
#: Any absolute path: in what is no name.
_ANY_PATH: Final = rf"(?<![\w./~:-])/(?:[^/{_END}]+/)*[^/{_END}]+/?"
_ADDRESS: Final = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|[\w.+-]+@[\w-]+(?:\.[\w-]+)*"
_HOME: Final = re.compile(r"(?:/home\d*/|/Users/|\\Users\\|(?<!\w)~)([\w.-]+)")
#: Users of every machine, and words too short to be looked for within texts.
_ANYONE: Final = frozenset(("root", "user", "users", "admin", "home", "public", "shared", "work", "data", "ubuntu"))
_SHORTEST: Final = 4


class Redactor:
    """Replaces what tells where and by whom something was recorded.

    Names of kernels, operations and modules stay, but for the paths, addresses, users and hosts within them.
    """

    def __init__(self, words: Mapping[str, str], texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """What to replace.

        Args:
            words: Texts to replace wherever they stand as words, each with its kind ("host", "capture").
            texts: Texts in which homes are looked for: users are words too.
            names: Names that stay as they are, even where they are among the words.
        """
        self._found: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        users = {found[1]: "user" for text in texts for found in _HOME.finditer(text) if found[1] not in _ANYONE}
        stay = {name.casefold() for name in names}
        known = {word.casefold(): kind for word, kind in (users | dict(words)).items() if word}
        self._kinds = {word: kind for word, kind in known.items() if word not in stay}
        looked_for = sorted((word for word in self._kinds if len(word) >= _SHORTEST), key=len, reverse=True)
        word = rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, looked_for))})(?![A-Za-z0-9])" if looked_for else r"(?!)"
        paths = "|".join(_PATHS)
        self._in_names = re.compile(f"(?P<path>{paths})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")
        self._anywhere = re.compile(f"(?P<path>{paths}|{_ANY_PATH})|(?P<host>{_ADDRESS})|(?i:(?P<word>{word}))")

    def text(self, text: str) -> str:
        """A text for people: no absolute path at all stays in it."""
        return self._replaced(self._anywhere, text)

    def name(self, text: str) -> str:
        """The name of an event: what could be the path of a layer stays."""
        return self._replaced(self._in_names, text)

    def placeholder(self, kind: str, text: str) -> str:
        """What stands for a text that is all to be replaced."""
        key = (kind, text)
        if key not in self._found:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._found[key] = f"{kind}{self._counts[kind]}"
        return self._found[key]

    def _replaced(self, pattern: re.Pattern[str], text: str) -> str:
        whole = self._kinds.get(text.casefold())
        return self.placeholder(whole, text.casefold()) if whole else pattern.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        if kind == "word":
            return self.placeholder(self._kinds[found[0].casefold()], found[0].casefold())
        return self.placeholder(kind, found[0])
