"""The program in a real terminal: what it sends, how it ends."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from vt import Terminal

pexpect = pytest.importorskip("pexpect")

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode1"
#: Colours in "select graphic rendition": 30-37, 38, 40-47, 48, 90-97, 100-107.
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-9;?<>=$]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])", re.S
)


class Session:
    """The explorer in a terminal."""

    def __init__(
        self, *arguments: str, size: tuple[int, int] = (24, 80), nohup: bool = False, **environment: str
    ) -> None:
        own = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
        own |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        self.sent = b""
        self.child = pexpect.spawn(
            sys.executable, ["-m", "tpuprof_tui", *arguments], env=own, dimensions=size, timeout=20,
            ignore_sighup=nohup,
        )  # fmt: skip

    def read(self, seconds: float = 0.4) -> bytes:
        """What arrives until nothing has for ``seconds``."""
        got = b""
        while True:
            try:
                got += self.child.read_nonblocking(1 << 16, timeout=seconds)
            except (pexpect.TIMEOUT, pexpect.EOF):
                self.sent += got
                return got

    def until(self, word: bytes) -> None:
        """Waits until ``word`` is shown."""
        end = time.monotonic() + 20
        while word not in SEQUENCE.sub(b"", self.sent):
            assert time.monotonic() < end, f"{word!r} was not shown:\n{SEQUENCE.sub(b'', self.sent).decode()}"
            self.read(0.2)

    def press(self, keys: str, least: int = 0) -> bytes:
        """Sends keys; what the program answers, at least so many bytes."""
        self.child.send(keys)
        got, end = self.read(), time.monotonic() + 20
        while len(got) < least and time.monotonic() < end:
            got += self.read()
        return got

    def drawn(self, size: tuple[int, int], *words: str) -> str:
        """The screen, once it shows some words and something on every line."""
        end = time.monotonic() + 20
        while True:
            text = screen_after(self, size)
            full = len([line for line in text.splitlines() if line.strip()]) == size[0]
            if full and all(word in text for word in words):
                return text
            assert time.monotonic() < end, text
            self.read(0.2)

    def press_quickly(self, keys: str) -> None:
        """Sends keys; what the program answers is taken when it is there, and not waited for."""
        self.child.send(keys)
        self.read(0.05)

    def end(self, key: str = "q") -> int:
        """Leaves by a key; the exit status."""
        self.child.send(key)
        self.child.expect(pexpect.EOF)
        self.sent += self.child.before
        self.child.close()
        assert self.child.signalstatus is None
        return int(self.child.exitstatus)


pytestmark = pytest.mark.skipif(not SAMPLE.is_dir(), reason="the sample captures are not there")


def test_a_capture_opens_answers_keys_and_leaves_the_terminal_as_it_was():
    session = Session(str(SAMPLE))
    session.until(b"busiest core")
    session.until(b"Operations")
    assert b"Reading" in SEQUENCE.sub(b"", session.sent), "painted before the capture was read"
    assert b"in the window" not in session.sent
    session.press("w")
    session.press("w")
    table = SEQUENCE.sub(b"", session.press("2"))
    assert b"instructions" in table
    assert b"GDMA" in table
    assert b"Zoom in about the cursor" in SEQUENCE.sub(b"", session.press("\x1b") + session.press("?"))
    session.press("q")
    assert session.end("q") == 0
    for switched_on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h")):
        assert switched_on in session.sent
        assert session.sent.rfind(off) > session.sent.rfind(switched_on)


def test_no_color_sends_no_colour_and_nothing_needs_a_mouse():
    session = Session(str(SAMPLE), "--no-mouse", NO_COLOR="1")
    session.until(b"Operations")
    for key in ("j", ".", "w", "2", "j", "4", "?"):
        session.press(key)
    assert session.end("\x03") == 0, "Ctrl+C leaves at once"
    assert not COLOUR.search(session.sent)
    assert b"\x1b[?1000h" not in session.sent


def test_terminals_without_unicode_get_ascii_alone():
    session = Session(str(SAMPLE), LC_ALL="C")
    session.until(b"Operations")
    for key in ("j", ".", "2", "j", "t", "4", "?", "q"):
        session.press(key)
    assert session.end() == 0
    assert session.sent.isascii()


def screen_after(session: Session, size: tuple[int, int]) -> str:
    """What a terminal of lines and columns shows after all that was sent since it had another program's text."""
    terminal = Terminal(size[1], size[0])
    terminal.feed(session.sent.decode(errors="replace"))
    return terminal.text()


@pytest.mark.parametrize("term", ["xterm", "linux", "screen-256color"])
def test_terminals_get_the_colours_they_have(term):
    session = Session(str(SAMPLE), TERM=term, COLORTERM="")
    session.until(b"Operations")
    for key in ("j", ".", "w", "2", "j", "4", "1"):
        session.press(key)
    assert session.end() == 0
    colours = [match[0] for match in COLOUR.finditer(session.sent)]
    assert colours
    assert not any(b"38;2;" in each or b"48;2;" in each for each in colours), "no true colour"
    assert any(b"8;5;" in each for each in colours) == term.endswith("256color")
    assert session.sent.isascii() == (term == "linux")


def test_a_window_may_shrink_to_one_cell_and_come_back():
    size = (40, 120)
    session = Session(str(SAMPLE), size=size)
    session.until(b"Operations")
    for lines, columns in ((1, 1), (2, 200), (24, 80), (1, 1), (60, 5), (3, 3), (50, 200), (1, 1), size):
        session.child.setwinsize(lines, columns)
        session.read(0.05)
    session.read(0.6)
    session.sent = b""
    # what was there before is drawn over, whatever the terminal made of it
    session.press("\x0c")
    session.drawn(size, "Timeline", "Core 0", "Summary", "lm_head_matmul", "Quit")
    # all is drawn, too, when a storm of sizes ends where it began
    session.sent = b""
    session.child.setwinsize(1, 1)
    session.child.setwinsize(*size)
    session.until(b"Operations")
    session.read(0.5)
    assert "Timeline" in screen_after(session, size)
    assert session.end() == 0


def test_suspended_and_resumed_it_draws_everything_again():
    session = Session(str(SAMPLE), size=(40, 120))
    session.until(b"Operations")
    session.press("2")
    session.child.send("\x1a")
    end = time.monotonic() + 20
    while state_of(session.child.pid) != "T":
        assert time.monotonic() < end, "it was not stopped"
        session.read(0.1)
    assert b"\x1b[?1049l" in session.sent, "the shell's screen is back"
    session.sent = b""
    os.kill(session.child.pid, signal.SIGCONT)
    session.until(b"instructions")
    session.read(0.5)
    session.drawn((40, 120), "Timeline", "Core 0", "[2 Table]", "Quit")
    session.press("3")
    session.until(b"Kernel functions")
    assert session.end() == 0


def state_of(pid: int) -> str:
    """State of a process: R, S, T (stopped) ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_page_of_the_table_is_sent_in_few_bytes():
    session = Session(str(SAMPLE), size=(48, 160), COLORTERM="")
    session.until(b"Operations")
    session.press("2")
    session.press("Z")
    session.press("\x1b[6~")
    for _ in range(5):
        assert 1_000 < len(session.press("\x1b[6~", least=1_001)) < 25_000
    assert session.end() == 0
