"""Nothing a file can hold raises, hangs, takes memory beyond its size, or reaches an output as more than text.

The same targets as under atheris (``run.py``), on inputs that hypothesis makes: sound ones with bytes changed, and
made-up ones of the shapes each format has. The inputs are the same in every run.
"""

from __future__ import annotations

import json
import struct
import zlib
from contextlib import nullcontext

import pytest
import raw_bytes as raw
from bounds import bounded, ending
from fuzz_targets import TARGETS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

FIXED = settings(
    derandomize=True,
    deadline=None,
    max_examples=4,  # make briefly runs the same targets for a minute
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_TELLING = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 127, 128, 255, 0x7FFF, 0xFFFF, 0x10000, 0xFFFFFF, 0x1000000, 0x7FFFFFFF, 0x80000000,
    0xFFFFFF80, 0xFFFFFF88, 0xFFFFFFF0, 0xFFFFFFFF,
)  # fmt: skip
WORDS = st.sampled_from(_TELLING) | st.integers(0, 0xFFFFFFFF)


def run(name: str, data: bytes) -> None:
    """A target on an input; of one in four (the same in every run) the memory is measured."""
    with ending(), bounded(len(data)) if zlib.crc32(data) % 4 == 0 else nullcontext():
        TARGETS[name].run(data)


# -- sound inputs with bytes changed -----------------------------------------

_EDITS = st.lists(
    st.tuples(st.sampled_from(("flip", "word", "lose", "double", "insert", "cut")), st.floats(0, 1), WORDS),
    min_size=1,
    max_size=6,
)


def edited(data: bytes, edits: list[tuple[str, float, int]]) -> bytes:
    """The bytes (but for the first) with edits made one after the other."""
    result = bytearray(data)
    for what, share, value in edits:
        at = 1 + int(share * max(len(result) - 2, 0))
        length = 1 + value % 40
        if what == "flip" and at < len(result):
            result[at] ^= 1 << value % 8
        elif what == "word":
            at = (at - 1 & ~3) + 1
            result[at : at + 4] = struct.pack("<I", value)
        elif what == "lose":
            del result[at : at + length]
        elif what == "double":
            result[at:at] = result[at : at + length]
        elif what == "insert":
            result[at:at] = struct.pack("<I", value)
        elif value % 8 == 0:
            del result[at:]
    return bytes(result)


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "names"])
def test_sound_inputs_with_bytes_changed(name: str) -> None:
    seeds = TARGETS[name].seeds()
    for seed in seeds[:: max(1, len(seeds) // 4)]:
        run(name, seed)

    @FIXED
    @given(st.sampled_from(seeds), _EDITS)
    def changed(seed: bytes, edits: list[tuple[str, float, int]]) -> None:
        run(name, edited(seed, edits))

    changed()


# -- made-up inputs ------------------------------------------------------------

_KEYS = st.sampled_from(
    (
        "arch", "tpu_freq", "core_num", "max_record_num", "tail_offset_ns", "0_tiu_record", "bmodel",
        "core1_gdma_record", "cdma3_record", "x_record", "arch ", "", "\x1b[2J", "=",
    )
) | st.text(max_size=9)  # fmt: skip
_VALUES = st.sampled_from(
    (
        "5", "aks", "AKSV", "7", "0", "-1", "1", "nan", "1e999", "0x10", "9" * 39, "9" * 400, "٥", "1_0",
        str(1 << 62), str(-(1 << 62)), str(1 << 32), "4294967295", "",
    )
) | st.text(max_size=9)  # fmt: skip


@FIXED
@given(
    st.lists(st.tuples(_KEYS, st.sampled_from("= \0\t:"), _VALUES), max_size=9), st.sampled_from(("\n", "\r\n", "\r"))
)
def test_settings_of_any_kind(lines: list[tuple[str, str, str]], end: str) -> None:
    run("settings", end.join("".join(line) for line in lines).encode("utf-8", "surrogatepass"))


_KINDS = st.sampled_from((*range(1, 18), 100, 0, 77, 0xFFFFFFFF))
_BLOCKS = st.lists(st.tuples(_KINDS, st.binary(max_size=300), st.none() | WORDS), max_size=6)


@FIXED
@given(st.integers(0, 7), _BLOCKS, st.binary(max_size=9))
def test_blocks_of_any_kind_and_length(options: int, blocks: list[tuple[int, bytes, int | None]], rest: bytes) -> None:
    run("framing", bytes([options]) + b"".join(raw.block(*block) for block in blocks) + rest)


@FIXED
@given(st.integers(0, 1), _BLOCKS)
def test_port_files_of_any_kind(options: int, blocks: list[tuple[int, bytes, int | None]]) -> None:
    run(
        "port", bytes([options]) + b"".join(raw.block(12 if n % 2 else k, *more) for n, (k, *more) in enumerate(blocks))
    )


@FIXED
@given(st.integers(0, 63), st.lists(WORDS, max_size=120))
def test_records_of_any_kind(options: int, words: list[int]) -> None:
    run("records", bytes([options]) + raw.words(words))


_NODES = st.one_of(
    st.builds(
        raw.node,
        st.integers(0, 7),
        st.integers(0, 31),
        st.integers(0, 31),
        st.integers(0, 4095),
        st.sampled_from((1, 13)),
    ).map(lambda word: [word]),
    st.builds(raw.func, st.binary(max_size=20)),
    st.builds(
        raw.des, st.integers(8, 11), st.integers(0, 3), WORDS.map(lambda word: word & 0xFFFFFFF), st.integers(0, 15)
    ),
    st.builds(raw.id_reset, st.integers(0, 7), st.integers(0, 15)).map(lambda word: [word]),
    st.just([raw.FUNC_END]),
    st.lists(WORDS, max_size=3),
)


@FIXED
@given(st.integers(0, 7), st.lists(_NODES, max_size=40), st.binary(max_size=3))
def test_nodes_of_any_kind(options: int, nodes: list[list[int]], rest: bytes) -> None:
    run("nodes", bytes([options]) + raw.words([word for node in nodes for word in node]) + rest)


@FIXED
@given(
    st.integers(0, 3),
    st.lists(
        st.tuples(st.sampled_from((0, 1, 100, 2, 0xFFFFFFFF)), st.binary(max_size=130), st.none() | WORDS), max_size=14
    ),
)
def test_detail_records_of_any_kind(options: int, records: list[tuple[int, bytes, int | None]]) -> None:
    data = b"".join(
        struct.pack("<3I", 9, kind, len(content) if claim is None else claim) + content
        for kind, content, claim in records
    )
    run("details", bytes([options]) + data)


@FIXED
@given(st.integers(0, 63), st.lists(WORDS | st.integers(0, 1 << 12), max_size=150))
def test_descriptor_streams_of_any_kind(options: int, words: list[int]) -> None:
    run("streams", bytes([options]) + raw.words(words))


_ODD = st.sampled_from(
    (
        "NaN", "-Infinity", "1e999", "1e-999", "-0", "9" * 5000, "0." + "9" * 5000, '"12.5"', '"\\ud800"',
        '"\\u0000"', "null", "true", "{}", "[]", "[" * 2000, "{" * 2000, '{"a":' * 3000 + "1" + "}" * 3000,
        '"' + "x" * 100_000 + '"', '"=1+1"', '"\\u001b[2J"', '"</script>"', "12.0000000001", "1E3", "-5",
        str(1 << 62), str(1 << 70), "\ufeff", '"unended',
    )
)  # fmt: skip
_MEMBERS = st.dictionaries(st.sampled_from(("ph", "ts", "dur", "name", "cat", "pid", "tid", "args")), _ODD, max_size=8)


@FIXED
@given(
    st.integers(0, 2),
    st.lists(_MEMBERS | _ODD, max_size=6),
    st.booleans(),
    st.sampled_from(("", "]", "]}", ']}{"traceEvents":[]}')),
)
def test_host_traces_of_any_kind(options: int, events: list[dict[str, str] | str], complete: bool, end: str) -> None:
    def text(event: dict[str, str] | str) -> str:
        if isinstance(event, str):
            return event
        members = {"ph": '"X"', "ts": "5", "dur": "2", **event} if complete else event
        return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members.items()) + "}"

    run(
        "host",
        bytes([options]) + ('{"traceEvents":[' + ",".join(map(text, events)) + end).encode("utf-8", "surrogatepass"),
    )


_EVIL = st.sampled_from(
    (
        "\x1b]0;owned\x07", "\x1b[2J\x1b[1;31m", "\x9b31m", "\x1b]52;c;aGk=\x07", '=HYPERLINK("http://x")', "+1",
        "-1+1", "@SUM(A1)", "\t=1", "</script><script>alert(1)</script>", "<!--", "]]>", "&lt;",
        "<img src=x onerror=1>", "[red]x[/red]", "[@click=a]b[/]", "../../x", "/etc/passwd", "a\0b", "NUL",
        "\r\nTIU,0,1", '"quoted"', "%s %d %n", "{0}", "\\x1b[2J", "$(id)", "`id`", "\u202egnp.exe", "\u2028",
        "\ufeff", "\ufffe", "核心函数", "🌀" * 30, "_x0041_", " lead", "'", "a" * 400, "",
    )
)  # fmt: skip


@settings(FIXED, max_examples=2)
@given(st.lists(_EVIL.map(str.encode) | st.binary(max_size=12), min_size=1, max_size=8))
@example([b"\x1b[2J", b"=1+1", b"</script>", b"../../x", b"a\0b", b"[red]x[/red]", b"\r\n", b"\xff\xfe"])
def test_names_are_text_in_every_output(names: list[bytes]) -> None:
    run("names", b"\xfe".join(names))
