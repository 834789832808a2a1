"""Ground truth beside a capture.

Times are ns since the end of the handshake; a reader that puts zero at its
first instruction shows time - ``reference_zero_ns``.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .build import Built
from .chips import ENGINES
from .ops import OPS
from .streams import EDGE, ID_WRAP, WORK, Stream
from .synchronisation import links

#: Above this many records the columns go to an .npz beside the JSON.
JSON_LIMIT = 50_000

KINDS: dict[str, str] = {
    "start_ns": "f8", "end_ns": "f8", "cycles": "i8", "op": "i2", "func": "i4", "scope": "i8", "batch": "i8",
    "bytes": "i8", "src": "i1", "dst": "i1", "dtype": "i1", "mode": "i1", "cmd_id": "i8", "alg_ops": "i8",
    "core": "i2", "d0": "i4", "d1": "i4", "d2": "i4", "d3": "i4", "k": "i4", "infra": "i1", "loss": "i1",
}  # fmt: skip
_FROM_CATALOGUE = ("op", "bytes", "src", "dst", "dtype", "alg_ops", "d0", "d1", "d2", "d3", "k", "infra")

Column = npt.NDArray[Any]


def visible(stream: Stream, infra: Column) -> npt.NDArray[np.bool_]:
    """Records a reader should show."""
    kinds = infra[stream.row]
    return stream.present() & np.isin(kinds, (WORK, ID_WRAP))


class Truth:
    """Columns of every stream, derived one at a time so that memory stays small."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.catalogue = built.catalogue.columns()
        silent = built.options.mode == 0
        names = [program.name for program in built.catalogue.programs]
        self.funcs = [] if silent else sorted({name for name in names if name})
        lookup = {name: place for place, name in enumerate(self.funcs)}
        self.func_of_program = np.array([lookup.get(name, -1) for name in names], dtype=np.int32)
        self.silent = silent
        #: Which launches have a scope: parts of a compiled model have none.
        self.named = self.func_of_program[built.plan.program[0]] >= 0 if len(built.plan.program) else np.zeros(0, bool)

    def columns(self, stream: Stream) -> Iterator[tuple[str, Column]]:
        for name, kind in KINDS.items():
            yield name, self._column(stream, name).astype(kind)

    def _column(self, stream: Stream, name: str) -> Column:
        if name in ("start_ns", "end_ns"):
            return stream.ns(stream.start if name == "start_ns" else stream.end)
        if name == "cycles":
            return stream.end - stream.start + 1
        if name in _FROM_CATALOGUE:
            return self.catalogue[name][stream.row]
        if name == "cmd_id":
            return self.catalogue["id"][stream.row]
        if name == "core":
            return np.broadcast_to(np.asarray(stream.core), (len(stream),))
        if name == "loss":
            return np.zeros(len(stream), dtype=np.int8) if stream.loss is None else stream.loss
        return self._tag(stream, name)

    def _tag(self, stream: Stream, name: str) -> Column:
        """Kernel, scope, batch and mode: nothing of it is in a PMU-only capture."""
        if self.silent:
            return np.full(len(stream), 0 if name == "mode" else -1)
        if name == "mode":
            return self.catalogue["mode"][stream.row]
        launch = stream.launch
        program = self.catalogue["program"][stream.row]
        inside = (launch >= 0) & (self.catalogue["infra"][stream.row] == WORK) & (self.func_of_program[program] >= 0)
        if name == "func":
            return np.where(inside, self.func_of_program[program], -1)
        if name == "batch":
            batch = self.built.plan.batch
            return np.where(inside, batch[np.maximum(launch, 0)] if len(batch) else -1, -1)
        base = np.full(max(self.built.options.core_numbers, default=0) + 1, -1, dtype=np.int64)
        for number, first in self.built.scope_base.items():
            base[number] = first
        core = np.broadcast_to(np.asarray(stream.core), (len(stream),))
        named = np.append(self.named, False)
        before = np.cumsum(named) - named
        return np.where(inside, base[core] // max(len(named) - 1, 1) * before[-1] + before[launch], -1)

    # -- figures of the whole capture --------------------------------------

    def meta(self, record_counts: dict[str, int]) -> dict[str, Any]:
        built, options = self.built, self.built.options
        infra = self.catalogue["infra"]
        seen = [(s, visible(s, infra)) for s in built.streams]
        starts = [s.ns(s.start[mask]).min() for s, mask in seen if mask.any()]
        ran = [(s, s.present() & (infra[s.row] != EDGE)) for s in built.streams]
        ends = [s.ns(s.end[mask]).max() for s, mask in ran if mask.any()]
        zero = float(min(starts, default=0.0))
        return {
            "chip": options.chip_name,
            "cores": len(options.core_numbers) if options.core_num else options.chip.cores,
            "written_cores": list(options.written),
            "lost_cores": list(options.missing) if options.count_missing else [],
            "lost_ports": list(options.missing_ports) if options.count_missing else [],
            "mode": options.mode,
            "bmodel": options.bmodel,
            "core_num_key": options.core_num,
            "seed": options.seed,
            "tiu_mhz": options.tiu_mhz,
            "dma_mhz": options.chip.dma_mhz,
            "ddr_gbps": options.chip.ddr_gbps,
            "kernels": int(self.named.sum()) if options.mode else built.plan.launches,
            "records": sum(len(stream) for stream in built.streams),
            "cdma_anchor_core": built.anchor_core,
            "reference_zero_ns": zero,
            "first_work_ns": zero,
            "pmu_last_ns": float(max(ends, default=0.0)),
            "core_clock_offset": [core[0].offset for core in built.cores.values()],
            "cdma_clock_offset": [port.offset for port in built.ports],
            "id_bits": options.id_bits,
            "record_counts": record_counts,
            "synthetic": True,
        }

    def save(self, path: Path, meta: dict[str, Any]) -> None:
        """Write ``path`` (JSON) and, for many records, the columns as an .npz beside it."""
        streams = self.built.streams
        large = sum(len(stream) for stream in streams) > JSON_LIMIT
        tracks: list[dict[str, Any]] = []
        for stream in streams:
            track: dict[str, Any] = {
                "engine": ENGINES[stream.engine], "index": stream.index, "records": len(stream),
            }  # fmt: skip
            if not large:
                track["columns"] = {name: column.tolist() for name, column in self.columns(stream)}
            tracks.append(track)
        body: dict[str, Any] = {
            "meta": meta,
            "ops": [op.as_truth() for op in OPS.values()],
            "funcs": self.funcs,
            "tracks": tracks,
        }
        if self.built.options.dependencies:
            body["links"] = links(self.built)
        if large:
            body["arrays"] = path.with_suffix(".npz").name
            self._save_arrays(path.with_suffix(".npz"))
        path.write_text(json.dumps(body, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")

    def _save_arrays(self, path: Path) -> None:
        """An .npz, lightly compressed and with fixed dates, so that same seed means same bytes."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number, stream in enumerate(self.built.streams):
                for name, column in self.columns(stream):
                    entry = zipfile.ZipInfo(f"{number}/{name}.npy")
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    head = io.BytesIO()
                    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(column))
                    with archive.open(entry, "w", force_zip64=True) as out:
                        out.write(head.getvalue())
                        flat = np.ascontiguousarray(column).view(np.uint8)
                        for first in range(0, len(flat), 1 << 24):
                            out.write(flat[first : first + (1 << 24)].tobytes())
