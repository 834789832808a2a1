"""Writes synthetic memory snapshots in the form of ``torch.cuda.memory._dump_snapshot``, of any size.

    python samples/memory_snapshot.py OUT.pickle --steps 3 [--protocol 5] [--devices 2] [--leak] [--most 1000]

A small model of a caching allocator (small blocks in segments of 2 MiB, large ones of 20 MiB and more, split and
merged) runs a made-up training: weights, then in each step activations that are freed backwards, gradients, and in the
first step states of an optimizer. Frames are shared objects, as PyTorch writes them. Not recorded on hardware.
"""

from __future__ import annotations

import argparse
import gzip
import pickle
import random
from pathlib import Path
from typing import Any

MIB = 1 << 20
SMALL = 1 << 20
BEGUN_US = 1_700_000_000_000_000


class Device:
    """The allocator of one device and its trace; ``most``: entries that the trace keeps, the last ones."""

    def __init__(self, number: int, seed: int, most: int | None = None) -> None:
        self.number, self.most = number, most
        self.random = random.Random(seed)
        self.trace: list[dict[str, Any]] = []
        self.segments: list[dict[str, Any]] = []
        self.time = BEGUN_US + number
        self.next = 0x7F00_0000_0000 + (number << 40)

    def allocate(self, size: int, frames: list[dict[str, Any]], stream: int = 0) -> dict[str, Any]:
        """A block of at least ``size`` bytes."""
        rounded = -(-size // 512) * 512
        kind = "small" if rounded <= SMALL else "large"
        for segment in self.segments:
            if (segment["segment_type"], segment["stream"]) == (kind, stream):
                for index, block in enumerate(segment["blocks"]):
                    if block["state"] == "inactive" and block["size"] >= rounded:
                        return self._taken(segment, index, size, rounded, frames)
        total = 2 * MIB if kind == "small" else 20 * MIB if rounded < 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB
        block = {"address": self.next, "size": total, "requested_size": 0, "state": "inactive", "frames": []}
        segment = {
            "device": self.number, "address": self.next, "total_size": total, "allocated_size": 0, "active_size": 0,
            "requested_size": 0, "stream": stream, "segment_type": kind, "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": frames, "blocks": [block],
        }  # fmt: skip
        self.next += total + 64 * MIB
        self.segments.append(segment)
        self._entry("segment_alloc", segment["address"], total, stream, frames)
        return self._taken(segment, 0, size, rounded, frames)

    def free(self, block: dict[str, Any], frames: list[dict[str, Any]]) -> None:
        """Frees a block and merges it with its free neighbours."""
        segment = block.pop("segment")
        for action in ("free_requested", "free_completed"):
            self._entry(action, block["address"], block["size"], segment["stream"], frames)
        for key, size in (("allocated", "size"), ("active", "size"), ("requested", "requested_size")):
            segment[f"{key}_size"] -= block[size]
        block |= {"state": "inactive", "requested_size": 0, "frames": []}
        blocks = segment["blocks"]
        index = next(place for place, each in enumerate(blocks) if each is block)
        for first in (index, index - 1):
            if 0 <= first < len(blocks) - 1 and all(each["state"] == "inactive" for each in blocks[first : first + 2]):
                blocks[first]["size"] += blocks.pop(first + 1)["size"]

    def out_of_memory(self, size: int, free: int, frames: list[dict[str, Any]]) -> None:
        """Records that an allocation failed."""
        self._entry("oom", 0, size, 0, frames, device_free=free)

    def _taken(
        self, segment: dict[str, Any], index: int, size: int, rounded: int, frames: list[dict[str, Any]]
    ) -> dict[str, Any]:  # fmt: skip
        block = segment["blocks"][index]
        if block["size"] - rounded >= (512 if segment["segment_type"] == "small" else SMALL + 1):
            rest = {**block, "address": block["address"] + rounded, "size": block["size"] - rounded}
            segment["blocks"].insert(index + 1, rest)
            block["size"] = rounded
        block |= {"requested_size": size, "state": "active_allocated", "frames": frames, "segment": segment}
        for key, added in (("allocated", block["size"]), ("active", block["size"]), ("requested", size)):
            segment[f"{key}_size"] += added
        self._entry("alloc", block["address"], block["size"], segment["stream"], frames)
        return block

    def _entry(
        self, action: str, address: int, size: int, stream: int, frames: list[dict[str, Any]], **more: int
    ) -> None:  # fmt: skip
        self.time += self.random.randrange(1, 40)
        named = {"device_free" if action == "oom" else "addr": more.get("device_free", address)}
        self.trace.append({"action": action, **named, "size": size, "stream": stream, "time_us": self.time,
                           "compile_context": "N/A", "user_metadata": "", "frames": list(frames)})  # fmt: skip


def frame(file: str, line: int, name: str) -> dict[str, Any]:
    """A frame of a stack."""
    return {"filename": file, "line": line, "name": name}


OUTER = [
    *(frame("/opt/torch/nn/modules/module.py", line, name)
      for line, name in ((1784, "_call_impl"), (1773, "_wrapped_call_impl"))),
    frame("/job/train.py", 41, "train_step"), frame("/job/train.py", 73, "main"),
    frame("/job/train.py", 80, "<module>"),
]  # fmt: skip
LINEAR = frame("/opt/torch/nn/modules/linear.py", 125, "forward")
WEIGHTS = [
    frame("/opt/torch/nn/modules/linear.py", 109, "__init__"),
    frame("/job/model.py", 21, "__init__"),
    *OUTER[3:],
]
STATES = [frame("/opt/torch/optim/adamw.py", 174, "_init_group"),
          frame("/opt/torch/optim/optimizer.py", 516, "wrapper"), *OUTER[2:]]  # fmt: skip
BACKWARD = [frame("/opt/torch/autograd/graph.py", 841, "_engine_run_backward"),
            frame("/job/train.py", 47, "train_step"), *OUTER[3:]]  # fmt: skip
LOSS = [frame("/job/train.py", 44, "train_step"), *OUTER[3:]]
NCCL = [frame("/opt/torch/distributed/distributed_c10d.py", 2906, "all_reduce"), frame("/job/train.py", 52, "sync"),
        *OUTER[3:]]  # fmt: skip


def train(device: Device, steps: int, layers: int = 8, *, leak: bool = False) -> None:
    """The made-up training."""
    choose, kept = device.random, []
    for layer in range(layers):
        kept.append(device.allocate(4 * MIB + layer * 4096, WEIGHTS))
        kept.append(device.allocate(4096, WEIGHTS))
    for step in range(steps):
        live = []
        for layer in range(layers):
            line = frame("/job/model.py", 88 if layer % 2 else 92, "forward")
            line = LINES.setdefault((line["line"], "forward"), line)
            live.append(device.allocate(choose.randrange(6, 30) * MIB, [LINEAR, line, *OUTER]))
            live.append(device.allocate(choose.randrange(1, 64) * 1024, [line, *OUTER]))
        loss = device.allocate(512, LOSS)
        while live:
            gradient = device.allocate(choose.randrange(1, 5) * MIB, BACKWARD)
            device.free(live.pop(), BACKWARD)
            device.free(gradient, BACKWARD)
        buffer = device.allocate(3 * MIB, NCCL, stream=7)
        if step == 0:
            kept += [device.allocate(each["requested_size"], STATES) for each in kept[:] for _ in range(2)]
        device.free(buffer, NCCL)
        if leak:
            kept.append(loss)
            kept.append(device.allocate(2 * MIB, LOSS))
        else:
            device.free(loss, LOSS)


LINES: dict[tuple[int, str], dict[str, Any]] = {}


def snapshot(devices: list[Device]) -> dict[str, Any]:
    """The snapshot of all devices."""
    for device in devices:
        for segment in device.segments:
            for block in segment["blocks"]:
                block.pop("segment", None)
    return {
        "segments": [segment for device in devices for segment in device.segments],
        "device_traces": [device.trace[-device.most :] if device.most else device.trace for device in devices],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False,
                               "garbage_collection_threshold": 0.0},
        "external_annotations": [],
    }  # fmt: skip


def write(path: Path, devices: list[Device], protocol: int = 4) -> None:
    """Writes a snapshot, packed if the name ends in .gz."""
    with gzip.GzipFile(path, "wb", mtime=0) if path.suffix == ".gz" else path.open("wb") as file:
        pickle.dump(snapshot(devices), file, protocol)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--protocol", type=int, default=4, choices=range(2, 6))
    parser.add_argument("--most", type=int, help="entries that the trace keeps")
    parser.add_argument("--leak", action="store_true", help="each step keeps its loss and 2 MiB")
    parser.add_argument("--oom", action="store_true", help="ends with an allocation that fails")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    devices = [Device(number, options.seed + number, options.most) for number in range(options.devices)]
    for device in devices:
        train(device, options.steps, leak=options.leak)
        if options.oom:
            device.out_of_memory(600 * MIB, 200 * MIB, [LINEAR, LINES[88, "forward"], *OUTER])
    write(options.out, devices, options.protocol)


if __name__ == "__main__":
    main()
