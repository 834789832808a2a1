"""A profile of each source there is, those of tests among them, and samples: for what holds of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command_line import SAMPLES
from installed_sources import OVEN, installed
from kept_traces import unpacked_trace
from perfetto_files import program_trace

_HOST = SAMPLES / "aks_host_trace"
#: Sophgo samples but the one that is as large as all others, and is of their kinds, and the one of "host trace".
_SOPHGO = sorted({path.name for path in SAMPLES.glob("aks*")} - {"aks_decode_mode1", _HOST.name})
NAMES = (*_SOPHGO, "host trace", "oven", "torch", "ascend", "nsys",
         "snapshot", "perfetto")  # fmt: skip


@contextmanager
def every_source(parent: Path) -> Iterator[dict[str, list[str]]]:
    """Words that name each profile on a command line, by ``NAMES``, while all sources are installed."""
    with installed(OVEN):
        from tpuprof_oven.example import bakery
        from tpuprof_oven.recording import write_recording

        town = parent / "town"
        town.mkdir()
        for number in range(2):
            write_recording(bakery(number, 2), town / f"bakery{number}.oven.json")
        traces = parent / "traces"
        traces.mkdir()
        found = {name: [str(SAMPLES / name)] for name in NAMES if (SAMPLES / name).is_dir()}
        found["host trace"] = [str(_HOST), "--trace_file", str(_HOST / "host_trace.json")]
        found["oven"] = [str(town)]
        found["torch"] = [str(unpacked_trace("tl_bert_small_h100", traces) / "h100.pt.trace.json.gz")]
        found["nsys"] = [str(SAMPLES / "nsys_synthetic" / "run.sqlite")]
        found["ascend"] = [str(unpacked_trace("ascend_level1_text", traces))]
        (traces / "program.pftrace").write_bytes(program_trace())
        found["perfetto"] = [str(traces / "program.pftrace")]
        found["snapshot"] = [str(SAMPLES / "memory_snapshot_synthetic.pickle.gz")]
        assert set(found) == set(NAMES)
        yield found
