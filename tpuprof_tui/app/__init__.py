"""The Textual application (the explorer). Importing this package alone loads neither Textual nor numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof_tui.errors import requires_package

from .shell.process import STARTUP_THRESHOLD, set_gc_threshold

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.state import Place


def run(
    paths: Sequence[str],
    *,
    options: Mapping[str, Any] | None = None,
    ascii: bool | None = None,  # noqa: A002
    mouse: bool = True,
    debug: bool = False,
    follow: bool = False,
    against: str | None = None,
    notes: str = "",
    place: Place | None = None,
) -> int:
    """Runs the explorer until the user quits.

    Args:
        paths: Path of a capture, a file in a capture, or a folder of captures. Empty: lists the captures below the
            current directory. More than one: lists them to choose from.
        options: Options of the source that reads the capture, by name.
        ascii: Draw with ASCII characters only; None: decided from the terminal and its locale.
        mouse: Whether mouse support is enabled.
        debug: Let unexpected errors propagate with their traceback.
        follow: Reload the capture when it changes on disk, and list captures that appear in the same folder.
        against: Path of the baseline capture to compare with; None: no comparison.
        notes: Path of the notes file; empty: next to the capture.
        place: Initial view (range, unit, group, filter, selected event); None: the whole capture.

    Returns:
        Exit status for the capture that was opened last: 0, or 1 if an error is among its problems.

    Raises:
        MissingPackageError: Textual is not installed.
        TpuprofError: The capture that was opened last could not be shown; the message is the one on the screen.
        Exception: The unexpected error that ended the explorer; the terminal has been restored.
    """
    set_gc_threshold(STARTUP_THRESHOLD)
    with requires_package("The explorer", "Without it, `tpuprof summary` prints where the time went."):
        from .shell.application import TpuprofApp

    path = paths[0] if len(paths) == 1 else None
    app = TpuprofApp(path, paths=paths, options=options, ascii_only=ascii, debug=debug, follow=follow,
                     against=against, notes=notes, place=place)  # fmt: skip
    app.run(mouse=mouse)
    if app.crash is not None:
        raise app.crash
    if app.opening.failure is not None and not app.return_code:
        raise app.opening.failure
    return app.return_code or app.opening.status
