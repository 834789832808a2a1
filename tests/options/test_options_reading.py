"""From texts to options: shells, JSON, calls; and any text at all."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from options_tables import KINDS, TABLES, checked, tables_of

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.options.checking import json_value
from tpuprof_tui.options.explaining import checked_json, checked_lines, overview_lines
from tpuprof_tui.options.reading import from_environment, json_text, read, shell_words

OPTION_NAMES = sorted(option.name for tables in TABLES.values() for option in tables.options)


def values(text, kind="PROFILING_OPTIONS"):
    tables = tables_of(kind)
    written = read(text, tables.kinds[kind], tables)
    assert not written.problem, written.problem
    return {name: json_value(value) for name, value in written.values.items()}


def problem(text, kind="PROFILING_OPTIONS"):
    tables = tables_of(kind)
    return read(text, tables.kinds[kind], tables).problem


@pytest.mark.parametrize(
    "text",
    [
        '{"l2":"on"}',
        ' \n{"l2":"on"}\n',
        'export PROFILING_OPTIONS=\'{"l2":"on"}\'',
        'PROFILING_OPTIONS=\'{"l2":"on"}\'',
        'PROFILING_OPTIONS="{\\"l2\\":\\"on\\"}" python train.py',
        'export PROFILING_OPTIONS={\\"l2\\":\\"on\\"}',
        '# it\'s\nexport PROFILING_MODE=true\nexport PROFILING_OPTIONS=\'{"l2":"on"}\'; python a.py\n',
        "PROFILING_OPTIONS='{}'\nPROFILING_OPTIONS='{\"l2\":\n\"on\"}'",
        "PROFILING_OPTIONS=''\\''x' PROFILING_OPTIONS='{\"l2\":\"on\"}'",
        'PROFILING_OPTIONS="{\\"l2\\":\\\n\\"on\\"}"',
    ],
)
def test_lines_for_a_shell_and_the_object_itself(text):
    assert values(text) == {"l2": "on"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{'l2':'on'}", "single quotes"),
        ('{"l2":"on",}', "comma"),
        ("{l2:on}", "double quotes are missing"),
        ('PROFILING_OPTIONS={"l2": "on"}', "double quotes are missing"),
        ('PROFILING_OPTIONS=\'{"l2"', "quote is not closed"),
        ("[]", "not an object"),
        ('"{}"', "not an object"),
        ("", "nothing"),
        ('{"l2":"on"', "too early"),
        ('{"a":NaN}', "NaN"),
        ("[" * 100_000, "nested"),
        ('{"l2":“on”}', "full-width"),
        ('{"l2":True}', "Python"),
        ("torch_npu.npu.profileConfig(A=True)", "--kind profileConfig"),
        ('{"a\udcff":"b"}', "UTF-8"),
        ('{\n"l2":"on"\n"l2"}', "line 3, column 1"),
        ("$OPTIONS", "not JSON"),
    ],
)
def test_why_a_text_is_no_object(text, said):
    assert said in problem(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("profileConfig()", {}),
        ("x = torch_npu.npu.profileConfig(A=True, B=0xFF,)", {"A": True, "B": 255}),
        ("profileConfig(A='x)', # B=1,\n B=-1)", {"A": "x)", "B": -1}),
        ('{"A": true, "B": 1}', {"A": True, "B": 1}),
        ("profile(config=torch_npu.npu.profileConfig(A=False)):", {"A": False}),
        ("profileConfig(A=f(1, 2))", {"A": "f(1,2)"}),
        ("profileConfig(A=a==b)", {"A": "a==b"}),
    ],
)
def test_calls(text, found):
    assert values(text, "profileConfig") == found


@pytest.mark.parametrize(
    "text",
    [
        "profileConfig(A=True", "profileConfig(True)", "profileConfig(**a)", "profileConfig(,)", "profileConfig(A=)",
        "profileConfig('", "A=True", "[]",
    ],
)  # fmt: skip
def test_calls_that_cannot_be_read(text):
    assert problem(text, "profileConfig")


def test_sophgos_variables_and_call():
    line = "PATH=/bin ENABLE_ALL_PROFILE=1 PROFILE_RECORD_SIZE='65536' tpu-model-rt --bmodel m"
    assert values(line, "sophgo") == {"ENABLE_ALL_PROFILE": "1", "PROFILE_RECORD_SIZE": "65536"}
    assert values("torch.ops.my_ops.enable_profile(4096, mode=2)", "sophgo") == {"max_record_num": 4096, "mode": 2}
    tables = tables_of("sophgo")
    found = from_environment({"HOME": "/", "PROFILE_MODES": "1"}, tables.kinds["sophgo"], tables)
    assert found.values == {"PROFILE_MODES": "1"}
    assert from_environment({"HOME": "/"}, tables.kinds["sophgo"], tables) is None


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
@given(st.lists(st.text(st.sampled_from("ab'\"\\ \t{}:,"), max_size=8), min_size=1, max_size=3))
@settings(max_examples=60)
def test_words_are_those_of_a_shell(pieces):
    line = " ".join(pieces)
    found = list(shell_words(line))
    if not all(closed for _, closed in found) or line.endswith("\\"):
        return
    done = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert [word for word, _ in found] == (done.stdout.split("\0")[:-1] if found else [])


def borne(text, kind):
    """Everything that is done with a text."""
    tables = tables_of(kind)
    found = checked(text, kind, mode="training", product="atlas-training", dynamic=True)
    told = json.loads(json_text(checked_json(found, [], tables)))
    assert told["verdict"] in ("ok", "warnings", "errors")
    assert (told["verdict"] == "ok") == (not told["findings"])
    assert not any({"\n", "\x1b"} & set(line_text(line)) for line in checked_lines(found, [], tables))
    list(overview_lines(read(text, tables.kinds[kind], tables), tables.kinds[kind], tables))


TEXTS = st.text(st.characters(codec=None)) | st.text(
    st.sampled_from("{}[]()'\"\\:,= \nPROFILING_OPTIONSprofileConfig0x1")
)
ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["on", "off", "l1", "Custom:1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(OPTION_NAMES) | st.text(max_size=5), ANY_VALUE, max_size=8).map(json.dumps)


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS | OBJECTS)
@example("PROFILING_OPTIONS=\0")
@example('{"dvpp_freq":1e999}')
@example('{"output":"\\ud800"}')
def test_any_text_is_borne(kind, text):
    borne(text, kind)


HUGE = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * HUGE,
        '{"a":' * (HUGE // 5),
        "\0" * HUGE,
        "\udcff" * HUGE,
        "'" * HUGE,
        'profileConfig("' + '\\"' * (HUGE // 2),
        "PROFILING_OPTIONS='" + "x" * HUGE,
        '{"storage_limit":' + "9" * HUGE + "}",
        '{"x":"' + "é" * HUGE + '"}',
        '{"aic_metrics":"Custom:' + "1," * (HUGE // 2) + '"}',
        "profileConfig(" + "a=(" * (HUGE // 3),
        "{" + ",".join(f'"a{number}":1' for number in range(HUGE // 11)) + "}",
        "A=1 " * (HUGE // 4),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_megabyte_of_anything_is_borne(text):
    checked(text, "sophgo" if text.startswith("A=") else "profileConfig" if "Config" in text else "PROFILING_OPTIONS")


@given(st.dictionaries(st.sampled_from(OPTION_NAMES) | st.text(max_size=4), ANY_VALUE, max_size=8), st.randoms())
def test_findings_do_not_depend_on_the_order_of_keys(options, random):
    names = list(options)
    random.shuffle(names)
    one, other = checked(json.dumps(options)), checked(json.dumps({name: options[name] for name in names}))
    assert one.violations == other.violations
    assert (one.line is None) == (other.line is None)
