"""What a profile is: lanes of event columns, scopes, strings, problems, and the schema of columns.

Nothing here knows where the bytes came from or how they are shown. All of it is immutable once built.
"""

from __future__ import annotations

from .activity import Activity, Role
from .columns import INT_MISSING, Column, is_missing
from .group import Group, Groups
from .lane import Lane, RegisterFields
from .problem import Problem, Severity, worst
from .profile import Device, Profile, Scopes
from .schema import COLUMNS, SCHEMA, column
from .strings import Strings, StringsBuilder

__all__ = [
    "COLUMNS",
    "INT_MISSING",
    "SCHEMA",
    "Activity",
    "Column",
    "Device",
    "Group",
    "Groups",
    "Lane",
    "Problem",
    "Profile",
    "RegisterFields",
    "Role",
    "Scopes",
    "Severity",
    "Strings",
    "StringsBuilder",
    "column",
    "is_missing",
    "worst",
]
