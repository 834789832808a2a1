#!/usr/bin/env python3
"""Record a small training run on the CPU with PyTorch's profiler: ``python samples/torch_record.py OUT`` (needs torch).

What it writes is a real recording: `samples/torch_cpu_recorded` was made so.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

#: What traces say of the machine they were recorded on.
_OWN = ("host_name", "username")


class Net(torch.nn.Module):
    """Two layers and what lies between."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(32, 128)
        self.drop = torch.nn.Dropout(0.1)
        self.down = torch.nn.Linear(128, 8)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Scores of each class."""
        return self.down(self.drop(torch.relu(self.up(given))))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.randn(256, 32), torch.randint(0, 8, (256,)))
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def written(found: profile) -> None:
        path = asked.folder / "recorded.json"
        found.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
        path.unlink()
        for key in _OWN:
            trace.pop(key, None)
        trace["traceName"] = "worker0.pt.trace.json"
        packed = gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), 9, mtime=0)
        (asked.folder / "worker0.pt.trace.json.gz").write_bytes(packed)

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=asked.steps, repeat=1),
        on_trace_ready=written, record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
    ) as profiler:  # fmt: skip
        for given, wanted in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(given), wanted).backward()
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
