"""A profile: the lanes of one capture and what is known about where they ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import needed_for

from .columns import COUNTERS
from .lane import Lane
from .problem import Problem
from .strings import Strings
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Device:
    """Where a profile was captured.

    Attributes:
        chip: Chip name as the field says it ("AKS").
        arch: The ``arch`` value as captured; None when it was absent.
        clocks: (name, MHz) of each clock that cycles are counted in, the main one first; 0 where it is not known.
        peaks: (name, GB/s) of the memories of one unit; 0 where it is not known.
        parameters: (label, value) pairs of the architecture, in the order they are printed.
    """

    chip: str
    arch: str | None = None
    clocks: tuple[tuple[str, float], ...] = ()
    peaks: tuple[tuple[str, float], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()

    def clock(self, name: str) -> float:
        """A clock, MHz; 0 where there is none of this name."""
        return dict(self.clocks).get(name, 0)

    def peak(self, name: str) -> float:
        """Peak bandwidth of a memory, GB/s; 0 where it is not known."""
        return dict(self.peaks).get(name, 0.0)


@dataclass(frozen=True)
class Recording:
    """How a profile was recorded, as people say it.

    Attributes:
        name: "mode 1".
        short: The same in a column: "1".
        meaning: What that is.
    """

    name: str = ""
    short: str = ""
    meaning: str = "unknown"


@dataclass(frozen=True)
class Scopes:
    """Launches of kernel functions, one entry each.

    Attributes:
        kernel: int32 codes into ``Profile.strings["kernel"]``, by scope id.
        core: int32 core number, by scope id.
    """

    kernel: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    core: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.kernel)


@dataclass(frozen=True, eq=False)
class Profile:
    """One capture, read once. Immutable.

    Attributes:
        path: Where it was read from.
        name: Short name for headlines.
        vocabulary: What its source calls things.
        device: Chip and clocks.
        recording: How it was recorded.
        capabilities: Keys of the vocabulary's capabilities that it has.
        own: What its source knows of how it was recorded, for `info` and for the source's own files.
        cores: Numbers of all cores, idle ones included, ascending; those that figures are of.
        ports: CDMA ports with records, ascending.
        lost_cores: Cores that ran and of which nothing is there, ascending; not among ``cores``.
        lost_ports: CDMA ports of which the same is true.
        lanes: By core, then TIU, GDMA, SDMA; then the ports.
        strings: Table of texts of each text column, by column key.
        scopes: Kernel function launches.
        problems: What was odd in the capture.
        tail_ns: Largest end of all records, ns on the profile's time line; None without records.
        tail_offset_ns: Host time from the last record to the end of ``disable_profile``; None when not captured.
        facts: Further facts of the source, for `info`.
        timed: Whether instructions have times; without, lanes hold commands in the order they were issued, and their
            start, end and duration are ``INT_MISSING``.
    """

    path: str
    name: str
    vocabulary: Vocabulary
    device: Device
    recording: Recording
    capabilities: frozenset[str]
    own: Mapping[str, Any]
    cores: tuple[int, ...]
    ports: tuple[int, ...]
    lanes: tuple[Lane, ...]
    strings: Mapping[str, Strings]
    scopes: Scopes
    problems: tuple[Problem, ...]
    tail_ns: int | None = None
    tail_offset_ns: int | None = None
    lost_cores: tuple[int, ...] = ()
    lost_ports: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    timed: bool = True

    def has(self, capability: str) -> bool:
        """Whether it has a capability of its source, by key."""
        return capability in self.capabilities

    @cached_property
    def instructions(self) -> int:
        """Number of instructions of all lanes."""
        return sum(len(lane) for lane in self.lanes)

    @cached_property
    def start_ns(self) -> int:
        """Smallest start of all instructions; 0 without any, or without times."""
        return min((int(lane["start"][0]) for lane in self.lanes if len(lane) and self.timed), default=0)

    @cached_property
    def end_ns(self) -> int:
        """Largest end of all instructions; 0 without any, or without times."""
        return max((int(lane["end"].max()) for lane in self.lanes if len(lane) and self.timed), default=0)

    @cached_property
    def device_part(self) -> Profile:
        """The profile without the lanes of the host: what figures of the device are taken from."""
        lanes = tuple(lane for lane in self.lanes if not lane.on_host)
        return self if len(lanes) == len(self.lanes) else replace(self, lanes=lanes)

    @cached_property
    def timed_part(self) -> Profile:
        """The profile without instructions that have no times: what goes on a time line."""
        return self if self.timed else replace(self, lanes=())

    def core_lanes(self, core: int) -> tuple[Lane, ...]:
        """Lanes of one core."""
        return tuple(lane for lane in self.lanes if lane.core == core)

    def lane(self, engine: str, number: int) -> Lane | None:
        """The lane of an engine of a core (or of a CDMA port); None when there is none."""
        for lane in self.lanes:
            if lane.engine == engine and (lane.port if lane.core < 0 else lane.core) == number:
                return lane
        return None

    def text(self, key: str, code: int) -> str:
        """Text of a code of a text column."""
        return self.strings[key][code]

    def to_pandas(self, *, counters: bool = False) -> pandas.DataFrame:
        """All instructions as one data frame, by lane, then start; pandas is imported only now.

        Text columns become categoricals, missing integers ``pandas.NA`` (nullable Int64), missing floats NaN.

        Args:
            counters: Also the raw hardware counters; they are many.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with needed_for("A data frame"):
            import pandas

        from .missing import is_missing

        schema = self.vocabulary.schema

        def series(lane: Lane, key: str) -> Any:
            values = lane[key]
            if self.vocabulary.is_text(key):
                return pandas.Categorical.from_codes(values, list(self.strings[key]))  # type: ignore[call-overload]
            if values.dtype == np.int64:
                return pandas.arrays.IntegerArray(np.array(values), is_missing(values))
            return values

        frames = []
        for number, lane in enumerate(self.lanes):
            if len(lane):
                frame = pandas.DataFrame(
                    {key: series(lane, key) for key, column in schema.items()
                     if key in lane and (counters or column.group != COUNTERS)}
                )  # fmt: skip
                frame.insert(0, "lane", number)
                frames.append(frame)
        joined: pandas.DataFrame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
        return joined
