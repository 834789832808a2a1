"""What a capture is said to know, by its mode."""

from __future__ import annotations

import pytest

from tpuprof_tui.model.vocabulary import DETAIL, NAMES
from tpuprof_tui.sources.sophgo.read.profile_builder import capabilities_of, recording_of


@pytest.mark.parametrize(
    ("mode", "bmodel", "told", "known"),
    [
        (0, False, ("mode 0", "0", "PMU only"), set()),
        (1, False, ("mode 1", "1", "condensed commands"), {NAMES}),
        (2, False, ("mode 2", "2", "detailed commands"), {NAMES, DETAIL}),
        # commands of a compiled model are known in detail in any mode
        (0, True, ("bmodel", "bmodel", "detailed commands"), {NAMES, DETAIL}),
    ],
)
def test_what_a_mode_is_called_and_knows(mode, bmodel, told, known):
    recording = recording_of(mode, bmodel)
    assert (recording.name, recording.short, recording.meaning) == told
    assert capabilities_of(mode, bmodel) == known
