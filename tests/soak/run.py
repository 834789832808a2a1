#!/usr/bin/env python3
"""Random keys for an hour: ``python tests/soak/run.py [--seconds 3600] [--seed 1] [--capture DIR ...]``.

The explorer runs with a capture while keys are pressed, texts typed and pasted, windows resized (also to one cell),
mice moved, and the capture touched and read again. It ends with 1 where

- anything raised, in the event loop or in a thread;
- the event loop was held longer than ``--longest`` seconds of CPU by one piece of work, so that a key had to wait;
- a screen that was replaced, or a capture that is on no screen, was still in memory;
- memory grew by more than ``--growth`` between the end of the warm-up and the end, medians of a tenth of the
  weighings each; in a run of less than half an hour, which still fills caches, also by more than 64 MiB;
- the screen did not come to rest, or had another size than the terminal.

It is weighed again and again in the same state: the first capture read anew, nothing open, nothing filtered, the same
size, garbage collected, what is free given back to the system. How many screens, captures and tasks there are is
counted then too: that tells of a leak within a minute, where memory does not.

The last actions before a failure are told with the seed. The same seed gives the same actions; how they meet the
program's own threads differs.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from alive import holders, kept, note_all  # noqa: E402
from driving import driven, ready, send_key, send_size, terminal_of  # noqa: E402
from profiles import big_profile, make_lane, make_profile  # noqa: E402
from textual import events  # noqa: E402

from tpuprof_tui.app.explorer.screen import ExplorerScreen  # noqa: E402
from tpuprof_tui.app.settings.actions import ACTIONS  # noqa: E402
from tpuprof_tui.app.shell.application import TpuprofApp  # noqa: E402
from tpuprof_tui.model import Problem, Profile, Severity  # noqa: E402

#: Records of the capture that is written where none is given.
RECORDS = 100_000
#: What caches may come to hold, MiB.
CACHES = 64.0
#: So many weighings, but not oftener than every so many seconds.
WEIGHINGS, WEIGH_EVERY = 200, 4.0
#: What was replaced is gone after so many seconds at the latest: threads may still be at work for it.
GONE_AFTER = 30.0
#: Tasks there may be beyond those at the first weighing: scroll bars once they were needed, timers at work.
MORE_TASKS = 60
SIZES = ((160, 48), (80, 24), (120, 30), (119, 29), (250, 70), (40, 12), (20, 5), (7, 3), (2, 2), (1, 1))
TEXTS = (
    "dur>10us", "name=MM2*", "core=3 engine=GDMA", "kernel~^rms", "(TIU | SDMA", "bw<20", "mat", "zzz", "!sys", "a b",
    "12.5ms", "30%", "+5us", "-1us", "99999s", "0-3", "7", "[red]x", "\x1b[2J", "漢字", "'", '"', "é\u0301", " ",
    "((((", "name~(", "x" * 300,
)  # fmt: skip
KEYS = sorted({key for action in ACTIONS for key in action.keys})
#: Exports are tested elsewhere: rarely one is begun here, so that memory is the explorer's own.
RARELY = {"x", "R", "ctrl+r", "O", "T"}


class Endless(TpuprofApp):
    """The explorer, which does not leave when it is told to, and whose process is not stopped."""

    def exit(self, *_: object, **__: object) -> None:
        """It goes on; what would be left behind is there again."""

    def action_suspend_process(self) -> None:
        """There is no shell to go back to."""


class Monkey:
    """Presses keys, and watches what they cost."""

    def __init__(self, app: TpuprofApp, options: argparse.Namespace, chance: random.Random) -> None:
        self.app = app
        self.options = options
        self.chance = chance
        self.begin = time.monotonic()
        self.home = app.opening.capture.path
        self.memory: list[tuple[float, float]] = []
        self.tasks: list[Counter[str]] = []
        self._weighed = 0.0
        #: How often the loop was held so long, in tenths of a ms: it must not grow itself.
        self.held: Counter[int] = Counter()
        self.latest: deque[str] = deque(maxlen=40)
        self.counts: Counter[str] = Counter()
        self.failure = ""
        self.holders: list[str] = []
        self._ticked = time.monotonic()
        self._actions: list[tuple[float, Callable[[], None]]] = [
            (70, self.key), (8, self.type_text), (3, self.resize), (1, self.storm), (2, self.mouse), (1, self.paste),
            (0.3, self.touch), (6, self.quit_overlay), (6, self.burst),
        ]  # fmt: skip

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.monotonic() - self.begin

    async def run(self) -> None:
        """Until the time is over, or something is wrong."""
        await ready(self.app)
        await self.rest()
        watching = asyncio.create_task(self.watch())
        stopped = threading.Event()
        threading.Thread(target=self.look_on, args=(threading.get_ident(), stopped), daemon=True).start()
        try:
            while self.seconds < self.options.seconds and not self.failure:
                for _ in range(self.chance.randrange(20, 200)):
                    weights = [weight for weight, _ in self._actions]
                    self.chance.choices([action for _, action in self._actions], weights)[0]()
                    await asyncio.sleep(self.chance.choice((0, 0, 0.005, 0.02)))
                    if self.failure or self.seconds > self.options.seconds:
                        break
                await self.rest()
                await self.check()
                if self.seconds - self._weighed > max(self.options.seconds / WEIGHINGS, WEIGH_EVERY):
                    await self.weigh()
                    self._weighed = self.seconds
        finally:
            watching.cancel()
            stopped.set()

    def look_on(self, loop_thread: int, stopped: threading.Event) -> None:
        """From another thread: what the loop does while it is held."""
        while not stopped.wait(self.options.longest / 10):
            if time.monotonic() - self._ticked > self.options.longest / 2 and len(self.holders) < 100:
                frames = sys._current_frames().get(loop_thread)
                self.holders.append("".join(traceback.format_stack(frames, 12)))
                # it would keep all that is at work there
                del frames

    async def watch(self) -> None:
        """Measures how long the loop is held: CPU time, so that other programs do not count."""
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.002)
            held = time.thread_time() - before
            self.held[int(held * 1e4)] += 1
            self._ticked = time.monotonic()
            if held > self.options.longest:
                self.fail(f"the loop was held for {held:.2f} s of CPU\n{(self.holders or [''])[-1]}")
            else:
                self.holders.clear()

    async def weigh(self) -> None:
        """Measures memory and what is in it, in a state that is always the same."""
        send_size(self.app, *SIZES[0])
        for _ in range(12):
            self.do("escape")
            await asyncio.sleep(0.02)
        await self.rest()
        # a base that was chosen in the list of captures would be read beside it
        self.app.opening.against = None
        if self.home is None:
            self.app.opening.reload()
        else:
            self.app.opening.open_capture(self.home)
        await asyncio.sleep(0.1)
        await self.rest()
        # rounds of the loop, not time: timers of the app that ended while the process was stopped are still to come
        for _ in range(round(GONE_AFTER / 0.1) + 1):
            found = kept(self.app)
            if not found:
                break
            await asyncio.sleep(0.1)
        else:
            self.fail(f"{len(found)} kept after they were replaced: {', '.join(found[:5])}\n{holders(self.app)}")
            return
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self.memory.append((self.seconds, resident()))
        self.tasks.append(Counter(map(task_kind, asyncio.all_tasks())))
        if self.tasks[-1].total() > self.tasks[0].total() + MORE_TASKS:
            more = ", ".join(f"{kind} {count:+}" for kind, count in (self.tasks[-1] - self.tasks[0]).most_common(12))
            self.fail(f"{self.tasks[-1].total()} tasks, {self.tasks[0].total()} at the first weighing: {more}")

    async def rest(self) -> None:
        """Waits until nothing is at work and a capture is on the screen."""
        end = time.monotonic() + 120
        if self.app._size != terminal_of(self.app)._size:
            await asyncio.sleep(0.1)
        while time.monotonic() < end:
            await asyncio.sleep(0.05)
            if self.app._exception is not None or self.app.crash is not None or not self.app.is_running:
                raise SystemExit("the explorer ended")
            if any(not worker.is_finished for worker in self.app.workers):
                continue
            if isinstance(self.app.screen, ExplorerScreen) and len(self.app.screen_stack) <= 2:
                return
            self.do("escape" if len(self.app.screen_stack) > 2 else "enter")
            if type(self.app.screen).__name__ in ("LoadingScreen", "ChooseScreen"):
                # what was chosen cannot be opened: another one
                self.do(self.chance.choice(("escape", "enter", "j")))
                await asyncio.sleep(0.3)
        self.fail(f"no rest, but {type(self.app.screen).__name__}: {[str(each) for each in self.app.workers]}")

    async def check(self) -> None:
        """What must hold at rest."""
        for _ in range(100):
            size = terminal_of(self.app)._size
            strips = self.app.screen._compositor.render_strips()
            found = sorted({strip.cell_length for strip in strips})
            if (found, len(strips)) == ([size[0]], size[1]):
                break
            await asyncio.sleep(0.05)
        else:
            self.fail(f"{len(strips)} lines of {found} cells on a terminal of {size}")
        self.read_logs()

    def read_logs(self) -> None:
        """What went wrong in a thread is written down."""
        logs = list(self.options.state.rglob("*.log"))
        if logs:
            self.fail(logs[0].read_text(encoding="utf-8"))

    def fail(self, text: str) -> None:
        """Ends it; the first failure counts."""
        self.failure = self.failure or text

    # what it does

    def do(self, key: str) -> None:
        """Presses a key."""
        self.latest.append(key)
        send_key(self.app, key)

    def key(self) -> None:
        """Any key that does something somewhere."""
        key = self.chance.choice(KEYS)
        if key in RARELY and self.chance.random() > 0.1:
            key = self.chance.choice(("j", "full_stop", "w", "pagedown"))
        self.counts[key] += 1
        self.do(key)

    def burst(self) -> None:
        """One key many times, faster than it can be drawn."""
        key = self.chance.choice(
            ("j", "k", "w", "s", "d", "pagedown", "full_stop", "tab", "l", "n", "greater_than_sign")
        )
        for _ in range(self.chance.randrange(5, 40)):
            self.do(key)

    def quit_overlay(self) -> None:
        """Closes what is open."""
        if len(self.app.screen_stack) > 2:
            self.do(self.chance.choice(("q", "escape", "backspace")))

    def type_text(self) -> None:
        """Opens a prompt, types, takes it or leaves it."""
        self.do(self.chance.choice(("ampersand", "slash", "g", "colon")))
        for character in self.chance.choice(TEXTS):
            if character.isprintable():
                send_key(self.app, character)
        self.do(self.chance.choice(("enter", "enter", "escape", "up", "ctrl+u")))

    def paste(self) -> None:
        """Text from elsewhere."""
        self.latest.append("paste")
        terminal_of(self.app).send_message(events.Paste(self.chance.choice(TEXTS) + "\n" + self.chance.choice(TEXTS)))

    def resize(self) -> None:
        """Another size."""
        size = self.chance.choice(SIZES[:6]) if self.chance.random() < 0.8 else self.chance.choice(SIZES)
        self.latest.append(f"{size[0]}x{size[1]}")
        send_size(self.app, *size)

    def storm(self) -> None:
        """Many sizes at once."""
        for _ in range(20):
            self.resize()

    def mouse(self) -> None:
        """A click or a wheel somewhere."""
        width, height = terminal_of(self.app)._size or (1, 1)
        x, y = self.chance.randrange(width), self.chance.randrange(height)
        self.latest.append(f"mouse {x},{y}")
        kinds: tuple[type[events.MouseEvent], ...] = (events.MouseScrollUp, events.MouseScrollDown)
        if self.chance.random() < 0.7:
            kinds = (events.MouseDown, events.MouseUp)
        for kind in kinds:
            button = 1 if kind in (events.MouseDown, events.MouseUp) else 0
            terminal_of(self.app).send_message(kind(None, x, y, 0, 0, button, False, False, False, x, y))

    def touch(self) -> None:
        """The capture changes on disk, as far as its time tells."""
        path = Path(self.app.opening.capture.path or ".")
        for file in path.glob("*"):
            os.utime(file)
            break


def task_kind(task: asyncio.Task[object]) -> str:
    """What a task runs: widgets and timers name theirs."""
    return f"{getattr(task.get_coro(), '__qualname__', '?')} {task.get_name().split('(')[0].split('-')[0]}"


def resident() -> float:
    """Memory of this process, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(memory: list[tuple[float, float]], warm: float) -> tuple[float, float, float]:
    """Memory after the warm-up and at the end, MiB, and the ratio of the two."""
    weighed = [mib for at, mib in memory if at >= warm]
    if not weighed:
        return 0.0, 0.0, 1.0
    tenth = max(len(weighed) // 10, 1)
    first, last = statistics.median(weighed[:tenth]), statistics.median(weighed[-tenth:])
    return first, last, last / first


def quantile(counts: Counter[int], part: float) -> int:
    """The value that this part of what was counted does not exceed."""
    seen, total = 0, counts.total()
    for value in sorted(counts):
        seen += counts[value]
        if seen >= part * total:
            break
    return value if counts else 0


def odd_profiles() -> dict[str, Callable[[], Profile]]:
    """Profiles that no capture at hand has, by name."""
    problems = tuple(Problem(Severity.ERROR, f"Block {number} is cut.", "The rest is shown.") for number in range(50))
    return {
        "one": lambda: make_profile([make_lane(starts=[5], ends=[9])]),
        "lanes64": lambda: big_profile(50_000, cores=64, engines=("TIU",)),
        "empty": lambda: make_profile([]),
        "problems": lambda: make_profile([], problems=problems),
        "mode0": lambda: big_profile(50_000, cores=8, ports=11, mode=0),
    }


def soaked(path: str, options: argparse.Namespace) -> str:
    """Drives one capture; what was wrong, empty where nothing was."""
    note_all()  # of a capture driven before nothing counts
    app = Endless(profile=odd_profiles()[path]()) if path in odd_profiles() else Endless(path)
    monkey = Monkey(app, options, random.Random(options.seed))
    raised = asyncio.run(driven(app, SIZES[0], monkey.run))
    monkey.read_logs()
    first, last, ratio = growth(monkey.memory, options.warm)
    held = [quantile(monkey.held, part) / 10 for part in (0.5, 0.99, 1.0)]
    failure = raised or monkey.failure
    if not failure and not monkey.memory:
        failure = "it was never weighed"
    # a short run still fills caches that an hour fills in its warm-up
    slack = CACHES if options.seconds < 1800 else 0.0
    if not failure and ratio > 1 + options.growth and last - first > slack:
        failure = f"memory grew from {first:.0f} to {last:.0f} MiB"
    weighed = [mib for _, mib in monkey.memory]
    tenth = max(len(weighed) // 10, 1)
    course = " ".join(f"{statistics.median(weighed[at : at + tenth]):.0f}" for at in range(0, len(weighed), tenth))
    print(f"{path}: seed {options.seed}, {monkey.seconds:.0f} s, {sum(monkey.counts.values()):,} random keys of "
          f"{len(monkey.counts)} kinds; memory {first:.0f} to {last:.0f} MiB ({ratio:.3f}; "
          f"course {course}), weighed {len(monkey.memory)} times, "
          f"at most {max((each.total() for each in monkey.tasks), default=0)} tasks; "
          f"loop held {held[0]:.1f} ms median, {held[1]:.0f} ms p99, {held[2]:.0f} ms longest", flush=True)  # fmt: skip
    if failure:
        print(f"FAILED: {failure}\nlast actions: {' '.join(monkey.latest)}", flush=True)
    return failure


def main() -> int:
    """Drives each capture for the time given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0, help="time for each capture")
    parser.add_argument("--warm", type=float, help="seconds of it that are warm-up (default: a quarter, at most 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--capture", action="append", help=f"capture directory; without: one of {RECORDS:,} records")
    parser.add_argument("--profile", action="append", default=[], choices=odd_profiles(), help="instead: an odd one")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds of CPU the event loop may be held")
    parser.add_argument("--growth", type=float, default=0.1, help="part by which memory may grow")
    options = parser.parse_args()
    options.warm = min(options.seconds / 4, 300.0) if options.warm is None else options.warm
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        options.state = scratch / "state"
        os.environ |= {"XDG_CONFIG_HOME": str(scratch / "config"), "XDG_STATE_HOME": str(options.state),
                       "TERM": "xterm-256color", "LANG": "C.UTF-8"}  # fmt: skip
        captures = [str(Path(path).resolve()) for path in options.capture or ()]
        captures += options.profile
        if not captures:
            make = [sys.executable, str(ROOT / "samples" / "make.py"), "one", name, "--name", "soaked"]
            make += ["--kind", "cdma"]
            more = ["--ports", "11", "--sdma", "--batches", "100000", "--no-truth", "--records", str(RECORDS)]
            subprocess.run([*make, *more], check=True, stdout=subprocess.DEVNULL)
            # one to switch to
            shutil.copytree(ROOT / "samples" / "aks_decode_mode2", scratch / "beside")
            captures = [str(scratch / "soaked")]
        os.chdir(name)
        failures = [soaked(path, options) for path in captures]
        return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
