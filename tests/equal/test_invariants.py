"""Every invariant of every sample, and of some profiles in ../shared where that is present."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from cases import Case
from invariants import INVARIANTS
from recorder import Answers

from tpuprof_tui.analysis import query

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
#: Samples, and the profile of the same kind that each is compared with.
SAMPLES = {
    "aks_bmodel": "aks_decode_mode2", "aks_damaged": "", "aks_decode_mode0": "", "aks_decode_mode1": "aks_decode_mode2",
    "aks_decode_mode2": "", "aks_host_trace": "", "aksv_cdma": "", "ascend_synthetic": "", "torch_cpu_recorded": "",
    "torch_cuda_synthetic": "torch_cpu_recorded", "torch_perfetto": "torch_cuda_synthetic", "nsys_synthetic": "",
    "memory_snapshot_synthetic.pickle.gz": "memory_snapshot_synthetic.pickle.gz",
}  # fmt: skip
OTHERS = {
    "traces/hta_amd_mi250": "", "traces/tl_vllm_decode_graph/graph_execution.pt.trace.json.gz": "",
    "traces/tl_qwen_h100_vs_mi300/mi300.pt.trace.json.gz": "traces/tl_qwen_h100_vs_mi300/h100.pt.trace.json.gz",
    "traces/ascend_level1_db/rank0_ascend_pt": "traces/ascend_level1_db/rank1_ascend_pt",
    "vendor/bm1690_conv_int8_no_pmu": "",
    "vendor/real/bmprofile_data-1_bm1688_2core": "",
    "vendor/real/bmprofile_data-1_bm1684x": "", "vendor/real/cdm_profile_data_dev0_bm1690": "",
}  # fmt: skip
NAMES = (*SAMPLES, *(pytest.param(name, marks=pytest.mark.shared) for name in OTHERS))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Commands in this process, which open each profile once, and keep what they found of it as the explorer does."""
    import tpuprof_tui

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tpuprof_tui, "open_profile", tpuprof_tui.open_profile)  # what it was comes back
        patch.setattr(tpuprof_tui, "open_profiles", tpuprof_tui.open_profiles)
        patch.setattr(query, "Session", lru_cache(4)(query.Session))
        patch.chdir(tmp_path_factory.mktemp("here"))
        yield Answers()


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def case(name: str, answers: Answers) -> Case:
    folder, other = (ROOT / "samples", SAMPLES[name]) if name in SAMPLES else (SHARED, OTHERS[name])
    if not (folder / name).exists():
        pytest.skip(f"{folder / name} is absent")
    return Case(answers, [str(folder / name)], [str(folder / other)] if other else None)


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda function: function.__name__)
def test_invariant(invariant, case, name):
    breaks: dict[str, list[str]] = {}
    for place, why in invariant(case):
        breaks.setdefault(place, []).append(why)
    found = [f"{place}: {why[0]} ({len(why)})" for place, why in breaks.items()]
    assert not found, f"{invariant.__doc__}\n" + "\n".join(found)
