"""What recordings of ovens call things."""

from __future__ import annotations

from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.columns import Column
from tpuprof_tui.model.vocabulary import NAMES, Capability, Category, GroupKind, LaneKind, Shades, Vocabulary, Word

COLUMNS = (
    Column("engine", "Place", kind="text", shown=True, help="What of the oven it ran on."),
    Column("core", "Oven", width=4, shown=True, help="Number of the oven."),
    Column("order", "Idx", width=7, help="Place among those of its lane."),
    Column("name", "Dish", kind="text", width=18, shown=True, needs=NAMES, help="What was made."),
    Column("type", "Doing", kind="text", width=10, needs=NAMES, help="What was done."),
    Column("kernel", "Recipe", kind="text", width=18, shown=True, needs=NAMES, help="The recipe it belongs to."),
    Column("start", "Start", unit="ns", width=13, shown=True, group="time", help="When it began."),
    Column("end", "End", unit="ns", width=13, group="time", help="When it ended."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, group="time", aliases=("dur",),
           help="End minus start."),
    Column("grams", "Grams", unit="g", width=7, lanes=("tray", "cart"), help="How much was moved."),
    Column("step", "Round", width=5, group="time", help="Its round among those of its oven."),
    Column("depth", "Depth", width=5, lanes=("baker",), help="How many enclose it."),
)  # fmt: skip

VOCABULARY = Vocabulary(
    source="oven",
    title="oven",
    unit=Word("oven"),
    event=Word("step"),
    scope=Word("recipe"),
    step=Word("round"),
    lane_kinds=(
        LaneKind("tray", "Tray", Activity.COMPUTE, 0, shades=Shades("#c08040")),
        LaneKind("cart", "Cart", Activity.TRANSFER, 1, shades=Shades("#4080c0")),
        LaneKind("baker", "Baker", Activity.HOST, 2),
    ),
    group_kinds=(
        GroupKind("bakery", "Bakeries", Word("bakery", "bakeries")),
        GroupKind("oven", "Ovens", Word("oven")),
    ),
    categories=(
        Category("baking", "B", Shades("#c08040"), ("bake",)),
        Category("carrying", "C", Shades("#4080c0"), ("carry",)),
        Category("passing on", "P", Shades("#40a060"), ("pass",)),
    ),
    capabilities=(Capability(NAMES, "recipes", "a recording with names"),),
    columns_entry=f"{__name__}:COLUMNS",
)
