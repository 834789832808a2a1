"""Data model of a profile: lanes of event columns, scopes, strings, problems, and the vocabulary of the source.

The model depends on neither file formats nor the user interface, and is immutable once built. Submodules are imported
on first access, so that a vocabulary can be used without loading numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof_tui.lazy_names import lazy_names

if TYPE_CHECKING:
    from .activity import Activity, Role
    from .columns import Column
    from .group import Group, Groups
    from .intervals import Intervals
    from .lane import Lane, RegisterFields
    from .missing import INT_MISSING, is_missing
    from .profile import Counter, Device, Links, Problem, Profile, Redaction, Scopes, Severity, Steps, worst
    from .strings import Strings, StringsBuilder
    from .vocabulary import Vocabulary

__all__ = ["INT_MISSING", "Activity", "Column", "Counter", "Device", "Group", "Groups", "Intervals", "Lane", "Links"]
__all__ += ["Problem"]
__all__ += ["Profile", "Redaction", "RegisterFields", "Role", "Scopes", "Severity", "Steps", "Strings"]
__all__ += ["StringsBuilder", "Vocabulary", "is_missing", "worst"]

_OF_PROFILE = ("Counter", "Device", "Links", "Problem", "Profile", "Redaction", "Scopes", "Severity", "Steps", "worst")
_MODULES = {
    "activity": ("Activity", "Role"),
    "columns": ("Column",),
    "group": ("Group", "Groups"),
    "intervals": ("Intervals",),
    "lane": ("Lane", "RegisterFields"),
    "missing": ("INT_MISSING", "is_missing"),
    "profile": _OF_PROFILE,
    "strings": ("Strings", "StringsBuilder"),
    "vocabulary": ("Vocabulary",),
}

__getattr__ = lazy_names(__name__, _MODULES)
