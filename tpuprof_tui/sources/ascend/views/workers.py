"""The workers that recorded a profile: one for each rank."""

from __future__ import annotations

from typing import Any

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Profile
from tpuprof_tui.views.report import Worker

from ..read.profile import AscendProfile, AscendWorker


def workers(profile: Profile) -> tuple[Worker, ...]:
    """The workers of a profile, in the order of its groups; empty for a folder of cluster figures alone."""
    assert isinstance(profile, AscendProfile)
    # events that are set aside have no times
    windows = len(profile.groups.sessions) > 1 or any(lane.is_aside for lane in profile.lanes)
    return tuple(
        Worker(each.key, Scope(each.group), each.rank.rank, each.rank.paths.name, each.span, each.rank.files,
               (_device(each),), window=_window(each) if windows else None, epoch_ns=each.zero,
               rank_guessed=each.rank.rank_guessed)
        for each in profile.ranks
    )  # fmt: skip


def _window(worker: AscendWorker) -> tuple[int, int] | None:
    extent = worker.rank.extent
    return None if extent is None else (extent[0] - worker.zero, extent[1] - worker.zero)


def _device(worker: AscendWorker) -> dict[str, Any]:
    rank = worker.rank
    device = rank.device if rank.device >= 0 else None
    name = rank.chip or ("NPU" if device is None else f"NPU {device}")
    return {"name": name, "id": device}
