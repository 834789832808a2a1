"""Terms of Sophgo TPU captures in the interface. Plain data that does not import NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import (
    DETAIL,
    NAMES,
    Capability,
    Category,
    Condition,
    GroupKind,
    LaneKind,
    Output,
    Shades,
    ShareColouring,
    Vocabulary,
    Word,
    WorkOrigin,
)

_HERE: Final = "tpuprof_tui.sources.sophgo"

OUTPUTS: Final = (
    Output(
        "xlsx", "workbook", f"{_HERE}.files.workbook:write_documents",
        files=("PerfDoc/PerfAI_output.xlsx", "PerfDoc/PerfAI_output.csv"), shown="PerfDoc/PerfAI_output.xlsx, .csv",
        action="workbook", letter="x",
        help="Write the workbook and the merged CSV.", short="Workbook", list_order=10, write_order=40,
        sets=frozenset(("doc", "enable_doc", "num_core")), cost=(350.0, 30_000.0), detailed=(525.0, 65_000.0),
    ),
    Output(
        "pftrace", "Perfetto trace", f"{_HERE}.files.perfetto:write_trace", files=("perfetto.pftrace",),
        action="perfetto", letter="p",
        help="Write the trace for Perfetto.", short="Perfetto", list_order=30, write_order=20,
        sets=frozenset(("perfetto", "enable_doc")),
    ),
    Output(
        "summary", "summary", f"{_HERE}.files.summary_text:write_summary", files=("summary.txt",),
        progress_name="summary.txt", finish=f"{_HERE}.files.summary_text:console_summary", letter="s",
        help="Write the summary as text.", short="Summary", list_order=40, write_order=10,
        sets=frozenset(("perfetto", "enable_doc", "summary")),
    ),
    Output(
        "regs", "register text", f"{_HERE}.files.field_texts:write_registers",
        shown="tiuRegInfo_n.txt, tdmaRegInfo_n.txt, ...", pattern=r"(tiu|tdma|cdma)RegInfo_\d{1,9}\.txt",
        names=f"{_HERE}.files.field_texts:register_names", action="registers", letter="r",
        help="Write the registers of all commands as text.", short="Registers", list_order=50, write_order=30,
        sets=frozenset(("beside", "enable_doc", "num_core")),
    ),
)  # fmt: skip

CATEGORIES: Final = (
    Category("matmul", "M", Shades("#4f9cf9", "#1f6fd0", "#56b4e9"), ("mm", "matmul", "conv")),
    Category("pool", "P", Shades("#22c3c3", "#0e7f86", "#009e73"), ("pool", "pord", "dw")),
    Category("gather", "G", Shades("#c084fc", "#8a3fd1", "#cc79a7"), ("gather", "scatter", "sg")),
    Category("arithmetic", "A", Shades("#57c785", "#24803f", "#009e73"),
             ("arith", "sar", "lar", "lin", "correlation", "vc")),
    Category("special", "S", Shades("#f59e57", "#b5560b", "#d55e00"), ("sfu",)),
    Category("quantise", "Q", Shades("#f472b6", "#bb2d7c", "#cc79a7"), ("rq", "dq")),
    Category("layout", "L", Shades("#d4b742", "#8a6d00", "#f0e442"), ("trans", "bc", "cw", "reverse")),
    Category("compare", "C", Shades("#94a3f8", "#4a55c7", "#8fc7f0"), ("cmp", "select", "nonzero")),
    Category("send", "X", Shades("#fb7185", "#c42847", "#d55e00"), ("send",)),
    Category("receive", "R", Shades("#fdba74", "#a8590f", "#e69f00"), ("rec",)),
    Category("tensor move", "T", Shades("#3fb68b", "#1c8459", "#e69f00"), ("dma_tensor",)),
    Category("matrix move", "B", Shades("#8bbf3f", "#587d12", "#f0e442"), ("dma_matrix",)),
    Category("move", "D", Shades("#b5a642", "#77700f", "#e69f00"), ("dma",)),
)  # fmt: skip


def _layers(column: str) -> tuple[WorkOrigin, ...]:
    """Layers, which compilers number in their own order for each chip, and their types."""
    return (WorkOrigin("layers", Word("layer"), column),
            WorkOrigin("layer_types", Word("type of layer", "types of layers"), column, r"(.+?)_\d+$"))  # fmt: skip


VOCABULARY: Final = Vocabulary(
    source="sophgo",
    title="Sophgo TPU",
    unit=Word("core"),
    lane=Word("engine"),
    event=Word("instruction"),
    scope=Word("kernel function"),
    operation=Word("operation"),
    step=Word("batch", "batches"),
    step_column="batch",
    usual_name="cdm_profile_data_",
    lane_kinds=(
        LaneKind("TIU", "TIU", Activity.COMPUTE, 0, shades=Shades("#4f9cf9", "#1f6fd0", "#56b4e9")),
        LaneKind("GDMA", "GDMA", Activity.TRANSFER, 1, shades=Shades("#3fb68b", "#1c8459", "#e69f00")),
        LaneKind("SDMA", "SDMA", Activity.TRANSFER, 2, shades=Shades("#d4b742", "#93760a", "#f0e442")),
        LaneKind("CDMA", "CDMA", Activity.TRANSFER, 3, shades=Shades("#c084fc", "#8a3fd1", "#cc79a7")),
        LaneKind("HOST", "Host", Activity.HOST, 4),
        LaneKind("COPY", "Host copies", Activity.HOST, 5),
    ),
    group_kinds=(
        GroupKind("core", "Cores", Word("core")),
        GroupKind("ports", "CDMA ports", Word("CDMA port")),
        GroupKind("host", "Host", Word("host thread")),
    ),
    categories=CATEGORIES,
    capabilities=(
        Capability(NAMES, "condensed commands", "mode 1"),
        Capability(DETAIL, "detailed commands", "mode 2"),
    ),
    shares=(
        ShareColouring(
            "bandwidth", "bandwidth, share of the peak", (("ddr_bandwidth", "DDR"), ("l2_bandwidth", "L2")),
            "the DDR or L2 peak of one core",
        ),
        ShareColouring("uarch", "uArch rate", (("uarch_rate", ""),)),
    ),
    conditions=(
        Condition("link", ("tx", "rx"), "link is tx or rx, the direction over a CDMA port's link",
                  f"{_HERE}.groups:direction_mask"),
    ),
    either={"bw": ("ddr_bandwidth", "l2_bandwidth"), "bandwidth": ("ddr_bandwidth", "l2_bandwidth")},
    searched=("engine", "name", "type", "kernel", "direction"),
    page_columns=("uarch_rate", "ddr_bandwidth", "l2_bandwidth", "stall"),
    help_words={
        "work": "instructions other than system commands",
        "wait, sync": "system waits; the other system commands",
        "compute": "work of a core's TIU",
        "transfer": "work of its GDMA and SDMA, and of the CDMA commands it submitted",
        "-": "not known in a capture of this mode",
    },
    phrases={
        "no_times": "No hardware records: the commands have no times. 2 shows them in a table, 4 the problems.",
        "no_links": "This capture does not record what waited for what, and no waits end together",
        "filter_hint": "dur>10us  bw<20  name=MM2*  core=3 | !kernel=rms*  /regex/",
        "sort_hint": "a column: dur, exposed, bw, kernel, ...",
        "group_hint": "group kernel, group bytes",
        "scopes": "kernels",
        "fields": "registers",
        "field": "Field {name} of the command's registers, as captured.",
        "bytes": "Bytes of the command.",
        "untimed": "command",
        "guessed": "~ Without commands, work and waits are distinguished by heuristics.",
        "no_times_text": "No times: the capture holds commands and no hardware records (`tpuprof instructions` lists "
        "them).",
        "waits": "Wait: only waits and other commands.",
        "page_no_detail": "uArch rates and local memory addresses are known from captures of mode 2 only: TIU boxes "
        "have full height, and uArchURate in the summary is meaningless.",
        "page_no_names": "This capture holds no commands: names are unknown, work and waits are distinguished by "
        "heuristics (~).",
        "page_published": "By the definitions of bigTpuProfile. ",
        "page_no_rate": "The uArch rate is known from captures of mode 2, of cores that compute.",
        "page_bars": "Compute: TIU work. Transfer: GDMA, SDMA and submitted CDMA work without compute at the same "
        "time.",
        "explorer.tree": "Show, focus or hide the tree of cores, engines and ports.",
        "groups.work-only": "Count only work, or waits and other system commands too.",
    },
    help_filters=(
        ("dur>10us  bytes>=100KiB", "numbers: = != < <= > >=, with units where the column has some"),
        ("bw<20", "bandwidth of DDR or L2M, GB/s, whichever is set"),
        ("name=MM2*  kernel!=rms*", "texts: * and ? are wildcards; case matters if there are capitals"),
        ("kernel~^rms.*core$", "texts: a regular expression"),
        ("core=3 engine=GDMA", "a space means and"),
        ("TIU | SDMA", "or; parentheses group"),
        ("!sys", "not"),
        ("softmax  /mm[23]/", "a word or a regular expression in engine, name, type, kernel function or direction"),
        ('kernel="two words"', "quotes keep spaces"),
        ("role=wait", "work, wait or sync; several with commas"),
        ("link=tx", "what a CDMA port sends (tx) or receives (rx)"),
    ),
    outputs=OUTPUTS,
    # the generic web page, under the file name of the published converter
    output_files={"web": ("PerfWeb/result.html",)},
    operation_codes=("tiu_type", "tiu_function", "dma_type", "dma_function"),
    one_chip=True,
    origins=_layers("layer"),
    hosts_apart=True,
    number_in_launch="command_id",
    operands=("direction", "dtype", "bytes", "alg_ops"),
    columns_entry=f"{_HERE}.schema:COLUMNS",
    texts_file=Path(__file__).with_name("help.txt"),
    views=(
        View("waits", "Who waits for whom", "Which {unit} makes the others wait, and who comes last to each barrier.",
             f"{_HERE}.views.waits:waits", facts=False),
        View("bandwidth", "Bandwidth", "Bytes over time, by engine, memory, direction and bus port, and the peak.",
             f"{_HERE}.views.bandwidth:bandwidth", in_summary=False, compared=False),
        View("kernel_launches", "Kernel functions by launch", "How long launches took, and the work in them.",
             f"{_HERE}.views.kernel_launches:kernel_launches", (NAMES,), in_summary=False, place="", compared=False),
        View("published", "As bigTpuProfile counts", "The summary of the published converter, by its own definitions.",
             f"{_HERE}.views.published_summary:published", facts=False),
    ),
    entries={
        "rules": f"{_HERE}.views.rules:RULES",
        "instructions": f"{_HERE}.files.instructions:write_instructions",
        "instructions_sorted": f"{_HERE}.files.instructions:write_in_order",
        "page_summary": f"{_HERE}.files.summary_table:summary_record",
        "page_memory": f"{_HERE}.files.page_memory:memory_record",
    },
)  # fmt: skip

#: Of models whose layers are known: what issues instructions is a layer of a network.
LAYER_VOCABULARY: Final = replace(
    VOCABULARY,
    scope=Word("layer"),
    origins=_layers("kernel"),
    step=Word("run"),
    columns_entry=f"{_HERE}.schema:LAYER_COLUMNS",
    views=tuple(
        replace(view, id="layers", title="Layers", help="Time of each layer, the work in it, and what was expected.")
        if view.id == "kernel_launches" else view for view in VOCABULARY.views
    ),
    phrases={
        **VOCABULARY.phrases,
        "scopes": "layers",
        "filter_hint": "dur>10us  bw<20  name=conv*  layer=Conv2D* | !layer=Load*  /regex/",
        "sort_hint": "a column: dur, exposed, bw, layer, forecast, ...",
        "group_hint": "group layer, group bytes",
    },
)  # fmt: skip

#: Of profiles of libbmrt.
BMPROFILE_VOCABULARY: Final = replace(
    LAYER_VOCABULARY,
    usual_name="bmprofile_data-",
    views=(
        *LAYER_VOCABULARY.views,
        View("device_memory", "Device memory", "What the runtime allocated on the device, and when.",
             f"{_HERE}.views.bandwidth:device_memory", in_summary=False, place="", compared=False, facts=False),
    ),
)  # fmt: skip
