"""What start-up does not need: names of a package imported, and patterns compiled, when they are first used."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, AnyStr, Generic


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Returns a ``__getattr__`` for a package that imports names on first access.

    Args:
        package: ``__name__`` of the package.
        modules: Names to export, by the submodule that defines them.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class LazyPattern(Generic[AnyStr]):
    """A regular expression that is compiled when it is first used, since that takes 0.1 to 1 ms."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._source: AnyStr = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self._source, self._flags)

    def match(self, text: AnyStr, *span: int) -> re.Match[AnyStr] | None:
        """See `re.Pattern.match`."""
        return self._compiled.match(text, *span)

    def fullmatch(self, text: AnyStr, *span: int) -> re.Match[AnyStr] | None:
        """See `re.Pattern.fullmatch`."""
        return self._compiled.fullmatch(text, *span)

    def search(self, text: AnyStr, *span: int) -> re.Match[AnyStr] | None:
        """See `re.Pattern.search`."""
        return self._compiled.search(text, *span)

    def finditer(self, text: AnyStr, *span: int) -> Iterator[re.Match[AnyStr]]:
        """See `re.Pattern.finditer`."""
        return self._compiled.finditer(text, *span)

    def findall(self, text: AnyStr, *span: int) -> list[Any]:
        """See `re.Pattern.findall`."""
        return self._compiled.findall(text, *span)

    def sub(self, new: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0) -> AnyStr:
        """See `re.Pattern.sub`."""
        return self._compiled.sub(new, text, count)

    def subn(self, new: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr) -> tuple[AnyStr, int]:
        """See `re.Pattern.subn`."""
        return self._compiled.subn(new, text)
