"""What must hold of any profile, whatever it was read from."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.model import Profile

_ALL = slice(None)


def read_whole(profile: Profile) -> None:
    """Compute every column and register field, and check what must hold of any profile."""
    for lane in profile.lanes:
        columns = lane.arrays()
        assert len(lane)
        assert {len(values) for values in columns.values()} == {len(lane)}
        assert (lane["end"] >= lane["start"]).all()
        assert (np.diff(lane["start"]) >= 0).all()
        assert lane["start"][0] >= 0 or lane.on_host or not profile.timed
        assert lane.on_host or sorted(lane["order"].tolist()) == list(range(len(lane)))
        for key, strings in profile.strings.items():
            if key in columns:
                assert columns[key].max() < len(strings)
        if lane.registers is not None:
            operations = lane.registers.operations(_ALL)
            lane.registers.raw(0)
            for operation in np.unique(operations[operations >= 0]).tolist():
                rows = np.flatnonzero(operations == operation)
                for name in lane.registers.field_names(operation):
                    assert len(lane.registers.field(operation, name, rows)) == len(rows)
    for problem in profile.problems:
        assert problem.what
        assert len(problem.what) < 300
