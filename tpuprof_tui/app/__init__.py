"""The explorer on the screen. Importing this package alone loads neither Textual nor numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof_tui.errors import needed_for

from .shell.garbage_collection import STARTING, be_patient

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
    """Opens the explorer and returns when it is left.

    Args:
        paths: Capture, file in one, or folder of captures; none: the captures below the current directory; several:
            a list of them to choose from.
        options: Those of the source that reads it, by name.
        ascii: Draw with ASCII alone; None: as the terminal and its locale ask.
        mouse: Whether the mouse is used.
        debug: Let unexpected errors through with their traceback.
        follow: Read the capture again when it changes on disk, and captures that appear beside it.
        against: What the capture is compared with; None: nothing.
        notes: File of notes; empty: beside the capture.
        place: What is shown first; None: all.

    Returns:
        Exit status, that of the command line for what was opened last: 0, or 1 with an error among its problems.

    Raises:
        MissingPackageError: Textual is not installed.
        TpuprofError: What was opened last could not be shown; the sentence that the screen had.
        Exception: Whatever unexpected ended the explorer; the terminal is as it was before.
    """
    be_patient(STARTING)
    with needed_for("The explorer", "Without it, `tpuprof summary` prints where the time went."):
        from .shell.application import TpuprofApp

    path = paths[0] if len(paths) == 1 else None
    app = TpuprofApp(path, paths=paths, options=options, ascii_only=ascii, debug=debug, follow=follow,
                     against=against, notes=notes, place=place)  # fmt: skip
    app.run(mouse=mouse)
    if app.crash is not None:
        raise app.crash
    if app.failure is not None and not app.return_code:
        raise app.failure
    return app.return_code or app.status
