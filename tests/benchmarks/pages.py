"""How fast a page opens and zooms in a browser."""

from __future__ import annotations

import tempfile
from pathlib import Path

from web_browser import chromium, open_page

__all__ = ["chromium", "page_figures"]

#: Zooms from the whole capture into its middle and back, one step a frame; gives the milliseconds it took.
_ZOOM = """new Promise((done) => {
    const [first, last] = tpuprof.profile.window, middle = (first + last) / 2, whole = last - first, steps = %d;
    let step = 0, began = 0;
    const frame = (now) => {
        if (!step) began = now;
        if (step === steps) { done(now - began); return; }
        const depth = Math.min(step, steps - step), width = whole * Math.pow(0.88, depth);
        tpuprof.setWindow(middle - width / 2, middle + width / 2);
        step += 1;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})"""
_STEPS = 90


def page_figures(page_file: Path, scratch: Path, runs: int) -> tuple[float, float, float, float]:
    """The best of several openings.

    Args:
        page_file: The page.
        scratch: Where the browser may keep its own files.
        runs: How often it is opened.

    Returns:
        Milliseconds to the first paint, milliseconds until everything is drawn, frames a second while zooming, and
        megabytes of the file.
    """
    paints, drawn, frames = [], [], []
    with open_page(Path(tempfile.mkdtemp(dir=scratch))) as page:
        for _ in range(max(runs, 1)):
            page.open(page_file, "#timeline")
            paints.append(float(page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")))
            drawn.append(float(page.run("document.documentElement.dataset.drawn")))
            frames.append(_STEPS / float(page.run(_ZOOM % _STEPS)) * 1000)
    return min(paints), min(drawn), max(frames), page_file.stat().st_size / 1e6
