"""tpuprof: a terminal explorer for accelerator profiles (Sophgo, PyTorch, Ascend, Nsight Systems).

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
    import os
    from collections.abc import Sequence

    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Part

__version__ = "0.1.0"
__all__ = ["__version__", "open_profile", "open_profiles"]


def open_profile(path: str | os.PathLike[str], **options: Any) -> Profile:
    """Reads a profile as the command line and the explorer do: steps are detected, transfer lanes get ``exposed``.

    Args:
        path: Directory of a profile, or a file in it.
        options: See ``tpuprof_tui.sources.catalog.open_profile``: ``progress``, ``chip``, ``tiu_mhz``, ``trace_file``.

    Raises:
        UnreadableError: No part of the profile can be shown.
    """
    from tpuprof_tui.analysis.derived_columns import with_derived_columns
    from tpuprof_tui.sources import catalog

    return with_derived_columns(catalog.open_profile(path, **options))


def open_profiles(
    paths: Sequence[str | os.PathLike[str]], *, part: Part | None = None, **options: Any
) -> list[Profile]:  # fmt: skip
    """Reads several profiles, in parallel if the source supports it: PyTorch traces use one process per core."""
    from tpuprof_tui.analysis.derived_columns import with_derived_columns
    from tpuprof_tui.sources import catalog

    return [with_derived_columns(profile) for profile in catalog.Catalog().open_several(paths, options, part)]
