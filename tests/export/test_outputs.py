"""The registry of outputs: what any profile can be written as, and what its source adds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from profiles import small_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.job import OWN_LIST, Job, parse_kinds, run_export
from tpuprof_tui.export.outputs import PAGE, TABLES, explorer_outputs, keys_of, outputs_of, outputs_of_all
from tpuprof_tui.model.vocabulary import Output, Vocabulary, Word, import_entry
from tpuprof_tui.sources.sophgo.schema import COLUMNS
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY
from tpuprof_tui.views.info import info_record
from tpuprof_tui.views.text_pages import info_report, summary_report

SCHEMA = COLUMNS
RECIPE = Output("recipe", "recipe", f"{__name__}:write_recipe", ("kitchen/recipe.txt",), list_order=5, write_order=99)
OVEN = Vocabulary(
    "oven", "oven", unit=Word("tray"), outputs=(RECIPE,), columns_entry=f"{__name__}:SCHEMA",
)  # fmt: skip


def write_recipe(job: Job, paths: list[Path], progress) -> list[Path]:
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    paths[0].write_text(job.query.profile.name)
    progress(1.0)
    return paths


def test_the_sophgo_source_writes_what_it_always_wrote():
    keys = [output.key for output in outputs_of(VOCABULARY)]
    assert keys == ["xlsx", "web", "pftrace", "summary", "regs", "collapsed"]
    assert keys_of(outputs_of(VOCABULARY)) == ("summary", "pftrace", "regs", "xlsx", "web", "collapsed")
    files = {output.key: output.files for output in outputs_of(VOCABULARY)}
    assert files["web"] == ("PerfWeb/result.html",)


@pytest.mark.parametrize("output", [PAGE, *VOCABULARY.outputs], ids=lambda output: output.key)
def test_every_entry_of_an_output_names_a_function(output):
    for where in (output.writer, output.names, output.finish):
        assert not where or callable(import_entry(where))


def test_tables_are_forms_of_one_command():
    from tpuprof_tui.cli.main import build_parser

    for table in TABLES:
        assert build_parser("instructions").parse_args(["x", "--format", table.key]).format == table.key
        assert table.is_table


def test_the_explorer_has_an_action_for_each_output_of_a_source_and_no_others():
    from tpuprof_tui.app.settings.actions import actions_for

    for vocabulary in (VOCABULARY, OVEN):
        written = {output.id: output for output in explorer_outputs(vocabulary)}
        known = {each.id: each for each in actions_for(vocabulary)}
        menu = {name for name in known if "output(" in known[name].function and name.startswith("export.")}
        assert menu == {f"export.{name}" for name in written}
        for name, output in written.items():
            assert known[f"explorer.export-{name}"].text == f"Export {output.title}"
        assert known["export.web"].keys == ("w",)
        assert known["explorer.export-web"].keys == ("alt+w",)
        assert known["export.csv"].help == f"Write the {vocabulary.event.plural} of the table as CSV."
    # no key can be bound to what another package writes, before it is loaded
    assert known["export.recipe"].keys == ()
    assert known["export.recipe"].help == "Write the recipe."
    assert "recipe" in known["explorer.export"].help


def test_the_command_line_names_the_outputs_in_its_help():
    from tpuprof_tui.cli.main import COMMANDS, build_parser
    from tpuprof_tui.cli.options import known_outputs

    told = {flag: action.help for action in build_parser("export")._actions for flag in action.option_strings}
    for flag, name in (("--perfetto", "perfetto"), ("--disable-web", "web"), ("--enable-doc", "enable_doc"),
                       ("--num-core", "num_core")):  # fmt: skip
        titles = [output.title for output in known_outputs() if name in output.sets]
        assert titles
        assert all(title in told[flag] for title in titles)
    assert told["--only"] == "only these: xlsx,web,pftrace,summary,regs,collapsed"
    assert all(output.title in COMMANDS["export"].help for output in known_outputs())


def test_of_several_sources_each_key_is_listed_once():
    assert [output.key for output in outputs_of_all((OVEN, VOCABULARY))] == [
        "recipe", "xlsx", "web", "pftrace", "summary", "regs", "collapsed",
    ]  # fmt: skip


def test_a_source_of_other_words_writes_its_own_files_and_the_generic_ones(tmp_path):
    profile = replace(small_profile(2, event_count=40), vocabulary=OVEN, source_data={}, capabilities=frozenset())
    outputs = outputs_of(OVEN)
    told = []
    written = run_export(
        Job(tmp_path / "out", frozenset(keys_of(outputs)), query_of(profile)), lambda *each: told.append(each)
    )
    names = {file.path.relative_to(tmp_path / "out").as_posix() for file in written}
    assert names == {"perfetto.pftrace", "kitchen/recipe.txt", "profile.html", "profile.xlsx",
                     "calltree.collapsedstack.txt"}  # fmt: skip
    assert set(json.loads((tmp_path / "out" / OWN_LIST).read_text())) == names
    assert ("recipe", 1.0) in told
    with pytest.raises(UsageError, match="Choose from"):
        parse_kinds("regs", keys_of(outputs))
    # what it does not write any more goes
    run_export(Job(tmp_path / "out", frozenset(("web",)), query_of(profile)))
    assert (tmp_path / "out" / "kitchen" / "recipe.txt").exists(), "another kind than was asked for"


def test_what_is_told_of_a_source_of_other_words_names_no_tool_and_no_mode():
    profile = replace(small_profile(2, event_count=40), vocabulary=OVEN, source_data={}, capabilities=frozenset())
    text = f"{summary_report(profile).text()}\n{info_report(profile).text()}"
    assert "bigTpuProfile" not in text
    assert "CDMA ports" not in text
    record = info_record(profile)
    assert record["source"] == "oven"
    assert not {"mode", "bmodel", "cdma_ports"} & record.keys()
