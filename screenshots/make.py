#!/usr/bin/env python3
"""Make the pictures in this folder anew, from the samples: ``python screenshots/make.py [NAME ...]``.

Each is an SVG of the explorer, made without a terminal, and a PNG of it, made by a headless Chromium; the web view has
a PNG alone. The same samples and the same program give the same SVG. Without Chromium the PNGs stay as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "export")]

from web_browser import Page, chromium, open_page  # noqa: E402

from tpuprof_tui.app.explorer.screen import ExplorerScreen  # noqa: E402
from tpuprof_tui.app.shell.application import TpuprofApp  # noqa: E402

#: Size of a PNG over that of its SVG.
SCALE = 0.68
#: Seconds until a capture must be open.
PATIENCE = 60.0
#: Fonts that may stand in for one another.
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass(frozen=True)
class Picture:
    """One picture of the explorer.

    Attributes:
        name: Name of its files.
        sample: Capture below `samples`.
        keys: Keys that lead to it, in Textual's spelling; ``"text"`` is typed.
        size: Columns and lines of the terminal.
        ascii_only: Whether it is drawn with ASCII alone.
    """

    name: str
    sample: str
    keys: str = ""
    size: tuple[int, int] = (140, 38)
    ascii_only: bool = False


PICTURES = (
    Picture("first", "aks_decode_mode1"),
    Picture("timeline", "aks_decode_mode2", "w w w w w j j full_stop full_stop d a L"),
    Picture("table", "aks_decode_mode1", '2 ampersand "dur>5us engine=GDMA !sys" enter greater_than_sign s j j i'),
    Picture("summary", "aksv_cdma", "3 Z pagedown"),
    Picture("groups", "aks_decode_mode1", "b"),
    Picture("export", "aks_decode_mode1", "x"),
    Picture("ascii", "aks_decode_mode1", "j full_stop", (80, 24), True),
)
#: The web view of this sample.
WEB = ("web", "aks_decode_mode1", (1400, 900))


def strokes(keys: str) -> list[str]:
    """Single keys of a script: names, and the characters of quoted texts."""
    found: list[str] = []
    for text, name in re.findall(r'"([^"]*)"|(\S+)', keys):
        found += list(text) if text else [name]
    return found


async def settled(app: TpuprofApp) -> None:
    """Waits until no thread works and all that was asked for has been drawn."""
    for _ in range(3):
        await asyncio.sleep(0.1)
        await app.workers.wait_for_complete()


async def drawn(picture: Picture) -> str:
    """The SVG of a picture."""
    app = TpuprofApp(str(Path("samples") / picture.sample), ascii_only=picture.ascii_only)
    async with app.run_test(size=picture.size) as pilot:
        end = time.monotonic() + PATIENCE
        while not isinstance(app.screen, ExplorerScreen):
            if time.monotonic() > end:
                raise SystemExit(f"samples/{picture.sample} was not opened within {PATIENCE:.0f} s")
            await asyncio.sleep(0.05)
        await settled(app)
        for key in strokes(picture.keys):
            await pilot.press(key)
            if len(key) > 1:
                await settled(app)
        return plain(app.export_screenshot(title=f"tpuprof samples/{picture.sample}", simplify=True), picture.name)


def plain(svg: str, name: str) -> str:
    """An SVG that asks for nothing from a network, with ids that depend on its name alone."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;]*Fira Code[^;]*;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"terminal-\d+", f"terminal-{name}", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def rastered(page: Page, svg: Path, scratch: Path) -> None:
    """The PNG beside an SVG."""
    text = svg.read_text(encoding="utf-8")
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    assert found is not None
    width, height = (round(float(number) * SCALE) for number in found.groups())
    holder = scratch / f"{svg.stem}.html"
    style = f"html, body {{ margin: 0; }} svg {{ display: block; width: {width}px; height: {height}px; }}"
    holder.write_text(f"<!doctype html><html data-ready=1><meta charset=utf-8><style>{style}</style>{text}</html>")
    page.resize(width, height)
    page.open(holder)
    page.picture(svg.with_suffix(".png"))


def web_view(page: Page, scratch: Path) -> None:
    """A PNG of the web view."""
    name, sample, (width, height) = WEB
    command = [sys.executable, "-m", "tpuprof_tui", "export", str(Path("samples") / sample), str(scratch / "out")]
    subprocess.run([*command, "--only", "web"], check=True, stdout=subprocess.DEVNULL)
    page.resize(width, height)
    page.scheme("dark")
    page.open(scratch / "out" / "PerfWeb" / "result.html")
    page.picture(FOLDER / f"{name}.png")


def main() -> None:
    """Writes the pictures whose names are given, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*(each.name for each in PICTURES), WEB[0]]))
    parser.add_argument("--svg-only", action="store_true", help="no PNGs")
    options = parser.parse_args()
    wanted = [each for each in PICTURES if not options.names or each.name in options.names]
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        # nothing of the user's terminal and settings shows in a picture
        os.environ |= {"XDG_CONFIG_HOME": str(scratch / "config"), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        for variable in ("NO_COLOR", "LC_ALL", "LC_CTYPE"):
            os.environ.pop(variable, None)
        for picture in wanted:
            path = FOLDER / f"{picture.name}.svg"
            path.write_text(asyncio.run(drawn(picture)), encoding="utf-8")
            print(path.relative_to(ROOT), f"{path.stat().st_size:,} bytes")
        if options.svg_only or chromium() is None:
            print("no PNG is made: " + ("not wanted" if options.svg_only else "Chromium is not installed"))
            return
        with open_page(scratch / "browser") as page:
            for picture in wanted:
                rastered(page, FOLDER / f"{picture.name}.svg", scratch)
            if not options.names or WEB[0] in options.names:
                web_view(page, scratch)
    for path in sorted(FOLDER.glob("*.png")):
        print(path.relative_to(ROOT), f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
