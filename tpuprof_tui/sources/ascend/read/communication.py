"""Reads communication data: ``communication.json`` with its matrix, those of a cluster, and tables of ``analysis.db``.

Times in the files are ms; here they are ns, rounded to a picosecond, as further digits are the exporter's float noise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.escape import utf8_text

from .database import Database

_TIMES: Final = ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")
_RATIOS: Final = ("Wait Time Ratio", "Synchronization Time Ratio")
_MOST_BYTES: Final = 1 << 30
_PICO: Final = Decimal("0.001")
#: Prefixes of table names: databases of a rank, of a cluster, and of a cluster with simplified tables.
_PREFIXES: Final = ("CommAnalyzer", "ClusterCommAnalyzer", "ClusterCommunication")
_OF: Final = ("step", "type", "rank_set", "hccl_op_name", "group_name")


class _OfOperator(Struct, frozen=True):
    """Data of a communication operator in a step, or of a sum of several (``op`` is then ``Total Op Info``).

    Attributes:
        step, kind, op: As in the file.
    """

    step: str
    kind: str
    op: str


class Operation(_OfOperator, frozen=True):
    """One communication operator in a step, or a sum of several.

    Attributes:
        rank: Its rank; empty if the file is of one rank.
        start: ns since 1970; None if unknown.
        elapse, transit, wait, synchronization, idle: ns; None if unknown.
        wait_ratio, synchronization_ratio: 0 to 1.
    """

    rank: str
    start: int | None
    elapse: float | None
    transit: float | None
    wait: float | None
    synchronization: float | None
    idle: float | None
    wait_ratio: float | None
    synchronization_ratio: float | None


class Transfer(_OfOperator, frozen=True):
    """Transfer of an operator over one kind of link: MB, ns, GB/s."""

    rank: str
    link: str
    size_mb: float
    transit: float | None
    bandwidth: float | None
    large_packets: float | None


class Packets(Struct, frozen=True):
    """Packets of one size that an operator sent over a link: MB, number, ns."""

    step: str
    kind: str
    op: str
    link: str
    packet_mb: float
    count: float
    total: float | None


class Pair(_OfOperator, frozen=True):
    """Transfer between two ranks: MB, ns, GB/s."""

    src: str
    dst: str
    link: str | None
    size_mb: float | None
    transit: float | None
    bandwidth: float | None
    op_name: str | None


class CommunicationData(Struct, eq=False):
    """Communication data of one source.

    Attributes:
        file: Name of the file.
        operations: Operators and sums.
        transfers, packets, pairs: By link, by packet size, and by pair of ranks.
        matrix: Whether there was a communication matrix.
    """

    file: str
    operations: list[Operation] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    packets: list[Packets] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    matrix: bool = False


def read_json(path: Path, name: str, *, whatever: bool = False) -> Any:
    """The object in a JSON file, numbers as decimals; ``whatever``: any other JSON value is accepted too.

    Raises:
        UnreadableError: The file cannot be read or holds no object.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UnreadableError(f"{name} is too large for such a file.")
        found = json.loads(path.read_bytes().decode("utf-8-sig", "replace"), parse_float=Decimal, strict=False)
    except OSError as error:
        raise UnreadableError(f"{name}: {(error.strerror or 'cannot be read').lower()}.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno:,}"
        raise UnreadableError(f"{name} cannot be decoded after {where} ({error.msg}).") from None
    except (ValueError, RecursionError):
        raise UnreadableError(f"{name} cannot be decoded.") from None
    if not whatever and not isinstance(found, dict):
        raise UnreadableError(f"{name} holds no JSON object.")
    return found


def of_json(path: Path, name: str) -> CommunicationData:
    """Reads ``communication.json`` of a rank."""
    found = CommunicationData(name)
    for step, kind, op, record in _entries(read_json(path, name)):
        _add_operation(found, step, kind, op, "", record)
    return found


def add_matrix(found: CommunicationData, path: Path, name: str) -> None:
    """Adds ``communication_matrix.json`` to ``found``."""
    raw = read_json(path, name)
    found.matrix = True
    for step, kind, op, pairs in _entries(raw):
        _add_pairs(found, step, kind, op, pairs)


def of_cluster(path: Path | None, matrix: Path | None) -> CommunicationData:
    """Reads ``cluster_communication.json`` of msprof-analyze and its matrix; ``kind`` is the group of ranks."""
    found = CommunicationData((path or matrix or Path()).name)
    if path is not None:
        for group, step, op, ranks in _entries(read_json(path, path.name)):
            for rank, record in _objects(ranks):
                _add_operation(found, step, group, op, rank, record)
    if matrix is not None:
        found.matrix = True
        for group, step, op, pairs in _entries(read_json(matrix, matrix.name)):
            _add_pairs(found, step, group, op, pairs)
    return found


def _entries(value: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Values three levels deep in nested objects, each with its three keys."""
    for outer_key, inner in _objects(value):
        for inner_key, operations in _objects(inner):
            for op, record in _objects(operations):
                yield outer_key, inner_key, op, record


def _add_operation(found: CommunicationData, step: str, kind: str, op: str, rank: str, record: Any) -> None:
    times = record.get("Communication Time Info") if isinstance(record, dict) else None
    links = record.get("Communication Bandwidth Info") if isinstance(record, dict) else None
    if isinstance(times, dict):
        start = number(times.get("Start Timestamp(us)"))
        found.operations.append(Operation(
            step, kind, op, rank, None if start is None else int(start * 1000),
            *(_ns(times.get(key)) for key in _TIMES), *(_float(times.get(key)) for key in _RATIOS),
        ))  # fmt: skip
    for link, bandwidth in _objects(links):
        size = number(bandwidth.get("Transit Size(MB)")) if isinstance(bandwidth, dict) else None
        if not size:
            continue
        found.transfers.append(Transfer(
            step, kind, op, rank, link, float(size), _ns(bandwidth.get("Transit Time(ms)")),
            _float(bandwidth.get("Bandwidth(GB/s)")), _float(bandwidth.get("Large Packet Ratio")),
        ))  # fmt: skip
        for packet, pair in _objects(bandwidth.get("Size Distribution")):
            mega = number(packet)
            if isinstance(pair, list) and len(pair) == 2 and mega is not None:
                count = number(pair[0])
                found.packets.append(Packets(step, kind, op, link, float(mega), _count(count), _ns(pair[1])))


def _add_pairs(found: CommunicationData, step: str, kind: str, op: str, pairs: Any) -> None:
    for pair, record in _objects(pairs):
        src, _, dst = pair.partition("-")
        if isinstance(record, dict):
            link, name = record.get("Transport Type"), record.get("Op Name")
            found.pairs.append(Pair(
                step, kind, op, src, dst, _text(link), _float(record.get("Transit Size(MB)")),
                _ns(record.get("Transit Time(ms)")), _float(record.get("Bandwidth(GB/s)")), _text(name),
            ))  # fmt: skip


def of_database(database: Database) -> CommunicationData | None:
    """Reads the CommAnalyzer* tables of ``analysis.db``, or those of a cluster; None if there are none.

    Ratios are computed, as databases have none. For a cluster, ``kind`` is the group of ranks.
    """
    prefix = next((each for each in _PREFIXES if f"{each}Time" in database.tables), "")
    if not prefix:
        return None
    found = CommunicationData(database.name)
    groups = {group: "p2p" if kind == "p2p" else ranks for group, kind, ranks in database.rows(
        "CommunicationGroupMapping", "group_name", "type", "rank_set")}  # fmt: skip

    def of(step: Any, kind: Any, ranks: Any, op: Any, group: Any) -> tuple[str, str, str]:
        return str(step), str(kind or ranks or groups.get(group, group)), utf8_text(f"{op}@{group}")

    for *op_columns, rank, start, elapsed, elapse, transit, wait, synchronization, idle in database.rows(
        f"{prefix}Time", *_OF, "rank_id", "start_timestamp", "elapsed_time", "elapse_time", "transit_time",
        "wait_time", "synchronization_time", "idle_time",
    ):  # fmt: skip
        begin = number(start)
        elapse, transit, wait, synchronization, idle = map(
            _ns, (elapsed if elapse is None else elapse, transit, wait, synchronization, idle)
        )
        found.operations.append(Operation(
            *of(*op_columns), "" if rank is None else str(rank), None if begin is None else int(begin * 1000), elapse,
            transit, wait, synchronization, idle, _ratio(wait, transit), _ratio(synchronization, transit),
        ))  # fmt: skip
    read_links = set()
    for *op_columns, rank, link, band, size, transit, bandwidth, large, packet, count, total in database.rows(
        f"{prefix}Bandwidth", *_OF, "rank_id", "transport_type", "band_type", "transit_size", "transit_time",
        "bandwidth", "large_packet_ratio", "package_size", "count", "total_duration",
    ):  # fmt: skip
        key = (*of(*op_columns), "" if rank is None else str(rank), str(link or band))
        size_mb = number(size)
        if size_mb and key not in read_links:
            read_links.add(key)
            found.transfers.append(Transfer(*key, float(size_mb), _ns(transit), _float(bandwidth), _float(large)))
        if number(count):
            found.packets.append(Packets(*key[:3], key[4], _float(packet) or 0.0, _count(number(count)), _ns(total)))
    found.matrix = f"{prefix}Matrix" in database.tables
    for *op_columns, src, dst, link, size, transit, bandwidth, name in database.rows(
        f"{prefix}Matrix", *_OF, "src_rank", "dst_rank", "transport_type", "transit_size", "transit_time", "bandwidth",
        "op_name",
    ):  # fmt: skip
        found.pairs.append(Pair(*of(*op_columns), str(src), str(dst), _text(link), _float(size), _ns(transit),
                                _float(bandwidth), _text(name)))  # fmt: skip
    return found


def _ratio(part: float | None, transit: float | None) -> float | None:
    """The share of a wait in wait + transit, to four decimals as in the files; 0 if both are 0."""
    if part is None or transit is None:
        return None
    return round(part / (part + transit), 4) if part + transit else 0.0


def _objects(value: Any) -> Iterator[tuple[str, Any]]:
    """The members of an object; empty for any other value."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield utf8_text(str(key)), each


def number(value: Any) -> Decimal | None:
    """A number from a file or database as a decimal; None if it is no finite number."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = value if isinstance(value, Decimal) else Decimal(str(value).strip()[:64])
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 30 else None


def _ns(value: Any) -> float | None:
    """Converts ms to ns."""
    found = number(value)
    return None if found is None else float((found * 1_000_000).quantize(_PICO) if abs(found) < 10**12 else found)


def _float(value: Any) -> float | None:
    found = number(value)
    return None if found is None else float(found)


def _count(value: Decimal | None) -> float:
    if value is None:
        return 0
    return int(value) if value == int(value) else float(value)


def _text(value: Any) -> str | None:
    return utf8_text(value) if isinstance(value, str) and value else None
