"""What readers hand to views beside events: names of tables and of their columns, and what is known of each worker.

Tables are of the group of a worker; times are ns, missing texts -1.

- ``executions``: executions of a model by an inference server: ``event``, ``start``, ``end``, ``label``, ``stage``,
  ``requests``, ``tokens``.
- ``memory``: memory instants by time: ``start``, ``device`` (its type and id in ``device_type`` and ``device_id``),
  ``change``, ``address``, ``allocated``, ``reserved`` (bytes); ``event`` and ``operator``: the innermost
  operator around it, ``around``: the innermost operator, annotation or module.
- ``collectives``: those of the host: ``event``, ``name``, ``start``, ``end``, ``identity`` (the same for all ranks that
  take part); of their messages ``bytes`` (from shapes), ``sent``, ``received``, ``size``, ``process_group``, ``ranks``.
- ``intervals``: ``start`` and ``end`` of the host event and of each kernel of a collective (``collective``: its row).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.model import INT_MISSING

#: Device types of memory instants that are GPUs, as numbered by PyTorch: CUDA, HIP, and XPU of Intel.
_XPU: Final = 12
GPU_TYPES: Final = (1, 6, _XPU)


class Captures(Struct, frozen=True):
    """Traces of the capture of replayed graphs beside a trace."""

    files: int  #: Number of files that were read
    by_count: bool  #: Whether captures fit by their number of calls alone, as they name no kernels
    lacking: tuple[str, ...]  #: What could not be read


class RecordedTrace(Struct, frozen=True, eq=False):
    """What is known of a trace beside its events and tables."""

    metadata: Mapping[str, Any]  #: Members of the file's object other than the events
    #: stage, session: Stage, and number of the recording among its rank's of that stage: equal ones of ranks compare.
    stage: str
    session: int
    annotated: bool  #: Whether the host annotated the steps
    has_kernels: bool  #: Whether there are kernels
    tensor_cores_known: bool  #: Whether kernel names show the use of tensor cores: there are some, all of NVIDIA cards
    captures_graphs: bool  #: Whether CUDA graphs are captured, which executes next to nothing on the device
    data_parallel: bool  #: Whether ``DataParallel`` runs in it
    #: Whether the work of many launches was not recorded or is set aside, so that idle time is not known.
    fragmentary: bool
    unrecorded: tuple[str, ...]  #: Sentences on the launches whose work was not recorded
    overlap_ns: int  #: By which sums of device work exceed the time in which its streams worked
    overlaps_explained: bool  #: Whether launches explain all of that
    #: Captures of its graphs, read when called; None if there are none beside the file.
    captures: Callable[[], Captures | None]

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Properties of the devices that the file states."""
        return device_properties(self.metadata)

    @property
    def distributed(self) -> Mapping[str, Any]:
        """What the file states of its run; empty if nothing."""
        return distributed_info(self.metadata)


def device_properties(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Properties of the devices that a file states."""
    found = metadata.get("deviceProperties")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def distributed_info(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a file states of its run; empty if nothing."""
    found = metadata.get("distributedInfo")
    return found if isinstance(found, dict) else {}


def device_name(kind: int, number: int) -> str:
    """Name of the device of memory instants, from their device type and id; either may be missing."""
    if kind == 0:
        return "CPU"
    word = "XPU" if kind == _XPU else "GPU" if kind in GPU_TYPES else f"type{kind}:"
    return f"{'unknown device ' if kind == INT_MISSING else word}{'' if number == INT_MISSING else number}".strip(" :")


def given_id(text: str) -> str | None:
    """The text of an id; None for that of a missing one."""
    return None if text in ("None", "") else text


def numbered(identities: Sequence[str]) -> list[tuple[str, int]]:
    """Identities with the number of each among the equal ones before it: one collective may have several events."""
    seen: Counter[str] = Counter()
    found = []
    for text in identities:
        found.append((text, seen[text]))
        seen[text] += 1
    return found
