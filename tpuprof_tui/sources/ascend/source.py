"""Ascend profiles in the catalog: folders of ranks, of msprof, of clusters, and loose files of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.sources.source import ProgressCallback, Source, Verdict

from .read import places

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile


class AscendSource(Source):
    """What the profilers of Huawei's CANN write."""

    id = "ascend"
    title = "an Ascend profile"
    expected = "a folder of torch_npu or msprof (*_ascend_pt, PROF_*), of several such ranks, or a file of one"
    vocabulary = "tpuprof_tui.sources.ascend.vocabulary:VOCABULARY"
    turn = 3

    def recognises(self, path: Path) -> Verdict:
        """By names alone: those of the folder, of what is in it, and of what it lies in."""
        found = places.found_at(path)
        if found.places:
            first = found.places[0]
            what = min(found.places[0].every_file(), default=first.root)
            more = len(found.places) - 1
            return Verdict("name", f"it holds {what.name}" + (f" and {more} more ranks" if more else ""))
        if found.cluster:
            return Verdict("name", f"it holds {min(found.cluster)}")
        if found.raw:
            return Verdict("name", f"it holds raw output ({found.raw[0][0].name})")
        return Verdict("", f"neither {places.OUTPUT} nor files that msprof writes")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads all ranks; a file that cannot be read is a problem, raw output is told how to export."""
        del options
        from .read.profile import open_profile

        return open_profile(path, progress)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder where it is one of a rank, of output or of a cluster."""
        whole = {places.OUTPUT, places.MSPROF} & set(names) or any(map(places.is_own, names))
        return [folder] if whole or any(name.endswith(("_ascend_pt", "_ascend_ms")) for name in names) else []

    def files(self, path: Path) -> Sequence[Path]:
        """The files of all ranks."""
        found = places.found_at(path)
        return [*(file for place in found.places for file in place.every_file()), *found.cluster.values()] or [path]

    def whole(self, path: Path) -> Path:
        """The output folder that a file in it stands for."""
        return places.whole(path)


SOURCE: Final = AscendSource()
