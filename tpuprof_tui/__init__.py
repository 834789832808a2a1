"""tpuprof: a terminal profile explorer for Sophgo AKS/AKSV TPU captures.

Scripts and notebooks use one function::

    from tpuprof_tui import open_profile

    profile = open_profile("cdm_profile_data_dev0-0")
    for lane in profile.lanes:
        print(lane.label, len(lane), lane["end"] - lane["start"])

Importing the package alone is cheap: neither numpy nor textual is loaded until needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpuprof_tui.sources.catalog import open_profile

__version__ = "0.1.0"
__all__ = ["__version__", "open_profile"]


def __getattr__(name: str) -> Any:
    if name == "open_profile":
        from tpuprof_tui.sources.catalog import open_profile

        return open_profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
