"""Chromium without a screen, driven over its own debugging pipe with the standard library alone."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60.0


def chromium() -> str | None:
    """Where Chromium is; None where it is not."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class PageError(AssertionError):
    """A script of the page failed."""


class Page:
    """One tab.

    Attributes:
        requests: Addresses that the page asked for, its own file included.
        complaints: What its scripts reported as errors or warnings.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out = to_browser
        self._in = from_browser
        self._rest = b""
        self._number = 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def attach(self, width: int, height: int, ratio: float) -> None:
        """Opens a tab of a size in CSS pixels."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height, ratio)

    def resize(self, width: int, height: int, ratio: float = 1) -> None:
        """Gives the tab another size."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False
        )

    def scheme(self, name: str) -> None:
        """Prefers ``light`` or ``dark``."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def before(self, script: str) -> None:
        """Runs a script before those of every page."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file and waits until it has read all its data."""
        # another query makes another address: a fragment alone would not load the page anew
        self._number += 1
        self.call("Page.navigate", url=f"{path.as_uri()}?{self._number}{fragment}")
        self.wait("document.documentElement?.dataset.ready")
        self.frame()

    def wait(self, condition: str) -> Any:
        """Waits until a condition of the page holds; its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.run(f"({condition}) || null")
            if value:
                return value
            time.sleep(0.03)
        raise TimeoutError(f"{condition}; complaints: {self.complaints}")

    def run(self, script: str) -> Any:
        """The value of a script; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise PageError(json.dumps(found["exceptionDetails"].get("exception", {}).get("description")))
        return found["result"].get("value")

    def frame(self) -> None:
        """Waits until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event: ``mouseMoved``, ``mousePressed``, ``mouseReleased``, ``mouseWheel``."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.frame()

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Presses a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def picture(self, path: Path | None = None) -> bytes:
        """What the tab shows, as PNG."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def call(self, method: str, **parameters: Any) -> Any:
        """A command of the debugging protocol; its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser says nothing")
            self._rest += data
        first, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        method = message.get("method")
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(each.get("value")) for each in parameters["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])


@contextlib.contextmanager
def open_page(folder: Path, width: int = 1440, height: int = 900, ratio: float = 1) -> Iterator[Page]:
    """A tab of a browser of its own, which ends with the block.

    Args:
        folder: New folder for the browser's own files.
        width, height: Size of the tab, CSS pixels.
        ratio: Device pixels to a CSS pixel.
    """
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    # the browser reads commands from descriptor 3 and answers on 4
    shell = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
    program = chromium()
    assert program is not None
    process = subprocess.Popen(
        ["bash", "-c", shell, "browser", program, *FLAGS, f"--user-data-dir={folder}"],
        pass_fds=(read_commands, write_answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(read_commands)
    os.close(write_answers)
    page = Page(write_commands, read_answers)
    try:
        page.attach(width, height, ratio)
        yield page
    finally:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            page._session = ""
            page.call("Browser.close")
        os.close(write_commands)
        os.close(read_answers)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
