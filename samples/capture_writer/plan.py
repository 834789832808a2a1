"""Which kernels run, in which order, and which program each core runs for them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .catalogue import Catalogue
from .chips import CDMA, ENGINES
from .kernels import KERNELS, LAYER, TINY, Setting
from .options import Options
from .program import DES, RVT, TDI, Program
from .synchronisation import synchronise

#: Kernels that use the CDMA ports, if there are any.
_WITH_CDMA = frozenset(("all_reduce", "subnet", "cdma_zoo"))

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


@dataclass
class Plan:
    """Launches x cores. A core that runs nothing has no column here."""

    options: Options
    catalogue: Catalogue
    #: Kernel of each launch, as an index into ``kernels``; its batch.
    kernels: tuple[str, ...]
    kernel: I32
    batch: I64
    #: Core numbers that run kernels, in file order.
    running: tuple[int, ...]
    #: Program of each launch on each running core, cores x launches.
    program: I32
    #: How many launches with CDMA came before, by launch.
    reduction: I64
    #: Commands of a program by engine (CDMA: all slots).
    counts: I64 = field(default_factory=lambda: np.zeros((0, len(ENGINES)), dtype=np.int64))

    @property
    def launches(self) -> int:
        return len(self.kernel)

    def port_slots(self, place: int, launch: int) -> tuple[int, ...]:
        """Ports that running core ``place`` serves in a launch with CDMA."""
        cores = len(self.running)
        first = (place - int(self.reduction[launch])) % cores
        return tuple(range(first, self.options.ports, cores))


def _step(options: Options) -> tuple[str, ...]:
    if options.kernels:
        return options.kernels
    if options.bmodel:
        return ("subnet",)
    return ("embedding", *(LAYER * options.layers), "lm_head", "sampling")


def _sequence(options: Options, per_step: int) -> tuple[tuple[str, ...], I32, I64]:
    """Kernel names, kernel of each launch, batch of each launch."""
    if options.launches:
        step, launches = TINY, options.launches
    else:
        step = _step(options)
        steps = max(options.batches, -(-options.records // max(per_step, 1)) if options.records else 0)
        launches = steps * len(step)
    names = tuple(dict.fromkeys(step))
    codes = np.array([names.index(name) for name in step], dtype=np.int32)
    kernel = np.resize(codes, launches)
    batch = np.arange(launches, dtype=np.int64) // (len(step) if not options.launches else 250)
    return names, kernel, batch


def make_plan(options: Options, rng: np.random.Generator) -> Plan:
    """Programs for every launch and core; the sequence cut at the wanted number of records."""
    catalogue = Catalogue()
    running = tuple(c for c in options.core_numbers if c not in options.idle + options.empty)
    extras = [int(extra) for extra in rng.integers(0, 3, size=len(running))]
    if options.cdma_twins:
        extras = [1] * len(running)
    sample = [_program(options, running, name, extras[0], 0, 0, 0) for name in _step(options)]
    per_step = len(running) * max(1, sum(len(p.rows) for p in sample))
    names, kernel, batch = _sequence(options, per_step)
    with_cdma = np.array([name in _WITH_CDMA for name in names])[kernel]
    reduction = np.cumsum(with_cdma) - with_cdma
    plan = Plan(options, catalogue, names, kernel, batch, running,
                np.zeros((len(running), len(kernel)), dtype=np.int32), reduction)  # fmt: skip
    for code, name in enumerate(names):
        where = np.flatnonzero(kernel == code)
        for place in range(len(running)):
            plan.program[place, where] = _programs(plan, name, place, where, extras[place])
    plan.counts = program_counts(catalogue)
    return _cut(plan) if options.records else plan


def _programs(plan: Plan, name: str, place: int, where: I64, extra: int) -> I32:
    """Program numbers of one core for the launches ``where`` of one kernel."""
    options, cores = plan.options, len(plan.running)
    flavour = 0 if options.cdma_twins else place
    slots = np.zeros(len(where), dtype=np.int64)
    if name in _WITH_CDMA:
        first = (place - plan.reduction[where]) % cores
        slots = np.maximum(0, -(-(options.ports - first) // cores))
    out = np.zeros(len(where), dtype=np.int32)
    for number in np.unique(slots):
        # with dependencies, every core has messages of its own
        key = (name, extra, int(number), flavour if number else 0, place if options.dependencies else 0)
        out[slots == number] = plan.catalogue.number(
            key, lambda n=int(number): _program(options, plan.running, name, extra, n, flavour, place)
        )
    return out


def _program(
    options: Options, running: tuple[int, ...], name: str, extra: int, slots: int, flavour: int, place: int
) -> Program:
    mode = DES if name in options.des else RVT if name in options.rvt else TDI
    setting = Setting(
        options.chip,
        len(running),
        extra,
        slots,
        flavour,
        mode,
        options.sdma,
        0 if options.cdma_twins or not options.bmodel else 5,
        options.cdma_pairs,
        options.prefill_tiles,
        # without its block, nothing but a guess tells a sync command of a DES kernel
        open_end=mode == DES and not options.des_blocks,
    )
    program = KERNELS[name](setting)
    factor = float(dict(each.split(":") for each in options.slower).get(name, 1))
    for row in program.rows:
        row.base_ns = round(row.base_ns * factor)
    program.name = dict(options.rename).get(name, program.name)
    if options.dependencies:
        synchronise(program, len(running), place)
    return program


def program_counts(catalogue: Catalogue) -> I64:
    """Commands by program and engine."""
    out = np.zeros((len(catalogue.programs), CDMA + 1), dtype=np.int64)
    for number, program in enumerate(catalogue.programs):
        for row in program.rows:
            out[number, row.engine] += 1
    return out


def _cut(plan: Plan) -> Plan:
    """The shortest run of launches that reaches the wanted number of records."""
    total = plan.counts.sum(axis=1)[plan.program].sum(axis=0).cumsum()
    keep = min(plan.launches, int(np.searchsorted(total, plan.options.records)) + 1)
    plan.kernel, plan.batch = plan.kernel[:keep], plan.batch[:keep]
    plan.program, plan.reduction = plan.program[:, :keep], plan.reduction[:keep]
    return plan
