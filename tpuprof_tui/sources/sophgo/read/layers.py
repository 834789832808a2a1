"""Layers of a network: maps commands to layers, by the compiler's files next to a capture.

``tensor_location.json`` contains for each layer and core the command ids after which it begins and ends; ``final.mlir``
contains the network's name and the shapes of its layers. Neither is trusted: they may contain anything.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Lane, Problem, Profile, Role, Scopes, Severity, Strings, is_missing
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.table import Table, TableColumns
from tpuprof_tui.model.uniques import distinct_together

from ..file_names import LOCATIONS, NETWORK
from ..vocabulary import LAYER_VOCABULARY
from .arrays import map_texts

Array = npt.NDArray[Any]

#: Most dimensions of a tensor.
_MOST_AXES = 8
#: Larger files (bytes) are not read: a compiler writes some megabytes.
_LARGEST: Final = 1 << 28
_MOST_IDS: Final = 1 << 40
_ENGINES: Final = ("TIU", "GDMA")
_LONGEST_NAME: Final = 200
#: Columns of the table of layers besides ``kernel``: what each computes, from what.
_TENSORS: Final = ("result", "shape", "operands")
_NO_LAYERS: Final = "There are no layers."
_TENSOR: Final = lazy_pattern(r"<?((?:\d{1,9}x){0,8})([a-z]+)(\d{1,2})")
_NETWORK_NAME: Final = lazy_pattern(r"module\s+@([\w.$-]{1,200})")
_FLOPS: Final = lazy_pattern(r"module\.FLOPs\s*=\s*(\d{1,18})")
_MODE: Final = lazy_pattern(r'module\.mode\s*=\s*"([^"\n]{1,40})"')
_PAIR: Final = r"\s*=\s*\[\s*(\d{1,6})\s*,\s*(\d{1,6})"
_KERNEL: Final = lazy_pattern("kernel_shape" + _PAIR)
_STRIDES: Final = lazy_pattern("strides" + _PAIR)


class Tensor(Struct, frozen=True):
    """An operand or result."""

    shape: tuple[int, ...] = ()  #: Dimensions in memory, four or five
    form: str = ""  #: Element format in the compiler's terms ("f16")
    size: int = 0  #: Bytes
    #: Dimensions as seen by the operation: for a product, the last two are those of its matrices.
    matrix: tuple[int, ...] = ()
    name: str = ""  #: Its name; empty without one

    @property
    def text(self) -> str:
        """Shape and format: ``1x24x64x64 f16``."""
        return " ".join(filter(None, ("x".join(map(str, self.matrix or self.shape)), self.form)))


class Layer(Struct, frozen=True):
    """One layer on one core."""

    number: int  #: Counted from 1, in the order of the file
    name: str  #: Operation of the layer
    core: int  #: Core it runs on
    #: tiu, dma: Ids of its commands: above the first number, up to and including the second.
    tiu: tuple[int, int]
    dma: tuple[int, int]
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    #: kernel, strides: Height and width; zeros where it has none.
    kernel: tuple[int, int]
    strides: tuple[int, int]


_Id = Annotated[int, Meta(ge=0, lt=1 << 40)]


class _Entry(Struct):
    """A layer's entry in the file; only required values are typed. Ids are those of TIU and DMA."""

    opcode: str
    before: tuple[_Id, _Id] = field(name="tiu_dma_id(before)")
    after: tuple[_Id, _Id] = field(name="tiu_dma_id(after)")
    core: int = field(name="core_id", default=0)
    line: Any = field(name="file-line", default=0)
    operands: Any = ()
    results: Any = ()


class Network(Struct, frozen=True):
    """The layers of a capture's network."""

    name: str
    mode: str  #: Element format it was compiled for
    flops: int  #: Operations of one run, as counted by the compiler
    layers: tuple[Layer, ...]


def read_layer_files(folder: Path) -> tuple[Network | None, tuple[Problem, ...]]:
    """The network described next to a capture, None without one; and the problems of the files."""
    present = [name for name in (LOCATIONS, NETWORK) if os.path.exists(folder / name)]
    if len(present) < 2:
        missing = NETWORK if LOCATIONS in present else LOCATIONS
        return None, tuple(Problem(Severity.NOTE, f"{name} exists without {missing}.", _NO_LAYERS, name)
                           for name in present)  # fmt: skip
    try:
        entries = _entries(_text_of(folder / LOCATIONS))
        text = _text_of(folder / NETWORK)
    except _LayerFileError as error:
        file, what = error.args
        return None, (Problem(Severity.ERROR, what, _NO_LAYERS, file),)
    lines, layers = text.split("\n"), list[Layer]()
    for entry in entries:
        layer = _layer(entry, len(layers) + 1, lines)
        layers += [layer] if layer is not None else []
    name, flops, mode = (pattern.search(text) for pattern in (_NETWORK_NAME, _FLOPS, _MODE))
    problems, lost = list[Problem](), len(entries) - len(layers)
    if lost:
        done = "It was left out." if layers else _NO_LAYERS
        problems.append(Problem(Severity.ERROR, "A layer does not list its commands.", done, LOCATIONS, count=lost))
    if not entries:
        problems.append(Problem(Severity.WARNING, "The list of layers is empty.", _NO_LAYERS, LOCATIONS))
    if layers and name is None:
        what, done = "No line names the network (module @NAME).", "Neither network nor kernel sizes are known."
        problems.append(Problem(Severity.ERROR, what, done, NETWORK))
    label, form = (found[1] if found else "-" for found in (name, mode))
    network = Network(label, form, int(flops[1]) if flops else 0, tuple(layers)) if layers else None
    return network, tuple(problems)


class _LayerFileError(Exception):
    """A file that cannot be used at all; arguments: its name, and what is wrong."""


def _text_of(path: Path) -> str:
    try:
        if not path.is_file():
            raise _LayerFileError(path.name, "It is not a file.")
        if path.stat().st_size > _LARGEST:
            raise _LayerFileError(path.name, f"It is larger than {_LARGEST >> 20} MiB, which no compiler writes.")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _LayerFileError(path.name, f"It cannot be read: {(error.strerror or str(error)).lower()}.") from None


def _entries(text: str) -> list[Any]:
    try:
        entries = json.loads(text)
    except RecursionError:
        raise _LayerFileError(LOCATIONS, "It is nested too deeply to be read.") from None
    except ValueError as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise _LayerFileError(LOCATIONS, f"It is not valid JSON{where}.") from None
    if not isinstance(entries, list):
        raise _LayerFileError(LOCATIONS, "It is not a list of layers.")
    return entries


def _layer(raw: Any, number: int, lines: Sequence[str]) -> Layer | None:
    """Layer of an entry of the file; None if the entry lacks the ids of its commands."""
    try:
        entry = convert(raw, _Entry)
    except ValidationError:
        return None
    line = entry.line if isinstance(entry.line, int) and 0 < entry.line <= len(lines) else 0
    text = lines[line - 1] if line and entry.opcode in lines[line - 1] else ""
    kernel, strides = (
        (int(found[1]), int(found[2])) if (found := form.search(text)) else (0, 0) for form in (_KERNEL, _STRIDES)
    )
    tiu, dma = zip(entry.before, entry.after, strict=True)
    name = entry.opcode.removeprefix("tpu.").removeprefix("top.")
    operands, results = _tensors(entry.operands), _tensors(entry.results)
    return Layer(number, name, entry.core, tiu, dma, operands, results, kernel, strides)


def _tensors(value: Any) -> tuple[Tensor, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        _tensor(item.get("memory_type"), item.get("shape"), item.get("name"))
        for item in value[:64]
        if isinstance(item, Mapping)
    )


def _tensor(text: Any, logical: Any, name: Any) -> Tensor:
    name = name[:_LONGEST_NAME] if isinstance(name, str) else ""
    found = _TENSOR.match(text) if isinstance(text, str) else None
    axes = logical if isinstance(logical, list) and len(logical) <= _MOST_AXES else []
    matrix = tuple(axes) if all(isinstance(size, int) and 0 < size < _MOST_IDS for size in axes) else ()
    if found is None:
        return Tensor(matrix=matrix, name=name)
    shape = tuple(int(part) for part in found[1].split("x") if part)
    bits = int(found[3])
    return Tensor(shape, found[2] + found[3], math.prod(shape) * max(bits, 1) // 8, matrix or shape, name)


def with_layers(profile: Profile) -> Profile:
    """The profile with the layers of its commands, by the compiler's files beside it, and the problems of these.

    Of a model they are what issued its commands, as launches of kernel functions are otherwise; where launches are
    known, they are a column more.
    """
    network, problems = read_layer_files(Path(profile.path))
    profile = replace(profile, problems=(*profile.problems, *problems))
    if network is None:
        return profile
    layers = LayerMap(network, profile)
    if not len(profile.scopes):
        return _with_layer_runs(profile, layers)
    lanes = tuple(
        replace(lane, columns={**lane.columns, "layer": partial(layers.codes, lane)}) if lane.kind in _ENGINES else lane
        for lane in profile.lanes
    )
    return replace(profile, lanes=lanes, strings={**profile.strings, "layer": Strings(layers.names)})


def _with_layer_runs(profile: Profile, layers: LayerMap) -> Profile:
    """The profile with a scope for each run of a layer on a core; as it is if no command has one."""
    chosen = [lane for lane in profile.lanes if lane.kind in _ENGINES]
    if not chosen:
        return profile
    found = [layers.indices(lane, ALL) for lane in chosen]
    cores = [np.full(len(lane), lane.group, np.int64) for lane in chosen]
    layer, run, core = map(np.concatenate, (found, list(map(_runs, chosen, found)), cores))
    known = np.flatnonzero(layer >= 0)
    if not len(known):
        return profile
    number, _ = distinct_together(core[known], run[known], layer[known])
    first = np.unique(number, return_index=True)[1]
    scopes = Scopes(layer[known[first]].astype(np.int32), core[known[first]].astype(np.int32))
    scope = np.full(len(layer), INT_MISSING, np.int64)
    scope[known] = number
    columns: dict[str, Array] = {
        "kernel": layer.astype(np.int32),
        "scope": scope,
        "batch": np.where(layer >= 0, run, INT_MISSING),
    }
    own, end = {}, 0
    for lane in chosen:
        begin, end = end, end + len(lane)
        part = {key: values[begin:end] for key, values in columns.items()}
        own[id(lane)] = replace(lane, columns={**lane.columns, **part})
    profile = replace(
        profile, vocabulary=LAYER_VOCABULARY, lanes=tuple(own.get(id(lane), lane) for lane in profile.lanes),
        scopes=scopes, strings={**profile.strings, "kernel": Strings(layers.names)},
    )  # fmt: skip
    return replace(profile, tables=(*profile.tables, layer_table(profile)))


def layer_table(profile: Profile) -> Table:
    """Tensors of the layers whose commands were recorded, by code of ``kernel``; read on first use."""

    def read() -> TableColumns:
        layers, found = layers_of(profile), dict[int, Layer]()
        for lane in profile.lanes:
            if layers is not None and lane.kind in _ENGINES:
                kernel, index = lane["kernel"], layers.indices(lane, ALL)
                known = np.flatnonzero((kernel >= 0) & (index >= 0))
                codes, first = np.unique(kernel[known], return_index=True)
                for code, row in zip(codes.tolist(), known[first].tolist(), strict=True):
                    found.setdefault(code, layers.network.layers[int(index[row])])
        results = [(*layer.results, Tensor())[0] for layer in found.values()]
        texts = {
            "result": [each.name for each in results],
            "shape": [each.text for each in results],
            "operands": [", ".join(filter(None, (each.text for each in layer.operands))) for layer in found.values()],
        }
        numbers = np.arange(len(found), dtype=np.int32)
        return {"kernel": np.array(list(found), np.int64), **dict.fromkeys(_TENSORS, numbers)}, texts

    return Table("layers", -1, LOCATIONS, read)


def _runs(lane: Lane, layer: Array) -> Array:
    """Number of the run of the model that the rows with a layer are of: ids begin anew in each."""
    order = np.argsort(lane["order"], kind="stable")
    order = order[layer[order] >= 0]
    found = np.zeros(len(lane), np.int64)
    found[order[1:]] = np.cumsum(np.diff(lane["command_id"][order]) < 0)
    return found


def layers_of(profile: Profile) -> LayerMap | None:
    """Maps commands to layers; None where layers are not known."""
    network, _ = read_layer_files(Path(profile.path))
    return None if network is None else LayerMap(network, profile)


class LayerMap:
    """Maps the commands of a lane to layers.

    Of a compiled model's capture only the commands of its streams have layers: the runtime's pairs and records without
    a command have ids of their own, which mean nothing to the compiler.
    """

    def __init__(self, network: Network, profile: Profile) -> None:
        self._profile = profile
        self.network = network
        self._bounds: dict[tuple[str, int], tuple[Array, Array, Array]] = {}
        for core in {layer.core for layer in network.layers}:
            own = [layer for layer in network.layers if layer.core == core]
            for engine, spans in (("TIU", [layer.tiu for layer in own]), ("GDMA", [layer.dma for layer in own])):
                table = np.array([(*span, layer.number - 1) for span, layer in zip(spans, own, strict=True)], np.int64)
                before, after, index = table[np.argsort(table[:, 1], kind="stable")].T
                self._bounds[engine, core] = before, after, index

    @property
    def names(self) -> list[str]:
        """Names of the layers: operation and number."""
        return [f"{layer.name}_{layer.number}" for layer in self.network.layers]

    def codes(self, lane: Lane, rows: Rows) -> Array:
        """Codes into ``names`` of some rows' layers; -1 without one."""
        return self.indices(lane, rows).astype(np.int32)

    def indices(self, lane: Lane, rows: Rows) -> Array:
        """Index of each row's layer in ``network.layers``; -1 without one."""
        ids = lane.take("command_id", rows)
        bounds = self._bounds.get((lane.kind, self._profile.groups.unit_number(lane.group)))
        if bounds is None:
            return np.full(len(ids), -1, dtype=np.int64)
        before, after, layer_indices = bounds
        found = np.minimum(np.searchsorted(after, ids, side="left"), len(after) - 1)
        inside = (before[found] < ids) & (ids <= after[found])
        if self._profile.source_data.get("bmodel"):
            inside &= self._of_model(lane, rows)
        return np.where(inside, layer_indices[found], -1)

    def _of_model(self, lane: Lane, rows: Rows) -> Array:
        """Mask of the rows whose command is of the model's streams."""
        if "mode" not in lane:
            return np.zeros(len(lane.take("start", rows)), np.bool_)
        by_node = map_texts(self._profile, lane, "mode", rows, ("TDI", "RVT").__contains__)
        known = (lane.take("role", rows) == Role.WORK) & (lane.take("name", rows) >= 0)
        if "dependency" in lane:
            known |= ~is_missing(lane.take("dependency", rows))
        return np.asarray(~by_node & known)
