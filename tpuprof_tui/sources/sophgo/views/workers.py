"""Workers of a Sophgo capture: only one, its device; a host trace is a separate recording."""

from __future__ import annotations

from tpuprof_tui.model import Profile
from tpuprof_tui.views.report import Worker, one_worker


def workers(profile: Profile) -> tuple[Worker, ...]:
    """The capture as a single worker."""
    return (one_worker(profile, hosts=False),)
