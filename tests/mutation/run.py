#!/usr/bin/env python3
"""Mutation test of pairing and clocks: ``python tests/mutation/run.py [--module NAME] [--only OPERATOR]``.

Each mutant is one small mistake put into one of ``MODULES`` (the operators of cosmic-ray; see ``OPERATORS``): it is
killed when a test fails, does not end, or the module no longer loads. Nothing is written into the tree: everything is
imported once, and a forked process takes the mutant's code for that of the module and runs the unit tests that are
quick, with few examples each; what survives them meets tests of whole captures. Results are appended to ``--results``,
so that a run that was ended goes on where it was; a survivor is printed as its line was and as it is.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TextIO

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
READ = "tpuprof_tui.sources.sophgo.read."
#: Tests of whole captures: those that lost records, wrapped or lapped.
CAPTURES = [
    "tests/sources/test_open_profile.py", "tests/sources/sophgo/test_kept_captures.py",
    "tests/sources/sophgo/test_written_captures.py", "tests/sources/sophgo/test_ambiguous_records.py",
    "-k", "(open_profile and not pandas) or ring_wrap-0 or "
    "wrap_time-0 or wrap_after or tiny_lost-0 or tiny_ring-0 or lost_opening-0 or no_opening-0 or overlap-0 or "
    "cdma_wrap_lost-0 or sdma_swap-0 or cv84x6_mode1 or (really_happened and (ring or lost or partial or id_wrap)) "
    "or few_losses or very_sparse",
]  # fmt: skip
#: Modules, the functions that matter in them (empty: all), and the tests that they meet first.
MODULES: dict[str, tuple[tuple[str, ...], list[str]]] = {
    READ + "pairing": ((), [
        "tests/sources/sophgo/test_pairing_steps.py", "tests/sources/sophgo/test_unmatched_records.py",
        "tests/sources/sophgo/test_pairing.py", "tests/sources/sophgo/test_ambiguous_records.py",
        "-k", "(ambiguous and not captures) or steps or rest or one_to_one or [0] or [0-0.05] or [1-0.2] or [1-0] or "
        "[17-1]"]),
    READ + "records.monitor": (
        (), ["tests/sources/sophgo/test_monitor_edges.py", "tests/sources/sophgo/test_monitor.py"]),
    READ + "capture": (
        ("align_cores", "_wait_end", "_closing_end", "shift_core"), ["tests/sources/sophgo/test_align.py"]),
    READ + "host_trace": (
        ("alignment",), ["tests/sources/chrome/test_host_trace.py", "-k", "align or anchor or edge"]),
}  # fmt: skip
#: Examples of a property, at most.
EXAMPLES = 30
#: One operator for each kind of mistake. The other 130 put another sign into the same place (``a + b`` as ``a % b``):
#: who notices the one notices the other. Text of messages is not changed.
OPERATORS = (
    "NumberReplacer", "AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop",
    *(f"ReplaceUnaryOperator_Delete_{sign}" for sign in ("USub", "Not", "Invert")),
    *(f"ReplaceBinaryOperator_{signs}" for signs in (
        "Add_Sub", "Sub_Add", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "Mod_Add", "BitAnd_BitOr", "BitOr_BitAnd",
        "LShift_RShift", "RShift_LShift")),
    *(f"ReplaceComparisonOperator_{signs}" for signs in (
        "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Eq_NotEq", "NotEq_Eq",
        "Is_IsNot", "IsNot_Is")),
)  # fmt: skip
#: An endless mutant ends after so many times the processor time of the tests.
PATIENCE = 3


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--module", action="append", help="only modules whose name ends so")
    parser.add_argument("--only", default="", help="only operators whose name holds this")
    parser.add_argument(
        "--most", type=int, default=150, help="of each module a sample of so many, always the same; 0: all"
    )
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"), help="file that results are added to")
    parser.add_argument("--stages", type=int, choices=(1, 2), default=2, help="1: only the tests that are quick")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    os.chdir(ROOT)
    os.environ["CI"] = "1"  # the same examples for each mutant
    sys.path.insert(0, str(ROOT))
    modules = [name for name in MODULES if not options.module or name.endswith(tuple(options.module))]
    mutants = [mutant for name in modules for mutant in _sample(list(mutants_of(name)), options.most)]
    mutants = [mutant for mutant in mutants if options.only in mutant["operator"]]
    known = _known(options.results)
    with options.results.open("a") as out:
        for stage in (1, 2):
            for name in modules:
                tests = MODULES[name][1] if stage == 1 else CAPTURES
                own = [mutant for mutant in mutants if mutant["module"] == name]
                left = [mutant for mutant in own if _is_left(known.get(_key(mutant)), stage, again=options.again)]
                if options.stages >= stage and left:
                    _tried(left, tests, stage, known, out)
    _report([known[_key(mutant)] for mutant in mutants])
    return 0


def _is_left(found: dict[str, Any] | None, stage: int, *, again: bool) -> bool:
    """Whether a mutant has still to meet the tests of a stage."""
    return found is None or (not found["killed"] and (found["stage"] < stage or again))


def _tried(
    mutants: list[dict[str, Any]],
    tests: list[str],
    stage: int,
    known: dict[tuple[str, ...], dict[str, Any]],
    out: TextIO,
) -> None:
    """Writes down which of the mutants some tests notice."""

    def done(mutant: dict[str, Any], code: int) -> None:
        result = {name: value for name, value in mutant.items() if name != "source"}
        known[_key(mutant)] = result | {"killed": bool(code), "stage": stage, "code": code}
        print(json.dumps(known[_key(mutant)]), file=out, flush=True)

    pytest.main(["-q", "-p", "no:xdist", "-p", "no:cacheprovider", *tests], plugins=[Forks(mutants, done)])


def _sample(mutants: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    if not most or len(mutants) <= most:
        return mutants
    chosen = sorted(mutants, key=lambda mutant: hashlib.sha256(repr(_key(mutant)).encode()).digest())[:most]
    return [mutant for mutant in mutants if mutant in chosen]


def _key(mutant: dict[str, Any]) -> tuple[str, ...]:
    return (mutant["module"], mutant["operator"], mutant["was"], mutant["now"], str(mutant["nth"]))


def _known(results: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {_key(mutant): mutant for mutant in map(json.loads, lines)}


def _report(mutants: list[dict[str, Any]]) -> None:
    for mutant in mutants:
        if not mutant["killed"]:
            print(f"{mutant['module']}:{mutant['line']} {mutant['operator']}\n    {mutant['was']}\n    {mutant['now']}")
    for name in MODULES:
        killed = [mutant["killed"] for mutant in mutants if mutant["module"] == name]
        if killed:
            print(f"{name}: {sum(killed)} of {len(killed)} mutants killed")
    killed = [mutant["killed"] for mutant in mutants]
    print(f"all: {sum(killed)} of {len(killed)} mutants killed")


# -- mutants ---------------------------------------------------------------


def mutants_of(name: str) -> Iterator[dict[str, Any]]:
    """All mutants of a module that differ from it in what runs: changed annotations do nothing."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (ROOT / (name.replace(".", "/") + ".py")).read_text()
    lines = source.splitlines()
    whole = _running(source)
    wanted = [range(node.lineno, (node.end_lineno or 0) + 1) for node in ast.walk(ast.parse(source))
              if isinstance(node, ast.FunctionDef) and node.name in MODULES[name][0]]  # fmt: skip
    seen: dict[tuple[str, ...], int] = {}
    for operator in OPERATORS:
        occurrence = 0
        while (mutated := mutate_code(source, get_operator(f"core/{operator}")(), occurrence)) is not None:
            occurrence += 1
            if _running(mutated) in (whole, None):
                continue
            changed = mutated.splitlines()
            line = next(number for number, (old, new) in enumerate(zip(lines, changed, strict=True)) if old != new)
            if wanted and not any(line + 1 in rows for rows in wanted):
                continue
            was, now = lines[line].strip(), changed[line].strip()
            nth = seen[operator, was, now] = seen.get((operator, was, now), -1) + 1
            yield {"module": name, "operator": operator, "line": line + 1, "nth": nth, "was": was, "now": now,
                   "source": mutated}  # fmt: skip


def _running(source: str) -> str | None:
    """What a module does, without its annotations; None where it is no Python (the star before named arguments)."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
    return ast.dump(tree)


def graft(module: ModuleType, source: str) -> None:
    """Give a module the code of another version of it, also where its functions were imported by name."""
    fresh = {"__name__": module.__name__, "__package__": module.__package__, "__file__": module.__file__}
    exec(compile(source, str(module.__file__), "exec", dont_inherit=True), fresh)
    for name, value in fresh.items():
        old = module.__dict__.get(name)
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        if isinstance(value, (FunctionType, type)):
            _graft(old, value, module.__name__)
        elif old is not value:
            for other in list(sys.modules.values()):
                if getattr(other, "__name__", "").startswith("tpuprof_tui") and other.__dict__.get(name) is old:
                    other.__dict__[name] = value


def _graft(old: Any, new: Any, module: str) -> None:
    if isinstance(new, (staticmethod, classmethod)):
        old, new = old.__func__, new.__func__
    elif isinstance(new, property):
        old, new = old.fget, new.fget
    if isinstance(new, FunctionType) and isinstance(new.__code__, CodeType):
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    elif isinstance(new, type) and new.__module__ == module:
        for name, value in vars(new).items():
            if isinstance(value, (FunctionType, staticmethod, classmethod, property)):
                _graft(vars(old)[name], value, module)
            elif not name.startswith("__"):
                setattr(old, name, value)


# -- tests -----------------------------------------------------------------


class Forks:
    """A pytest plugin that runs the collected tests on each mutant, in a process forked for it, until one fails.

    Attributes:
        mutants: The mutants of one module.
        done: Called with a mutant and what its process ended with (0: it passed; negative: a signal).
    """

    def __init__(self, mutants: list[dict[str, Any]], done: Callable[[dict[str, Any], int], None]) -> None:
        self.mutants, self.done = mutants, done

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        code, used = _forked(session, None, 600)
        if code:
            sys.exit("The tests must pass without a mutant.")
        for mutant in self.mutants:
            self.done(mutant, _forked(session, mutant, 2 + PATIENCE * int(1 + used))[0])
        return True


def _forked(session: pytest.Session, mutant: dict[str, Any] | None, seconds: int) -> tuple[int, float]:
    """Exit code of the tests on a mutant (0 passed, 1 failed, negative: ended by a signal), and processor seconds."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        _, status, used = os.wait4(child, 0)
        return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
    code = 1
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        signal.alarm(20 * seconds)
        if mutant is not None:
            graft(importlib.import_module(mutant["module"]), mutant["source"])
        for item in session.items:
            test = getattr(item, "obj", None)
            own = getattr(test, "_hypothesis_internal_use_settings", None)
            if own is not None:  # an example that fails is enough, it need not be the least one
                phases = (Phase.explicit, Phase.generate)
                test._hypothesis_internal_use_settings = settings(
                    own, max_examples=min(EXAMPLES, own.max_examples), phases=phases
                )
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                break
        code = int(session.testsfailed > 0)
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
