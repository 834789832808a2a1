"""Names from a capture on a real terminal: shown as text, and nothing of them is a sequence, markup or a title."""

from __future__ import annotations

from pathlib import Path

import pytest
import raw_bytes as raw

pytest.importorskip("pexpect")

from test_terminal import Session

#: What each name would send, were it sent as it is.
NAMES = {
    "\x1b]0;owned\x07title": b"\x1b]0;",
    "\x1b]52;c;b3duZWQ=\x07clip": b"\x1b]52;",
    "\x1b[5;31mblink\x1b[2J": b"\x1b[5;31m",
    "\x9b31mcsi": b"\xc2\x9b",
    "\x1bPq#0;sixel\x1b\\": b"\x1bPq",
    "bell\x07bell\x08\x08": b"\x07bell",
    "\u202egnp.exe": "\u202e".encode(),
}
MARKUP = "[red]x[/red][@click=app.bell]y"


@pytest.mark.parametrize("environment", [{}, {"LC_ALL": "C"}, {"NO_COLOR": "1"}], ids=["plain", "ascii", "no colour"])
def test_names_are_text_on_the_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    records = raw.opening()
    nodes: list[int] = []
    for number, name in enumerate([MARKUP, *NAMES]):
        records["TIU"].append(raw.tiu_record(2000 + 500 * number, 2400 + 500 * number, number))
        nodes += [*raw.func(name), raw.node(raw.TIU, 2, 4), raw.FUNC_END]
    core = raw.core_file(records, [*raw.OPENING_NODES, *raw.words_of_resets(), *nodes])
    folder = tmp_path / "owned\x1b]0;folder\x07[bold]"
    session = Session(str(raw.write_capture(folder, {0: core})), size=(40, 160),
                      XDG_CONFIG_HOME=str(tmp_path / "config"), **environment)  # fmt: skip
    session.until(b"busy core")
    session.press("2")
    # only cells that differ are sent, so a name need not be sent in one piece: it is looked for on the screen
    session.drawn((40, 160), "[red]x[/red]")
    for keys in "1wwj\riw2jj\rb":
        session.press_quickly(keys)
    session.press("\x1b")
    for keys in "3jL4j":
        session.press_quickly(keys)
    session.press(":")
    session.press("kern")
    session.press("\x1b")
    session.press("x")
    session.press("\x1b")
    assert session.end() == 0
    for sent in (*NAMES.values(), b"\x1b]0;folder"):
        assert sent not in session.sent
