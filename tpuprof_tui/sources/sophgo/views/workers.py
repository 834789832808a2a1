"""A Sophgo capture is one worker: what its device ran. A host trace beside it is another recording."""

from __future__ import annotations

from tpuprof_tui.model import Profile
from tpuprof_tui.views.report import Worker, one_worker


def workers(profile: Profile) -> tuple[Worker, ...]:
    """The capture."""
    return (one_worker(profile, hosts=False),)
