"""The workers that recorded a profile: one for each rank."""

from __future__ import annotations

from typing import Any

from tpuprof_tui.model import Profile
from tpuprof_tui.model.worker import Worker

from ..recorded import RecordedRank
from .ranks import recorded_ranks


def workers(profile: Profile) -> tuple[Worker, ...]:
    """The workers of a profile, in the order of its groups; empty for a folder of cluster figures alone."""
    # events that are set aside have no times
    windows = len(profile.groups.sessions) > 1 or any(lane.is_aside for lane in profile.lanes)
    return tuple(
        Worker(rank.key, rank.group, rank.rank, rank.name, rank.span, rank.files, (_device(rank),),
               window=rank.window if windows else None, epoch_ns=rank.zero, rank_guessed=rank.rank_guessed)
        for rank in recorded_ranks(profile)
    )  # fmt: skip


def _device(rank: RecordedRank) -> dict[str, Any]:
    device = rank.device if rank.device >= 0 else None
    return {"name": rank.chip or ("NPU" if device is None else f"NPU {device}"), "id": device}
