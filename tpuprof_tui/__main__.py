"""``python -m tpuprof_tui`` and the console script ``tpuprof``."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence

# modules, classes and tables are no garbage: by default collections visit them a hundred times before anything is read
gc.set_threshold(50_000, *gc.get_threshold()[1:])

# this program multiplies no matrices: OpenBLAS threads would only cost start-up time and memory
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Ctrl+C during the imports ends the program as main() does later: without a traceback, with the status of an
# interruption. Processes started by multiprocessing, which import the program as __mp_main__ beside their own
# __main__, keep their handling.
_quiet = (
    sys.modules.get("__mp_main__", sys.modules["__main__"]) is sys.modules["__main__"]
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
)
if _quiet:
    try:
        # exit_status.INTERRUPTED, which takes imports; an exception could be caught or ignored within an import
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    except ValueError:  # a thread imports this
        _quiet = False
try:
    from tpuprof_tui.cli import main as command_line
finally:
    if _quiet:
        signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """See `tpuprof_tui.cli.main.main`."""
    try:
        return command_line.main(arguments)
    finally:
        # memory is returned as a whole when the process ends: no last collection visits what is left
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
