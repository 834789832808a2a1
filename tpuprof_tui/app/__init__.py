"""The explorer on the screen. Importing this package alone loads neither Textual nor numpy."""

from __future__ import annotations

from tpuprof_tui.errors import needed_for

from .shell.garbage_collection import be_patient


def run(
    path: str | None,
    *,
    chip: str | None = None,
    tiu_mhz: int | None = None,
    trace_file: str | None = None,
    ascii: bool | None = None,  # noqa: A002
    mouse: bool = True,
    debug: bool = False,
    follow: bool = False,
) -> int:
    """Opens the explorer and returns when it is left.

    Args:
        path: Capture, file in one, or folder of captures; None: the captures below the current directory.
        chip: Chip name for captures that do not name it.
        tiu_mhz: TIU clock in MHz; None: the capture's, then the chip's.
        trace_file: Host trace (Chrome-trace JSON) to show beside the capture.
        ascii: Draw with ASCII alone; None: as the terminal and its locale ask.
        mouse: Whether the mouse is used.
        debug: Let unexpected errors through with their traceback.
        follow: Read the capture again when it changes on disk, and captures that appear beside it.

    Returns:
        Exit status, that of the command line for what was opened last: 0, or 1 with an error among its problems.

    Raises:
        MissingPackageError: Textual is not installed.
        TpuprofError: What was opened last could not be shown; the sentence that the screen had.
        Exception: Whatever unexpected ended the explorer; the terminal is as it was before.
    """
    be_patient()
    with needed_for("The explorer", "Without it, `tpuprof summary` prints where the time went."):
        from .shell.application import TpuprofApp

    app = TpuprofApp(
        path, chip=chip, tiu_mhz=tiu_mhz, trace_file=trace_file, ascii_only=ascii, debug=debug, follow=follow
    )
    app.run(mouse=mouse)
    if app.crash is not None:
        raise app.crash
    if app.failure is not None and not app.return_code:
        raise app.failure
    return app.return_code or app.status
