"""What start-up does not need: names of a package imported, and patterns compiled, when they are first used."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, AnyStr, cast


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


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression that is compiled when it is first used, since that takes 0.1 to 1 ms."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying and pickling look for what this class does not have
            raise AttributeError(name)
        # kept as an attribute: later calls cost what those of a compiled expression cost
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value
