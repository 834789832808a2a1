"""What a profile is: lanes of event columns, scopes, strings, problems, and the vocabulary of their source.

Nothing here knows where the bytes came from or how they are shown. All of it is immutable once built. Modules are
imported when something of them is asked for: a vocabulary is known without numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .columns import Column
    from .lane import Lane, RegisterFields, Role
    from .missing import INT_MISSING, is_missing
    from .problem import Problem, Severity, worst
    from .profile import Device, Profile, Scopes
    from .strings import Strings, StringsBuilder
    from .vocabulary import Vocabulary

__all__ = [
    "INT_MISSING",
    "Column",
    "Device",
    "Lane",
    "Problem",
    "Profile",
    "RegisterFields",
    "Role",
    "Scopes",
    "Severity",
    "Strings",
    "StringsBuilder",
    "Vocabulary",
    "is_missing",
    "worst",
]

_MODULES = {
    "columns": ("Column",),
    "lane": ("Lane", "RegisterFields", "Role"),
    "missing": ("INT_MISSING", "is_missing"),
    "problem": ("Problem", "Severity", "worst"),
    "profile": ("Device", "Profile", "Scopes"),
    "strings": ("Strings", "StringsBuilder"),
    "vocabulary": ("Vocabulary",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
