#!/usr/bin/env python3
"""Write synthetic PyTorch traces of any size: ``python samples/torch_trace.py OUT --ranks 2 --events 240000``.

A model of data-parallel training on CUDA, not recorded: each step loads a batch, runs layers forward and backward,
reduces gradients on a stream of their own, and updates weights. Calls on the host start kernels on the device, which
runs behind it; every event is what PyTorch 2.4 would have written of it. The same options and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PID, MAIN, BACKWARD = 4000, 4000, 4007
COMPUTE, REDUCE, COPY = 7, 13, 20
#: An operator's kernels: (name, ns, tensor cores can be used).
MATMUL = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul>)"
)
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, float)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 9, false, false>()"
REDUCTION = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
BATCH, TOKENS, WIDTH = 8, 512, 1024


class Rank:
    """Writes what one process recorded.

    Args:
        number: Its rank.
        ranks: How many there are.
        seed: Of the random numbers.
        late_ns: How much longer its host takes for a batch than that of rank 0.
        waits_for: When collectives of the last rank ended, one after the other: those of this one end no earlier.
    """

    def __init__(self, number: int, ranks: int, seed: int, late_ns: int, waits_for: Iterable[int] = ()) -> None:
        self._random = random.Random(f"{seed} {number}")
        self._number, self._ranks, self._late = number, ranks, late_ns
        self._now = 1_000_000 + number * 12_345
        self._free = {COMPUTE: 0, REDUCE: 0, COPY: 0}
        self._external, self._correlation, self._frame, self._flow = 1, 1, 0, 0
        self._frames: list[int] = []
        self._allocated, self._address = 0, 0x7F0000000000
        self._held: list[tuple[int, int]] = []
        self._sequence = 0
        self._thread = MAIN
        self._waits_for = iter(waits_for)
        #: When its collectives ended.
        self.reduced: list[int] = []
        self.events: list[dict[str, Any]] = []

    # -- what is written

    def _event(self, category: str, name: str, start: int, end: int, thread: Any, pid: Any = PID, **args: Any) -> None:
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": start,
                            "dur": end - start, "args": args})  # fmt: skip

    def _passes(self, least: int, most: int) -> None:
        self._now += self._random.randint(least, most)

    @contextmanager
    def _span(self, category: str, name: str, **args: Any) -> Iterator[dict[str, Any]]:
        """An event around what is written inside; it comes before that, as outer events do."""
        place, start = len(self.events), self._now
        self._event(category, name, start, start, self._thread, **args)
        self._passes(300, 900)
        yield self.events[place]
        self._passes(300, 900)
        self.events[place]["dur"] = self._now - start

    def _operator(self, name: str, shapes: list[list[int]], **args: Any) -> Any:
        number, self._external = self._external, self._external + 1
        return self._span("cpu_op", name, **{"External id": number, "Input Dims": shapes,
                                             "Input type": ["c10::Half"] * len(shapes)}, **args)  # fmt: skip

    @contextmanager
    def _python(self, name: str, module: int | None = None) -> Iterator[None]:
        self._frame += 1
        number = self._frame
        told = {"Python id": number, "Python parent id": self._frames[-1] if self._frames else None}
        with self._span("python_function", name, **told, **({} if module is None else {"Python module id": module})):
            self._frames.append(number)
            yield
            self._frames.pop()

    def _launch(self, kernel: str, length: int, stream: int, external: int, **args: Any) -> None:
        """A call, and what it starts once its stream is free."""
        number, self._correlation = self._correlation, self._correlation + 1
        start = self._now
        self._passes(3_000, 7_000)
        name = "cudaMemcpyAsync" if kernel.startswith("Memcpy") else "cudaLaunchKernel"
        self._event("cuda_runtime", name, start, self._now, self._thread,
                    **{"External id": external, "cbid": 211, "correlation": number})  # fmt: skip
        begin = max(self._now + self._random.randint(900, 2_000), self._free[stream])
        end = begin + round(length * self._random.uniform(0.97, 1.05))
        if stream == REDUCE:
            end = max(end, next(self._waits_for, 0) + self._random.randint(0, 400))
            self.reduced.append(end)
        self._free[stream] = end
        category = "gpu_memcpy" if kernel.startswith("Memcpy") else "kernel"
        told = {"External id": external, "correlation": number, "device": self._number, "context": 1, "stream": stream}
        if category == "kernel":
            grid = max(length // 400, 1)
            told |= {"grid": [grid, 1, 1], "block": [128, 1, 1], "registers per thread": 64, "shared memory": 0,
                     "blocks per SM": round(grid / 108, 6), "warps per SM": round(grid * 4 / 108, 6),
                     "est. achieved occupancy %": min(round(grid * 4 / 108 / 64 * 100), 100)}  # fmt: skip
        self._event(category, kernel, begin, end, stream, self._number, **told, **args)
        for phase, pid, thread, time in (("s", PID, self._thread, start), ("f", self._number, stream, begin)):
            self.events.append({"ph": phase, "id": number, "pid": pid, "tid": thread, "ts": time, "cat": "ac2g",
                                "name": "ac2g", **({"bp": "e"} if phase == "f" else {})})  # fmt: skip

    def _memory(self, change: int, address: int) -> None:
        self._allocated += change
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PID,
                            "tid": self._thread, "ts": self._now,
                            "args": {"Total Reserved": 4 << 30, "Total Allocated": self._allocated, "Bytes": change,
                                     "Addr": address, "Device Id": self._number, "Device Type": 1}})  # fmt: skip

    def _allocate(self, size: int) -> tuple[int, int]:
        self._address += size
        self._memory(size, self._address)
        return size, self._address

    # -- what is run

    def _kernel(self, name: str, shapes: list[list[int]], kernel: str, length: int, **args: Any) -> int:
        """An operator with one kernel; its id."""
        with self._operator(name, shapes, **args) as event:
            external: int = event["args"]["External id"]
            self._held.append(self._allocate(2 * BATCH * TOKENS * WIDTH))
            self._launch(kernel, length, COMPUTE, external)
        return external

    def _linear(self, width: int, forward: dict[str, Any]) -> None:
        with self._operator("aten::linear", [[BATCH, TOKENS, WIDTH], [width, WIDTH], [width]]):
            shapes = [[width], [BATCH * TOKENS, WIDTH], [WIDTH, width]]
            self._kernel("aten::addmm", shapes, MATMUL, 45 * width, **forward)

    def _forward(self, layers: int) -> list[tuple[int, int]]:
        """Layers of a transformer; places of forward operators and their sequence numbers."""
        places = []
        with self._python("nn.Module: Decoder_0", 0):
            for layer in range(layers):
                with self._python(f"nn.Module: Block_{layer}", layer):
                    self._kernel("aten::native_layer_norm", [[BATCH, TOKENS, WIDTH], [WIDTH]], NORM, 9_000)
                    for number, (name, width) in enumerate((("qkv", 3 * WIDTH), ("out", WIDTH), ("up", 4 * WIDTH))):
                        with (
                            self._python(f"model.py({40 + number}): {name}"),
                            self._python(f"nn.Module: Linear_{3 * layer + number}", 3 * layer + number),
                        ):
                            self._sequence += 1
                            places.append((len(self.events) + 1, self._sequence))
                            self._linear(width, {"Sequence number": self._sequence, "Fwd thread id": 0})
                    self._kernel("aten::_softmax", [[BATCH, 16, TOKENS, TOKENS]], SOFTMAX, 24_000)
                    self._kernel("aten::add", [[BATCH, TOKENS, WIDTH], [BATCH, TOKENS, WIDTH]], ELEMENTWISE, 11_000)
        return places

    def _backward(self, forward: list[tuple[int, int]]) -> None:
        self._thread = BACKWARD
        for place, sequence in reversed(forward):
            begins = self.events[place]
            name = "autograd::engine::evaluate_function: AddmmBackward0"
            with self._operator(name, [], **{"Sequence number": sequence, "Fwd thread id": 1}) as event:
                self._flow += 1
                for phase, end in (("s", begins), ("f", event)):
                    self.events.append({"ph": phase, "id": self._flow, "pid": PID, "tid": end["tid"], "ts": end["ts"],
                                        "cat": "fwdbwd", "name": "fwdbwd",
                                        **({"bp": "e"} if phase == "f" else {})})  # fmt: skip
                for shapes in (
                    [[BATCH * TOKENS, WIDTH], [WIDTH, WIDTH]],
                    [[WIDTH, BATCH * TOKENS], [BATCH * TOKENS, WIDTH]],
                ):
                    self._kernel("aten::mm", shapes, MATMUL, 46_000)
            # gradients of six operators go together; those of the first layers come last
            if sequence % 6 == 1:
                self._reduce()
        self._thread = MAIN

    def _reduce(self) -> None:
        size = 6 * WIDTH * WIDTH
        told = {"Collective name": "allreduce", "Group size": self._ranks}
        with (
            self._operator("record_param_comms", [[size]], **told),
            self._span("user_annotation", "nccl:all_reduce", **{"External id": self._external}) as event,
        ):
            self._external += 1
            self._free[REDUCE] = max(self._free[REDUCE], self._free[COMPUTE])
            self._launch(REDUCTION, 160_000, REDUCE, event["args"]["External id"],
                         **{"Collective name": "allreduce", "In msg nelems": size, "dtype": "Half"})  # fmt: skip

    def step(self, number: int, layers: int) -> None:
        """One step of training."""
        with self._span("user_annotation", f"ProfilerStep#{number}", **{"External id": self._external}):
            self._external += 1
            with self._python(f"train.py({60}): train"):
                loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
                with self._span("user_annotation", loader, **{"External id": self._external}):
                    self._external += 1
                    self._passes(60_000, 90_000)
                    self._now += self._late
                with self._operator("aten::copy_", [[BATCH, TOKENS], [BATCH, TOKENS]]) as event:
                    self._launch("Memcpy HtoD (Pageable -> Device)", 22_000, COPY, event["args"]["External id"],
                                 bytes=8 * BATCH * TOKENS, **{"memory bandwidth (GB/s)": 1.5})  # fmt: skip
                forward = self._forward(layers)
                self._backward(forward)
                self._free[COMPUTE] = max(self._free[COMPUTE], self._free[REDUCE])
                with self._operator("Optimizer.step#AdamW.step", []), self._python("torch/optim/adamw.py(157): step"):
                    for _ in range(layers):
                        self._kernel("aten::_foreach_add_", [[WIDTH, WIDTH]], ELEMENTWISE, 27_000)
                for size, address in self._held:
                    self._memory(-size, address)
                self._held.clear()
                # loss.item(): the host waits for the device
                self._now = max(self._now, self._free[COMPUTE], self._free[REDUCE]) + 5_000

    def record(self) -> dict[str, Any]:
        """The trace."""
        for event in self.events:
            event["ts"] /= 1000
            if "dur" in event:
                event["dur"] /= 1000
        names = (("process_name", PID, 0, "python"), ("process_name", self._number, 0, "python"),
                 ("thread_name", PID, MAIN, f"thread {MAIN} (python)"),
                 ("thread_name", PID, BACKWARD, f"thread {BACKWARD} (pt_autograd_0)"),
                 *(("thread_name", self._number, stream, f"stream {stream}") for stream in self._free))  # fmt: skip
        for name, pid, thread, text in names:
            self.events.append({"name": name, "ph": "M", "ts": 0, "pid": pid, "tid": thread, "args": {"name": text}})
        return {
            "schemaVersion": 1,
            "deviceProperties": [{
                "id": self._number, "name": "Synthetic A100", "totalGlobalMem": 85_899_345_920, "computeMajor": 8,
                "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
                "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 108,
            }],
            "distributedInfo": {"backend": "nccl", "rank": self._number, "world_size": self._ranks},
            "record_shapes": 1, "profile_memory": 1, "with_stack": 1, "with_modules": 1,
            "traceEvents": self.events,
            "baseTimeNanoseconds": 1_700_000_000_000_000_000, "displayTimeUnit": "ms",
            "traceName": f"synthetic_{self._number}.pt.trace.json",
        }  # fmt: skip


def write_run(
    folder: Path,
    *,
    ranks: int = 1,
    steps: int = 3,
    layers: int = 4,
    events: int = 0,
    packed: bool = True,
    seed: int = 0,
) -> list[Path]:
    """Writes a run.

    Args:
        folder: Where to; it is made where it is not there.
        ranks: Files of so many processes.
        steps, layers: Steps, and layers in each.
        events: Steps until there are so many events with a duration, rather than ``steps``; 0: does not count.
        packed: With gzip.
        seed: Of the random numbers.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    reduced: list[int] = []
    # the last rank is the one that others wait for
    for number in reversed(range(ranks)):
        rank = Rank(number, ranks, seed, 400_000 if 0 < number == ranks - 1 else 0, reduced)
        step = complete = seen = 0
        while step < steps if not events else complete < events:
            rank.step(step, layers)
            step += 1
            complete += sum(each["ph"] == "X" for each in rank.events[seen:])
            seen = len(rank.events)
        reduced = reduced or rank.reduced
        steps, events = step, 0
        content = json.dumps(rank.record(), separators=(",", ":")).encode()
        path = folder / f"node0_{PID + number}.{1_700_000_000_000 + number}.pt.trace.json{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content, 9, mtime=0) if packed else content)
        paths.append(path)
    return paths[::-1]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=1, help="files of so many processes (1)")
    parser.add_argument("--steps", type=int, default=3, help="steps of training (3)")
    parser.add_argument("--layers", type=int, default=4, help="layers of the model (4)")
    parser.add_argument("--events", type=int, default=0, help="steps until there are so many events")
    parser.add_argument("--plain", action="store_true", help="without gzip")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    asked = parser.parse_args()
    for path in write_run(asked.folder, ranks=asked.ranks, steps=asked.steps, layers=asked.layers, events=asked.events,
                          packed=not asked.plain, seed=asked.seed):  # fmt: skip
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
