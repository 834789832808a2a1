"""Registry of export formats: generic ones and those of sources.

The export menu, the explorer's keys, commands and palette, the options of ``tpuprof export`` and ``tpuprof
instructions``, their help and their completion are derived from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.model.vocabulary import Output, Vocabulary

#: Self-contained web page.
PAGE: Final = Output(
    "web", "web view", "tpuprof_tui.export.web.page:write_page", files=("profile.html",), letter="w",
    help="Write the web view, one page that opens anywhere.", short="Web", list_order=20, write_order=50,
    sets=frozenset(("web", "num_core")), cost=(7.5, 1_500.0), detailed=(8.5, 2_500.0), most=2_000_000,
)  # fmt: skip
#: Workbook of the views, one sheet per table.
WORKBOOK: Final = Output(
    "xlsx", "workbook", "tpuprof_tui.export.workbook:write_view_workbook", files=("profile.xlsx",), action="workbook",
    letter="x", short="Workbook", list_order=10, write_order=40, sets=frozenset(("doc", "enable_doc", "num_core")),
)  # fmt: skip
#: Trace for Perfetto.
TRACE: Final = Output(
    "pftrace", "Perfetto trace", "tpuprof_tui.export.trace:write_trace", files=("perfetto.pftrace",),
    action="perfetto", letter="p", help="Write the trace for Perfetto.", short="Perfetto", list_order=30,
    write_order=20, sets=frozenset(("perfetto", "enable_doc")),
)  # fmt: skip
#: Self time by call path, for flame graphs.
COLLAPSED: Final = Output(
    "collapsed", "collapsed stacks", "tpuprof_tui.export.collapsed:write_collapsed",
    files=("calltree.collapsedstack.txt",), letter="f",
    help="Write time by call path as collapsed stacks, for speedscope and flamegraph.pl.",
    list_order=55, write_order=60,
)  # fmt: skip
#: The explorer's table of events; keys are values of ``tpuprof instructions --format``.
TABLES: Final = (
    Output("csv", "table as CSV", letter="c",
           help="Write the {events} of the table as CSV.", short="CSV", list_order=60),
    Output("jsonl", "table as JSON lines", action="json", letter="j",
           help="Write the {events} of the table as JSON lines.", short="JSON", list_order=70),
    Output("parquet", "table as Parquet", letter="t",
           help="Write the {events} of the table as Parquet (needs pyarrow).", needs="pyarrow", list_order=80),
)  # fmt: skip


def outputs_of(vocabulary: Vocabulary) -> tuple[Output, ...]:
    """Export formats of a source, without tables, in the order of lists."""
    return outputs_of_all((vocabulary,))


def outputs_of_all(vocabularies: Iterable[Vocabulary]) -> tuple[Output, ...]:
    """Export formats of several sources, without tables, in the order of lists; the first of each key wins."""
    found: dict[str, Output] = {}
    for vocabulary in vocabularies:
        for output in (*vocabulary.outputs, WORKBOOK, TRACE, PAGE, COLLAPSED):
            files = vocabulary.output_files.get(output.key)
            found.setdefault(output.key, replace(output, files=files) if files else output)
    return tuple(sorted(found.values(), key=lambda output: output.list_order))


def explorer_outputs(*vocabularies: Vocabulary) -> tuple[Output, ...]:
    """Export formats in the explorer: those of the sources, then tables, with files named after the first's events."""
    name = vocabularies[0].event.plural.replace(" ", "_")
    tables = (replace(table, files=(f"{name}.{table.key}",)) for table in TABLES)
    return (*outputs_of_all(vocabularies), *tables)


def output_named(name: str, vocabulary: Vocabulary) -> Output | None:
    """Export format of the explorer with this id or key; None if there is none."""
    return next((output for output in explorer_outputs(vocabulary) if name in (output.id, output.key)), None)


def keys_of(outputs: Iterable[Output]) -> tuple[str, ...]:
    """Keys of outputs on the command line, in the order of writing."""
    return tuple(output.key for output in sorted(outputs, key=lambda output: output.write_order))
