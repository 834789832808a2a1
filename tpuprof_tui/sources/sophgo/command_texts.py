"""Texts of the command line's help for these captures: descriptions, examples, options."""

from __future__ import annotations

from typing import Final

#: Examples by command; with the suffix ``_help`` its description, with ``_core`` the help of its option for cores.
TEXTS: Final = {
    "open": """\
  tpuprof                                     choose among the captures in this directory
  tpuprof cdm_profile_data_dev0-0             open one
  tpuprof cdm_profile_data_dev*               choose among these
  tpuprof cdm_profile_data_dev0-0 --tiu_freq 900
  tpuprof cdm_profile_data_dev0-0 --trace_file host.json --follow
  tpuprof summary cdm_profile_data_dev0-0     where the time went, as text
  tpuprof info cdm_profile_data_dev0-0 --json
  tpuprof instructions cdm_profile_data_dev0-0 --format csv --core 0 --engine TIU > tiu.csv
  tpuprof export cdm_profile_data_dev0-0 out --perfetto
  tpuprof help KEYS                           all keys of the explorer
  tpuprof ./info                              a capture named like a command
""",
    "info": """\
  tpuprof info cdm_profile_data_dev0-0                          as text
  tpuprof info cdm_profile_data_dev0-0 --json | jq .problems    for other programs
  tpuprof info cdm_profile_data_dev0-0 --chip AKSV              a capture that lost its global.profile
  tpuprof info cdm_profile_data_dev*                            each of several
  tpuprof info trace.nsys-rep --why                             which source would open it, and why
  tpuprof info cdm_profile_data_dev0-0 --memory                 and how much memory it takes when open
""",
    "describe": """\
  tpuprof describe cdm_profile_data_dev0-0
  tpuprof describe cdm_profile_data_dev0-0 --json | jq .views
""",
    "summary_help": """\
Where the time went, as text: totals, cores, engines, kernel functions and operations that took it.

Figures are those of the explorer; `tpuprof export CAPTURE OUT --only summary` writes the table of bigTpuProfile.
""",
    "summary": """\
  tpuprof summary cdm_profile_data_dev0-0
  tpuprof summary cdm_profile_data_dev0-0 --tiu_freq 900        another TIU clock than the capture's
  tpuprof summary cdm_profile_data_dev0-0 > before.txt          plain text where it is not a terminal
""",
    "report": """\
  tpuprof report cdm_profile_data_dev0-0 --list                 which views there are
  tpuprof report cdm_profile_data_dev0-0 findings               what is worth a look
  tpuprof report cdm_profile_data_dev0-0 kernels lanes --core 0 --limit 5
  tpuprof report cdm_profile_data_dev0-0 --json | jq .views.kernels
""",
    "diff": """\
  tpuprof diff before/cdm_profile_data_dev0-0 after/cdm_profile_data_dev0-0
  tpuprof diff before after kernels waits --limit 10            also views, with differences
  tpuprof diff before after alignment                           which launches are new, gone, changed or moved
  tpuprof diff before after --step 2 --json | jq .verdict.why
  tpuprof diff before after --markdown > comment.md             for a merge request
""",
    "gate": """\
  tpuprof gate after --against before                           one run a side: noise between runs is assumed
  tpuprof gate after1 after2 after3 --against before1 before2 before3
  tpuprof gate after1 after2 after3 --against main.json --fail-on "total>3%" --fail-on "kernel:softmax_multi_core>5%"
  tpuprof gate after --against before --fail-on "overview.busiest_us>10us" --output result.xml
""",
    "baseline": """\
  tpuprof baseline save main.json run1 run2 run3
""",
    "instructions_help": """\
Every instruction on stdout: by core, then TIU, GDMA, SDMA, then CDMA port, each in stream order.

With --columns the columns of the explorer's table, slices of a host trace included; Parquet has all of them by
default. Columns are keys of filters (name, dur, core, ...) or names in files ("Asic Cycle"); `tpuprof help COLUMNS`
says what they mean.
""",
    "instructions": """\
  tpuprof instructions cdm_profile_data_dev0-0 --engine GDMA --filter "bw<20" > slow.jsonl
  tpuprof instructions cdm_profile_data_dev0-0 --format csv --columns core,engine,name,start,dur --sort dur:desc
  tpuprof instructions cdm_profile_data_dev0-0 --format parquet --output instructions.parquet
  tpuprof instructions cdm_profile_data_dev0-0 --columns name,dur --sort dur:desc --limit 20
""",
    "export_help": """\
Write the workbook, the web view, the Perfetto trace, the summary and the register text of a capture.

By default web view, workbook and register text; with --perfetto also the trace and summary.txt.
""",
    "export": """\
  tpuprof export cdm_profile_data_dev0-0                       web view, workbook, register text to profile_out/
  tpuprof export cdm_profile_data_dev0-0 out --perfetto        and perfetto.pftrace and summary.txt, to out/
  tpuprof export cdm_profile_data_dev0-0 out --only pftrace --trace_file host.json
  tpuprof export cdm_profile_data_dev0-0 out --only xlsx --cores 0,3 --range 1.2ms..3.4ms
  tpuprof export cdm_profile_data_dev0-0 out --only web --filter "kernel=rmsnorm* dur>1us"
""",
    "worked_examples": """\
Which transfers of lm_head_matmul_multi_core does no computation cover on core 0 of aks_decode_mode2?
  $ tpuprof report aks_decode_mode2 units --core 0 --filter 'kernel=lm_head*' --json
    -> views.units.workers.*.tables.units.rows.0.transfer_us = 340.139
    -> views.units.workers.*.tables.units.rows.0.exposed_us = 340.139
  $ tpuprof instructions aks_decode_mode2 --core 0 --filter 'kernel=lm_head*' --sort exposed:desc \\
    --columns name,exposed --limit 1
    -> name = "tensorLd"
    -> exposed = 87903
Answer: all of them: of 340.139 us all is exposed. The longest exposed is a tensorLd, 87903 ns.

Which kernel function takes most time in aks_decode_mode0, and how long is a batch?
  $ tpuprof report aks_decode_mode0 kernels steps --json
    -> views.kernels.workers.*.missing.0.what = "Kernel functions are not known here."
    -> views.kernels.workers.*.missing.0.needs = "a profile of mode 1"
    -> views.steps.workers.*.missing.0.needs = "a profile of mode 1"
  $ tpuprof instructions aks_decode_mode0 --columns name,kernel --limit 1
    -> name = null
    -> kernel = null
Answer: not recorded, neither kernel functions nor batches. Both need a profile of mode 1.

Which share of its time does core 1 of aks_damaged compute?
  $ tpuprof describe aks_damaged --json
    -> problems.error = 6
    -> worst_problem = "Block of type 5 claims 2300 bytes, 1297 are left in the file."
  $ tpuprof report aks_damaged units --core 1 --json
    -> views.units.workers.*.tables.units.rows.0.compute_us = 194.068
Answer: not known, records are lost (6 errors, exit status 1). What is left computes for 194.068 us.

How long is core 0 of aks_decode_mode0 busy?
  $ tpuprof report aks_decode_mode0 units --core 0 --json
    -> views.units.workers.*.tables.units.rows.0.busy_us = 756.999
    -> views.units.workers.*.tables.units.guessed.0 = 0
Answer: probably 756.999 us: row 0 is guessed.
""",
}
