"""Views: tables, figures and series about a profile, each declared in a registry and computed from a query."""

from __future__ import annotations

from tpuprof_tui.lazy_names import lazy_names

_MODULES = {
    "registry": ("answer", "ask", "view_of", "views_of"),
}

__all__ = sorted(name for names in _MODULES.values() for name in names)

__getattr__ = lazy_names(__name__, _MODULES)
