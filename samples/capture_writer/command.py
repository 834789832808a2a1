"""The command line."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .capture import write_capture
from .chips import CHIPS
from .damage import DAMAGES, damage_capture, damaged_entry
from .kinds import KINDS
from .manifest import entry, write_manifest
from .options import Options
from .samples import write_samples

_SAMPLES = Path(__file__).resolve().parent.parent


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make.py", description="Write synthetic captures with known truth.")
    commands = parser.add_subparsers(dest="command", required=True)

    every = commands.add_parser("all", help="the captures that lie in this directory")
    every.add_argument("directory", type=Path, nargs="?", default=_SAMPLES)

    commands.add_parser("list", help="names of kinds and damages")

    kind = commands.add_parser("kinds", help="captures by name (see list)")
    kind.add_argument("directory", type=Path)
    kind.add_argument("names", nargs="*", metavar="NAME", help="default: all kinds and damages")
    kind.add_argument("--seed", type=int, help="another seed than the kind's own")
    kind.add_argument("--manifest", action="store_true", help="write manifest.json")

    one = commands.add_parser("one", help="one capture of any size")
    one.add_argument("directory", type=Path, help="where the capture directory goes (its truth beside it)")
    one.add_argument("--name", default="capture")
    one.add_argument("--kind", choices=sorted(KINDS), help="start from a kind")
    one.add_argument("--chip", dest="chip_name", choices=sorted(CHIPS))
    one.add_argument("--cores", type=int, help="cores 0..n-1 (default: all)")
    one.add_argument("--mode", type=int, choices=(0, 1, 2))
    one.add_argument("--seed", type=int)
    one.add_argument("--records", type=int, help="stop at so many records")
    one.add_argument("--launches", type=int, help="so many tiny kernels")
    one.add_argument("--layers", type=int)
    one.add_argument("--batches", type=int)
    one.add_argument("--ports", type=int, help="CDMA ports in use")
    one.add_argument("--sdma", action="store_true", default=None, help="SDMA traffic in the attention kernel")
    one.add_argument("--tpu-freq", type=int, help="TIU clock in MHz")
    one.add_argument("--lost", type=float, help="fraction of the records lost")
    one.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", dest="settings",
                     help="any other option of capture_writer/options.py; lists with commas")  # fmt: skip
    one.add_argument("--no-truth", action="store_true")
    one.add_argument("--manifest", action="store_true", help="write manifest.json")
    return parser


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    if args.command == "all":
        for line in write_samples(args.directory):
            print(line)
        return 0
    if args.command == "list":
        for options in KINDS.values():
            print(f"{options.name:22} {options.about}")
        for name, damage in DAMAGES.items():
            print(f"{name:22} damaged: {damage.about}")
        return 0
    return _kinds(args) if args.command == "kinds" else _one(args)


def _kinds(args: argparse.Namespace) -> int:
    names = args.names or [*KINDS, *DAMAGES]
    unknown = [name for name in names if name not in KINDS and name not in DAMAGES]
    if unknown:
        print(f"no such kind: {', '.join(unknown)} (try: make.py list)", file=sys.stderr)
        return 2
    entries: list[dict[str, Any]] = []
    args.directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in DAMAGES:
            damage_capture(name, args.directory)
            entries.append(damaged_entry(name, args.directory))
        else:
            options = KINDS[name] if args.seed is None else replace(KINDS[name], seed=args.seed)
            written = write_capture(options, args.directory)
            print(f"{name}: {written.records:,} records, {written.bytes:,} bytes", file=sys.stderr)
            entries.append(entry(options, written))
    if args.manifest:
        write_manifest(args.directory, entries)
    return 0


def _value(name: str, text: str) -> Any:
    """Text of an option, read as what its default is; ValueError if it cannot be."""
    default = {field.name: field.default for field in fields(Options)}.get(name)
    if name == "rename" or not isinstance(default, (bool, int, float, str, tuple)):
        raise ValueError(f"no option {name!r} to set")
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError(f"{name} is true or false, not {text!r}")
        return text == "true"
    if isinstance(default, tuple):
        parts = [part for part in text.split(",") if part]
        return tuple(int(part) for part in parts) if name in _NUMBERS else tuple(parts)
    return type(default)(text)


#: Options that list core numbers.
_NUMBERS = frozenset({"cores", "idle", "empty", "missing", "lost_opening"})


def _one(args: argparse.Namespace) -> int:
    known = {field.name for field in fields(Options)}
    asked = {key: value for key, value in vars(args).items() if key in known and value is not None}
    for setting in args.settings:
        name, _, text = setting.partition("=")
        try:
            asked[name] = _value(name, text)
        except ValueError as error:
            print(f"--set {setting}: {error}", file=sys.stderr)
            return 2
    if isinstance(asked.get("cores"), int):
        asked["cores"] = tuple(range(asked["cores"]))
    base = KINDS[args.kind] if args.kind else Options(args.name)
    options = replace(base, **asked)
    written = write_capture(options, args.directory, truth=not args.no_truth)
    if args.manifest:
        write_manifest(args.directory, [entry(options, written)])
    print(f"{written.path}: {written.records:,} records, {written.bytes:,} bytes", file=sys.stderr)
    return 0
