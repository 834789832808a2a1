"""The workers that recorded a run: one for each file."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Profile
from tpuprof_tui.model.profile import time_of_day
from tpuprof_tui.views.report import Worker

from ..read.identities import begun_ns
from ..read.profile import TorchProfile, properties_of

#: Properties of a device that are shown, and their names; all are the card's own.
_SHOWN: Final = {"id": "id", "name": "name", "totalGlobalMem": "memory_bytes", "numSms": "multiprocessors",
                 "warpSize": "warp_size"}  # fmt: skip


def workers(profile: Profile) -> tuple[Worker, ...]:
    """The workers of a profile, in the order of its groups."""
    assert isinstance(profile, TorchProfile)
    return tuple(
        Worker(
            each.key, Scope(each.group), each.rank, each.identity.name, each.identity.span, (each.trace.path.name,),
            tuple({"name": ""} | {name: device[key] for key, name in _SHOWN.items()
                                  if isinstance(device.get(key), str if key == "name" else (int, str))}
                  for device in properties_of(each.trace)),
            window=(each.shift_ns, each.shift_ns + each.trace.length_ns), epoch_ns=each.trace.zero_ns - each.shift_ns,
            begun_ns=time_of_day(begun_ns(each.trace)), rank_guessed=each.identity.guessed, stage=each.identity.stage,
        )
        for each in profile.traces
    )  # fmt: skip


def identities(profile: Profile) -> dict[str, str]:
    """Host and user names in the traces, with their kind (host or user)."""
    assert isinstance(profile, TorchProfile)
    keys = (("host_name", "host"), ("hostname", "host"), ("username", "user"))
    values = ((each.trace.metadata.get(key), kind) for each in profile.traces for key, kind in keys)
    return {word: kind for word, kind in values if isinstance(word, str)}
