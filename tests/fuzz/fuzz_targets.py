"""What is fuzzed: bytes become a file, the file is opened and everything is computed from it.

A target raises where a promise is broken: anything but a profile or one `TpuprofError`, or a profile that is not whole.
hypothesis (``test_fuzz.py``) and atheris (``run.py``) call the same targets. The first byte of most inputs chooses the
chip and what surrounds the rest; the rest is the hostile part, byte for byte.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import struct
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO
from pathlib import Path

import numpy as np
import raw_bytes as raw
from nsys_database import Database, write_run
from output_checks import check_all_outputs, check_light_outputs, check_refusal
from whole_profiles import read_whole

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace
from tpuprof_tui.sources.sophgo.read.layers import read_layer_files
from tpuprof_tui.views.registry import views_of
from tpuprof_tui.views.report import report_record, workers_of

#: Outputs are checked for one input in so many.
outputs_every = 3
_CHIPS = ("aks", "aksv", "bm1688", "cv84x6")
_COUNT = 6
_COMPILED = Path(__file__).resolve().parents[1] / "data" / "compiled"


@dataclass(frozen=True)
class Target:
    """Something that takes bytes from elsewhere.

    Attributes:
        run: Gives it the bytes; raises where a promise is broken.
        about: What the bytes are.
        seeds: Sound inputs, to start from.
    """

    run: Callable[[bytes], None]
    about: str
    seeds: Callable[[], list[bytes]]


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder, in memory where the machine has such."""
    shared = "/dev/shm"
    place = shared if os.access(shared, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="fuzz", dir=place))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _opened(files: dict[str, bytes], chip: str | None = None, *, heavy: bool = False) -> Profile | None:
    """A capture of these files, opened, with everything computed and printed; None where it is refused."""
    with _folder() as folder:
        path = folder / "capture"
        path.mkdir()
        for name, data in files.items():
            (path / name).write_bytes(data)
        try:
            profile = open_profile(path, chip=chip)
        except TpuprofError as error:
            check_refusal(error)
            return None
        read_whole(profile)
        if heavy:
            check_all_outputs(profile, folder / "out")
        elif _chosen(files):
            check_light_outputs(profile)
        return profile


def _chosen(files: dict[str, bytes]) -> bool:
    """Whether an input is one whose outputs are checked; the same in every run."""
    return zlib.crc32(b"".join(files.values())) % outputs_every == 0


def _core(nodes: bytes, *more: bytes) -> bytes:
    """A core file: the opening, some records of each engine, and these nodes behind those of the opening."""
    records = raw.opening()
    records["TIU"] += [raw.tiu_record(2000 + 50 * n, 2040 + 50 * n, n) for n in range(_COUNT)]
    records["GDMA"] += [raw.dma_record(2000 + 90 * n, 2080 + 90 * n, n, 64 * n) for n in range(_COUNT)]
    sound = raw.core_file(records)
    return sound + b"".join(more) + raw.block(raw.DYN_DATA, raw.words(raw.OPENING_NODES) + nodes)


def _commands(count: int = _COUNT) -> bytes:
    each = [raw.node(raw.TIU, 2, 4), raw.node(raw.GDMA, 0, 0, 0x81)]
    return raw.words([*raw.func("kernel"), *(each * count), raw.FUNC_END])


# -- the targets --------------------------------------------------------------


def settings_file(data: bytes) -> None:
    _opened({"global.profile": data, "cdmlib0_0.profile": _core(_commands())})


def core_file(data: bytes) -> None:
    options = data[0] if data else 0
    text = b"core_num=2\nbmodel=1\n" if options & 4 else b"core_num=2\n"
    _opened({"global.profile": text, "cdmlib0_0.profile": data[1:]}, _CHIPS[options & 3])


def port_file(data: bytes) -> None:
    options = data[0] if data else 0
    sent = [raw.node(raw.CDMA if options & 1 else raw.SDMA, 0, 0, number % 3 << 8 | 0x11) for number in range(_COUNT)]
    files = {"global.profile": b"", "cdmlib0_0.profile": _core(raw.words([*raw.func("all_reduce"), *sent]))}
    _opened(files | {"cdma0_0.profile": data[1:], "cdma0_1.profile": data[1:]}, "aks" if options & 1 else "aksv")


def monitor_records(data: bytes) -> None:
    """Records of one engine, beside sound ones of the others."""
    options = data[0] if data else 0
    kind = (raw.MONITOR_TIU, raw.MONITOR_GDMA, raw.MONITOR_SDMA)[(options >> 2) % 3]
    core = raw.block(kind, data[1:]) + _core(_commands()) if options & 16 else raw.block(kind, data[1:])
    _opened({"global.profile": b"bmodel\n" if options & 32 else b"", "cdmlib0_0.profile": core}, _CHIPS[options & 3])


def node_stream(data: bytes) -> None:
    options = data[0] if data else 0
    extras = b"".join(raw.extra_record(bytes(range(16))) for _ in range(9)) if options & 4 else b""
    blocks = (raw.block(raw.DYN_EXTRA, extras),) if extras else ()
    _opened({"global.profile": b"", "cdmlib0_0.profile": _core(data[1:], *blocks)}, _CHIPS[options & 3])


def detail_records(data: bytes) -> None:
    """The DYN_EXTRA block of a core with sound nodes."""
    options = data[0] if data else 0
    core = _core(_commands(), raw.block(raw.DYN_EXTRA, data[1:]))
    _opened({"global.profile": b"", "cdmlib0_0.profile": core}, _CHIPS[options & 3])


def descriptor_streams(data: bytes) -> None:
    """Command streams: of a bmodel, or of a block that DES nodes name."""
    options, stream = data[0] if data else 0, data[1:]
    if options & 4:
        kind = 13 + (options >> 3) % 4
        files = {"cdmlib0_0.profile": _core(b"") + raw.block(kind, stream), "global.profile": b"bmodel\n"}
    else:
        which = 8 + (options >> 3) % 3
        keyed = raw.block(raw.DES_KV, struct.pack("<3I", 5, _COUNT, 0) + stream)
        nodes = raw.words([*raw.func("kernel"), *raw.des(which, 5, _COUNT), raw.FUNC_END])
        files = {"cdmlib0_0.profile": _core(nodes, keyed), "global.profile": b""}
    _opened(files, _CHIPS[options & 3])


def host_trace(data: bytes) -> None:
    """A host trace: the text itself, or (odd first byte) compressed as it is, or damaged after compression."""
    options, text = data[0] if data else 0, data[1:]
    if options % 3 == 1:
        text = gzip.compress(text, 1)
    with _folder() as folder:
        path = folder / "host.json"
        path.write_bytes(text)
        try:
            profile = with_host_trace(_device(), path)
        except TpuprofError as error:
            check_refusal(error)
            return
        read_whole(profile)
        if _chosen({"": text}):
            check_light_outputs(profile)


def check_everything(profile: Profile) -> None:
    """Every view, link and argument of a profile."""
    query = Query(Session(profile))
    json.dumps(report_record(query, views_of(profile.vocabulary), workers_of(profile)))
    for lane in profile.lanes:
        lane.arrays()
        assert lane.arguments is not None
        lane.arguments(len(lane) // 2)
        check_sublanes(lane)
    events = sum(map(len, profile.lanes))
    links = profile.links() if profile.links is not None else None
    assert links is None or not len(links) or max(links.from_row.max(), links.to_row.max()) < events


def nsys_database(data: bytes) -> None:
    """A database of Nsight Systems: its bytes, or (odd first byte) the numbers in its tables."""
    options, content = data[0] if data else 0, data[1:]
    with _folder() as folder:
        path = folder / "some.sqlite"
        if options & 1:
            _write_tables(path, content)
        else:
            path.write_bytes(content)
        try:
            profile = open_profile(path)
        except TpuprofError as error:
            check_refusal(error)
            return
        check_everything(profile)


def _write_tables(path: Path, content: bytes) -> None:
    """Fills tables with numbers of 1 to 8 bytes, which a byte before each tells the length of; 0: null, 9: text."""
    at, numbers = 0, list[object]()
    while at < len(content):
        kind, at = content[at] % 10, at + 1
        value = content[at : at + min(kind, 8)]
        at += len(value)
        numbers.append(None if not kind else value.decode("latin-1") if kind == 9 else
                       int.from_bytes(value, "little", signed=True))  # fmt: skip
    database = Database(path)
    wanted = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
              "CUDA_GPU_MEMORY_USAGE_EVENTS", "GPU_METRICS", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "PROCESSES",
              "ThreadNames", "TARGET_INFO_SESSION_START_TIME", "OSRT_API")  # fmt: skip
    place = 0
    while place < len(numbers):
        columns = database.columns[wanted[place % len(wanted)]]
        row = dict(zip(columns, numbers[place : place + len(columns)], strict=False))
        database.add(wanted[place % len(wanted)], [row])
        place += len(columns)
    for number in range(4):
        database.string(("", "iteration 3", "cudaLaunchKernel_v7000", "\x1b[31m[red]")[number])
    database.close()


def torch_trace(data: bytes, name: str = "some.pt.trace.json") -> None:
    """A PyTorch trace: the text, or (odd first byte) compressed; every view, link and argument of it."""
    options, text = data[0] if data else 0, data[1:]
    with _folder() as folder:
        path = folder / name
        path.write_bytes(gzip.compress(text, 1) if options & 1 else text)
        try:
            profile = open_profile(path)
        except TpuprofError as error:
            check_refusal(error)
            return
        check_everything(profile)
        if _chosen({"": text}):
            run_export(Job(folder / "out", frozenset(("pftrace",)), query_of(profile)))


def memory_snapshot(data: bytes) -> None:
    """A memory snapshot of PyTorch, or (odd first byte) compressed: every view and column of it."""
    with _folder() as folder:
        path = folder / "memory_snapshot.pickle"
        path.write_bytes(gzip.compress(data[1:], 1) if data and data[0] & 1 else data[1:])
        try:
            profile = open_profile(path)
        except TpuprofError as error:
            check_refusal(error)
            return
        json.dumps(report_record(Query(Session(profile)), views_of(profile.vocabulary), workers_of(profile)))
        for lane in profile.lanes:
            lane.arrays()
            check_sublanes(lane)
        for table in profile.tables:
            for column in table.schema:
                table.values(column.key)
        if _chosen({"": data}):
            run_export(Job(folder / "out", frozenset(("pftrace",)), query_of(profile)))


def check_sublanes(lane: Lane) -> None:
    """Events of one sub-lane do not overlap."""
    order = np.lexsort((np.arange(len(lane)), lane["sublane"]))
    start, end, line = (lane[key][order] for key in ("start", "end", "sublane"))
    assert not bool(((line[1:] == line[:-1]) & (start[1:] < end[:-1])).any())


def names(data: bytes) -> None:
    """Names of kernel functions and of the host's slices, into every output; pieces are parted by byte 0xFE."""
    pieces = [piece[:400] for piece in data.split(b"\xfe")][:8]
    nodes: list[int] = []
    for piece in pieces:
        nodes += [*raw.func(piece), raw.node(raw.TIU, 2, 4), raw.node(raw.GDMA, 0, 0, 0x81), raw.FUNC_END]
    _opened({"global.profile": b"", "cdmlib0_0.profile": _core(raw.words(nodes))}, "aks", heavy=True)


def layer_files(data: bytes) -> None:
    """What lies beside a capture for the workbook's layer sheets: two files, parted by byte 0xFE."""
    locations, _, network = data.partition(b"\xfe")
    with _folder() as folder:
        (folder / "tensor_location.json").write_bytes(locations)
        (folder / "final.mlir").write_bytes(network)
        found, problems = read_layer_files(folder)
        assert found is None or all(problem.count > 0 for problem in problems)


@cache
def _device() -> Profile:
    with _folder() as folder:
        path = raw.write_capture(folder, {0: _core(_commands())}, "arch=5\ntail_offset_ns=5000\n")
        profile = open_profile(path)
        read_whole(profile)
        return profile


# -- where atheris and the mutations begin -------------------------------------


def _settings_seeds() -> list[bytes]:
    return [
        b"arch=5\nmax_record_num=1024\n0_tiu_record=6\n0_gdma_record=4\ncore_num=8\ntail_offset_ns=1000\n",
        b"arch = AKSV\ntpu_freq=800\nbmodel=1\ncdma3_record=9\n\n=\n",
        "arch=é\r\ncore_num=١٢\n".encode(),
    ]


def _core_seeds() -> list[bytes]:
    extras = b"".join(raw.extra_record(bytes(16)) for _ in range(4))
    keyed = raw.block(raw.DES_KV, struct.pack("<3I", 5, 1, 0) + bytes(96))
    return [bytes([chip]) + _core(_commands(), raw.block(raw.DYN_EXTRA, extras), keyed) for chip in range(8)]


def _port_seeds() -> list[bytes]:
    records = b"".join(raw.cdma_record(2000 + 90 * n, 2080 + 90 * n, n + 1, 4096 * n) for n in range(_COUNT))
    return [bytes([chip]) + raw.block(raw.MONITOR_CDMA, records) for chip in (0, 1)]


def _record_seeds() -> list[bytes]:
    tiu = b"".join(raw.tiu_record(0xFFFFFFF0 + 50 * n, 40 + 50 * n, n) for n in range(_COUNT))
    dma = b"".join(raw.dma_record(2000 + 90 * n, 2080 + 90 * n, n, 64 * n) for n in range(_COUNT))
    return [bytes([options]) + (tiu if options & 12 == 0 else dma) * 3 for options in range(0, 64, 5)]


def _node_seeds() -> list[bytes]:
    odd = [*raw.func("核" * 9), *raw.des(8, 5, 3), *raw.des(11, 9, 2, 1), raw.id_reset(0), raw.batch(4), 55, 0, 3]
    return [
        bytes([chip]) + nodes
        for chip in range(8)
        for nodes in (_commands(), raw.words([*odd, raw.node(0, 15, 9, kind=13), raw.node(5, 0, 0)]))
    ]


def _stream_seeds() -> list[bytes]:
    """Streams of the sample program's compiled model, as bytes."""
    from dataclasses import replace

    from capture_writer.capture import write_capture
    from capture_writer.damage import blocks
    from capture_writer.kinds import KINDS

    found = []
    with _folder() as folder:
        for chip, kind in ((0, "bmodel"), (2, "bm1688_bmodel"), (3, "cv84x6_bmodel")):
            path = write_capture(replace(KINDS[kind], name=kind), folder, truth=False).path
            for part in blocks((path / "cdmlib0_1.profile").read_bytes()):
                if 13 <= part.kind <= 16:
                    found += [
                        bytes([chip | 4 | (part.kind - 13) << 3]) + part.payload[:2000],
                        bytes([chip | (part.kind - 13) << 3]) + part.payload[:600],
                    ]
    return found


def _detail_seeds() -> list[bytes]:
    return [
        bytes([each[0] & 3]) + b"".join(raw.extra_record(each[1 + 96 * n : 97 + 96 * n]) for n in range(6))
        for each in _stream_seeds()
    ]


def _host_seeds() -> list[bytes]:
    event = b'{"ph":"X","name":"add","cat":"cpu_op","pid":1,"tid":"a","ts":12.5,"dur":3e0}'
    launch = b'{"ph":"X","name":"launch","cat":"tpudnn","ts":"20","dur":1.25,"args":{"a":[1,{}]}}'
    closing = b'{"ph":"X","name":"disable_profile","cat":"tpudnn","ts":1e3,"dur":9}'
    text = b'{"schema":1,"traceEvents":[' + b",".join([event, launch, closing, b'{"ph":"M"}']) + b'],"x":null}'
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write(text)
    return [
        b"\0" + text,
        b"\1" + text,
        b"\2" + packed.getvalue(),
        b"\0[" + event + b"," + launch,
        b"\0" + b"[" * 300,
        b'\0{"traceEvents":[{"ph":"X","ts":NaN,"name":"\\ud800"}]}',
    ]


def _perfetto_seeds() -> list[bytes]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sources"))
    from perfetto_files import program_trace, torch_trace

    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"k": [1]}}
    work = event | {"cat": "kernel", "pid": 0, "tid": 7, "args": {"correlation": 5, "stream": 7}}
    return [b"\0" + program_trace(), b"\1" + program_trace(), b"\0" + torch_trace([event, work], {5: [5]})]


def _torch_seeds() -> list[bytes]:
    event = (
        b'{"ph":"X","cat":"%s","name":"%s","pid":%s,"tid":%s,"ts":%s,"dur":%s,"args":{"External id":7,'
        b'"correlation":5,"Input Dims":[[2,3]],"device":0,"stream":7,"grid":[1,1,1],"blocks per SM":0.5}}'
    )
    events = [
        event % (b"user_annotation", b"ProfilerStep#3", b"1", b"1", b"0", b"90.5"),
        event % (b"cpu_op", b"aten::mm", b"1", b"1", b"1.25", b"20"),
        event % (b"cuda_runtime", b"cudaLaunchKernel", b"1", b"1", b"2", b"3"),
        event % (b"kernel", b"sm80_xmma_gemm", b"0", b"7", b"30", b"12.001"),
        event % (b"gpu_memcpy", b"Memcpy HtoD", b"0", b'"stream 7"', b"42.001", b"0"),
        event % (b"cpu_op", b"nccl:all_reduce", b"1", b"1", b"15", b"30"),
        b'{"ph":"X","cat":"python_function","name":"nn.Module: Net_0","pid":1,"tid":1,"ts":0.5,"dur":60,'
        b'"args":{"Python id":1,"Python parent id":null,"Python module id":0}}',
        b'{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":3,"s":"t","args":{"Device Type":1,'
        b'"Device Id":0,"Addr":140737488355328,"Bytes":512,"Total Allocated":512,"Total Reserved":2048}}',
        b'{"ph":"s","id":1,"pid":1,"tid":1,"ts":1.25,"cat":"fwdbwd","name":"fwdbwd"}',
        b'{"ph":"f","id":1,"pid":1,"tid":1,"ts":15,"cat":"fwdbwd","name":"fwdbwd","bp":"e"}',
        b'{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"main"}}',
    ]
    text = (b'{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"card","totalGlobalMem":1000,"computeMajor":8,'
            b'"computeMinor":0}],"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[' + b",\n".join(events)
            + b'],"baseTimeNanoseconds":1700000000000000000}')  # fmt: skip
    named = b'{"name":"%s","ph":"M","pid":0,"tid":%s,"args":{"name":"%s"}}'
    devices = [named % each for each in ((b"process_name", b"0", b"/device:GPU:0"), (b"thread_name", b"7", b"Steps"))]
    return [b"\0" + text, b"\1" + text, b"\0[" + b",".join(events) + b"]", b"\0[" + b",".join(devices + events) + b"]",
            b'\0[{"ph":"X","pid":[1],"ts":1,"dur":2}]']  # fmt: skip


def _snapshot_seeds() -> list[bytes]:
    frames = [{"filename": "/job/model.py", "line": 8, "name": "forward"}]
    block = {"address": 1 << 46, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": 1 << 46, "total_size": 2 << 20, "stream": 0, "segment_type": "small",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames, "blocks": [block]}  # fmt: skip
    trace = [{"action": action, "addr": 1 << 46, "size": 512, "stream": 0, "time_us": 1_700_000_000_000_000 + time,
              "frames": frames} for time, action in enumerate(("segment_alloc", "alloc", "free_requested",
                                                               "free_completed", "alloc", "oom"))]  # fmt: skip
    record = {"segments": [segment], "device_traces": [trace], "allocator_settings": {"max_split_size": -1}}
    return [b"\0" + pickle.dumps(record, protocol) for protocol in (2, 4, 5)] + [b"\1" + pickle.dumps([segment], 4)]


def bmprofile_folder(data: bytes) -> None:
    """A folder of libbmrt in which one file is hostile: its run, the compiler's text, the forecast, or commands."""
    options = data[0] if data else 0
    folder = _bmprofile(options >> 2 & 1)
    names = ["iter0.profile", "global.profile", "net_stat.sim", *sorted(name for name in folder if "cmd_" in name)]
    name = names[(options & 3) % len(names)]
    folder = folder | {name: data[1:]}
    if options & 8:
        folder = folder | {"bmlib_0.profile": data[1:]}
    _opened(folder, ("bm1684x", "bm1688", "cv184x", None)[options >> 4 & 3])


@cache
def _bmprofile(number: int) -> dict[str, bytes]:
    """Files of a kept folder of libbmrt by name."""
    with tarfile.open(_COMPILED / f"{('bm1684x_two_models', 'bm1688_mlp_f16_2core')[number]}.tar.xz") as archive:
        contents = ((member.name, archive.extractfile(member)) for member in archive.getmembers())
        return {name: content.read() for name, content in contents if content is not None}


def _bmprofile_seeds() -> list[bytes]:
    return [
        bytes([options | number << 2]) + _bmprofile(number)[name][:20_000]
        for number, chips in ((0, 0x30), (1, 0x30))
        for options, name in ((chips, "iter0.profile"), (chips | 1, "global.profile"), (chips | 2, "net_stat.sim"))
    ] + [b"\x20" + _bmprofile(0)["iter0.profile"]]


def _nsys_seeds() -> list[bytes]:
    with _folder() as folder:
        whole = write_run(folder, steps=1, layers=1)[0].read_bytes()
    numbers = [1000 + 10 * number if number % 5 else number % 70 for number in range(400)]
    return [b"\0" + whole, b"\1" + b"".join(b"\2" + number.to_bytes(2, "little") for number in numbers)]


def _name_seeds() -> list[bytes]:
    return [
        b"\x1b]0;owned\x07\xfe=HYPERLINK(1)\xfe</script><b>x\xfe[red]a[/]",
        "\u202e核\ud800".encode(errors="replace"),
        b'%s%d\xfe\xfe../../x\xfe-1\xfe"q",r\n\xfe\xf0\x9f\x8c\x80\xfe]]>&lt;\x00z',
    ]


def _layer_seeds() -> list[bytes]:
    entry = (
        b'[{"opcode":"tpu.Conv2D","core_id":0,"file-line":2,"tiu_dma_id(before)":[0,0],"tiu_dma_id(after)":[2,3],'
        b'"operands":[{"type":"tensor<1x3x4x4xf16>"}],"results":[]}]'
    )
    network = b'module @net attributes {module.FLOPs = 9 : i64, module.mode = "F16"} {\n kernel_shape = [3, 3]'
    return [entry + b"\xfe" + network]


TARGETS = {
    "settings": Target(settings_file, "global.profile", _settings_seeds),
    "framing": Target(core_file, "a core file: blocks and all that is in them", _core_seeds),
    "port": Target(port_file, "CDMA files", _port_seeds),
    "records": Target(monitor_records, "records of one engine", _record_seeds),
    "nodes": Target(node_stream, "the node stream", _node_seeds),
    "details": Target(detail_records, "DYN_EXTRA records", _detail_seeds),
    "streams": Target(descriptor_streams, "descriptor streams", _stream_seeds),
    "host": Target(host_trace, "host traces", _host_seeds),
    "nsys": Target(nsys_database, "databases of Nsight Systems", _nsys_seeds),
    "torch": Target(torch_trace, "PyTorch traces", _torch_seeds),
    "perfetto": Target(partial(torch_trace, name="some.pftrace"), "Perfetto traces", _perfetto_seeds),
    "snapshot": Target(memory_snapshot, "memory snapshots of PyTorch", _snapshot_seeds),
    "bmprofile": Target(bmprofile_folder, "folders of libbmrt", _bmprofile_seeds),
    "names": Target(names, "names, into every output", _name_seeds),
    "layers": Target(layer_files, "the compiler's files beside a capture", _layer_seeds),
}
