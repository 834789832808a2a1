"""Memory is bounded by the size of the input, whatever it holds over and over."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from bounds import bounded, ending
from repeated_bytes import repeated, repeated_traces
from whole_profiles import read_whole

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.chrome import chunks
from tpuprof_tui.sources.chrome.host_trace import read_host_trace
from tpuprof_tui.sources.sophgo.read.host_trace import MARKS

#: What a host trace takes for the longest event that is decoded, and for each byte of its text.
HOST_ROOM, HOST_EACH = 112 << 20, 8

# -- one thing over and over -----------------------------------------------------

#: Bytes of each such capture: enough for what each byte takes to stand out.
MUCH = 25_000


@pytest.mark.parametrize("name", list(repeated(64)))
def test_memory_is_bounded_by_the_size_of_the_capture(tmp_path: Path, name: str) -> None:
    chip, files = repeated(MUCH)[name]
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    size = sum(map(len, files.values()))
    open_profile(tmp_path, chip=chip)  # what is loaded once does not count
    with ending(), bounded(size, room=1 << 19):
        read_whole(open_profile(tmp_path, chip=chip))


@pytest.mark.parametrize("name", list(repeated_traces(64)))
def test_memory_is_bounded_by_the_size_of_the_host_trace(tmp_path: Path, name: str) -> None:
    text = repeated_traces(MUCH * 10)[name]
    path = tmp_path / "host.json"
    path.write_bytes(text)
    with ending(), bounded(len(text), room=6 << 20, each=25), suppress(UnreadableError):
        read_host_trace(path, MARKS)


def test_the_longest_event_takes_what_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an eighth of the bound, an eighth of the memory."""
    monkeypatch.setattr(chunks, "LONGEST_EVENT", chunks.LONGEST_EVENT // 8)
    many = b",".join(b'"%d":1' % number for number in range(chunks.LONGEST_EVENT // 10))
    path = tmp_path / "host.json"
    path.write_bytes(b'{"traceEvents":[{' + many + b'},{"ph":"X","ts":1,"cat":"tpudnn","name":"x"}]}')
    with bounded(path.stat().st_size, room=HOST_ROOM // 8, each=HOST_EACH):
        assert len(read_host_trace(path, MARKS).events) == 1
