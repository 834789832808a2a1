"""Sources of other packages: entry points of the group ``tpuprof.sources``."""

from __future__ import annotations

from typing import Final

from .source import Source

GROUP: Final = "tpuprof.sources"


def load_plug_ins() -> tuple[list[Source], dict[str, str]]:
    """The sources that installed packages offer, ordered by the name of their entry points.

    Returns:
        The sources; and for each entry point that gives none why, by its name.
    """
    # reading what is installed takes longer than most of what needs no plug-in
    from importlib.metadata import entry_points

    found: list[Source] = []
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        try:
            offered = entry.load()
        except Exception as error:  # whatever a stranger's module does while it is imported
            broken[entry.name] = failure(error)
            continue
        if isinstance(offered, Source) and all(isinstance(getattr(offered, name, None), str)
                                               for name in ("id", "title", "expected")):  # fmt: skip
            found.append(offered)
        else:
            broken[entry.name] = f"{entry.value} is no Source"
    return found, broken


def failure(error: Exception) -> str:
    """What went wrong, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
