"""The command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .capture import write_capture
from .chips import CHIPS
from .options import Options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make.py", description="Write synthetic captures with known truth.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("one", help="one capture of any size")
    one.add_argument("directory", type=Path, help="where the capture directory goes (its truth beside it)")
    one.add_argument("--name", default="capture")
    one.add_argument("--chip", choices=sorted(CHIPS), default="AKS")
    one.add_argument("--cores", type=int, default=0, help="cores 0..n-1 (default: all)")
    one.add_argument("--mode", type=int, choices=(0, 1, 2), default=1)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--records", type=int, default=0, help="stop at so many records")
    one.add_argument("--launches", type=int, default=0, help="so many tiny kernels")
    one.add_argument("--layers", type=int, default=1)
    one.add_argument("--batches", type=int, default=1)
    one.add_argument("--ports", type=int, default=0, help="CDMA ports in use")
    one.add_argument("--sdma", action="store_true", help="SDMA traffic in the attention kernel")
    one.add_argument("--tpu-freq", type=int, default=0, help="TIU clock in MHz")
    one.add_argument("--no-truth", action="store_true")
    return parser


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    options = Options(
        name=args.name,
        chip_name=args.chip,
        cores=tuple(range(args.cores)),
        mode=args.mode,
        seed=args.seed,
        layers=args.layers,
        batches=args.batches,
        records=args.records,
        launches=args.launches,
        ports=args.ports,
        sdma=args.sdma,
        tpu_freq=args.tpu_freq,
    )
    written = write_capture(options, args.directory, truth=not args.no_truth)
    print(f"{written.path}: {written.records:,} records, {written.bytes:,} bytes", file=sys.stderr)
    return 0
