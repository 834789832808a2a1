"""The program in a real terminal: what it sends, how it ends."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

pexpect = pytest.importorskip("pexpect")

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode1"
#: Colours in "select graphic rendition": 30-37, 38, 40-47, 48, 90-97, 100-107.
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-9;?<>=$]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])", re.S
)


class Session:
    """The explorer in a terminal."""

    def __init__(self, *arguments: str, size: tuple[int, int] = (24, 80), **environment: str) -> None:
        own = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
        own |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        self.sent = b""
        self.child = pexpect.spawn(
            sys.executable, ["-m", "tpuprof_tui", *arguments], env=own, dimensions=size, timeout=20
        )

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

    def press(self, keys: str) -> bytes:
        """Sends keys; what the program answers."""
        self.child.send(keys)
        return self.read()

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


def test_ctrl_c_leaves_at_once():
    session = Session(str(SAMPLE))
    session.until(b"busiest core")
    assert session.end("\x03") == 0


def test_no_color_sends_no_colour():
    session = Session(str(SAMPLE), NO_COLOR="1")
    session.until(b"Operations")
    for key in ("j", ".", "w", "2", "j", "4", "?"):
        session.press(key)
    session.press("q")
    assert session.end() == 0
    assert not COLOUR.search(session.sent)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [([], {"LC_ALL": "C"}), ([], {"TERM": "linux"}), (["--ascii"], {})],
    ids=["LC_ALL=C", "TERM=linux", "--ascii"],
)
def test_terminals_without_unicode_get_ascii_alone(arguments, environment):
    session = Session(str(SAMPLE), *arguments, **environment)
    session.until(b"Operations")
    for key in ("j", ".", "2", "j", "t", "4", "?", "q"):
        session.press(key)
    assert session.end() == 0
    assert session.sent.isascii()


def test_nothing_needs_a_mouse():
    session = Session(str(SAMPLE), "--no-mouse")
    session.until(b"Operations")
    assert session.end() == 0
    assert b"\x1b[?1000h" not in session.sent


def test_a_folder_of_captures_can_be_chosen_from():
    session = Session(str(SAMPLE.parent), size=(40, 120))
    session.until(b"aks_decode_mode1")
    session.until(b"captures below")
    assert session.end() == 0
