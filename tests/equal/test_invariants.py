"""Every invariant of every sample, and of some profiles in ../shared where that is present.

``KNOWN`` lists what does not hold yet. It is strict: what is mended must be taken off the list, and nothing may come.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from cases import Case
from invariants import INVARIANTS
from msgspec import Struct
from recorder import Answers

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
#: Samples, and the profile of the same kind that each is compared with.
SAMPLES = {
    "aks_bmodel": "aks_decode_mode2", "aks_damaged": "", "aks_decode_mode0": "", "aks_decode_mode1": "aks_decode_mode2",
    "aks_decode_mode2": "", "aks_host_trace": "", "aksv_cdma": "", "ascend_synthetic": "", "torch_cpu_recorded": "",
    "torch_cuda_synthetic": "torch_cpu_recorded",
}  # fmt: skip
OTHERS = {
    "traces/hta_amd_mi250": "", "traces/tl_vllm_decode_graph/graph_execution.pt.trace.json.gz": "",
    "traces/tl_qwen_h100_vs_mi300/mi300.pt.trace.json.gz": "traces/tl_qwen_h100_vs_mi300/h100.pt.trace.json.gz",
    "traces/ascend_level1_db/rank0_ascend_pt": "traces/ascend_level1_db/rank1_ascend_pt",
    "vendor/bm1690_conv_int8_no_pmu": "",
    "vendor/real/bmprofile_data-1_bm1688_2core": "",
    "vendor/real/bmprofile_data-1_bm1684x": "",
}  # fmt: skip
NAMES = (*SAMPLES, *(pytest.param(name, marks=pytest.mark.shared) for name in OTHERS))


class Known(Struct, frozen=True):
    """What is known to break an invariant.

    Attributes:
        invariant: Name of its function.
        place: Pattern of places.
        inputs: Patterns of the inputs; each that matches does break it.
        why: What is wrong.
    """

    invariant: str
    place: str
    inputs: tuple[str, ...]
    why: str

    def covers(self, invariant: str, name: str) -> bool:
        """Whether it is about an invariant of an input."""
        return invariant == self.invariant and any(fnmatchcase(name, pattern) for pattern in self.inputs)


_SOPHGO = ("aks*",)
_ASCEND = ("ascend_synthetic", "*/rank0_ascend_pt")
_MI250, _VLLM, _QWEN = "*mi250*", "*vllm*", "*qwen*"
_DB = "*/rank0_ascend_pt"
_TORCH = ("torch*", _MI250, _VLLM, _QWEN)
#: Samples in which something repeats, and those of them with several steps.
_REPEATS = ("aks_bmodel", "aks_damaged", "aks_decode_mode[12]", "aks_host_trace", "aksv_cdma", *_ASCEND)
_SEVERAL = ("aks_bmodel", "aks_decode_mode1", "aksv_cdma")

_IGNORED = "a selection that is ignored without a word"
_CORES = "`export --cores` of the only unit of a rank selects the rank with its host, `report --core` the unit"

KNOWN = (
    Known("views_follow", "steps* group",
          ("aks_bmodel", "aks_damaged", "aks_decode_mode[12]", "aks_host_trace", "aksv*"),
          f"{_IGNORED}: steps of a core"),
    Known("views_follow", "waits.barriers group", ("aks_[dh]*", "aksv*", "*bm1688_2core"),
          f"{_IGNORED}: barriers of a core"),
    Known("views_follow", "counters.* step", ("torch*", "ascend_synthetic"), f"{_IGNORED}: counters with a step"),
    Known("exceptions_say_so", "problems", ("*bmprofile_data*",), "a view that does not follow must say so"),
    Known("exceptions_say_so", "counters", ("torch_c*", _QWEN, *_ASCEND), "a view that does not follow must say so"),
    Known("sheets_are_json", "*", (_MI250, _VLLM, _QWEN, _DB), _CORES),
    Known("page_is_json", "*", (_MI250, _VLLM, _QWEN), _CORES),
)  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Commands in this process, which open each profile once."""
    import tpuprof_tui

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tpuprof_tui, "open_profile", tpuprof_tui.open_profile)  # what it was comes back
        patch.setattr(tpuprof_tui, "open_profiles", tpuprof_tui.open_profiles)
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
    known = [each for each in KNOWN if each.covers(invariant.__name__, name)]
    new = [f"{place}: {why[0]} ({len(why)})" for place, why in breaks.items()
           if not any(fnmatchcase(place, each.place) for each in known)]  # fmt: skip
    assert not new, f"{invariant.__doc__}\n" + "\n".join(new)
    mended = [each for each in known if not any(fnmatchcase(place, each.place) for place in breaks)]
    assert not mended, f"these hold now, take them off the list: {mended}"
    if known:
        pytest.xfail("; ".join(dict.fromkeys(each.why for each in known)))


def test_what_is_known_is_about_something():
    names = [*SAMPLES, *OTHERS]
    for each in KNOWN:
        assert each.invariant in {invariant.__name__ for invariant in INVARIANTS}
        assert all(any(fnmatchcase(name, pattern) for name in names) for pattern in each.inputs), each
